/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Crowds of tasks that block their workers: those of a routine that blocked
 * before are set aside, and run by workers of their own.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"
#include "work.h"

#define NR_CROWD	200

BLOCKED_FIXTURE(crowd)

static int gate[2];

/* Blocks in the kernel until open_gate(). */
static void wait_at_gate(void *arg)
{
	char c;

	(void)arg;
	atomic_fetch_add(&nr_begun, 1);
	EXPECT_EQ(0, read(gate[0], &c, 1));
}

static void make_gate(void)
{
	ASSERT_EQ(0, pipe2(gate, O_CLOEXEC));
}

static void open_gate(void)
{
	EXPECT_EQ(0, close(gate[1]));
}

static void spawn_crowd(pl_task_t *t, int nr, void (*fn)(void *arg))
{
	int i;

	for (i = 0; i < nr; i++)
		t[i] = spawn(fn, NULL);
}

static void join_crowd(const pl_task_t *t, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		join(t[i]);
}

/* Otherwise each worker that runs one has to be found blocked in turn. */
TEST_F(crowd, tasks_of_a_routine_that_blocks_are_set_aside)
{
	static pl_task_t t[2 * NR_CROWD];

	make_gate();
	start_with(2, 2 * NR_CROWD + 10);
	spawn_crowd(t, NR_CROWD, wait_at_gate);
	spawn_tiny(1);
	spawn_crowd(t + NR_CROWD, NR_CROWD, wait_at_gate);
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	EXPECT_TRUE(UNTIL(nr_begun == 2 * NR_CROWD));
	EXPECT_LE(NR_CROWD, rt_stat().set_aside);
	/* Workers that were started for the first crowd may serve as well. */
	EXPECT_LE(1, rt_stat().spares);
	EXPECT_GE(NR_CROWD, rt_stat().blocks);
	open_gate();
	join_crowd(t, 2 * NR_CROWD);
}

/* ---- tasks that resume ---- */

#define NR_LOOPS	60
#define BLOCK_MS	20

static atomic_int nr_calls;

static void yield_and_block(void *arg)
{
	(void)arg;
	while (!may_go) {
		usleep(BLOCK_MS * 1000);
		atomic_fetch_add(&nr_calls, 1);
		pl_yield();
	}
}

static void call_alone(void)
{
	uint64_t end = in_ms(500);

	while (pl_now() < end) {
		usleep(BLOCK_MS * 1000);
		atomic_fetch_add(&nr_calls, 1);
	}
}

/* A crowd calls as often, each, as a thread that has nothing else to do. */
TEST_F(crowd, tasks_that_block_again_run_at_a_time)
{
	static pl_task_t t[NR_LOOPS];
	int alone;

	call_alone();
	alone = nr_calls;
	start_with(2, NR_LOOPS + 10);
	spawn_crowd(t, NR_LOOPS, yield_and_block);
	/* Until each is known to block. */
	EXPECT_TRUE(UNTIL(nr_calls >= 10 * NR_LOOPS));
	nr_calls = 0;
	call_alone();
	EXPECT_LE(NR_LOOPS * alone / 2, nr_calls);
	EXPECT_LE(NR_LOOPS / 2, rt_stat().set_aside);
	may_go = 1;
	join_crowd(t, NR_LOOPS);
}

/* ---- a routine that does not block any more ---- */

static void block_if_asked(void *arg)
{
	if (arg)
		wait_at_gate(NULL);
	else
		count(NULL);
}

TEST_F(crowd, routine_that_blocks_no_more_is_not_set_aside)
{
	pl_task_t t[4];
	uint64_t before;
	int i;

	make_gate();
	start_with(2, 100);
	for (i = 0; i < 4; i++)
		t[i] = spawn(block_if_asked, gate);
	EXPECT_TRUE(UNTIL(nr_begun == 4));
	open_gate();
	join_crowd(t, 4);
	for (i = 0; i < 20; i++)
		join(spawn(block_if_asked, NULL));
	before = rt_stat().set_aside;
	for (i = 0; i < 200; i++)
		EXPECT_EQ(0, pl_spawn(NULL, block_if_asked, NULL, NULL));
	EXPECT_TRUE(UNTIL(nr_ran == 220));
	EXPECT_GE(before + 100, rt_stat().set_aside);
}

/* ---- max_workers ---- */

static void yield_until_gone(void *arg)
{
	(void)arg;
	while (!may_go)
		pl_yield();
}

/* Two workers never run out of tasks, and a third is blocked. */
TEST_F(crowd, set_aside_task_runs_beside_busy_workers)
{
	pl_task_t busy[4], t[6];

	make_gate();
	start_with(2, 3);
	spawn_crowd(busy, 4, yield_until_gone);
	spawn_crowd(t, 6, wait_at_gate);
	EXPECT_TRUE(UNTIL(nr_begun == 3));
	may_go = 1;
	open_gate();
	join_crowd(t, 6);
	join_crowd(busy, 4);
}

static void check_told(uint32_t max, int nr)
{
	static pl_task_t t[600];

	make_gate();
	start_with(2, max);
	spawn_crowd(t, nr, wait_at_gate);
	spawn_tiny(1);
	EXPECT_TRUE(UNTIL(nr_begun == (int)max));
	EXPECT_TRUE(UNTIL(rt_stat().all_blocked >= 1));
	open_gate();
	join_crowd(t, nr);
	EXPECT_TRUE(UNTIL(nr_ran == 1));
}

TEST_F(crowd, workers_all_blocked_by_a_crowd_are_counted)
{
	check_told(40, 300);
}

TEST_F(crowd, workers_all_blocked_by_twice_the_crowd_are_counted)
{
	check_told(40, 600);
}

TEST_HARNESS_MAIN
