/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Workers that compute for long, beside which reliefs run what waits.
 *
 * No test measures a time: the tasks that compute do so until what is to happen
 * beside them has happened, or nearly for ever.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "queue/aside.h"
#include "blocked.h"

#include <fcntl.h>

BLOCKED_FIXTURE(hogs)

#define NR_WORKERS	2
#define NR_WAKES	50

static atomic_int is_over, nr_hogs, nr_computing;

static void compute(void *arg)
{
	atomic_fetch_add(&nr_computing, 1);
	/* Last: one that is seen here computes. */
	atomic_fetch_add(&nr_hogs, 1);
	UNTIL_BUSY(is_over);
	atomic_fetch_sub(&nr_computing, 1);
}

static void start_hogs(uint32_t nr_workers, int nr)
{
	start_with(nr_workers, nr_workers + 16);
	while (nr--)
		spawn(compute, NULL);
	ASSERT_TRUE(UNTIL(nr_hogs >= (int)nr_workers));
}

static void end_hogs(void)
{
	atomic_store(&is_over, 1);
	ASSERT_TRUE(UNTIL(!nr_computing && !rt_stat().tasks_alive));
}

static void sleep_often(void *arg)
{
	int i;

	for (i = 0; i < scaled(NR_WAKES); i++)
		EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	count(arg);
}

/* ---- what runs beside them ---- */

TEST_TIMED(sleeping_task_runs_beside_them,
	   "counts what the scheduler did meanwhile")
TEST_F(hogs, sleeping_task_runs_beside_them)
{
	start_hogs(NR_WORKERS, NR_WORKERS);
	spawn(sleep_often, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	EXPECT_EQ(NR_WORKERS, nr_computing);
	EXPECT_LE(1, rt_stat().stalls);
	/* The relief may wait for a lock, or for a page, for a moment. */
	EXPECT_TRUE(UNTIL(rt_stat().workers_blocked == 0));
	EXPECT_EQ(NR_WORKERS, nr_computing);
	end_hogs();
}

static void read_bytes(void *arg)
{
	const int *fds = arg;
	char c;
	int i;

	for (i = 0; i < scaled(NR_WAKES); i++)
		EXPECT_EQ(1, pl_read(fds[0], &c, 1));
	count(NULL);
}

TEST_F(hogs, reading_task_runs_beside_them)
{
	int fds[2], i;

	start_with(NR_WORKERS, NR_WORKERS + 16);
	ASSERT_EQ(0, pipe(fds));
	spawn(read_bytes, fds);
	ASSERT_TRUE(UNTIL(rt_stat().io_in_flight == 1));
	spawn(compute, NULL);
	spawn(compute, NULL);
	ASSERT_TRUE(UNTIL(nr_computing == NR_WORKERS));
	for (i = 0; i < scaled(NR_WAKES); i++)
		EXPECT_EQ(1, write(fds[1], "", 1));
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	EXPECT_EQ(NR_WORKERS, nr_computing);
	end_hogs();
	close(fds[0]);
	close(fds[1]);
}

static void spawn_when_woken(void *arg)
{
	EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	spawn_tiny(100);
	count(arg);
}

TEST_F(hogs, task_that_a_woken_one_spawns_runs_beside_them)
{
	start_with(NR_WORKERS, NR_WORKERS + 16);
	spawn(spawn_when_woken, NULL);
	spawn(compute, NULL);
	spawn(compute, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == 101));
	end_hogs();
}

static void spawn_and_compute(void *arg)
{
	spawn_tiny(100);
	compute(arg);
}

TEST_F(hogs, task_that_a_stalled_one_spawned_runs_beside_them)
{
	start_with(1, 16);
	spawn(spawn_and_compute, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == 100));
	/* A relief may have run them before the task came to that. */
	EXPECT_TRUE(UNTIL(nr_computing == 1));
	end_hogs();
}

/* One that is blocked takes no tasks either, whatever sysmon counts it as. */
TEST_F(hogs, tasks_run_beside_them_and_a_blocked_one)
{
	start_with(NR_WORKERS, NR_WORKERS + 16);
	block_in_read(1);
	ASSERT_TRUE(UNTIL(nr_begun == 1));
	spawn(compute, NULL);
	spawn(compute, NULL);
	ASSERT_TRUE(UNTIL(nr_computing == NR_WORKERS));
	spawn_tiny(100);
	EXPECT_TRUE(UNTIL(nr_ran == 100));
	EXPECT_EQ(NR_WORKERS, nr_computing);
	let_reader_go(0);
	end_hogs();
}

/* ---- after a time without work ---- */

static struct pl_word word;

static void wait_for_word(void *arg)
{
	while (!atomic_load(&word.value))
		EXPECT_EQ(0, pl_word_wait(&word, 0, PL_FOREVER));
	count(arg);
}

/* One stalls, as a task that was woken waits, and sysmon has gone to sleep. */
static void stall_until_sysmon_sleeps(void)
{
	start_with(1, 17);
	spawn(wait_for_word, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&word) == 1));
	spawn(compute, NULL);
	ASSERT_TRUE(UNTIL(nr_computing == 1));
	atomic_store(&word.value, 1);
	pl_word_wake(&word, 1);
	ASSERT_TRUE(UNTIL(nr_ran == 1));
	ASSERT_TRUE(UNTIL(atomic_load(&pl__rt.sysmon) == PL__SYSMON_ASLEEP));
}

TEST_F(hogs, task_spawned_while_sysmon_sleeps_runs_beside_them)
{
	stall_until_sysmon_sleeps();
	spawn_tiny(1);
	EXPECT_TRUE(UNTIL(nr_ran == 2));
	EXPECT_EQ(1, nr_computing);
	end_hogs();
}

TEST_F(hogs, background_task_spawned_while_sysmon_sleeps_runs_beside_them)
{
	stall_until_sysmon_sleeps();
	spawn_flags(PL_SPAWN_BACKGROUND, count, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == 2));
	EXPECT_EQ(1, nr_computing);
	end_hogs();
}

/* ---- the target is raised ---- */

static bool is_set_aside(void)
{
	return pl__rt.main.aside.compute.nr &&
	       !pl__nr_may_compute(&pl__rt.main);
}

/* It would have to wait for 0.8 s otherwise. */
TEST_F(hogs, raised_target_lets_one_compute_that_was_set_aside)
{
	set_env("PARKLOT_STALL_US", 400 * 1000);
	start_with(1, 16);
	pretend_nr_cpus(2);
	pl__forecast_add(compute, PL__RUN_COMPUTES);
	spawn(compute, NULL);
	spawn(compute, NULL);
	ASSERT_TRUE(UNTIL(is_set_aside()));
	EXPECT_EQ(1, nr_computing);
	EXPECT_EQ(0, pl_runtime_set_workers(2));
	EXPECT_TRUE(UNTIL(nr_computing == 2));
	EXPECT_EQ(0, rt_stat().stalls_over);
	end_hogs();
	unsetenv("PARKLOT_STALL_US");
}

/* ---- pools ---- */

static int said[2], old_stderr;

static void listen_to_stderr(void)
{
	ASSERT_EQ(0, pipe2(said, O_CLOEXEC | O_NONBLOCK));
	old_stderr = dup(2);
	ASSERT_EQ(2, dup2(said[1], 2));
}

/* One more may start on each relief before it is seen to compute. */
TEST_TIMED(pool_of_them_leaves_reliefs_to_woken_tasks,
	   "counts what the scheduler did meanwhile")
TEST_F(hogs, pool_of_them_leaves_reliefs_to_woken_tasks)
{
	uint64_t nr;
	int i;

	start_with(NR_WORKERS, NR_WORKERS + 64);
	spawn(sleep_often, NULL);
	ASSERT_TRUE(UNTIL(rt_stat().timers_added));
	for (i = 0; i < 60; i++)
		spawn(compute, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	/* In this order: more may start meanwhile. */
	nr = (uint64_t)nr_hogs;
	EXPECT_GE(2 * NR_WORKERS + rt_stat().stalls_over + 1, nr);
	end_hogs();
	EXPECT_EQ(60, nr_hogs);
}

TEST_TIMED(more_reliefs_than_the_target_are_told_once,
	   "counts what the scheduler did meanwhile")
TEST_F(hogs, more_reliefs_than_the_target_are_told_once)
{
	char text[512] = "", more[512] = "", *end;

	listen_to_stderr();
	start_hogs(1, 8);
	EXPECT_TRUE(UNTIL(rt_stat().stalls_over >= 4));
	/* sysmon counts, and then tells. */
	EXPECT_TRUE(UNTIL(read(said[0], text, sizeof(text) - 1) > 0));
	EXPECT_LE(3, nr_hogs);
	end_hogs();
	dup2(old_stderr, 2);
	end = strstr(text, "workers are in tasks that compute");
	ASSERT_NE(NULL, end);
	EXPECT_EQ(NULL, strstr(end + 1, "workers are in"));
	if (read(said[0], more, sizeof(more) - 1) > 0)
		EXPECT_EQ(NULL, strstr(more, "workers are in"));
}

/* ---- the end ---- */

/* sysmon is made to look, also while none of the *@nr tasks waits. */
static uint32_t nr_stalled_beside(int *nr)
{
	if (nr_ran == *nr) {
		spawn_tiny(1);
		++*nr;
	}
	pl__sysmon_kick();
	return rt_stat().workers_stalled;
}

TEST_F(hogs, stalled_worker_counts_as_running_again_after_its_task)
{
	int nr = 0;

	start_hogs(NR_WORKERS, NR_WORKERS);
	EXPECT_TRUE(UNTIL(nr_stalled_beside(&nr)));
	end_hogs();
	EXPECT_TRUE(UNTIL(!rt_stat().workers_stalled));
	EXPECT_TRUE(UNTIL(is_all_parked()));
	spawn_tiny(100);
	EXPECT_TRUE(UNTIL(nr_ran == nr + 100));
}

static void compute_and_read(void *arg)
{
	EXPECT_TRUE(UNTIL_BUSY(rt_stat().workers_stalled == 1));
	read_byte(arg);
}

TEST_F(hogs, stalled_worker_that_blocks_counts_as_blocked)
{
	int nr = 2;

	start_with(1, 16);
	ASSERT_EQ(0, pipe2(pipes[0], O_CLOEXEC));
	readers[0] = spawn(compute_and_read, pipes[0]);
	spawn_tiny(1);
	EXPECT_TRUE(UNTIL(nr_begun));
	spawn(sleep_often, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == 2));
	EXPECT_TRUE(UNTIL(!nr_stalled_beside(&nr)));
	let_reader_go(0);
}

/* ---- when there are none ---- */

static void compute_for_long(void *arg)
{
	spin_ns(100 * NSEC_PER_MSEC);
	atomic_fetch_add(&nr_hogs, 1);
}

static void expect_no_relief(void)
{
	spawn(compute_for_long, NULL);
	spawn_tiny(1);
	EXPECT_TRUE(UNTIL(nr_hogs == 1 && nr_ran == 1));
	EXPECT_EQ(0, rt_stat().stalls);
}

TEST_F(hogs, no_relief_comes_with_stall_us_0)
{
	set_env("PARKLOT_STALL_US", 0);
	start_with(1, 16);
	expect_no_relief();
	unsetenv("PARKLOT_STALL_US");
}

TEST_F(hogs, no_relief_comes_where_stall_ns_is_forever)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.nr_workers = 1;
	cfg.stall_ns = PL_FOREVER;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	expect_no_relief();
}

TEST_F(hogs, no_relief_comes_beyond_max_workers)
{
	start_with(1, 1);
	expect_no_relief();
	EXPECT_EQ(0, rt_stat().all_blocked);
}

TEST_HARNESS_MAIN
