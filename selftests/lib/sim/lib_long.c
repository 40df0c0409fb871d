/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As lib_small.c: tasks that compute for long, again and again, and so are set
 * aside; or block, or do neither, as the seed has it.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "few_tasks.h"

#include "parklot/sim.h"

#include "queue/aside.h"

#define STALL_US	500
#define STALL_NS	(STALL_US * NSEC_PER_USEC)
#define NR_TASKS	6
#define NR_TURNS	4
/* A task that is left would be found by nothing until then. */
#define SOON_NS		(200 * NSEC_PER_MSEC)

static uint64_t begin;

FIXTURE(of_long) { char unused; };

FIXTURE_SETUP(of_long)
{
	rt_begin(_metadata);
	set_env("PARKLOT_STALL_US", STALL_US);
	start_with(1 + (uint32_t)(__test_seed % 3),
		   __test_seed % 5 ? 16 : 3 + (uint32_t)(__test_seed % 3));
	begin = pl_now();
}

/* Nobody is counted for a task that is over. */
FIXTURE_TEARDOWN(of_long)
{
	join_all();
	EXPECT_GT(begin + SOON_NS, pl_now());
	EXPECT_EQ(0, pl__rt.main.aside.compute.nr + pl__rt.main.aside.block.nr);
	EXPECT_TRUE(UNTIL(!pl__rt.main.nr_stalled &&
			  !pl__nr_blocked(&pl__rt.main)));
	rt_end();
}

static void block_for_a_while(void *arg)
{
	pl_sim_block((uintptr_t)arg);
}

static void have_a_turn(uint64_t kind)
{
	switch (kind) {
	case 0:
		pl_sim_compute(2 * STALL_NS);
		break;
	case 1:
		pl_sim_block(STALL_NS);
		break;
	case 2:
		pl_blocking(block_for_a_while, (void *)STALL_NS);
		break;
	case 3:
		EXPECT_EQ(0, pl_sleep(STALL_NS / 8));
	}
	if (kind != 3)
		pl_yield();
}

static void compute_each_turn(void *arg)
{
	int i;

	for (i = 0; i < NR_TURNS; i++)
		have_a_turn(0);
}

static void do_what_comes(void *arg)
{
	uint64_t x = (__test_seed + 1) * ((uintptr_t)arg + 0x9e3779b9);
	int i;

	for (i = 0; i < NR_TURNS; i++)
		have_a_turn(next_random(&x) % 6);
}

static void sleep_each_turn(void *arg)
{
	int i;

	for (i = 0; i < NR_TURNS; i++)
		have_a_turn(3);
}

TEST_F(of_long, tasks_that_compute_each_turn_have_all_of_them)
{
	uintptr_t i;

	for (i = 0; i < NR_TASKS; i++)
		go(i % 3 ? compute_each_turn : sleep_each_turn, i);
	join_all();
}

TEST_F(of_long, tasks_that_do_what_comes_have_all_their_turns)
{
	uintptr_t i;

	for (i = 0; i < NR_TASKS; i++)
		go(do_what_comes, i);
	join_all();
}

static void compute_once(void *arg)
{
	pl_sim_compute(2 * STALL_NS);
}

TEST_F(of_long, new_tasks_of_a_routine_that_computes_run)
{
	uintptr_t i;

	for (i = 0; i < 2 * NR_TASKS; i++)
		go(compute_once, i);
	go(sleep_each_turn, 0);
	join_all();
}

TEST_F(of_long, target_that_changes_leaves_none_that_computes_behind)
{
	uintptr_t i;

	for (i = 0; i < NR_TASKS; i++)
		go(compute_each_turn, i);
	for (i = 0; i < 4; i++) {
		pl_sleep(__test_seed % 7 * STALL_NS);
		EXPECT_EQ(0, pl_runtime_set_workers(1 + i % 3));
	}
	join_all();
}

static void compute_until_all_have_begun(void *arg)
{
	atomic_fetch_add(&nr_done, 1);
	while (nr_done < (int)(uintptr_t)arg && pl_now() < begin + SOON_NS)
		pl_sim_compute(STALL_NS / 4);
}

/* None of them is through before: the limit has to be raised. */
TEST_F(of_long, tasks_that_compute_for_each_other_all_begin)
{
	uintptr_t nr = pl__rt.cfg.max_workers < 6 ? 2 : 4, i;

	nr_done = 0;
	pl__forecast_add(compute_until_all_have_begun, PL__RUN_COMPUTES);
	for (i = 0; i < nr; i++)
		go(compute_until_all_have_begun, nr);
	join_all();
}

static void block_for_long(void *arg)
{
	pl_sim_block(SOON_NS / 2);
}

static void compute_for_long(void *arg)
{
	pl_sim_compute(SOON_NS / 2);
}

static void note_time(void *arg)
{
	*(uint64_t *)arg = pl_now();
}

/* The blocked one is as little use as those that compute: in a crew, too. */
TEST_F(of_long, task_runs_beside_one_that_blocks_and_two_that_compute)
{
	uint64_t ran_ns = 0, begun_ns;

	go(block_for_long, 0);
	go(compute_for_long, 0);
	go(compute_for_long, 0);
	pl_sleep(10 * STALL_NS);
	begun_ns = pl_now();
	go(note_time, (uintptr_t)&ran_ns);
	join_all();
	/* As many as may be started block or compute. */
	if (pl__rt.cfg.max_workers > 3) {
		EXPECT_GT(begun_ns + SOON_NS / 8, ran_ns);
	}
}

TEST_HARNESS_MAIN
