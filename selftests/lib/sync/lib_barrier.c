/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The barrier: no user goes on before all have come, round after round;
 * lib_race.c has those that leave before.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(barrier)

static struct pl_barrier barrier;
static atomic_int nr_back, nr_ones;

TEST_F(barrier, barrier_of_one_does_not_wait)
{
	struct pl_barrier init = PL_BARRIER_INIT(0), one = PL_BARRIER_INIT(1);
	int i;

	EXPECT_EQ(0, memcmp(&init, &barrier, sizeof(barrier)));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(1, pl_barrier_wait(&barrier));
	EXPECT_EQ(0, pl_barrier_init(&barrier, 1));
	EXPECT_EQ(0, memcmp(&one, &barrier, sizeof(barrier)));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(1, pl_barrier_wait(&barrier));
}

/* ---- rounds ---- */

static void meet(void)
{
	int ret = pl_barrier_wait(&barrier);

	EXPECT_TRUE(ret == 0 || ret == 1);
	atomic_fetch_add(&nr_ones, ret);
	atomic_fetch_add(&nr_back, 1);
}

static void meet_once(void *arg)
{
	(void)arg;
	meet();
}

TEST_F(barrier, last_arrival_releases_all)
{
	static struct mixed m;
	pl_task_t t;

	EXPECT_EQ(0, pl_barrier_init(&barrier, 56));
	mixed_start(&m, 50, 4, meet_once, NULL);
	t = spawn_as(PL_STACK_WORKER, meet_once, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&barrier.word) == 55));
	EXPECT_EQ(0, nr_back);
	EXPECT_EQ(1, pl_barrier_wait(&barrier));
	mixed_join(&m);
	join(t);
	EXPECT_EQ(0, nr_ones);
	EXPECT_EQ(55, nr_back);
}

/* Plain numbers, one each: a sanitizer sees if a round orders nothing. */
static int step[64];
static atomic_int next_id;

static void walk_together(void *arg)
{
	int i, k, nr = *(int *)arg, me = atomic_fetch_add(&next_id, 1);
	int nr_all = (int)barrier.nr;

	for (i = 1; i <= nr; i++) {
		step[me] = i;
		meet();
		for (k = 0; k < nr_all; k++)
			EXPECT_EQ(i, step[k]);
		meet();
	}
}

static void walk(int nr_tasks, int nr_threads, int nr)
{
	int nr_all = nr_tasks + nr_threads;

	EXPECT_EQ(0, pl_barrier_init(&barrier, (uint32_t)nr_all));
	mixed_run(nr_tasks, nr_threads, walk_together, &nr);
	EXPECT_EQ(2 * nr, nr_ones);
	EXPECT_EQ(2 * nr * nr_all, nr_back);
}

TEST_F(barrier, rounds_follow_each_other_among_tasks_and_threads)
{
	walk(10, 3, scaled(300));
}

static void meet_often(void *arg)
{
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++)
		meet();
}

/* A whole number of rounds in all, in whatever groups the tasks meet. */
TEST_F(barrier, any_of_many_tasks_complete_a_round)
{
	static struct mixed m;
	int nr = 1, i;

	EXPECT_EQ(0, pl_barrier_init(&barrier, 3));
	for (i = 0; i < scaled(40); i++) {
		mixed_start(&m, 95, 4, meet_often, &nr);
		mixed_join(&m);
	}
	EXPECT_EQ(33 * scaled(40), nr_ones);
	EXPECT_EQ(99 * scaled(40), nr_back);
}

TEST_HARNESS_MAIN
