#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: selftests/apps/libraries.py [COMMAND...] DIR

Tests libraries in tasks: runs the programs that selftests/apps/*.c became in
DIR, by COMMAND if there is one, beside the servers that they need.
APP_SECONDS= says for how long each (2), O= where tools were built.
"""

import contextlib
import glob
import os
import pwd
import random
import shutil
import socket
import subprocess
import sys
import time

from harness import (LIMIT, Program, Server, directory, equal, eventually,
                     results, run)

ALPHABET = b"abcdefghijklmnopqrstuvwxyz"
SECONDS = int(os.environ.get("APP_SECONDS", "2"))


def unprivileged(*command):
    """PostgreSQL refuses root, and a KDC does not need it. Ends with us."""
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


class Kerberos:
    """A realm of its own, with its KDC on loopback, and two keytabs."""

    REALM = "LOT.TEST"
    KRB5_CONF = """[libdefaults]
        default_realm = {realm}
        dns_lookup_kdc = false
        dns_canonicalize_hostname = false
[realms]
        {realm} = {{
                kdc = 127.0.0.1:{port}
        }}
"""
    KDC_CONF = """[kdcdefaults]
        kdc_listen = 127.0.0.1:{port}
        kdc_tcp_listen = 127.0.0.1:{port}
[realms]
        {realm} = {{
                database_name = {path}/principals
                key_stash_file = {path}/stash
                acl_file = {path}/acl
                max_life = 1h
        }}
[logging]
        kdc = FILE:{path}/log
        admin_server = FILE:{path}/log
"""

    def __init__(self, path):
        self.path = path
        self.process = None
        os.mkdir(path)
        if os.getuid() == 0:
            os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
        self.env = dict(os.environ, KRB5_CONFIG=path + "/krb5.conf",
                        KRB5_KDC_PROFILE=path + "/kdc.conf",
                        KRB5RCACHEDIR=path,
                        PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
        port = self.free_port()
        for name, text in (("krb5.conf", self.KRB5_CONF),
                           ("kdc.conf", self.KDC_CONF)):
            with open(path + "/" + name, "w", encoding="utf-8") as file:
                file.write(text.format(realm=self.REALM, port=port,
                                       path=path))
        self.admin("kdb5_util", "create", "-s", "-r", self.REALM, "-P", "x")
        for user in range(10):
            self.add("user%d" % user, "clients")
        self.add("store", "service")

    @staticmethod
    def free_port():
        """For both; no socket gets one of these unless it asks for that."""
        while True:
            port = random.randrange(10000, 20000)
            with socket.socket() as tcp, socket.socket(
                    type=socket.SOCK_DGRAM) as udp, \
                    contextlib.suppress(OSError):
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
                return port

    def admin(self, *command):
        run(*unprivileged(*command), env=self.env, cwd=self.path)

    def add(self, name, keytab):
        self.admin("kadmin.local", "addprinc", "-randkey", name)
        self.admin("kadmin.local", "ktadd", "-k", self.path + "/" + keytab,
                   name)

    def is_ready(self):
        with open(self.path + "/log", encoding="utf-8") as file:
            log = file.read()
        assert self.process.process.poll() is None, log
        return "commencing operation" in log

    def __enter__(self):
        with open(self.path + "/log", "ab") as log:
            self.process = Program(*unprivileged("krb5kdc", "-n"),
                                   env=self.env, cwd=self.path, stdout=log,
                                   stderr=log)
        eventually(self.is_ready, "the KDC")
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

    def end_well(self, name, *arguments, env=None):
        with subprocess.Popen((*self.command(name), *arguments), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=env) as program:
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

    def gssapi_names_its_users(self):
        """To each of them what is said to it, and its errors."""
        with Kerberos(self.path + "/kerberos") as kdc:
            self.end_well("gssapi", kdc.path, env=kdc.env)

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
                 tests.gssapi_names_its_users,
                 tests.names_and_children_are_right,
                 tests.jobs_are_done_until_a_signal,
                 tests.curl_gets_files_and_timeouts))


main()
