#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: selftests/apps/httpsd.py HTTPSD [OPTION]...

Tests examples/httpsd: all that httpd has to do, by TLS, and handshakes.
"""

import contextlib
import socket
import ssl
import subprocess
import sys

import httpd
from harness import LIMIT, Server, equal, is_readable, read_all, run
from httpd_requests import get


class TlsServer(Server):
    """Its connections are encrypted."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    def secure(self, sock):
        return self.context.wrap_socket(sock)

    def begin_handshake(self):
        """Up to the client's first message."""
        sock = self.context.wrap_socket(self.connect_plain(),
                                        do_handshake_on_connect=False)
        sock.setblocking(False)
        with contextlib.suppress(ssl.SSLWantReadError):
            sock.do_handshake()
        return sock


class Tests(httpd.Tests):
    """httpd's, and those of TLS alone."""

    nr_crowd = 1000
    # What OpenSSL has for one, which malloc() may give back.
    connection_pages = 32

    def __init__(self, path, command):
        super().__init__(path, command)
        self.cert = path + "/cert.pem"
        self.key = path + "/key.pem"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
            "/CN=localhost", "-keyout", self.key, "-out", self.cert)
        self.command = [*command, "--cert", self.cert, "--key", self.key]
        self.more = (self.handshakes_are_many, self.storm_is_over,
                     self.broken_handshake_ends, self.end_is_told,
                     self.certificate_is_needed)

    def start(self, *options):
        return TlsServer(*self.command, *httpd.OPTIONS, *options, self.root)

    def url(self, server):
        return "https://%s:%d/" % server.address

    def handshakes_are_many(self):
        """Of both versions, new and resumed, beside each other."""
        with self.start() as server, server.leaves_nothing():
            for version in ("-tls1_2", "-tls1_3"):
                for reuse in ("-new", "-reuse"):
                    text = run("openssl", "s_time", version, reuse, "-time",
                               "1", "-www", "/index.html", "-connect",
                               "%s:%d" % server.address)
                    assert " connections in " in text, text

    def storm(self, server):
        """300 handshakes, 50 at a time, of which 3 in 5 are cut off."""
        for _ in range(6):
            socks = [server.begin_handshake() for _ in range(50)]
            for nr, sock in enumerate(socks):
                if nr % 5 == 1:
                    assert is_readable(sock, LIMIT), "no answer"
                elif nr % 5 > 1:
                    sock.settimeout(LIMIT)
                    sock.do_handshake()
                if nr % 5 < 3:
                    httpd.reset(sock)
            for sock in socks:
                if sock.fileno() >= 0:
                    sock.sendall(get(b"/"))
                    httpd.receive_page(sock)
                    sock.close()

    def storm_is_over(self):
        with self.start("--idle", "600") as server:
            server.settles(lambda: self.storm(server))
            equal(server.stop(), 0)

    def broken_handshake_ends(self):
        """Nonsense, silence and resets amid it harm nobody."""
        with self.start("--idle", "1") as server, server.leaves_nothing():
            for data in (get(b"/"), b"\x16\x03\x01", b"", b"\x16" * 3000):
                socks = [server.connect_plain() for _ in range(20)]
                for sock in socks:
                    with contextlib.suppress(ConnectionError):
                        sock.sendall(data)
                for sock in socks[:10]:
                    httpd.reset(sock)
                for sock in socks[10:]:
                    assert b"HTTP" not in read_all(sock)
            with httpd.send_in_time(server.connect, get(b"/")) as sock:
                assert sock.recv(100).startswith(httpd.OK)

    def end_is_told(self):
        """By TLS: what was cut off could be told from it."""
        with self.start("--idle", "1") as server:
            def connect():
                return TlsServer.context.wrap_socket(
                    socket.create_connection(server.address, LIMIT),
                    suppress_ragged_eofs=False)

            for fields in (b"Host: h\r\nConnection: close\r\n", b"Host: h\r\n"):
                sock = httpd.send_in_time(connect, get(b"/", fields))
                assert read_all(sock).startswith(httpd.OK)

    def certificate_is_needed(self):
        for options in ((), ("--cert", "/none", "--key", self.key),
                        ("--cert", self.cert, "--key", self.cert)):
            done = subprocess.run((self.program, *options, "/"), text=True,
                                  timeout=LIMIT, stderr=subprocess.PIPE,
                                  check=False)
            equal(done.returncode, 1, str(options))
            assert done.stderr.startswith("httpsd: "), done.stderr


if __name__ == "__main__":
    httpd.main(Tests, sys.argv[1:])
