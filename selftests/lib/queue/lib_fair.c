/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long what is ready waits while others keep the workers busy: not in
 * time but in tasks taken meanwhile, as parklot-scheduling(7) promises.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "storm.h"

RT_FIXTURE(fair)

/* ---- in the queue ---- */

static void storm_on_marks(void (*fn)(void *arg), int nr)
{
	struct storm s = { fn, nr };

	begin(1, NR_MARKS);
	run_in_task(queue_marks, &s);
	ASSERT_TRUE(UNTIL(!nr_storms && !nr_left));
}

FIXTURE(storm) { char unused; };
FIXTURE_VARIANT(storm) { struct storm s; };
FIXTURE_VARIANT_ADD(storm, spawns) { { spawn_next, 1 } };
FIXTURE_VARIANT_ADD(storm, many_spawns) { { spawn_next, NR_YIELDERS } };
FIXTURE_VARIANT_ADD(storm, urgent_ones) { { spawn_urgent, 1 } };
FIXTURE_SETUP(storm) { rt_begin(_metadata); }
FIXTURE_TEARDOWN(storm) { rt_end(); }

TEST_F(storm, storm_runs_the_oldest_task_at_intervals)
{
	int i;

	storm_on_marks(variant->s.fn, variant->s.nr);
	for (i = 0; i < NR_MARKS; i++)
		EXPECT_GE(EVERY * (i + 1), waited(&marks[i]));
}

TEST_F(fair, yield_storm_runs_all_earlier_tasks)
{
	int i;

	storm_on_marks(yield_on, NR_YIELDERS);
	for (i = 0; i < NR_MARKS; i++)
		EXPECT_GE(NR_MARKS + NR_YIELDERS, waited(&marks[i]));
}

/* ---- from outside ---- */

static atomic_int nr_callbacks;		/* of timers, that are to return yet */

static void wake_by_timer(void *arg)
{
	wake(arg);
	atomic_fetch_sub(&nr_callbacks, 1);
}

static void at_once_by_timer(struct mark *m)
{
	atomic_fetch_add(&nr_callbacks, 1);
	ASSERT_EQ(0, pl_timer_add(NULL, pl_now(), wake_by_timer, m));
}

/* Once an inbox is looked at, then before what was ready then. */
#define BESIDE_SPAWNS	(EVERY * (1 + 2 + 1))

FIXTURE(woken) { char unused; };
FIXTURE_VARIANT(woken)
{
	void		(*make_ready)(struct mark *m);
	struct storm	s;
	long		most;
};

#define WOKEN(name, ...) FIXTURE_VARIANT_ADD(woken, name) { __VA_ARGS__ };
WOKEN(by_thread_beside_spawns, wake, { spawn_next, 2 }, BESIDE_SPAWNS)
WOKEN(by_thread_beside_yields, wake, { yield_on, NR_YIELDERS },
      2 * (NR_YIELDERS + 1))
WOKEN(by_timer_beside_spawns, at_once_by_timer, { spawn_next, 2 },
      BESIDE_SPAWNS)
WOKEN(by_timer_beside_yields, at_once_by_timer, { yield_on, NR_YIELDERS },
      2 * (NR_YIELDERS + 1))
FIXTURE_SETUP(woken) { rt_begin(_metadata); }
FIXTURE_TEARDOWN(woken) { rt_end(); }

/*
 * Parks again and again.  The last time it ends the storm, perhaps before its
 * waker has noted when it was ready.
 */
TEST_F(woken, task_woken_from_outside_runs_in_a_storm)
{
	int nr = scaled(200), i;

	begin(1, nr);
	begin_storm(variant->s.fn, variant->s.nr);
	spawn(wait_again, &marks[0]);
	for (i = 0; i < nr; i++) {
		EXPECT_TRUE(UNTIL(nr_waiters(&marks[0].word) == 1));
		variant->make_ready(&marks[0]);
		ASSERT_TRUE(UNTIL(marks[0].nr_runs == i + 1 && !nr_callbacks));
		EXPECT_GE(variant->most, waited(&marks[0]));
	}
	ASSERT_TRUE(UNTIL(!nr_storms));
}

static void spawn_outside(struct mark *m)
{
	atomic_store(&m->nr_runs, 0);
	spawn(run_mark, m);
	mark_ready(m);
}

/* ---- from outside, beside a long task ---- */

#define NR_THREADS	10

static atomic_int is_holding;

static void hold_on(void *arg)
{
	atomic_store(&is_holding, 1);
	EXPECT_TRUE(UNTIL_BUSY(is_over));
}

static void *spawn_by_thread(void *arg)
{
	spawn_outside(arg);
	return NULL;
}

/*
 * Threads are numbered one after the other: each worker is that of some, if it
 * were for their numbers.
 */
TEST_F(fair, task_spawned_by_a_thread_does_not_wait_behind_a_long_one)
{
	pthread_t thread;
	int i;

	begin(2, NR_THREADS);
	spawn(hold_on, NULL);
	ASSERT_TRUE(UNTIL(is_holding));
	begin_storm(spawn_next, 2);
	for (i = 0; i < NR_THREADS; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, spawn_by_thread,
					    &marks[i]));
		pthread_join(thread, NULL);
		ASSERT_TRUE(UNTIL(marks[i].nr_runs == 1));
		EXPECT_GE(BESIDE_SPAWNS, waited(&marks[i]));
	}
	ASSERT_TRUE(UNTIL(!nr_storms));
}

/* ---- behind a task that does not end ---- */

/* The storm is taken to the other worker, as this one has no time. */
static void hold_mark(void *arg)
{
	struct storm *s = arg;
	long before;

	begin_storm(s->fn, s->nr);
	before = nr_taken;
	EXPECT_TRUE(UNTIL_BUSY(nr_taken > before + 1000));
	spawn(run_mark, &marks[0]);
	mark_ready(&marks[0]);
	EXPECT_TRUE(UNTIL_BUSY(marks[0].nr_runs || !nr_storms));
	EXPECT_EQ(1, marks[0].nr_runs);
}

static void expect_taken_over(void (*fn)(void *arg), int nr)
{
	struct storm s = { fn, nr };

	begin(2, 1);
	run_in_task(hold_mark, &s);
	EXPECT_GE(2 * EVERY, waited(&marks[0]));
	ASSERT_TRUE(UNTIL(!nr_storms));
}

TEST_F(fair, task_behind_a_long_one_is_stolen_in_a_spawn_storm)
{
	expect_taken_over(spawn_next, 1);
}

TEST_F(fair, task_behind_a_long_one_is_stolen_in_a_yield_storm)
{
	expect_taken_over(yield_on, 2);
}

TEST_HARNESS_MAIN
