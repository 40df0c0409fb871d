/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Callers of each kind, pairs of sockets, and the loopback interface; rt.h is
 * included before this.
 */
#ifndef SELFTESTS_IO_H
#define SELFTESTS_IO_H

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static inline void run_as_each(void (*fn)(void *arg), void *arg)
{
	run_in_task(fn, arg);
	run_as(PL_STACK_SMALL, fn, arg);
	run_as(PL_STACK_WORKER, fn, arg);
	fn(arg);
}

static inline void make_pair_of(int type, int fd[2])
{
	ASSERT_EQ(0, socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fd));
}

static inline void make_pair(int fd[2])
{
	make_pair_of(SOCK_STREAM, fd);
}

static inline void close_pair(int fd[2])
{
	EXPECT_EQ(0, pl_close(fd[0]));
	EXPECT_EQ(0, pl_close(fd[1]));
}

/* A socket of a free port; -1: there is no loopback interface. */
static inline int bind_to_loopback(struct sockaddr_in *sin)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*sin);

	*sin = (struct sockaddr_in){ .sin_family = AF_INET };
	sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)sin, len)) {
		close(fd);
		return -1;
	}
	ASSERT_EQ(0, getsockname(fd, (struct sockaddr *)sin, &len));
	return fd;
}

static inline int listen_on_loopback(struct sockaddr_in *sin)
{
	int fd = bind_to_loopback(sin);

	if (fd >= 0)
		ASSERT_EQ(0, listen(fd, 512));
	return fd;
}

/* Of a name that the kernel chooses; as many may wait there. */
static inline int listen_locally(struct sockaddr_un *sun, socklen_t *len,
				 int nr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	*len = sizeof(sa_family_t);
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)sun, *len));
	ASSERT_EQ(0, listen(fd, nr));
	*len = sizeof(*sun);
	ASSERT_EQ(0, getsockname(fd, (struct sockaddr *)sun, len));
	return fd;
}

/* Two ends of a connection; false: there is no loopback interface. */
static inline bool make_tcp_pair(int fd[2])
{
	struct sockaddr_in sin;
	int l = listen_on_loopback(&sin);

	if (l < 0)
		return false;
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ASSERT_EQ(0, connect(fd[0], (struct sockaddr *)&sin, sizeof(sin)));
	fd[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	ASSERT_LE(0, fd[1]);
	EXPECT_EQ(0, close(l));
	return true;
}

#endif /* SELFTESTS_IO_H */
