/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each mode in which a worker waits for the I/O of its tasks and for other
 * threads at once: it may be forced, and loses no completion and no wakeup.
 * There is one worker, or a second one without work, so that no other thread
 * makes up for a lost wakeup; each round ends before the next one begins.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "base/sys.h"

#include <sys/socket.h>

FIXTURE(wait_mode) { char unused; };
FIXTURE_VARIANT(wait_mode) { const char *io, *wait; };
FIXTURE_VARIANT_ADD(wait_mode, eventfd) { .io = "auto", .wait = "eventfd" };
FIXTURE_VARIANT_ADD(wait_mode, futex) { .io = "auto", .wait = "futex" };
FIXTURE_VARIANT_ADD(wait_mode, epoll) { .io = "poll", .wait = "eventfd" };
FIXTURE_VARIANT_ADD(wait_mode, park) { .io = "auto", .wait = "park" };
FIXTURE_VARIANT_ADD(wait_mode, park_epoll) { .io = "poll", .wait = "park" };

FIXTURE_SETUP(wait_mode)
{
	rt_begin_io(_metadata, variant->io, variant->wait);
}

FIXTURE_TEARDOWN(wait_mode)
{
	rt_end();
}

FIXTURE(futex_ring) { char unused; };

FIXTURE_SETUP(futex_ring)
{
	rt_begin_io(_metadata, NULL, "futex");
}

FIXTURE_TEARDOWN(futex_ring)
{
	rt_end();
}

/*
 * Sysmon opens files, and one of them might get the number of a descriptor that
 * a test has closed; it would also report that the only worker is blocked.
 */
static void __attribute__((constructor)) disable_sysmon(void)
{
	setenv("PARKLOT_WATCH", "0", 1);
}

static int fd[2];
static atomic_uint nr_read;

static void make_pair(int pair[2])
{
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
}

/* Keeps the ring busy all the time. */
static void read_on(void *arg)
{
	char c;

	while (pl_read(fd[0], &c, 1) == 1)
		nr_read++;
}

static pl_task_t start_reader(uint32_t nr_workers)
{
	pl_task_t t;

	start_with(nr_workers, nr_workers);
	make_pair(fd);
	t = spawn(read_on, NULL);
	ASSERT_TRUE(UNTIL(rt_stat().io_in_flight == 1));
	return t;
}

static void end_reader(pl_task_t t)
{
	EXPECT_EQ(0, close(fd[1]));
	join(t);
	EXPECT_EQ(0, close(fd[0]));
}

/* At any moment of the worker's way to sleep, and now and then well asleep. */
static void come_any_time(uint64_t *seed)
{
	uint64_t n = next_random(seed);

	if (n % 4)
		spin_ns(n / 4 % 40000);
	else
		EXPECT_TRUE(UNTIL(!rt_stat().workers_running));
}

TEST_F(wait_mode, stat_names_the_wait_mode)
{
	static const char *const names[] = { "", "eventfd", "futex", "park" };
	pl_task_t t;

	EXPECT_EQ(PL_WAIT_NONE, rt_stat().wait);
	t = start_reader(1);
	EXPECT_STREQ(getenv("PARKLOT_WAIT"), names[rt_stat().wait]);
	end_reader(t);
}

/* ---- completions and wakeups ---- */

static atomic_uint nr_run;

static void run_once(void *arg)
{
	nr_run++;
}

TEST_F(wait_mode, racing_completions_and_wakeups_are_not_lost)
{
	unsigned int nr = (unsigned int)scaled(300), i, read = 0, run = 0;
	pl_task_t t = start_reader(1);
	uint64_t seed = 2718, what;

	for (i = 0; i < nr; i++) {
		come_any_time(&seed);
		what = next_random(&seed) % 4;
		if (what != 1) {
			EXPECT_EQ(1, write(fd[1], "x", 1));
			read++;
		}
		if (what == 2)
			spin_ns(next_random(&seed) % 10000);
		if (what) {
			EXPECT_EQ(0, pl_spawn(NULL, run_once, NULL, NULL));
			run++;
		}
		ASSERT_TRUE(UNTIL(nr_read == read && nr_run == run));
	}
	end_reader(t);
}

/* ---- messages to the owner of the ring ---- */

static int other[2];
static atomic_uint nr_back;

static void read_till_closed(void *arg)
{
	ssize_t ret;
	char c;

	do {
		ret = pl_read(other[0], &c, 1);
		nr_back++;
	} while (ret == -EINTR);
	EXPECT_EQ(-EBADF, ret);
}

/* An interrupted task may resume on a worker without its request. */
TEST_F(wait_mode, racing_ring_messages_are_not_lost)
{
	unsigned int nr = (unsigned int)scaled(100), i, back = 0;
	pl_task_t t = start_reader(2), r;
	uint64_t seed = 3141;

	for (i = 0; i < nr; i++) {
		make_pair(other);
		r = spawn(read_till_closed, NULL);
		ASSERT_TRUE(UNTIL(rt_stat().io_in_flight == 2));
		come_any_time(&seed);
		EXPECT_EQ(0, pl_interrupt(r));
		ASSERT_TRUE(UNTIL(nr_back == back + 1));
		/* Else it might wait on whatever takes the number next. */
		ASSERT_TRUE(UNTIL(rt_stat().io_in_flight == 2));
		come_any_time(&seed);
		EXPECT_EQ(0, pl_close(other[0]));
		ASSERT_TRUE(UNTIL(nr_back == back + 2));
		join(r);
		EXPECT_EQ(0, close(other[1]));
		back += 2;
	}
	end_reader(t);
}

/* ---- blocked on the worker's own stack ---- */

static struct pl_word turn;
static atomic_uint nr_turns;

static void take_turns(void *arg)
{
	uint32_t nr = *(uint32_t *)arg, i;

	for (i = 0; i < nr; i++) {
		while (atomic_load(&turn.value) == i)
			pl_word_wait(&turn, i, PL_FOREVER);
		nr_turns++;
	}
}

TEST_F(wait_mode, wake_reaches_a_task_on_the_worker_stack)
{
	uint32_t nr = (uint32_t)scaled(150), i;
	uint64_t seed = 1618;
	pl_task_t t = start_reader(1), w;

	w = spawn_as(PL_STACK_WORKER, take_turns, &nr);
	for (i = 0; i < nr; i++) {
		spin_ns(next_random(&seed) % 40000);
		/* A completion that it sees by the way is no wake. */
		if (i % 2)
			EXPECT_EQ(1, write(fd[1], "x", 1));
		atomic_store(&turn.value, i + 1);
		pl_word_wake(&turn, 1);
		ASSERT_TRUE(UNTIL(nr_turns == i + 1));
	}
	join(w);
	ASSERT_TRUE(UNTIL(nr_read == nr / 2));
	end_reader(t);
}

/* ---- the ring itself ---- */

/* Else it would take a wake meant for the next user of the memory. */
TEST_F(futex_ring, closed_ring_has_no_futex_waiter)
{
	struct pl__ring *ring;
	int i, nr = scaled(100);
	struct pl__bell *bell;

	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, pl__ring_open(&ring, PL_IO_URING, PL_WAIT_FUTEX));
		bell = pl__ring_bell(ring);
		pl__ring_wait(ring, pl_now() + NSEC_PER_USEC);
		/* It listens still, and does not once it was woken. */
		if (i % 2)
			EXPECT_EQ(1, pl__futex_wake(&bell->nr_rung, 9));
		pl__ring_close(ring);
		EXPECT_EQ(0, pl__futex_wake(&bell->nr_rung, 1));
	}
}

TEST_HARNESS_MAIN
