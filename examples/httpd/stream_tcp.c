// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "stream.h"

#include <stdio.h>
#include <sys/socket.h>

const char stream_program[] = "httpd";
const char stream_usage[] = "";
const uint32_t stream_stack = PL_STACK_SMALL;
const bool stream_sends_files = true;

int stream_init(const char *cert, const char *key)
{
	if (!cert && !key)
		return 0;
	fprintf(stderr, "httpd: --cert and --key are httpsd's\n");
	return -EINVAL;
}

void stream_exit(void)
{
}

int stream_open(struct stream *s)
{
	(void)s;
	return 0;
}

ssize_t stream_recv(struct stream *s, void *buf, size_t n, uint64_t deadline_ns)
{
	return pl_recv_until(s->fd, buf, n, 0, deadline_ns);
}

int stream_send(struct stream *s, const void *buf, size_t n, bool has_more,
		uint64_t deadline_ns)
{
	return stream_send_plain(s, buf, n, has_more ? MSG_MORE : 0,
				 deadline_ns);
}

ssize_t stream_sendfile(struct stream *s, int in, off_t *offset, size_t n,
			uint64_t deadline_ns)
{
	return pl_sendfile_until(s->fd, in, offset, n, deadline_ns);
}

void stream_shutdown(struct stream *s)
{
	shutdown(s->fd, SHUT_WR);
}

void stream_close(struct stream *s)
{
	pl_close(s->fd);
}
