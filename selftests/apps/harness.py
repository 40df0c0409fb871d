# SPDX-License-Identifier: GPL-2.0-only
"""Tests of servers: programs that run for a test, and results as KTAP."""

import contextlib
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

LIMIT = 30 * int(os.environ.get("TEST_TIMEOUT_FACTOR", "1"))
IS_SHORT = "APP_SHORT" in os.environ
SLACK_KIB = 512                 # more memory is no leak: the allocator's
MAX_ROUNDS = 20                 # until caches have what a load needs


def eventually(is_true, what):
    """Wait for a state that can be seen."""
    end = time.monotonic() + LIMIT
    while not is_true():
        if time.monotonic() > end:
            raise AssertionError("not within %d s: %s" % (LIMIT, what))
        time.sleep(0.01)


def equal(got, want, what=""):
    if got != want:
        raise AssertionError("%s\n got %r\nwant %r" % (what, got, want))


class Program:
    """A process that ends with the test, by its number."""

    def __init__(self, *command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        **options)
        self.pid = self.process.pid

    def stop(self, sig=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(sig)
        return self.process.wait(LIMIT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


class Server(Program):
    """One of parklot's, which says where it listens."""

    def __init__(self, *command):
        super().__init__(*command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), line
        host, port = line.split()[-1].split(":")
        self.address = (host, int(port))
        # Before any connection: later a reset one may still be accepted.
        self.idle = self.tasks(), self.descriptors()

    def connect_plain(self):
        return socket.create_connection(self.address, LIMIT)

    def secure(self, sock):
        """As a client has to before it sends."""
        return sock

    def connect(self):
        return self.secure(self.connect_plain())

    def refuses(self):
        try:
            self.connect_plain().close()
        except ConnectionRefusedError:
            return True
        return False

    def tasks(self):
        text = run(os.environ["O"] + "/tools/plstat", "-j", str(self.pid))
        return json.loads(text)["tasks_alive"]

    @contextlib.contextmanager
    def leaves_nothing(self):
        """What came with connections goes with them."""
        yield
        eventually(lambda: (self.tasks(), self.descriptors()) == self.idle,
                   "tasks and descriptors as when idle: %d, %d" % self.idle)

    def settles(self, load):
        """Of what it has a further round of a load takes no more.

        Workers and caches grow in the first ones, a leak in all.
        """
        rounds = []
        grows = {"descriptors", "threads", "KiB"}
        while grows:
            with self.leaves_nothing():
                load()
            now = self.has()
            rounds.append(now)
            assert len(rounds) < MAX_ROUNDS, (grows, rounds)
            if len(rounds) > 1:
                grows -= {name for name in grows if now[name] <=
                          max(has[name] for has in rounds[:-1]) +
                          (SLACK_KIB if name == "KiB" else 0)}

    def entries(self, name):
        return os.listdir("/proc/%d/%s" % (self.pid, name))

    def has(self):
        with open("/proc/%d/smaps_rollup" % self.pid,
                  encoding="ascii") as file:
            kib = next(line.split()[1] for line in file if "Rss:" in line)
        return {"descriptors": len(self.entries("fd")),
                "threads": len(self.entries("task")), "KiB": int(kib)}

    def faults(self):
        """Pages that the kernel has had to give it, so far."""
        with open("/proc/%d/stat" % self.pid, encoding="ascii") as file:
            return int(file.read().rsplit(")", 1)[1].split()[7])

    def descriptors(self):
        """But for the library's, of which it has more with more workers."""
        nr = 0
        for fd in self.entries("fd"):
            with contextlib.suppress(FileNotFoundError):
                path = os.readlink("/proc/%d/fd/%s" % (self.pid, fd))
                nr += not re.match("anon_inode:|/proc/", path)
        return nr


def run(*command, **options):
    """What it says; it has to succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                          timeout=LIMIT, check=False, **options)
    if done.returncode:
        raise AssertionError("%s: %d\n%s" % (" ".join(command),
                                             done.returncode, done.stdout))
    return done.stdout


def connect_unix(path):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    return sock


def listens(path):
    """A server there has not only made its socket."""
    try:
        connect_unix(path).close()
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    return True


def read_all(sock):
    """Up to the end, which a reset is too."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while True:
            piece = sock.recv(65536)
            if not piece:
                break
            data += piece
    return data


def is_readable(sock, limit=0):
    """Within so many seconds."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(limit * 1000))


@contextlib.contextmanager
def directory():
    path = tempfile.mkdtemp(prefix="parklot-")
    try:
        yield path
    finally:
        shutil.rmtree(path)


def allow_descriptors(nr):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(nr, hard), hard))


def results(tests):
    """Run (name, function) pairs; the program's status."""
    nr = failed = 0
    print("TAP version 13")
    for name, test in tests:
        nr += 1
        try:
            test()
            print("ok %d %s" % (nr, name), flush=True)
        except Exception:  # whatever: the others are run
            failed += 1
            for line in traceback.format_exc().splitlines():
                print("# " + line)
            print("not ok %d %s" % (nr, name), flush=True)
    print("1..%d" % nr)
    sys.exit(1 if failed else 0)
