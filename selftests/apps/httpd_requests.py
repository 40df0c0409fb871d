# SPDX-License-Identifier: GPL-2.0-only
"""Requests to nginx and httpd: the answers have to be the same.

Each is sent as it stands, and SENTINEL after it, which is answered if the
connection goes on. DEVIATIONS has the other answers, and why they differ;
FIELDS the fields of a head that differ in each answer.
"""

SENTINEL = b"GET /sentinel HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


def get(target, fields=b"Host: h\r\n", method=b"GET", version=b"1.1"):
    return (method + b" " + target + b" HTTP/" + version + b"\r\n" + fields +
            b"\r\n")


CHUNKED = b"Host: h\r\nTransfer-Encoding: chunked\r\n"

REQUESTS = {
    # Files.
    "file": get(b"/index.html"),
    "directory": get(b"/"),
    "empty_file": get(b"/empty"),
    "file_of_64k": get(b"/64k"),
    "file_of_1m": get(b"/1m"),
    "type": get(b"/style.css"),
    "not_found": get(b"/none"),
    "file_as_directory": get(b"/index.html/"),
    "below_file": get(b"/index.html/x"),
    "directory_without_slash": get(b"/sub"),
    "directory_without_index": get(b"/sub/"),
    "name_too_long": get(b"/" + b"n" * 300),
    "fifo": get(b"/fifo"),
    "link_out_of_root": get(b"/out"),
    "link_to_directory_out_of_root": get(b"/up/etc/passwd"),
    # Targets.
    "query": get(b"/index.html?a=b&c=/../.."),
    "fragment": get(b"/index.html#top"),
    "empty_query": get(b"/?"),
    "percent": get(b"/%69ndex.html"),
    "percent_of_slash": get(b"/sub%2fa%20b.txt"),
    "percent_of_nul": get(b"/index.html%00"),
    "percent_at_end": get(b"/index.html%"),
    "percent_of_no_digits": get(b"/%zz"),
    "percent_of_question": get(b"/%3f"),
    "dots": get(b"/./sub/../index.html"),
    "dots_at_end": get(b"/sub/.."),
    "dots_in_name": get(b"/..."),
    "slashes": get(b"//sub///a%20b.txt"),
    "above_root": get(b"/../etc/passwd"),
    "above_root_later": get(b"/sub/../../etc/passwd"),
    "above_root_percent": get(b"/%2e%2e/%2e%2e/etc/passwd"),
    "above_root_percent_slash": get(b"/..%2fetc/passwd"),
    "absolute": get(b"http://h/index.html"),
    "absolute_without_path": get(b"http://h"),
    "relative": get(b"index.html"),
    "high_bytes": get(b"/\xc3\xa4"),
    "control_character": get(b"/\x01"),
    "target_of_3000": get(b"/" + b"/" * 3000 + b"index.html"),
    "target_too_long": get(b"/" + b"a" * 20000),
    # Methods.
    "head": get(b"/index.html", method=b"HEAD"),
    "head_not_found": get(b"/none", method=b"HEAD"),
    "head_of_64k": get(b"/64k", method=b"HEAD"),
    "delete": get(b"/index.html", method=b"DELETE"),
    "options": get(b"/index.html", method=b"OPTIONS"),
    "trace": get(b"/index.html", method=b"TRACE"),
    "method_lower_case": get(b"/", method=b"get"),
    "method_unknown": get(b"/", method=b"BREW"),
    "connect": get(b"h:80", method=b"CONNECT"),
    "options_of_server": get(b"*", method=b"OPTIONS"),
    "method_of_digits": get(b"/", method=b"123"),
    # Versions.
    "http_1_0": get(b"/", b"", version=b"1.0"),
    "http_1_0_kept": get(b"/", b"Connection: keep-alive\r\n", version=b"1.0"),
    "http_2_0": get(b"/", version=b"2.0"),
    "http_0_9": b"GET /index.html\r\n",
    "version_of_letters": get(b"/", version=b"x.y"),
    "no_version_but_protocol": b"GET / FTP/1.1\r\nHost: h\r\n\r\n",
    # Fields.
    "close": get(b"/", b"Host: h\r\nConnection: close\r\n"),
    "close_upper_case": get(b"/", b"HOST: h\r\nCONNECTION: CLOSE\r\n"),
    "no_host": get(b"/", b""),
    "two_hosts": get(b"/", b"Host: a\r\nHost: b\r\n"),
    "empty_host": get(b"/", b"Host:\r\n"),
    "host_with_slash": get(b"/", b"Host: a/b\r\n"),
    "host_with_port": get(b"/", b"Host: h:80\r\n"),
    "space_before_colon": get(b"/", b"Host: h\r\nA : b\r\n"),
    "space_in_name": get(b"/", b"Host: h\r\nA b: c\r\n"),
    "nul_in_value": get(b"/", b"Host: h\r\nA: b\0c\r\n"),
    "line_feeds_alone": b"GET / HTTP/1.1\nHost: h\n\n",
    "empty_line_first": b"\r\n" + get(b"/"),
    "value_of_3000": get(b"/", b"Host: h\r\nA: " + b"b" * 3000 + b"\r\n"),
    "fields_of_20000": get(b"/", b"Host: h\r\nA: " + b"b" * 20000 + b"\r\n"),
    "folded_value": get(b"/", b"Host: h\r\nA: b\r\n c\r\n"),
    "range": get(b"/", b"Host: h\r\nRange: bytes=0-1\r\n"),
    "separator_in_name": get(b"/", b"Host: h\r\nA@b: c\r\n"),
    "upgrade": get(b"/", b"Host: h\r\nConnection: Upgrade\r\n"
                   b"Upgrade: websocket\r\n"),
    "garbage": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    # Bodies.
    "get_with_body": get(b"/", b"Host: h\r\nContent-Length: 5\r\n") + b"12345",
    "post": get(b"/", b"Host: h\r\nContent-Length: 5\r\n", b"POST") + b"12345",
    "post_empty": get(b"/", b"Host: h\r\nContent-Length: 0\r\n", b"POST"),
    "post_not_found": get(b"/none", b"Host: h\r\nContent-Length: 1\r\n",
                          b"PUT") + b"1",
    "body_too_large": get(b"/", b"Host: h\r\nContent-Length: 200000\r\n",
                          b"POST"),
    "length_of_letters": get(b"/", b"Host: h\r\nContent-Length: x\r\n"),
    "length_negative": get(b"/", b"Host: h\r\nContent-Length: -1\r\n"),
    "length_overflows": get(b"/", b"Host: h\r\nContent-Length: "
                            b"99999999999999999999\r\n"),
    "two_lengths": get(b"/", b"Host: h\r\nContent-Length: 1\r\n"
                       b"Content-Length: 2\r\n"),
    "chunked": get(b"/", CHUNKED, b"POST") + b"3\r\nabc\r\n0\r\n\r\n",
    "chunked_get": get(b"/", CHUNKED) + b"3\r\nabc\r\n0\r\n\r\n",
    "chunked_extension": get(b"/", CHUNKED) + b"3;a=b\r\nabc\r\n0\r\n\r\n",
    "chunked_trailer": get(b"/", CHUNKED) + b"1\r\na\r\n0\r\nA: b\r\n\r\n",
    "chunked_upper_case": get(b"/", b"Host: h\r\nTransfer-Encoding: CHUNKED"
                              b"\r\n") + b"A\r\n0123456789\r\n0\r\n\r\n",
    "chunked_and_length": get(b"/", CHUNKED + b"Content-Length: 3\r\n"),
    "encoding_unknown": get(b"/", b"Host: h\r\nTransfer-Encoding: gzip\r\n"),
    "encoding_of_two": get(b"/", b"Host: h\r\n"
                           b"Transfer-Encoding: gzip, chunked\r\n"),
    "chunked_too_large": get(b"/", CHUNKED, b"POST") + b"1ffff\r\n" +
    b"a" * 0x1ffff + b"\r\n0\r\n\r\n",
    "chunk_size_of_letters": get(b"/", CHUNKED, b"POST") + b"x\r\n",
    # Pipelines.
    "pipeline": get(b"/") * 50,
    "pipeline_mixed": get(b"/64k") + get(b"/none") + get(b"/") +
    get(b"/", b"Host: h\r\nContent-Length: 3\r\n", b"POST") + b"abc" +
    get(b"/sub", method=b"HEAD") + get(b"/1m"),
    "pipeline_ends_with_close": get(b"/") +
    get(b"/", b"Host: h\r\nConnection: close\r\n") + get(b"/") * 3,
    "pipeline_with_fault": get(b"/") + get(b"/", b"") + get(b"/"),
}

# name: (httpd's first status, why it is not nginx's answer)
DEVIATIONS = {
    "connect": (405, "its method is known; nginx refuses its target"),
    "folded_value": (200, "RFC 9112, 5.2, allows both"),
    "link_to_directory_out_of_root": (403, "as other links out of the root;"
                                      " nginx: no such directory"),
    "chunked_too_large": (413, "nginx answers 405 before it sees the body"),
    "chunk_size_of_letters": (400, "nginx answers 405 before it sees it"),
    "trace": (405, "the connection goes on: nothing is wrong with it"),
    "method_unknown": (501, "RFC 9110, 9.1; nginx: 405"),
    "options_of_server": (405, "a valid target by RFC 9112, 3.2.4"),
    "fields_of_20000": (431, "RFC 6585, 5; nginx: 400"),
    "http_0_9": (400, "left out of RFC 9112; nginx serves it"),
    "range": (200, "no ranges: RFC 9110, 14.2"),
    "separator_in_name": (400, "RFC 9110, 5.1; nginx ignores the field"),
}

# name: (statuses with which httpd gives it, its value, why nginx's differs)
FIELDS = {
    "Server": (r"...", r"httpd", "each has its name"),
    "Date": (r"...", r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} "
             r"\d{4} \d\d:\d\d:\d\d GMT", "each has its clock"),
    "Allow": (r"405", r"GET, HEAD", "RFC 9110, 15.5.6; nginx has none"),
    "Last-Modified": (r"", r"", "nothing is conditional: RFC 9110, 13"),
    "ETag": (r"", r"", "nothing is conditional: RFC 9110, 13"),
    "Accept-Ranges": (r"", r"", "no ranges: RFC 9110, 14.2"),
}
