/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Background tasks beside others that are always ready, which delay them for a
 * bounded time, and on several workers, of which each that is idle is woken.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"
#include "background.h"

BLOCKED_FIXTURE(background_load)

#define BOUND_NS	(10 * NSEC_PER_MSEC)
#define BOUND_TASKS	64
#define NR_SOME		10

/* ---- the bound ---- */

static long nr_taken, due_at, ran_at;
static uint64_t spawned_ns, ready_ns, ran_ns[NR_SOME], end_ns;
static atomic_int nr_storms;

/* Of the storm: whether one more is to come.  Notes when the bound begins. */
static bool goes_on(void)
{
	uint64_t now = pl_now();

	nr_taken++;
	if (!due_at && ready_ns && now - ready_ns >= BOUND_NS)
		due_at = nr_taken;
	return !ran_at && now < end_ns;
}

static void spawn_next(void *arg)
{
	if (goes_on())
		spawn(spawn_next, arg);
	else
		atomic_fetch_sub(&nr_storms, 1);
}

static void yield_on(void *arg)
{
	while (goes_on())
		pl_yield();
	atomic_fetch_sub(&nr_storms, 1);
}

static void join_on(void *arg)
{
	while (goes_on())
		join(spawn(nothing, NULL));
	atomic_fetch_sub(&nr_storms, 1);
}

static void urgent_on(void *arg)
{
	while (goes_on())
		spawn_flags(PL_SPAWN_URGENT, nothing, NULL);
	atomic_fetch_sub(&nr_storms, 1);
}

static void run_at_last(void *arg)
{
	ran_ns[0] = pl_now();
	ran_at = nr_taken;
}

struct storm {
	void	(*fn)(void *arg);
	int	nr;
};

static void begin_storm(void *arg)
{
	struct storm *s = arg;
	int i;

	spawned_ns = pl_now();
	spawn_background(run_at_last, NULL);
	ready_ns = pl_now();
	nr_storms = s->nr;
	for (i = 0; i < s->nr; i++)
		spawn(s->fn, NULL);
}

/* It runs when 10 ms are over, 64 tasks later at most. */
static void check_storm(void (*fn)(void *arg), int nr)
{
	struct storm s = { fn, nr };

	end_ns = pl_now() + stuck_ns() / 2;
	start_with(1, 1);
	run_in_task(begin_storm, &s);
	ASSERT_TRUE(UNTIL(!nr_storms && ran_at));
	EXPECT_EQ(1, rt_stat().background_late);
	EXPECT_LE(BOUND_NS, ran_ns[0] - spawned_ns);
	if (due_at)
		EXPECT_GE(due_at + BOUND_TASKS, ran_at);
}

FIXTURE(storm) { char unused; };
FIXTURE_VARIANT(storm) { void (*fn)(void *arg); int nr; };
FIXTURE_VARIANT_ADD(storm, spawns) { spawn_next, 1 };
FIXTURE_VARIANT_ADD(storm, many_spawns) { spawn_next, 20 };
FIXTURE_VARIANT_ADD(storm, one_that_yields) { yield_on, 1 };
FIXTURE_VARIANT_ADD(storm, many_that_yield) { yield_on, 20 };
FIXTURE_VARIANT_ADD(storm, joins) { join_on, 1 };
FIXTURE_VARIANT_ADD(storm, urgent_ones) { urgent_on, 1 };

FIXTURE_SETUP(storm) { blocked_begin(_metadata); }
FIXTURE_TEARDOWN(storm) { rt_end(); }

TEST_TIMED(storm, "counts what the scheduler did meanwhile; time that passed")
TEST_F(storm, storm_delays_it_for_a_bounded_time)
{
	check_storm(variant->fn, variant->nr);
}

static void note_time(void *arg)
{
	ran_ns[nr_ran++] = pl_now();
	if (nr_ran == NR_SOME)
		ran_at = nr_taken;
}

static void begin_storm_on_some(void *arg)
{
	int i;

	spawned_ns = pl_now();
	for (i = 0; i < NR_SOME; i++)
		spawn_background(note_time, NULL);
	nr_storms = 1;
	spawn(spawn_next, NULL);
}

/* So that many of them, which may be long, leave the others most time. */
TEST_TIMED(one_in_10_ms_runs_before_others,
	   "counts what the scheduler did meanwhile; time that passed")
TEST_F(background_load, one_in_10_ms_runs_before_others)
{
	int i;

	end_ns = pl_now() + stuck_ns() / 2;
	start_with(1, 1);
	run_in_task(begin_storm_on_some, NULL);
	ASSERT_TRUE(UNTIL(!nr_storms && nr_ran == NR_SOME));
	EXPECT_EQ(NR_SOME, rt_stat().background_late);
	for (i = 0; i < NR_SOME; i++)
		EXPECT_LE((uint64_t)(i + 1) * BOUND_NS, ran_ns[i] - spawned_ns);
}

/* ---- workers ---- */

static atomic_int nr_meeting;

static void meet(void *arg)
{
	atomic_fetch_add(&nr_meeting, 1);
	EXPECT_TRUE(UNTIL_BUSY(nr_meeting >= (intptr_t)arg));
}

/* All workers are parked before, most of the time. */
TEST_F(background_load, each_wakes_an_idle_worker)
{
	uint64_t end = in_ms(3000);
	intptr_t i, k;

	start_with(4, 4);
	for (i = 0; i < scaled(1000) && pl_now() < end; i++) {
		for (k = 0; k < 4; k++)
			spawn_background(meet, (void *)(4 * (i + 1)));
		ASSERT_TRUE(UNTIL_BUSY(nr_meeting == 4 * (i + 1)));
		if (i % 4 == 0)
			ASSERT_TRUE(UNTIL(is_all_parked()));
	}
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
}

static atomic_int nr_passed;
static struct pl_word passed[2];

/* Each is late by some delays where these are injected. */
static int nr_passes(void)
{
	return scaled(RT_INJECT ? 1000 : 20000);
}

/* Two tasks wake each other; a lost wakeup is the end of it. */
static void pass(void *arg)
{
	int me = *(int *)arg, i, nr = nr_passes();

	for (i = 0; i < nr; i++) {
		while (!atomic_exchange(&passed[me].value, 0))
			pl_word_wait(&passed[me], 0, PL_FOREVER);
		atomic_store(&passed[!me].value, 1);
		pl_word_wake(&passed[!me], 1);
		atomic_fetch_add(&nr_passed, 1);
	}
}

TEST_F(background_load, tasks_that_wake_each_other_lose_no_wake)
{
	int me[2] = { 0, 1 };
	pl_task_t t[2];

	start_with(2, 2);
	t[0] = spawn_background(pass, &me[0]);
	t[1] = spawn_background(pass, &me[1]);
	atomic_store(&passed[0].value, 1);
	pl_word_wake(&passed[0], 1);
	ASSERT_TRUE(UNTIL_NO_MORE(nr_passed == 2 * nr_passes(),
				  (uint64_t)nr_passed));
	join(t[0]);
	join(t[1]);
}

static void spawn_many_mixed(void *arg)
{
	intptr_t i, nr = *(int *)arg;

	for (i = 0; i < nr; i++)
		spawn_flags(i % 2 ? PL_SPAWN_BACKGROUND : 0,
			    yield_sleep_and_count, (void *)i);
}

TEST_F(background_load, many_of_both_kinds_run_once_each)
{
	int nr = scaled(RT_INJECT ? 500 : 5000);

	start_with(4, 4);
	mixed_run(3, 3, spawn_many_mixed, &nr);
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(6 * (nr + (nr + 6) / 7), nr_ran);
	EXPECT_EQ(0, rt_stat().background_ready);
}

/* Each blocks its worker, the more the longer; one worker runs at a time. */
TEST_F(background_load, tasks_that_block_keep_no_others_from_running)
{
	pl_task_t t[NR_SOME];
	int i;

	make_gate();
	start_with(1, NR_SOME + 2);
	for (i = 0; i < NR_SOME; i++)
		t[i] = spawn_background(read_gate, NULL);
	EXPECT_TRUE(UNTIL(nr_begun == NR_SOME));
	spawn_tiny(100);
	EXPECT_TRUE(UNTIL(nr_ran == 100));
	spawn_background(count, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == 101));
	open_gate();
	for (i = 0; i < NR_SOME; i++)
		join(t[i]);
}

static atomic_int nr_computing;

static void compute_until_over(void *arg)
{
	atomic_fetch_add(&nr_computing, 1);
	EXPECT_TRUE(UNTIL_BUSY(may_go));
}

TEST_F(background_load, task_runs_beside_tasks_that_compute_for_long)
{
	start_with(2, 18);
	spawn(compute_until_over, NULL);
	spawn(compute_until_over, NULL);
	ASSERT_TRUE(UNTIL(nr_computing == 2));
	spawn_background(count, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	EXPECT_LE(1, rt_stat().stalls);
	may_go = 1;
}

/*
 * They wait for each other; what sleeps finds a relief.  Each takes one that
 * computes on, before its task sleeps and after, so that the limit is raised
 * twice for it.
 */
TEST_TIMED(pool_that_computes_takes_few_workers,
	   "counts what the scheduler did meanwhile")
TEST_F(background_load, pool_that_computes_takes_few_workers)
{
	uint64_t nr;
	int i;

	start_with(2, 66);
	for (i = 0; i < 60; i++)
		spawn_background(compute_until_over, NULL);
	ASSERT_TRUE(UNTIL(nr_computing >= 2));
	for (i = 0; i < 3; i++) {
		spawn(sleep_and_count, NULL);
		EXPECT_TRUE(UNTIL(nr_ran == i + 1));
	}
	/* In this order: more may start meanwhile. */
	nr = (uint64_t)nr_computing;
	EXPECT_GE(2 * 2 + rt_stat().stalls_over + 1, nr);
	may_go = 1;
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(60, nr_computing);
}

TEST_F(background_load, task_on_the_worker_stack_runs)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.flags = PL_SPAWN_BACKGROUND;
	opts.stack = PL_STACK_WORKER;
	start_with(2, 2);
	EXPECT_EQ(0, pl_spawn(NULL, sleep_and_count, NULL, &opts));
	ASSERT_TRUE(UNTIL(nr_ran == 1));
}

TEST_HARNESS_MAIN
