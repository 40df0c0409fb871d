/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What httpd reads requests from and writes answers to: a TCP connection.
 */
#ifndef STREAM_H
#define STREAM_H

#include <parklot.h>

struct stream {
	int	fd;
};

/* As pl_recv_until(). */
ssize_t stream_recv(struct stream *s, void *buf, size_t n,
		    uint64_t deadline_ns);

/* All of it: 0, or -errno. */
int stream_send(struct stream *s, const void *buf, size_t n,
		uint64_t deadline_ns);

/* Nothing more is sent; the peer is told so. */
void stream_shutdown(struct stream *s);

void stream_close(struct stream *s);

#endif /* STREAM_H */
