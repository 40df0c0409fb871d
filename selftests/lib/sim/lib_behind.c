/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks behind one that computes or blocks, beside others that always have
 * something to do: as many turns of these as it takes to find them.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "parklot/sim.h"

#define NR_BEHIND	8
#define TURN_NS		(5 * NSEC_PER_MSEC)
/*
 * A busy worker looks at one other worker before every 64th task, and takes
 * half of its tasks at a second look; there are two others at most.
 */
#define NR_TURNS	(2 * 4 * 64)

static atomic_int is_over, nr_behind;
static _Atomic uint64_t nr_turns;

static void be_behind(void *arg)
{
	atomic_fetch_add(&nr_behind, 1);
}

static void yield_on(void *arg)
{
	while (!is_over) {
		pl_sim_compute(TURN_NS);
		atomic_fetch_add(&nr_turns, 1);
		pl_yield();
	}
}

static void spawn_and_hold(void (*hold)(uint64_t ns))
{
	int i;

	for (i = 0; i < NR_BEHIND; i++)
		spawn(be_behind, NULL);
	nr_turns = 0;
	while (!is_over)
		hold(NSEC_PER_MSEC);
}

static void compute_on(void *arg)
{
	spawn_and_hold(pl_sim_compute);
}

static void block_on(void *arg)
{
	spawn_and_hold(pl_sim_block);
}

RT_FIXTURE(behind)

static void expect_few_turns(uint32_t nr_workers, void (*hold)(void *arg))
{
	pl_task_t t[2];
	int i;

	start_with(nr_workers, 8);
	for (i = 0; i < 2; i++)
		t[i] = spawn(yield_on, NULL);
	spawn(hold, NULL);
	EXPECT_TRUE(UNTIL(nr_behind == NR_BEHIND));
	EXPECT_GE(NR_TURNS, nr_turns);
	is_over = 1;
	for (i = 0; i < 2; i++)
		join(t[i]);
}

TEST_F(behind, tasks_behind_a_computing_one_run_on_the_only_worker)
{
	expect_few_turns(1, compute_on);
}

TEST_F(behind, tasks_behind_a_computing_one_run_on_the_other_worker)
{
	expect_few_turns(2, compute_on);
}

TEST_F(behind, tasks_behind_a_blocked_one_run_on_the_only_worker)
{
	expect_few_turns(1, block_on);
}

TEST_F(behind, tasks_behind_a_blocked_one_run_on_the_other_worker)
{
	expect_few_turns(2, block_on);
}

TEST_HARNESS_MAIN
