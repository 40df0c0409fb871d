// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which close ends a sleep: the close that takes the last descriptor of the
 * space from the table (clone(2), CLONE_FILES) by which the sleeper parked. The
 * closer may be a thread, or a process with memory of its own.
 */
#include "kselftest_harness.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "mod.h"
#include "send_fd.h"

#define STACK_SIZE	(64 << 10)

FIXTURE(close)
{
	struct space s;
	struct parker parker;	/* on lot 0, by the table of the test */
};

FIXTURE_SETUP(close)
{
	SPACE_SETUP(&self->s, 2);
	ASSERT_EQ(0, parker_start(&self->parker, &self->s, 0,
				  PARKLOT_FOREVER));
}

FIXTURE_TEARDOWN(close)
{
	space_close(&self->s);
}

static int close_one(void *arg)
{
	return close(*(int *)arg);
}

/* Closes @fd in a child that shares with the test what @flags name. */
static int close_in_child(int fd, int flags)
{
	static char stack[STACK_SIZE] __attribute__((aligned(64)));
	int status = -1;
	pid_t pid;

	pid = clone(close_one, stack + STACK_SIZE, flags | SIGCHLD, &fd);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

/* The parker is still parked, and a wake still wakes it. */
#define EXPECT_STILL_PARKED(fd) do { \
	EXPECT_EQ(1, nr_parked(&self->s, 0)); \
	EXPECT_EQ(0, atomic_load(&self->parker.result)); \
	EXPECT_EQ(1, dev_wake(fd, 0, 1)); \
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker)); \
} while (0)

TEST_F(close, close_by_a_vfork_child_wakes_no_sleeper)
{
	EXPECT_EQ(0, close_in_child(self->s.fd, CLONE_VM | CLONE_VFORK));
	EXPECT_STILL_PARKED(self->s.fd);
}

TEST_F(close, close_by_a_child_with_shared_memory_wakes_no_sleeper)
{
	EXPECT_EQ(0, close_in_child(self->s.fd, CLONE_VM));
	EXPECT_STILL_PARKED(self->s.fd);
}

TEST_F(close, close_by_a_child_with_shared_files_ends_the_sleep)
{
	EXPECT_EQ(0, close_in_child(self->s.fd, CLONE_FILES));
	EXPECT_EQ(PARKLOT_INTERRUPTED, parker_join(&self->parker));
	EXPECT_EQ(0, nr_parked(&self->s, 0));
	self->s.fd = dev_open();
}

TEST_F(close, close_of_a_duplicate_wakes_no_sleeper)
{
	int copy = dup(self->s.fd);

	ASSERT_LE(0, copy);
	EXPECT_EQ(0, close(self->s.fd));
	self->s.fd = copy;
	EXPECT_STILL_PARKED(copy);
}

/* Far more sleepers than one pass looks at, and then one pass more. */
TEST_F(close, close_of_the_last_duplicate_ends_the_sleep)
{
	int i, last = -1;

	for (i = 0; i < 1000; i++) {
		last = dup(self->s.fd);
		ASSERT_LE(0, last);
	}
	for (i = last - 999; i < last; i++)
		EXPECT_EQ(0, close(i));
	EXPECT_EQ(0, close(self->s.fd));
	EXPECT_EQ(1, nr_parked(&self->s, 0));
	EXPECT_EQ(0, atomic_load(&self->parker.result));
	EXPECT_EQ(0, close(last));
	EXPECT_EQ(PARKLOT_INTERRUPTED, parker_join(&self->parker));
	self->s.fd = dev_open();
}

#define NR_COPIES	300000
#define NR_SPACES	20000
#define NR_PARTS	8
#define LINEAR_GROWTH	4	/* NR_PARTS, if the time is quadratic */
#define NR_TRIES	5

/*
 * Returns what the calling thread runs while it closes @nr descriptors, which
 * are duplicates of @fd, or spaces if @fd is negative; 0 if it gets fewer.
 */
static uint64_t close_cpu_ns(int fd, int nr)
{
	int i, low = -1, high = -1;
	uint64_t begin;

	for (i = 0; i < nr; i++) {
		high = fd < 0 ? dev_open() : dup(fd);
		if (!i)
			low = high;
	}
	if (low < 0 || high - low != nr - 1)
		return 0;
	begin = thread_cpu_ns();
	if (syscall(SYS_close_range, low, high, 0))
		return 0;
	return thread_cpu_ns() - begin;
}

/* By how much closing @nr takes longer than closing them in parts. */
static uint64_t close_growth(int fd, int nr)
{
	uint64_t all = close_cpu_ns(fd, nr), parts = 0, part;
	int i;

	for (i = 0; i < NR_PARTS; i++) {
		part = close_cpu_ns(fd, nr / NR_PARTS);
		if (!part || !all)
			return NR_PARTS;
		parts += part;
	}
	printf("# all at once %ju us, in parts %ju us\n",
	       (uintmax_t)all / 1000, (uintmax_t)parts / 1000);
	return all / parts;
}

/*
 * Where a search is repeated for each close, it is so at each try; an emulated
 * processor that others take away for a while slows one.
 */
static bool close_is_linear(int fd, int nr)
{
	int i;

	for (i = 0; i < NR_TRIES; i++)
		if (close_growth(fd, nr) < LINEAR_GROWTH)
			return true;
	return false;
}

/* Gives the space's descriptor a number above all that a test will get. */
static int close_move(struct space *s, int above)
{
	int fd = fcntl(s->fd, F_DUPFD_CLOEXEC, above);

	if (fd < 0 || close(s->fd))
		return -errno;
	s->fd = fd;
	return 0;
}

/*
 * Each close looks for another descriptor and finds the next one. A search from
 * the start would make some billions of comparisons.
 */
TEST_TIMED(close_of_many_duplicates_takes_linear_time,
	   "processor time; one of several tries")
TEST_F_TIMEOUT(close, close_of_many_duplicates_takes_linear_time, 120)
{
	struct rlimit limit = { NR_COPIES + 100, NR_COPIES + 100 };

	if (setrlimit(RLIMIT_NOFILE, &limit))
		SKIP(return, "not root");
	ASSERT_EQ(0, close_move(&self->s, NR_COPIES + 50));
	EXPECT_TRUE(close_is_linear(self->s.fd, NR_COPIES));
	EXPECT_STILL_PARKED(self->s.fd);
}

/*
 * No space has another descriptor, so each search would cover the whole table.
 */
TEST_TIMED(close_of_many_spaces_takes_linear_time,
	   "processor time; one of several tries")
TEST_F_TIMEOUT(close, close_of_many_spaces_takes_linear_time, 120)
{
	struct rlimit limit = { NR_SPACES + 100, NR_SPACES + 100 };

	if (setrlimit(RLIMIT_NOFILE, &limit))
		SKIP(return, "not root");
	EXPECT_TRUE(close_is_linear(-1, NR_SPACES));
	EXPECT_STILL_PARKED(self->s.fd);
}

/*
 * A thread with a table of descriptors of its own, and a parker by that table.
 */
struct apart {
	struct space	*s;
	struct parker	parker;
	atomic_int	step;
	int		closed;
};

/* Parks a thread by its own table, and closes the space there when told. */
static void *stay_apart(void *arg)
{
	struct apart *apart = arg;
	int err = unshare(CLONE_FILES);

	if (!err)
		err = parker_start(&apart->parker, apart->s, 1,
				   PARKLOT_FOREVER);
	atomic_store(&apart->step, err ? -1 : 1);
	UNTIL(atomic_load(&apart->step) == 2);
	apart->closed = close(apart->s->fd);
	return NULL;
}

TEST_F(close, close_by_a_thread_ends_sleeps_by_its_own_table)
{
	struct apart apart = { .s = &self->s };
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, stay_apart, &apart));
	UNTIL(atomic_load(&apart.step));
	ASSERT_EQ(1, atomic_load(&apart.step));
	atomic_store(&apart.step, 2);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, apart.closed);
	EXPECT_EQ(PARKLOT_INTERRUPTED, parker_join(&apart.parker));
	/*
	 * The sleeper leaves its lot to look into its own table, and parks
	 * again.
	 */
	UNTIL(nr_parked(&self->s, 0) == 1);
	EXPECT_STILL_PARKED(self->s.fd);
}

/*
 * Keeps the space in a socket meanwhile, so that the parker can still be woken.
 */
TEST_F(close, close_leaves_sleeps_by_another_table)
{
	struct apart apart = { .s = &self->s };
	pthread_t thread;
	int fd, sock[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	ASSERT_EQ(0, pthread_create(&thread, NULL, stay_apart, &apart));
	UNTIL(atomic_load(&apart.step));
	ASSERT_EQ(1, atomic_load(&apart.step));
	ASSERT_EQ(0, send_fd(sock[0], self->s.fd));
	EXPECT_EQ(0, close(self->s.fd));
	EXPECT_EQ(PARKLOT_INTERRUPTED, parker_join(&self->parker));
	UNTIL(nr_parked(&self->s, 1) == 1);
	EXPECT_EQ(0, atomic_load(&apart.parker.result));
	fd = receive_fd(sock[1]);
	ASSERT_LE(0, fd);
	self->s.fd = fd;
	EXPECT_EQ(1, dev_wake(fd, 1, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&apart.parker));
	atomic_store(&apart.step, 2);
	pthread_join(thread, NULL);
}

/* No thread is parked by that table then; its freed memory does not matter. */
TEST_F(close, exit_of_a_child_with_shared_files_wakes_no_sleeper)
{
	static char stack[STACK_SIZE] __attribute__((aligned(64)));
	int copy = dup(self->s.fd), status;
	pid_t pid;

	pid = clone(close_one, stack + STACK_SIZE, CLONE_FILES | SIGCHLD,
		    &copy);
	ASSERT_LT(0, pid);
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_STILL_PARKED(self->s.fd);
}

TEST_HARNESS_MAIN
