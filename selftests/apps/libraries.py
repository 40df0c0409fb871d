#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: selftests/apps/libraries.py [COMMAND...] DIR

Tests libraries in tasks: runs the programs that selftests/apps/*.c became in
DIR, by COMMAND if there is one, beside the servers that they need.
APP_SECONDS= says for how long each (2), O= where tools were built.
"""

import glob
import os
import pwd
import shutil
import subprocess
import sys
import time

from harness import (LIMIT, Program, Server, directory, equal, eventually,
                     results, run)

ALPHABET = b"abcdefghijklmnopqrstuvwxyz"
SECONDS = int(os.environ.get("APP_SECONDS", "2"))


def unprivileged(*command):
    """PostgreSQL refuses root. Ends with us."""
    options = ["setpriv", "--pdeathsig", "INT"]
    if os.getuid() == 0:
        options += ["--reuid", "nobody", "--regid", "nogroup",
                    "--clear-groups"]
    return (*options, "--", *command)


class Postgres:
    """A cluster of its own, on a socket in its directory."""

    def __init__(self, path):
        self.path = path
        self.bin = self.newest()
        os.mkdir(path)
        if os.getuid() == 0:
            os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
        self.env = dict(os.environ, PGHOST=path, PGUSER="bank", PGPORT="5432",
                        PGDATABASE="postgres")
        self.process = None
        run(*unprivileged(self.bin + "/initdb", "--pgdata", path + "/data",
                          "--username", "bank", "--auth", "trust",
                          "--no-locale", "--encoding", "UTF8", "--no-sync",
                          "--no-instructions"), cwd=path)

    @staticmethod
    def newest():
        """Of Debian's packages, or what is found."""
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"),
                       key=lambda name: int(name.split("/")[4]))
        name = found[-1] if found else shutil.which("initdb")
        assert name, "there is no initdb"
        return os.path.dirname(name)

    def is_ready(self):
        assert self.process.process.poll() is None, self.log()
        return subprocess.call((self.bin + "/pg_isready", "-q"),
                               env=self.env) == 0

    def log(self):
        with open(self.path + "/log", encoding="utf-8") as file:
            return file.read()

    def start(self):
        with open(self.path + "/log", "ab") as log:
            self.process = Program(
                *unprivileged(self.bin + "/postgres", "-D",
                              self.path + "/data", "-k", self.path,
                              "-c", "listen_addresses=",
                              "-c", "max_connections=100",
                              "-c", "fsync=off"),
                cwd=self.path, stdout=log, stderr=log)
        eventually(self.is_ready, "PostgreSQL")

    def stop(self, sig):
        self.process.stop(sig)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.process.__exit__()


class Libraries:
    """A program for each library."""

    def __init__(self, path, programs):
        self.path = path
        self.programs = programs

    def command(self, name):
        return (*self.programs[:-1], self.programs[-1] + "/" + name,
                "--seconds", str(SECONDS))

    @staticmethod
    def wait(program):
        """What it says; it has to end well."""
        out, _ = program.communicate(timeout=SECONDS + 10 * LIMIT)
        for line in out.splitlines():
            print("# " + line)
        equal(program.returncode, 0, "its status")

    def end_well(self, name, *arguments):
        with subprocess.Popen((*self.command(name), *arguments), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as program:
            try:
                self.wait(program)
            finally:
                program.kill()

    def libpq_transfers_balance(self):
        """The server is away for a moment, halfway."""
        with Postgres(self.path + "/postgres") as server, subprocess.Popen(
                self.command("libpq"), env=server.env, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT) as program:
            try:
                for line in program.stdout:
                    print("# " + line, end="")
                    if line == "restart\n":
                        server.stop(2)
                        server.start()
                        print("back", file=program.stdin, flush=True)
                        break
                self.wait(program)
            finally:
                program.kill()

    def sqlite_counts_are_exact(self):
        """Of a database that all write to."""
        self.end_well("sqlite", self.path + "/sqlite")

    def names_and_children_are_right(self):
        """Of getaddrinfo() and popen()."""
        self.end_well("names")

    def jobs_are_done_until_a_signal(self):
        """Of a pipeline in C++, which drains then."""
        with subprocess.Popen((*self.command("jobs")[:-1], "600"), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as program:
            try:
                while program.stdout.readline() != "jobs: working\n":
                    assert program.poll() is None, "it has ended"
                time.sleep(SECONDS)
                program.terminate()
                self.wait(program)
            finally:
                program.kill()

    def curl_gets_files_and_timeouts(self):
        """From examples/httpd, which is left as it was."""
        root = self.path + "/root"
        os.mkdir(root)
        for i in range(5):
            size = 10 ** (i + 2)
            with open("%s/%d" % (root, i), "wb") as file:
                file.write((ALPHABET * (size // 26 + 1))[:size])
        httpd = self.programs[-1] + "/../../examples/httpd/httpd"
        with Server(*self.programs[:-1], httpd, "--request", "600",
                    root) as server:
            with server.leaves_nothing():
                self.end_well("curl", str(server.address[1]))
            equal(server.stop(), 0)


def main():
    with directory() as path:
        os.chmod(path, 0o755)
        tests = Libraries(path, sys.argv[1:])
        results((test.__name__, test) for test in
                (tests.libpq_transfers_balance, tests.sqlite_counts_are_exact,
                 tests.names_and_children_are_right,
                 tests.jobs_are_done_until_a_signal,
                 tests.curl_gets_files_and_timeouts))


main()
