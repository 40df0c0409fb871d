/* SPDX-License-Identifier: GPL-2.0-only */
/* Callers of each kind, and pairs of sockets; rt.h is included before this. */
#ifndef SELFTESTS_IO_H
#define SELFTESTS_IO_H

#include <sys/socket.h>

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

#endif /* SELFTESTS_IO_H */
