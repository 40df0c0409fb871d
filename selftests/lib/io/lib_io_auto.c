/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which way of waiting for I/O is taken: io_uring, unless the process may not
 * use it, or the environment says.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#include "forbid.h"

RT_FIXTURE(auto)

static bool is_uring_allowed(void)
{
	/* No entries make no sense, and no file is -1. */
	return syscall(SYS_io_uring_setup, 0, NULL) < 0 && errno != ENOSYS &&
	       errno != EPERM &&
	       syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0) < 0 &&
	       errno == EBADF;
}

/* As in containers; false where the kernel has no seccomp, or it is allowed. */
static bool forbid_uring(long call, int err)
{
	forbid_call(call, err);
	return !is_uring_allowed();
}

#define FORBID_URING(call, err) do { \
	if (!forbid_uring(call, err)) \
		SKIP(return, "no seccomp in this kernel"); \
} while (0)

static void move_a_byte(void *arg)
{
	char c = 0;
	int fd[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	EXPECT_EQ(-ETIMEDOUT, pl_read_until(fd[0], &c, 1, in_ms(1)));
	EXPECT_EQ(1, pl_write(fd[1], "x", 1));
	EXPECT_EQ(1, pl_recv(fd[0], &c, 1, 0));
	EXPECT_EQ('x', c);
	EXPECT_EQ(0, pl_close(fd[0]));
	EXPECT_EQ(0, pl_close(fd[1]));
}

static void expect(enum pl_io io)
{
	EXPECT_EQ(PL_IO_NONE, rt_stat().io);
	run_in_task(move_a_byte, NULL);
	EXPECT_EQ(io, rt_stat().io);
	move_a_byte(NULL);
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(PL_IO_NONE, rt_stat().io);
}

TEST_F(auto, uring_is_used_where_allowed)
{
	unsetenv("PARKLOT_IO");
	expect(is_uring_allowed() ? PL_IO_URING : PL_IO_POLL);
	setenv("PARKLOT_IO", "auto", 1);
	expect(is_uring_allowed() ? PL_IO_URING : PL_IO_POLL);
}

TEST_F(auto, epoll_is_used_where_requested)
{
	setenv("PARKLOT_IO", "poll", 1);
	expect(PL_IO_POLL);
}

TEST_F(auto, requested_futex_without_uring_is_refused)
{
	unsetenv("PARKLOT_IO");
	setenv("PARKLOT_WAIT", "futex", 1);
	FORBID_URING(SYS_io_uring_setup, EPERM);
	EXPECT_EQ(-EOPNOTSUPP, pl_runtime_start(NULL));
}

static void read_unsupported(void *arg)
{
	char c;

	EXPECT_EQ(-EOPNOTSUPP, pl_read(0, &c, 1));
	EXPECT_EQ(-EOPNOTSUPP, pl_accept(0, NULL, NULL, 0));
}

TEST_F(auto, requested_uring_that_fails_is_refused)
{
	setenv("PARKLOT_IO", "uring", 1);
	FORBID_URING(SYS_io_uring_setup, EPERM);
	run_in_task(read_unsupported, NULL);
	read_unsupported(NULL);
	EXPECT_EQ(PL_IO_NONE, rt_stat().io);
}

TEST_HARNESS_MAIN
