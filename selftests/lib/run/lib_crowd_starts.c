/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The threads that are started for a crowd of tasks that block their workers:
 * how many at a time, and how many for the next crowd.  The start hook counts
 * them, or holds each, so that it goes on starting for as long as the test
 * wants.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"

RT_FIXTURE(crowd_starts)

#define NR_CROWD	12

static atomic_int nr_in_hook, nr_past_hook;

/* The first worker goes on at once, and so does the timer thread. */
static void hold_start(void *arg)
{
	int nth = pl__self() ? atomic_fetch_add(&nr_in_hook, 1) : 0;

	while (nth > atomic_load(&nr_past_hook))
		usleep(100);
}

static void start_with_hook(void (*fn)(void *arg), int max)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	unsetenv("PARKLOT_WORKERS");
	unsetenv("PARKLOT_MAX_WORKERS");
	cfg.nr_workers = 1;
	cfg.max_workers = (uint32_t)max;
	cfg.worker_start = fn;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
}

static void block_until_over(void *arg)
{
	atomic_fetch_add(&nr_begun, 1);
	while (!may_go)
		usleep(1000);
}

/* ---- at a time ---- */

struct starts {
	uint32_t	nr_cpus;
	int		limit;
};

static bool has_workers(int nr)
{
	return (int)rt_stat().workers == 1 + nr;
}

/*
 * Its worker is the only one that is not held, and it does not leave the task.
 * So each spawn starts a spare or none, or the thread does that counts as the
 * searcher meanwhile; and so does each spare that is let go, before its task.
 */
static void count_starts(void *arg)
{
	const struct starts *s = arg;
	int i, nr;

	pretend_nr_cpus(s->nr_cpus);
	for (i = 1; i <= NR_CROWD; i++) {
		spawn_flags(PL_SPAWN_BLOCKING, block_until_over, NULL);
		nr = i < s->limit ? i : s->limit;
		ASSERT_TRUE(UNTIL_BUSY(nr_in_hook == 1 + nr));
		ASSERT_TRUE(has_workers(nr));
	}
	for (i = 1; i <= NR_CROWD; i++) {
		atomic_store(&nr_past_hook, i);
		ASSERT_TRUE(UNTIL_BUSY(nr_begun == i));
		nr = i + s->limit < NR_CROWD ? i + s->limit : NR_CROWD;
		ASSERT_TRUE(UNTIL_BUSY(nr_in_hook == 1 + nr));
		ASSERT_TRUE(has_workers(nr));
	}
	may_go = 1;
}

static void check_starts(uint32_t nr_cpus, int limit)
{
	struct starts s = { nr_cpus, limit };

	/* Sysmon would start a worker in reserve. */
	setenv("PARKLOT_WATCH", "0", 1);
	start_with_hook(hold_start, NR_CROWD + 8);
	run_in_task(count_starts, &s);
	EXPECT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(NR_CROWD, (int)rt_stat().spares);
}

TEST_F(crowd_starts, one_spare_starts_at_a_time_on_one_processor)
{
	check_starts(1, 1);
}

TEST_F(crowd_starts, two_spares_start_at_a_time_on_two_processors)
{
	check_starts(2, 2);
}

TEST_F(crowd_starts, four_spares_start_at_a_time_on_many_processors)
{
	check_starts(64, 4);
}

/* ---- beside a start that lasts ---- */

static atomic_int is_past_hook, nr_blocking;

static void hold_third_start(void *arg)
{
	int nth = pl__self() ? atomic_fetch_add(&nr_in_hook, 1) : 0;

	while (nth == 2 && !is_past_hook)
		usleep(1000);
}

/* Some of these may find the workers in a state in which none is started. */
static bool is_third_held(void)
{
	if (nr_in_hook == 3)
		return true;
	spawn_flags(PL_SPAWN_BLOCKING, block_until_over, NULL);
	nr_blocking++;
	return false;
}

/* The second worker has parked, and the third is in its hook. */
static void start_two_and_hold_one(void)
{
	start_with_hook(hold_third_start, 3);
	ASSERT_TRUE(UNTIL(is_third_held()));
	may_go = 1;
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive &&
			  rt_stat().workers_parked == 2));
}

static void spawn_and_compute(void *arg)
{
	spawn_flags(PL_SPAWN_BLOCKING, block_until_over, NULL);
	EXPECT_TRUE(UNTIL_BUSY(nr_begun == nr_blocking + 1));
}

TEST_F(crowd_starts, idle_worker_is_woken_beside_one_in_its_start_hook)
{
	pl__idle_timeout_ns = 3600 * NSEC_PER_SEC;
	setenv("PARKLOT_WATCH", "0", 1);
	start_two_and_hold_one();
	run_in_task(spawn_and_compute, NULL);
	is_past_hook = 1;
}

/* ---- crowds, one after another ---- */

#define NR_BURST	200
#define NR_LESS		10	/* in the next crowd */

static void count_start(void *arg)
{
	if (pl__self())
		atomic_fetch_add(&nr_in_hook, 1);
}

/* All of them are blocked at a time; all of their workers park afterwards. */
static void burst(int nr)
{
	int i, before = nr_begun;

	may_go = 0;
	for (i = 0; i < nr; i++)
		spawn_flags(PL_SPAWN_BLOCKING, block_until_over, NULL);
	ASSERT_TRUE(UNTIL_NO_MORE(nr_begun == before + nr,
				  (uint64_t)nr_begun));
	may_go = 1;
	ASSERT_TRUE(UNTIL_NO_MORE(is_all_parked() && !rt_stat().tasks_alive,
				  rt_stat().tasks_alive));
}

static void wait_for_a_second(void)
{
	struct timespec ts = { .tv_sec = 1 };

	nanosleep(&ts, NULL);
}

/*
 * A worker that is about to park does not count as one that will take the task,
 * so another may be started beside it: a few of them, where workers are slow.
 */
TEST_TIMED(next_crowd_before_the_idle_timeout_starts_few,
	   "counts what the scheduler did meanwhile")
TEST_F_TIMEOUT(crowd_starts, next_crowd_before_the_idle_timeout_starts_few,
	       120)
{
	int nr;

	EXPECT_EQ(5 * NSEC_PER_SEC, pl__idle_timeout_ns);
	/* The machine may be slow. */
	pl__idle_timeout_ns = 3600 * NSEC_PER_SEC;
	start_with_hook(count_start, 2 * NR_BURST);
	burst(NR_BURST);
	nr = nr_in_hook;
	EXPECT_LE(NR_BURST, nr);
	wait_for_a_second();
	burst(NR_BURST - NR_LESS);
	EXPECT_GE(nr + NR_BURST / 2, nr_in_hook);
}

TEST_F_TIMEOUT(crowd_starts, crowd_after_the_idle_timeout_starts_threads_anew,
	       120)
{
	int nr;

	pl__idle_timeout_ns = 30 * NSEC_PER_MSEC;
	start_with_hook(count_start, 2 * NR_BURST);
	burst(NR_BURST);
	ASSERT_TRUE(UNTIL(rt_stat().workers <= 2));
	nr = nr_in_hook;
	burst(NR_BURST);
	EXPECT_LE(nr + NR_BURST - 2, nr_in_hook);
	ASSERT_TRUE(UNTIL(rt_stat().workers <= 2));
}

TEST_HARNESS_MAIN
