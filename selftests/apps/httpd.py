#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: selftests/apps/httpd.py HTTPD [OPTION]...

Tests examples/httpd: its answers beside nginx's, its limits, and loads. O=
says where bench and tools were built.
"""

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from harness import (IS_SHORT, LIMIT, Program, Server, allow_descriptors,
                     connect_unix, directory, equal, eventually, listens,
                     read_all, results, run)
from httpd_requests import DEVIATIONS, FIELDS, REQUESTS, SENTINEL, get

NGINX = """
daemon off;
master_process off;
pid %(dir)s/pid;
error_log %(dir)s/error.log crit;
events {}
http {
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    absolute_redirect off;
    access_log off;
    server_tokens off;
    disable_symlinks on from=$document_root;
    client_max_body_size 100000;
    large_client_header_buffers 4 4k;
    client_body_temp_path %(dir)s/body;
    proxy_temp_path %(dir)s/proxy;
    fastcgi_temp_path %(dir)s/fastcgi;
    uwsgi_temp_path %(dir)s/uwsgi;
    scgi_temp_path %(dir)s/scgi;
    server {
        listen unix:%(dir)s/socket;
        root %(root)s;
    }
}
"""

OPTIONS = ("--body", "100000")
OK = b"HTTP/1.1 200 OK\r\n"


def make_files(root):
    os.makedirs(root + "/sub")
    files = {"index.html": b"<p>hello</p>\n", "empty": b"",
             "64k": os.urandom(65536), "1m": os.urandom(1 << 20),
             "style.css": b"p { color: red }\n", "sub/a b.txt": b"a b\n",
             "8m": os.urandom(8 << 20)}
    for name, data in files.items():
        with open(root + "/" + name, "wb") as file:
            file.write(data)
    os.mkfifo(root + "/fifo")
    os.symlink("/etc/passwd", root + "/out")
    os.symlink("/", root + "/up")


def reset(sock):
    """Close it so that the peer sees a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                    struct.pack("ii", 1, 0))
    sock.close()


def split(data):
    """Status lines and bodies, with one name for both servers; and fields.

    These are (status, {name: values}) of each answer.
    """
    fields = []

    def take(head):
        lines = head[3].decode("latin-1").split("\r\n")[:-1]
        values = {}
        for name, _, value in (line.partition(": ") for line in lines):
            values.setdefault(name, []).append(value)
        fields.append((head[2].decode(), values))
        return head[1] + b"\r\n"

    data = re.sub(rb"(HTTP/1\.1 (\d{3}) [^\r\n]*\r\n)"
                  rb"((?:[^\r\n]+\r\n)*)\r\n",
                  take, data)
    return data.replace(b"<center>nginx</center>",
                        b"<center>httpd</center>"), fields


def equal_answers(got, want, name):
    """Of httpd, and of it or another server."""
    got, got_fields = split(got)
    want, want_fields = split(want)
    equal(got, want, name)
    for (status, mine), (_, others) in zip(got_fields, want_fields):
        for field in mine.keys() | others.keys() | FIELDS.keys():
            what = "%s: %s: %s" % (name, status, field)
            if field not in FIELDS:
                equal(mine.get(field), others.get(field), what)
                continue
            statuses, value, _ = FIELDS[field]
            values = mine.get(field, [])
            is_given = re.fullmatch(statuses, status) is not None
            equal(len(values), int(is_given), what)
            assert all(re.fullmatch(value, v) for v in values), (what, values)


def exchange(sock, data):
    """All that the server answers."""
    with sock:
        sock.settimeout(LIMIT)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(data)
        return read_all(sock)


def receive_page(sock):
    """The answer to get(b"/"), which is the only one under way."""
    data = b""
    while not data.endswith(b"</p>\n"):
        piece = sock.recv(4096)
        assert piece, data
        data += piece
    assert data.startswith(OK), data


def begin(sock, data):
    """A request, after a whole one: with its answer both have been read."""
    sock.sendall(get(b"/") + data)
    receive_page(sock)


def send_in_time(connect, data):
    """A connection of a server with --idle 1, which has the data by then."""
    end = time.monotonic() + LIMIT
    while True:
        start = time.monotonic()
        try:
            sock = connect()
            sock.sendall(data)
            is_sent = True
        except OSError:
            is_sent = False
        now = time.monotonic()
        if now - start < 0.5:
            assert is_sent, "the server was not idle for long"
            return sock
        assert now < end, "this machine is too slow"


class Tests:
    """One server, and all tests of it."""

    more = ()
    nr_crowd = 5000
    connection_pages = 0        # that come and go with one

    def __init__(self, path, command):
        self.path = path
        self.root = path + "/root"
        self.command = command
        self.program = command[-1]
        self.nginx = path + "/socket"

    def start(self, *options):
        return Server(*self.command, *OPTIONS, *options, self.root)

    def url(self, server):
        return "http://%s:%d/" % server.address

    def compare(self, server, name):
        data = REQUESTS[name] + SENTINEL
        got = exchange(server.connect(), data)
        want = exchange(connect_unix(self.nginx), data)
        if name in DEVIATIONS:
            status, _ = DEVIATIONS[name]
            assert split(got)[0] != split(want)[0], "is no deviation"
            equal(got[9:12].decode(), str(status), name)
        else:
            equal_answers(got, want, name)

    def request_in_pieces_is_the_same(self, server):
        """A request says the same in bytes that come one by one."""
        for name in ("pipeline_mixed", "chunked_trailer", "above_root"):
            data = REQUESTS[name] + SENTINEL
            sock = server.connect()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # What is refused is closed a second later, at any of these.
            with contextlib.suppress(OSError):
                for byte in data[:300]:
                    sock.send(bytes([byte]))
            equal_answers(exchange(sock, data[300:]),
                          exchange(server.connect(), data), name)

    def curl_agrees(self, server):
        url = self.url(server)
        out = self.path + "/out"
        for name in ("1m", "64k", "empty"):
            run("curl", "-kfsS", "-o", out, url + name)
            run("cmp", out, self.root + "/" + name)
        upload = run("curl", "-ksS", "-o", "/dev/null", "-w",
                     "%{http_code} %{num_connects}\n", "-H",
                     "Transfer-Encoding: chunked", "-H", "Expect: 100-continue",
                     "-T", self.root + "/64k", url, "--next", "-ksS", "-o",
                     "/dev/null", "-w", "%{http_code} %{num_connects}\n", url)
        equal(upload, "405 1\n200 0\n")
        equal(run("curl", "-ksS", "-o", "/dev/null", "-w", "%{http_code}",
                  "-T", self.root + "/1m", url), "413")

    def loads_are_answered(self, server):
        url = self.url(server)
        text = run("ab", "-q", "-k", "-n", "5000", "-c", "64",
                   url + "index.html")
        assert re.search(r"Failed requests: +0\n", text), text
        assert re.search(r"Keep-Alive requests: +5000\n", text), text
        text = run("ab", "-q", "-n", "1000", "-c", "20", url + "64k")
        assert re.search(r"Failed requests: +0\n", text), text
        # Otherwise an answer after 2 s is an error.
        text = run("wrk", "-t", "1", "-c", "100", "-d", "1s", "--timeout",
                   "%ds" % LIMIT, url)
        assert "Socket errors" not in text and "Non-2xx" not in text, text
        text = run("h2load", "--h1", "-n", "2000", "-c", "10", "-m", "8", url)
        assert "2000 succeeded, 0 failed" in text, text

    def memory_serves_again(self, server):
        """What a request took serves the next one: no page is asked for."""
        for nr_connections, nr in (64, 20000), (1000, 60000):
            load = ("ab", "-q", "-k", "-c", str(nr_connections), "-n", str(nr),
                    self.url(server) + "index.html")
            run(*load)
            before = server.faults()
            run(*load)
            taken = server.faults() - before
            taken -= self.connection_pages * nr_connections
            assert taken < nr // 20, (nr_connections, taken)

    def slow_request_gets_408(self):
        """They are told, and end; what came in time is answered."""
        with self.start("--request", "1") as server, \
                server.leaves_nothing():
            begun = server.connect()
            begun.sendall(get(b"/") + b"GET / HT")
            dribble = server.connect()
            body = server.connect()
            body.sendall(get(b"/", b"Host: h\r\nContent-Length: 9\r\n") + b"1")
            start = time.monotonic()
            with contextlib.suppress(OSError):
                for byte in b"GET / HTTP/1.1\r\nHost: " + b"h" * 1000:
                    if time.monotonic() - start > 1.5:
                        break
                    dribble.send(bytes([byte]))
                    time.sleep(0.05)
            data = read_all(begun)
            assert data.startswith(OK) and b"HTTP/1.1 408 Req" in data, data
            for sock in (dribble, body):
                data = read_all(sock)
                assert data.startswith(b"HTTP/1.1 408 Req"), data

    def idle_connection_ends(self):
        with self.start("--idle", "1") as server, server.leaves_nothing():
            once = send_in_time(server.connect, get(b"/"))
            equal(read_all(server.connect()), b"")
            assert read_all(once).endswith(b"<p>hello</p>\n")

    def slow_reader_ends(self):
        """The server does not wait for them for ever, nor do others."""
        with self.start("--request", "1") as server, server.leaves_nothing():
            slow = [server.connect() for _ in range(20)]
            for sock in slow:
                sock.sendall(get(b"/8m"))
            equal(len(exchange(server.connect(), SENTINEL)) > 0, True)
            eventually(lambda: server.tasks() <= 1, "end of slow readers")
            for sock in slow:
                assert len(read_all(sock)) < 8 << 20

    def resets_leave_nothing(self, server):
        for data in (b"", b"GET", get(b"/8m"), get(b"/") * 100 + b"GET"):
            socks = [server.connect() for _ in range(25)]
            for sock in socks:
                sock.sendall(data)
            for sock in socks:
                reset(sock)

    def crowd(self, server):
        """All are there at once, amid a request, and are answered twice."""
        socks = [server.connect() for _ in range(self.nr_crowd)]
        for sock in socks:
            sock.sendall(get(b"/") + b"GET / HTTP/1.1\r\n")
        for sock in socks:
            receive_page(sock)
        assert server.descriptors() > self.nr_crowd
        for sock in socks:
            sock.sendall(b"Host: h\r\n\r\n")
        for sock in socks:
            receive_page(sock)
            sock.close()

    def crowd_is_served(self):
        with self.start("--idle", "600", "--request", "600") as server:
            server.settles(lambda: self.crowd(server))
            equal(server.stop(), 0)

    def further_connection_waits(self):
        """Further connections wait, and are served later."""
        with self.start("--connections", "2") as server:
            socks = [server.connect() for _ in range(2)]
            third = server.connect_plain()
            for sock in socks:
                sock.sendall(get(b"/"))
                assert sock.recv(4096).startswith(OK)
            equal(server.tasks(), 3)    # with the one that accepts
            socks[0].close()
            third = server.secure(third)
            third.sendall(get(b"/"))
            assert third.recv(4096).startswith(OK)

    def sigterm_drains(self):
        """What has begun is finished, what is idle ends, nothing is taken."""
        with self.start() as server:
            idle = server.connect()
            idle.sendall(get(b"/"))
            assert idle.recv(4096).startswith(OK)
            begun = server.connect()
            begin(begun, b"GET /64k HTTP/1.1\r\nHo")
            server.process.send_signal(signal.SIGTERM)
            equal(read_all(idle), b"")
            # The kernel listens until the request that accepts has ended.
            eventually(server.refuses, "end of listening")
            data = exchange(begun, b"st: h\r\n\r\n")
            assert b"\r\nConnection: close\r\n" in data, data[:300]
            assert len(data) > 65536
            equal(server.process.wait(LIMIT), 0)

    def is_whole(self, data, name):
        """So many answers, each with the file; or none."""
        with open(self.root + "/" + name, "rb") as file:
            answer = OK + b"\r\n" + file.read()
        data, _ = split(bytes(data))
        return data == answer * (len(data) // len(answer))

    def ask_on(self, server, nr_asked, i, faults):
        """Pipelines, on connection after connection while that works."""
        size = len(exchange(server.connect(), get(
            b"/64k", b"Host: h\r\nConnection: close\r\n")))
        size += len("keep-alive") - len("close")
        with contextlib.suppress(OSError):
            while True:
                data = bytearray()
                piece = b"?"
                with server.connect() as sock, contextlib.suppress(OSError):
                    for nr in range(4, 44, 4):
                        sock.sendall(get(b"/64k") * 4)
                        while piece and len(data) < nr * size:
                            piece = sock.recv(1 << 20)
                            data += piece
                nr_asked[i] += 1
                if not self.is_whole(data, "64k"):
                    faults.append(bytes(data[-99:]))

    def sigterm_amid_loads(self):
        """Whole answers, to all whose requests have come."""
        faults = []
        nr_asked = [0] * 4
        with self.start("--drain", "600", "--request", "600") as server:
            readers = [server.connect() for _ in range(8)]
            for sock in readers:
                sock.sendall(get(b"/8m"))
            begun = [sock.recv(1) for sock in readers]
            threads = [threading.Thread(target=self.ask_on,
                                        args=(server, nr_asked, i, faults))
                       for i in range(len(nr_asked))]
            for thread in threads:
                thread.start()
            eventually(lambda: min(nr_asked) > 1, "answers to all")
            server.process.send_signal(signal.SIGTERM)
            for thread in threads:
                thread.join()
            for sock, data in zip(readers, begun):
                data += read_all(sock)
                assert len(data) > 8 << 20 and self.is_whole(data, "8m"), \
                    "a part: %d bytes" % len(data)
            equal(faults, [])
            equal(server.process.wait(LIMIT), 0)

    def drain_is_bounded(self):
        with self.start("--drain", "0") as server:
            sock = server.connect()
            begin(sock, b"GET")
            equal(server.stop(), 1)
            equal(read_all(sock), b"")

    def usage_is_clear(self):
        program = self.program
        name = os.path.basename(program)
        assert run(program, "--help").startswith("Usage: " + name)
        assert re.match(name + r" of parklot \d", run(program, "--version"))
        for arguments, status, words in (
                ((), 2, "Usage"), (("--port", "x", "/"), 2, "'x'"),
                (("/none",), 1, "/none: No such file"),
                (("--port", "1", "--idle", "0", "/"), 2, "--idle")):
            done = subprocess.run((program,) + arguments, text=True,
                                  timeout=LIMIT, stderr=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, check=False)
            equal(done.returncode, status, str(arguments))
            assert words in done.stderr, done.stderr
        with self.start() as server:
            done = subprocess.run(
                (*self.command, "--port", str(server.address[1]), "/"),
                text=True, timeout=LIMIT, stderr=subprocess.PIPE, check=False)
            equal(done.returncode, 1)
            assert "Address already in use" in done.stderr, done.stderr


def all_tests(tests, server):
    for name in sorted(REQUESTS):
        yield "answer_%s" % name, lambda: tests.compare(server, name)
    # ASan keeps what is freed from being used.
    reuse = [tests.memory_serves_again]
    if IS_SHORT or "/asan/" in tests.program:
        reuse = []
    longer = () if IS_SHORT else (
        tests.crowd_is_served, tests.slow_request_gets_408,
        tests.idle_connection_ends, tests.slow_reader_ends,
        tests.sigterm_amid_loads, tests.drain_is_bounded, *tests.more)
    for test in (tests.request_in_pieces_is_the_same, tests.curl_agrees,
                 tests.resets_leave_nothing,
                 tests.loads_are_answered, *reuse):
        def leaves_nothing():
            with server.leaves_nothing():
                test(server)
        yield test.__name__, leaves_nothing
    for test in (tests.further_connection_waits, tests.sigterm_drains,
                 tests.usage_is_clear, *longer):
        yield test.__name__, test
    yield "ends_clean", lambda: equal(server.stop(), 0)


def main(kind, command):
    allow_descriptors(12000)
    with directory() as path:
        tests = kind(path, command)
        make_files(tests.root)
        conf = path + "/nginx.conf"
        with open(conf, "w", encoding="ascii") as file:
            file.write(NGINX % {"dir": path, "root": tests.root})
        with Program("nginx", "-e", path + "/error.log", "-c", conf), \
                tests.start("--idle", "600") as server:
            eventually(lambda: listens(tests.nginx), "nginx")
            results(all_tests(tests, server))


if __name__ == "__main__":
    main(Tests, sys.argv[1:])
