/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What servers here do before they serve: listen on a free port of 127.0.0.1,
 * and print "listening on ADDRESS:PORT"
 */
#ifndef BENCH_LISTEN_H
#define BENCH_LISTEN_H

#include <netinet/tcp.h>
#include <sys/socket.h>

#include "util.h"

static inline int listen_anywhere(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) ||
	    listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		die("listen: %s", strerror(errno));
	printf("listening on 127.0.0.1:%u\n", ntohs(addr.sin_port));
	fflush(stdout);
	return fd;
}

static inline void no_delay(int fd)
{
	const int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* A handler that needs @ns of the calling thread's processor. */
static inline void compute(uint64_t ns)
{
	const uint64_t end_ns = ns ? clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns : 0;

	while (ns && clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		;
}

#endif /* BENCH_LISTEN_H */
