/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A filter of system calls, as containers have them, forbids one that the
 * library makes: what it then does is what parklot(7) says.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#include "forbid.h"

/* Calls without which all works; each variant is one. */
FIXTURE(forbidden) { char unused; };
FIXTURE_VARIANT(forbidden) { long call; };
#define MAY_LACK(name) \
	FIXTURE_VARIANT_ADD(forbidden, name) { .call = SYS_##name }

MAY_LACK(fcntl);
MAY_LACK(io_uring_enter);
MAY_LACK(io_uring_register);
MAY_LACK(io_uring_setup);
MAY_LACK(ioctl);
MAY_LACK(madvise);
MAY_LACK(membarrier);
MAY_LACK(openat);
MAY_LACK(ppoll);
MAY_LACK(prctl);
MAY_LACK(process_vm_readv);
MAY_LACK(rt_sigaction);
MAY_LACK(sched_getaffinity);
MAY_LACK(sched_yield);
MAY_LACK(sigaltstack);

FIXTURE_SETUP(forbidden) { rt_begin(_metadata); }
FIXTURE_TEARDOWN(forbidden) { rt_end(); }

RT_FIXTURE(needed)

/* Calls of sanitizers, which abort without. */
static bool is_of_sanitizer(long call)
{
	static const long calls[] = {
		SYS_clone, SYS_mprotect, SYS_sched_getaffinity, SYS_sigaltstack,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i] == call)
			return RT_ASAN || RT_TSAN;
	return false;
}

#define FORBID(call, err) do { \
	if (is_of_sanitizer(call)) \
		SKIP(return, "a sanitizer makes this call itself"); \
	if (!forbid_call(call, err)) \
		SKIP(return, "no seccomp in this kernel"); \
} while (0)

static int fd[2];

static void send_late(void *arg)
{
	EXPECT_EQ(0, pl_sleep(2 * NSEC_PER_MSEC));
	EXPECT_EQ(1, pl_send(fd[1], "x", 1, 0));
}

/* Waits until a deadline, waits for another task, and reads a pipe. */
static void move_bytes(void *arg)
{
	int pipe_fd[2];
	pl_task_t task;
	char c = 0;

	EXPECT_EQ(-ETIMEDOUT, pl_recv_until(fd[0], &c, 1, 0, in_ms(2)));
	ASSERT_EQ(0, pl_spawn(&task, send_late, NULL, NULL));
	EXPECT_EQ(1, pl_recv(fd[0], &c, 1, 0));
	EXPECT_EQ('x', c);
	EXPECT_EQ(0, pl_join(task));
	ASSERT_EQ(0, pipe(pipe_fd));
	EXPECT_EQ(1, pl_write(pipe_fd[1], "y", 1));
	EXPECT_EQ(1, pl_read(pipe_fd[0], &c, 1));
	EXPECT_EQ('y', c);
	EXPECT_EQ(0, pl_close(pipe_fd[0]));
	EXPECT_EQ(0, pl_close(pipe_fd[1]));
}

/* Without @call, by epoll if io_uring takes it. */
static void all_works_without(long call)
{
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	run_in_task(move_bytes, NULL);
	move_bytes(NULL);
	if (call == SYS_io_uring_setup || call == SYS_io_uring_enter)
		EXPECT_EQ(PL_IO_POLL, rt_stat().io);
	EXPECT_EQ(0, close(fd[0]));
	EXPECT_EQ(0, close(fd[1]));
	EXPECT_EQ(0, pl_runtime_stop());
}

TEST_F(forbidden, call_is_not_missed)
{
	FORBID(variant->call, EPERM);
	all_works_without(variant->call);
}

TEST_F(forbidden, unknown_call_is_not_missed)
{
	FORBID(variant->call, ENOSYS);
	all_works_without(variant->call);
}

static void wait_without_ring(void *arg)
{
	char c;

	EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	/* Data that is there is read, without a ring. */
	EXPECT_EQ(1, pl_send(fd[1], "x", 1, 0));
	EXPECT_EQ(1, pl_recv(fd[0], &c, 1, 0));
	EXPECT_EQ(-EOPNOTSUPP, pl_recv_until(fd[0], &c, 1, 0,
					     in_ms(3600 * 1000)));
	EXPECT_EQ(-EOPNOTSUPP, pl_read(fd[0], &c, 1));
}

static void io_is_unsupported(void)
{
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	run_in_task(wait_without_ring, NULL);
	EXPECT_EQ(0, close(fd[0]));
	EXPECT_EQ(0, close(fd[1]));
}

TEST_F(needed, io_without_eventfd_is_unsupported)
{
	setenv("PARKLOT_WAIT", "eventfd", 1);
	FORBID(SYS_eventfd2, EPERM);
	io_is_unsupported();
}

TEST_F(needed, io_without_uring_and_epoll_is_unsupported)
{
	setenv("PARKLOT_IO", "poll", 1);
	FORBID(SYS_epoll_create1, EPERM);
	io_is_unsupported();
}

/* The C library starts a thread by one of both. */
TEST_F(needed, runtime_without_threads_does_not_start)
{
	FORBID(SYS_clone3, ENOSYS);
	FORBID(SYS_clone, EPERM);
	EXPECT_EQ(-EPERM, pl_runtime_start(NULL));
	EXPECT_EQ(-EPERM, pl_spawn(NULL, move_bytes, NULL, NULL));
}

/* Each stack has a guard. */
TEST_F(needed, runtime_without_guards_does_not_start)
{
	FORBID(SYS_mprotect, EPERM);
	EXPECT_EQ(-EPERM, pl_runtime_start(NULL));
	EXPECT_EQ(-EPERM, pl_spawn(NULL, move_bytes, NULL, NULL));
}

TEST_HARNESS_MAIN
