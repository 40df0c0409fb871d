/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What httpd reads requests from and writes answers to: a TCP connection by
 * stream_tcp.c; by httpsd's stream_tls.c it is one with TLS.
 */
#ifndef STREAM_H
#define STREAM_H

#include <parklot.h>

struct stream {
	int	fd;
	bool	has_failed;	/* stream_tls.c: nothing more can be said */
	void	*tls;		/* stream_tls.c: an SSL */
};

/* The program's name, what it adds to the usage, and enum pl_stack. */
extern const char stream_program[], stream_usage[];
extern const uint32_t stream_stack;
/* Without a buffer: as they are. */
extern const bool stream_sends_files;

/* Names of files, or NULL; says itself what is wrong, and is not 0 then. */
int stream_init(const char *cert, const char *key);
void stream_exit(void);

/* Before all that follows; 0 or -errno. */
int stream_open(struct stream *s);

/* As pl_recv_until(). */
ssize_t stream_recv(struct stream *s, void *buf, size_t n,
		    uint64_t deadline_ns);

/* All of it: 0, or -errno.  @has_more: a file follows at once. */
int stream_send(struct stream *s, const void *buf, size_t n, bool has_more,
		uint64_t deadline_ns);

/* As pl_sendfile_until(), if stream_sends_files. */
ssize_t stream_sendfile(struct stream *s, int in, off_t *offset, size_t n,
			uint64_t deadline_ns);

/* Nothing more is sent; the peer is told so. */
void stream_shutdown(struct stream *s);

void stream_close(struct stream *s);

/* All of it, as it is: 0, or -errno. */
static inline int stream_send_plain(struct stream *s, const char *buf, size_t n,
				    int flags, uint64_t deadline_ns)
{
	ssize_t ret;

	while (n) {
		ret = pl_send_until(s->fd, buf, n, flags, deadline_ns);
		if (ret == -EINTR)	/* only that the server drains */
			continue;
		if (ret < 0)
			return (int)ret;
		buf += ret;
		n -= (size_t)ret;
	}
	return 0;
}

#endif /* STREAM_H */
