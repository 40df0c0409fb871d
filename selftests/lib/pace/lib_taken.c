/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The count of tasks that workers took, by which sysmon compares how many run.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "pace/pace.h"

#define NR_CHAINED	100
#define NR_SLEEPS	10

RT_FIXTURE(taken)

static atomic_int nr_here;

/* Most follow another one on its stack, without a switch. */
static void take_chain(void *arg)
{
	uint32_t before = pl__nr_taken(&pl__rt.main);
	pl_task_t tasks[NR_CHAINED];
	int i;

	(void)arg;
	for (i = 0; i < NR_CHAINED; i++)
		tasks[i] = spawn(count, NULL);
	EXPECT_EQ(before, pl__nr_taken(&pl__rt.main));
	for (i = 0; i < NR_CHAINED; i++)
		join(tasks[i]);
	EXPECT_LE(NR_CHAINED, pl__nr_taken(&pl__rt.main) - before);
	EXPECT_GE(2 * NR_CHAINED, pl__nr_taken(&pl__rt.main) - before);
}

/* Its worker looks for others meanwhile, and parks. */
static void sleep_often(void *arg)
{
	uint32_t before = pl__nr_taken(&pl__rt.main);
	int i;

	(void)arg;
	for (i = 0; i < NR_SLEEPS; i++)
		EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	/* One that is over before it has begun does not leave the worker. */
	EXPECT_GE(NR_SLEEPS, pl__nr_taken(&pl__rt.main) - before);
	EXPECT_LE(1, pl__nr_taken(&pl__rt.main) - before);
}

static void meet(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nr_here, 1);
	EXPECT_TRUE(UNTIL_BUSY(nr_here >= 2));
}

/* It keeps its worker, so another one steals the task, and looks for more. */
static void leave_one(void *arg)
{
	uint32_t before;

	(void)arg;
	EXPECT_TRUE(UNTIL_BUSY(load_relaxed(&pl__rt.main.nr_idle) == 1));
	before = pl__nr_taken(&pl__rt.main);
	spawn(count, NULL);
	EXPECT_TRUE(UNTIL_BUSY(nr_ran));
	EXPECT_LE(1, pl__nr_taken(&pl__rt.main) - before);
	EXPECT_GE(2, pl__nr_taken(&pl__rt.main) - before);
}

TEST_F(taken, each_task_that_runs_counts)
{
	start_with(1, 1);
	run_in_task(take_chain, NULL);
}

TEST_F(taken, looks_that_find_no_task_do_not_count)
{
	start_with(1, 1);
	run_in_task(sleep_often, NULL);
}

TEST_F(taken, stolen_task_counts)
{
	pl_task_t one, other;

	start_with(2, 2);
	one = spawn(meet, NULL);
	other = spawn(meet, NULL);
	join(one);
	join(other);
	run_in_task(leave_one, NULL);
}

TEST_HARNESS_MAIN
