/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Workers that were started since others were blocked, and are idle for long:
 * they end, nothing of theirs is lost, and others are started in their place.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"

#include <sys/socket.h>

BLOCKED_FIXTURE(idle_timeout)

#define TIMEOUT_NS	(30 * NSEC_PER_MSEC)

static uint32_t nr_workers(void)
{
	return rt_stat().workers;
}

static int nr_slots(void)
{
	struct pl_stat_worker st = PL_STAT_WORKER_INIT;
	int i;

	for (i = 0; !pl_stat_worker((uint32_t)i, &st); i++)
		;
	return i;
}

/* @nr workers block at once, each in place of one that blocked before. */
static void block_and_release(int nr)
{
	int i, before = nr_begun;

	block_in_read(nr);
	ASSERT_TRUE(UNTIL(nr_begun == before + nr));
	for (i = 0; i < nr; i++)
		let_reader_go(i);
}

/* What is wanted, and one in reserve. */
TEST_TIMED(surplus_workers_end_after_the_idle_timeout,
	   "counts what the scheduler did meanwhile; time that passed")
TEST_F(idle_timeout, surplus_workers_end_after_the_idle_timeout)
{
	uint64_t cpu_ns;
	int i;

	pl__idle_timeout_ns = TIMEOUT_NS;
	start_with(1, 0);
	for (i = 0; i < 5; i++) {
		block_and_release(NR_PIPES);
		cpu_ns = rt_cpu_ns();
		ASSERT_TRUE(UNTIL(nr_workers() <= 2));
		EXPECT_LE(cpu_ns, rt_cpu_ns());
		EXPECT_TRUE(UNTIL(nr_threads_named("pl-worker") <= 2));
		spawn_tiny(100);
		ASSERT_TRUE(UNTIL(nr_ran == 100 * (i + 1)));
		/*
		 * The next ones take their places: else 5 times as many.  Some
		 * that start beside each other may not be needed.
		 */
		EXPECT_GT(5 * NR_PIPES, nr_slots());
	}
}

TEST_TIMED(surplus_worker_lives_until_the_idle_timeout, "time that passed")
TEST_F(idle_timeout, surplus_worker_lives_until_the_idle_timeout)
{
	struct timespec ts = { .tv_nsec = 300 * NSEC_PER_MSEC };
	uint32_t nr;

	EXPECT_EQ(5 * NSEC_PER_SEC, pl__idle_timeout_ns);
	pl__idle_timeout_ns = 3600 * NSEC_PER_SEC;
	start_with(1, 0);
	block_and_release(NR_PIPES);
	nr = nr_workers();
	EXPECT_LE((uint32_t)NR_PIPES, nr);
	nanosleep(&ts, NULL);
	EXPECT_LE(nr, nr_workers());
}

TEST_F(idle_timeout, min_workers_stay)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	struct timespec ts = { .tv_nsec = 5 * TIMEOUT_NS };

	pl__idle_timeout_ns = TIMEOUT_NS;
	cfg.nr_workers = 1;
	cfg.min_workers = 4;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	EXPECT_LE(4, nr_workers());
	block_and_release(NR_PIPES);
	ASSERT_TRUE(UNTIL(nr_workers() <= 5));
	nanosleep(&ts, NULL);
	EXPECT_LE(4, nr_workers());
}

static void meet(void *arg)
{
	int nr = *(int *)arg;

	atomic_fetch_add(&nr_begun, 1);
	EXPECT_TRUE(UNTIL_BUSY(nr_begun >= nr));
}

/* Those that parked when they were wanted did so without a deadline. */
TEST_F(idle_timeout, lowered_target_ends_workers)
{
	int i, nr = 6;
	pl_task_t t[6];

	pl__idle_timeout_ns = TIMEOUT_NS;
	start_with(6, 0);
	for (i = 0; i < nr; i++)
		t[i] = spawn(meet, &nr);
	for (i = 0; i < nr; i++)
		join(t[i]);
	EXPECT_LE(nr, (int)nr_workers());
	ASSERT_TRUE(UNTIL(rt_stat().workers_parked == nr_workers()));
	EXPECT_EQ(0, pl_runtime_set_workers(1));
	ASSERT_TRUE(UNTIL(nr_workers() <= 2));
	EXPECT_EQ(0, pl_runtime_set_workers(6));
	nr_begun = 0;
	for (i = 0; i < nr; i++)
		t[i] = spawn(meet, &nr);
	for (i = 0; i < nr; i++)
		join(t[i]);
}

/* ---- what they submitted for others ---- */

#define NR_PAIRS	4

static int pairs[NR_PIPES][NR_PAIRS][2];
static atomic_int nr_waiting, nr_read;

static void wait_for_byte(void *arg)
{
	int *fd = arg;
	char c = 0;

	atomic_fetch_add(&nr_waiting, 1);
	EXPECT_EQ(1, pl_read(fd[0], &c, 1));
	EXPECT_EQ('x', c);
	atomic_fetch_add(&nr_read, 1);
}

static void wait_and_block(void *arg)
{
	int i, k = (int)(intptr_t)arg;

	for (i = 0; i < NR_PAIRS; i++)
		spawn(wait_for_byte, pairs[k][i]);
	while (nr_waiting < (k + 1) * NR_PAIRS)
		pl_yield();
	read_byte(pipes[k]);
}

/*
 * Each worker blocks with reads in its ring, which the next one submits, and of
 * which it sees one end before it blocks in turn.
 */
static void block_with_reads(void)
{
	int i, k;

	for (k = 0; k < NR_PIPES; k++) {
		ASSERT_EQ(0, pipe2(pipes[k], O_CLOEXEC));
		for (i = 0; i < NR_PAIRS; i++)
			ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0,
						pairs[k][i]));
		readers[k] = spawn(wait_and_block, (void *)(intptr_t)k);
		ASSERT_TRUE(UNTIL(nr_begun == k + 1));
		EXPECT_EQ(1, write(pairs[k][0][1], "x", 1));
		ASSERT_TRUE(UNTIL(nr_read == k + 1));
	}
	EXPECT_EQ(NR_PIPES * NR_PAIRS, nr_waiting);
}

static void end_reads(void)
{
	int i, k;

	for (k = 0; k < NR_PIPES; k++)
		for (i = 1; i < NR_PAIRS; i++)
			EXPECT_EQ(1, write(pairs[k][i][1], "x", 1));
	ASSERT_TRUE(UNTIL(nr_read == NR_PIPES * NR_PAIRS));
}

/* The kernel would cancel it, if its thread ended. */
TEST_TIMED(submitter_stays_until_its_requests_complete, "time that passed")
TEST_F(idle_timeout, submitter_stays_until_its_requests_complete)
{
	struct timespec ts = { .tv_nsec = 10 * TIMEOUT_NS };
	int k;

	pl__idle_timeout_ns = TIMEOUT_NS;
	start_with(1, 0);
	block_with_reads();
	nanosleep(&ts, NULL);
	for (k = 0; k < NR_PIPES; k++)
		let_reader_go(k);
	nanosleep(&ts, NULL);
	EXPECT_EQ(NR_PIPES, nr_read);
	end_reads();
	ASSERT_TRUE(UNTIL(nr_workers() <= 2));
}

/* Another request, in flight all the time, does not keep the submitters. */
TEST_F(idle_timeout, submitter_ends_once_its_requests_have_completed)
{
	static int idle[2];
	pl_task_t t;
	int k;

	pl__idle_timeout_ns = TIMEOUT_NS;
	start_with(1, 0);
	block_with_reads();
	end_reads();
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, idle));
	t = spawn(wait_for_byte, idle);
	ASSERT_TRUE(UNTIL(rt_stat().io_in_flight == 1));
	for (k = 0; k < NR_PIPES; k++)
		let_reader_go(k);
	ASSERT_TRUE(UNTIL(nr_workers() <= 2));
	EXPECT_EQ(1, rt_stat().io_in_flight);
	EXPECT_EQ(1, write(idle[1], "x", 1));
	join(t);
}

/* ---- races ---- */

static bool has_any_ended(void)
{
	bool has_ended;

	pl__lock(&pl__rt.start_lock);
	has_ended = pl__rt.has_ended;
	pl__unlock(&pl__rt.start_lock);
	return has_ended;
}

/*
 * Tasks come alone while workers end, so that none makes up for a signal that
 * was lost; then others are to be started again.
 */
static void end_and_start(uint32_t max, int nr_blocking)
{
	int i, k, nr_tiny = 0, nr = scaled(RT_INJECT ? 200 : 400);
	uint64_t seed = 7;

	start_with(1, max);
	for (i = 0; i < nr; i++) {
		pl__idle_timeout_ns =
			next_random(&seed) % (200 * NSEC_PER_USEC);
		block_and_release(nr_blocking);
		for (k = 0; k < 5; k++) {
			spawn_tiny(1);
			nr_tiny++;
			ASSERT_TRUE(UNTIL(nr_ran == nr_tiny));
		}
	}
	/* Since its idle timeout is over, though it may be late. */
	EXPECT_TRUE(UNTIL(has_any_ended()));
}

TEST_F(idle_timeout, ending_workers_lose_no_task)
{
	end_and_start(0, NR_PIPES);
}

TEST_F(idle_timeout, failed_worker_starts_lose_no_task)
{
	end_and_start(4, 3);
}

TEST_HARNESS_MAIN
