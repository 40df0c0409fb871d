#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: selftests/apps/kv.py KV [OPTION]...

Tests examples/kv: its replies beside redis-server's, loads, and what expires.
O= says where tools were built.
"""

import contextlib
import json
import os
import re
import signal
import socket
import sys
import threading
import time

from harness import (IS_SHORT, LIMIT, Program, Server, allow_descriptors,
                     connect_unix, directory, equal, eventually, is_readable,
                     listens, read_all, results, run)


def bulk(*words):
    data = b"*%d\r\n" % len(words)
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        data += b"$%d\r\n%s\r\n" % (len(word), word)
    return data


def commands(text):
    """A line each, of words."""
    return b"".join(bulk(*line.split()) for line in text.splitlines() if line)


# Their replies tell of the time that is left, to the nearest second.
TIMED = ("expire", "set_options")
IN_TIME = 0.3                   # of 1.9 s, at least 1.5 s are left then

# Sent as they stand, and QUIT after them.
REQUESTS = {
    "strings": commands("SET a 1\nGET a\nGET b\nset A 2\nget A\nGET a"),
    "empty_value": bulk("SET", "a", "") + commands("GET a\nMGET a b a"),
    "binary": bulk("SET", b"\0\r\n", bytes(range(256))) +
    bulk("GET", b"\0\r\n"),
    "value_of_100k": bulk("SET", "a", b"x" * 100000) + commands("GET a"),
    "del": commands("SET a 1\nSET b 2\nDEL a b c a\nDEL a\nGET b"),
    "exists": commands("SET a 1\nEXISTS a\nEXISTS a a b\nEXISTS b"),
    "mget": commands("SET a 1\nMGET a b c\nSET b 2\nMGET a b c"),
    "incr": commands("INCR n\nINCR n\nGET n\nSET n -3\nINCR n\nGET n"),
    "incr_faults": commands("SET n x\nINCR n\nSET n 01\nINCR n\nSET n +1\n"
                            "INCR n\nSET n 9223372036854775807\nINCR n\n"
                            "SET n 9223372036854775808\nINCR n\nSET n -0\n"
                            "INCR n\nSET n 1.5\nINCR n") +
    bulk("SET", "n", " 1") + commands("INCR n") + bulk("SET", "n", "") +
    commands("INCR n"),
    "expire": commands("SET a 1\nTTL a\nEXPIRE a 100\nTTL a\nTTL b\n"
                       "EXPIRE b 1\nSET a 2\nTTL a\nEXPIRE a 50\nINCR a\n"
                       "TTL a\nEXPIRE a 0\nGET a\nSET a 1\nEXPIRE a -5\n"
                       "EXISTS a"),
    "set_options": commands("SET a 1 EX 100\nTTL a\nSET a 2 PX 5000\nTTL a\n"
                            "SET a 3 NX\nGET a\nSET a 4 XX\nGET a\n"
                            "SET b 1 XX\nGET b\nSET b 1 NX ex 9\nTTL b\n"
                            "SET a 5 px 1900 xx\nTTL a"),
    "set_faults": commands("SET a 1 EX\nSET a 1 NX XX\nSET a 1 EX x\n"
                           "SET a 1 EX 0\nSET a 1 EX -1\nSET a 1 EX 1 PX 1\n"
                           "SET a 1 WHAT\nGET a\nEXPIRE a x"),
    "arity": commands("GET\nGET a b\nSET a\nINCR\nDEL\nEXISTS\nMGET\n"
                      "EXPIRE a\nTTL\nTTL a b"),
    "unknown": commands("WHAT\nWHAT is this\nwhat a b c") +
    bulk("a\r\nb", "c\nd"),
    "ping": commands("PING\nPING hello\nping"),
    "dbsize": commands("DBSIZE\nSET a 1\nSET b 1\nDBSIZE\nDEL a\nDBSIZE"),
    "inline": b"SET a 1\r\nGET a\r\n  get   a  \nPING\r\n\r\nGET b\r\n",
    "empty_arrays": b"*0\r\n*-1\r\n" + commands("PING"),
    "bad_array": commands("PING") + b"*x\r\n" + commands("PING"),
    "bad_bulk": b"*1\r\n$x\r\n",
    "negative_bulk": b"*1\r\n$-1\r\n",
    "bulk_too_large": b"*1\r\n$99999999999\r\n",
}


def cursor(sock, size):
    """Exactly so many bytes."""
    data = b""
    while len(data) < size:
        piece = sock.recv(65536)
        assert piece, data[-100:]
        data += piece
    return data


class Flood:
    """Connections that send a command over and over, and receive."""

    def __init__(self, server, command, nr):
        self.got = [b""] * nr
        self.threads = []
        for i in range(nr):
            sock = server.connect()
            for work in ((self.send, sock, command * 1000),
                         (self.receive, sock, i)):
                thread = threading.Thread(target=work[0], args=work[1:])
                thread.start()
                self.threads.append(thread)

    def send(self, sock, data):
        with contextlib.suppress(OSError):
            while True:
                sock.sendall(data)

    def receive(self, sock, i):
        with contextlib.suppress(ConnectionResetError):
            while piece := sock.recv(65536):
                self.got[i] += piece
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)     # which ends send()

    def join(self):
        for thread in self.threads:
            thread.join()


class Tests:
    """One server, and all tests of it."""

    def __init__(self, server, command, redis):
        self.server = server
        self.command = command
        self.program = command[-1]
        self.redis = redis
        self.port = str(server.address[1])

    def empty(self, sock, is_redis):
        """As at the start; kv has no FLUSHALL."""
        keys = ["a", "A", "b", "n", b"\0\r\n"]
        sock.sendall(bulk("DEL", *keys))
        assert sock.recv(100).startswith(b":"), is_redis
        return sock

    def ask(self, sock, data):
        with self.empty(sock, False):
            sock.settimeout(LIMIT)
            try:
                sock.sendall(data + bulk("QUIT"))
            except (BrokenPipeError, ConnectionResetError):
                pass
            return read_all(sock)

    def ask_in_time(self, connect, name):
        """Not by a server that got no processor for a while."""
        end = time.monotonic() + LIMIT
        while True:
            start = time.monotonic()
            replies = self.ask(connect(), REQUESTS[name])
            now = time.monotonic()
            if name not in TIMED or now - start < IN_TIME:
                return replies
            assert now < end, "this machine is too slow"

    def compare(self, name):
        want = self.ask_in_time(lambda: connect_unix(self.redis), name)
        equal(self.ask_in_time(self.server.connect, name), want, name)

    def request_in_pieces_is_the_same(self):
        for name in ("binary", "inline", "bad_array"):
            data = REQUESTS[name]
            sock = self.empty(self.server.connect(), False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in data + bulk("QUIT"):
                try:
                    sock.send(bytes([byte]))
                except (BrokenPipeError, ConnectionResetError):
                    break
            got = read_all(sock)
            equal(got, self.ask(self.server.connect(), data), name)

    def redis_cli_understands(self):
        cli = ("redis-cli", "-p", self.port)
        equal(run(*cli, "SET", "cli", "a b"), "OK\n")
        equal(run(*cli, "GET", "cli"), "a b\n")
        equal(run(*cli, "MGET", "cli", "none"), "a b\n\n")
        equal(run(*cli, "DEL", "cli"), "1\n")
        assert "parklot_version:" in run(*cli, "INFO")

    def redis_benchmark_runs(self):
        for depth in ("1", "16"):
            text = run("redis-benchmark", "-p", self.port, "-n", "20000", "-c",
                       "50", "-P", depth, "-r", "1000", "-q", "-t",
                       "ping,set,get,incr")
            text = text.replace("\r", "\n")
            for name in ("SET", "GET", "INCR", "PING_INLINE"):
                assert re.search(name + ": .* requests per second", text), text
            assert "rror:" not in text, text

    def increments_are_exact(self):
        """Of 200,000 of one key, pipelined in 8 connections, none is lost."""
        sock = self.server.connect()
        sock.sendall(bulk("DEL", "n"))
        sock.recv(100)
        seen = [None] * 8

        def work(i):
            with self.server.connect() as mine:
                data = bulk("INCR", "n") * 25000
                sender = threading.Thread(target=mine.sendall, args=(data,))
                sender.start()
                got = b""
                while got.count(b"\n") < 25000:
                    piece = mine.recv(1 << 20)
                    if not piece:
                        break
                    got += piece
                sender.join()
                seen[i] = [int(x[1:]) for x in got.split(b"\r\n")[:-1]]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sock.sendall(bulk("GET", "n"))
        equal(sock.recv(100), b"$6\r\n200000\r\n")
        for numbers in seen:
            equal(numbers, sorted(numbers), "goes up")
        equal(sorted(sum(seen, [])), list(range(1, 200001)), "each once")

    def stat(self, name):
        return json.loads(run(os.environ["O"] + "/tools/plstat", "-j",
                              str(self.server.pid)))[name]

    def keys_expire_untouched(self):
        """By timers: no command comes near them."""
        with self.server.connect() as sock:
            sock.sendall(bulk("DBSIZE"))
            before = sock.recv(100)
            data = b"".join(bulk("SET", "e%d" % i, i, "PX", 300 + i % 200)
                            for i in range(5000))
            sock.sendall(data)
            cursor(sock, len(b"+OK\r\n") * 5000)

            def size():
                sock.sendall(bulk("DBSIZE"))
                return sock.recv(100)

            eventually(lambda: size() == before, "all expired")
            eventually(lambda: self.stat("timers_alive") == 0, "timers")

    def new_expiry_counts(self):
        """A later one, and none, take the place of one that is near."""
        with self.server.connect() as sock:
            data = b"".join(bulk("SET", "l%d" % i, i, "PX", 100) +
                            bulk("EXPIRE", "l%d" % i, 1000) +
                            bulk("SET", "m%d" % i, i, "PX", 100) +
                            bulk("SET", "m%d" % i, i) for i in range(500))
            sock.sendall(data)
            # One may expire before its new expiry comes, if that takes long.
            replies = cursor(sock, 500 * len(b"+OK\r\n:1\r\n+OK\r\n+OK\r\n"))
            in_time = [reply == b":1" for reply in replies.split()[1::4]]
            assert any(in_time), "all expired at once"
            sock.sendall(bulk("SET", "gone", "1", "PX", "200"))
            cursor(sock, len(b"+OK\r\n"))

            def is_gone():
                sock.sendall(bulk("EXISTS", "gone"))
                return sock.recv(100) == b":0\r\n"

            eventually(is_gone, "the last one expires")
            for letter, counts in ("l", in_time), ("m", [True] * 500):
                for i in range(0, 500, 100):
                    names = [letter + str(n) for n in range(i, i + 100)]
                    sock.sendall(bulk("DEL", *names))
                    equal(sock.recv(100), b":%d\r\n" % sum(counts[i:i + 100]),
                          letter)
            eventually(lambda: self.stat("timers_alive") == 0, "timers")

    def set_and_expiry_race(self):
        """The same keys expire and are set anew, from many connections."""
        def work(seed):
            with self.server.connect() as sock:
                for turn in range(40):
                    sock.sendall(b"".join(
                        bulk("SET", "r%d" % (i % 20), turn, "PX",
                             1 + (i + seed) % 3) + bulk("DEL", "r%d" % i)
                        for i in range(50)))
                    got = b""
                    while got.count(b"\n") < 100:
                        got += sock.recv(65536)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        eventually(lambda: self.stat("timers_alive") == 0, "timers")

    def resets_leave_nothing(self):
        for data in (b"", b"*1\r\n$", bulk("PING") * 1000,
                     bulk("SET", "a", b"x" * 100000) + bulk("GET", "a") * 500):
            socks = [self.server.connect() for _ in range(25)]
            for sock in socks:
                sock.setblocking(False)
                sock.send(data)
            for sock in socks:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                b"\1\0\0\0\0\0\0\0")
                sock.close()

    def thousand_connections_are_served(self):
        self.server.settles(self.crowd)

    def crowd(self):
        socks = [self.server.connect() for _ in range(1000)]
        for sock in socks:
            sock.sendall(bulk("PING"))
        for sock in socks:
            equal(sock.recv(100), b"+PONG\r\n")
            sock.close()

    def sigterm_amid_loads(self):
        """Each command that was done is answered, in a whole reply."""
        value = b"x" * 100000
        with Server(*self.command) as server:
            with server.connect() as sock:
                sock.sendall(bulk("SET", "big", value))
                cursor(sock, len(b"+OK\r\n"))
            readers = [server.connect() for _ in range(4)]
            for sock in readers:
                sock.sendall(bulk("GET", "big") * 500)
            flood = Flood(server, bulk("INCR", "n"), 8)
            eventually(lambda: all(len(got) > 20000 for got in flood.got) and
                       all(is_readable(sock) for sock in readers),
                       "replies to all")
            server.process.send_signal(signal.SIGTERM)
            for sock in readers:
                reply = b"$%d\r\n%s\r\n" % (len(value), value)
                data = read_all(sock)
                assert data and data == reply * (len(data) // len(reply)), \
                    "half a reply: %d bytes" % len(data)
            flood.join()
            equal(server.process.wait(LIMIT), 0)
        done = []
        for got in flood.got:
            assert got.endswith(b"\r\n"), got[-30:]
            done += [int(line[1:]) for line in got.split()]
        wrong = set(done) ^ set(range(1, len(done) + 1))
        equal(sorted(wrong)[:9], [], "all, each once")

    def usage_is_clear(self):
        assert run(self.program, "--help").startswith("Usage: kv")
        assert run(self.program, "--version").startswith("kv of parklot ")
        for words in (("--port", "x"), ("--what",), ("word",)):
            try:
                run(self.program, *words)
            except AssertionError as error:
                assert ": 2\n" in str(error), error
            else:
                raise AssertionError(words)


def all_tests(tests):
    longer = () if IS_SHORT else (
        tests.redis_benchmark_runs, tests.keys_expire_untouched,
        tests.new_expiry_counts, tests.thousand_connections_are_served)
    for name in sorted(REQUESTS):
        yield "reply_%s" % name, lambda: tests.compare(name)
    for test in (tests.request_in_pieces_is_the_same,
                 tests.redis_cli_understands, tests.increments_are_exact,
                 tests.set_and_expiry_race, tests.resets_leave_nothing,
                 *longer):
        def leaves_nothing():
            with tests.server.leaves_nothing():
                test()
        yield test.__name__, leaves_nothing
    if not IS_SHORT:
        yield "sigterm_amid_loads", tests.sigterm_amid_loads
    yield "usage_is_clear", tests.usage_is_clear
    yield "ends_clean", lambda: equal(tests.server.stop(), 0)


def main():
    command = sys.argv[1:]
    allow_descriptors(4096)
    with directory() as path:
        redis = path + "/socket"
        with Program("redis-server", "--port", "0", "--unixsocket", redis,
                     "--dir", path, "--save", "", "--logfile",
                     path + "/log"), \
                Server(*command) as server:
            eventually(lambda: listens(redis), "redis-server")
            results(all_tests(Tests(server, command, redis)))


main()
