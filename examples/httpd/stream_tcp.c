// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "stream.h"

#include <sys/socket.h>

ssize_t stream_recv(struct stream *s, void *buf, size_t n, uint64_t deadline_ns)
{
	return pl_recv_until(s->fd, buf, n, 0, deadline_ns);
}

int stream_send(struct stream *s, const void *buf, size_t n,
		uint64_t deadline_ns)
{
	const char *at = buf;
	ssize_t ret;

	while (n) {
		ret = pl_send_until(s->fd, at, n, 0, deadline_ns);
		if (ret == -EINTR)	/* only that the server drains */
			continue;
		if (ret < 0)
			return (int)ret;
		at += ret;
		n -= (size_t)ret;
	}
	return 0;
}

void stream_shutdown(struct stream *s)
{
	shutdown(s->fd, SHUT_WR);
}

void stream_close(struct stream *s)
{
	pl_close(s->fd);
}
