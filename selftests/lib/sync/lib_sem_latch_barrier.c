/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What counts.  The semaphore: units for tasks and threads alike, none lost or
 * made up.  The latch: waiters go on when all is done, and not before.  The
 * barrier: no user goes on before all have come, round after round; lib_race.c
 * has those that leave before.
 */
#include "kselftest_harness.h"

#include "rt.h"

static atomic_int nr_back;

/* ---- semaphore ---- */

RT_FIXTURE(sem)

static struct pl_sem sem;

TEST_F(sem, semaphore_starts_with_its_units)
{
	struct pl_sem init = PL_SEM_INIT(0), three = PL_SEM_INIT(3), s;
	int i;

	EXPECT_EQ(0, memcmp(&init, &sem, sizeof(sem)));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
	EXPECT_EQ(0, pl_sem_init(&s, 3));
	EXPECT_EQ(0, memcmp(&three, &s, sizeof(s)));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, i == 1 ? pl_sem_wait_until(&s, 0) : i ?
			     pl_sem_wait(&s) : pl_sem_trywait(&s));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&s));
	EXPECT_EQ(0, pl_sem_post(&s, 2));
	EXPECT_EQ(0, pl_sem_trywait(&s));
	EXPECT_EQ(0, pl_sem_trywait(&s));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&s));
}

TEST_F(sem, post_beyond_the_maximum_is_refused)
{
	EXPECT_EQ(0, pl_sem_init(&sem, PL_SEM_MAX - 1));
	EXPECT_EQ(-EOVERFLOW, pl_sem_post(&sem, 2));
	EXPECT_EQ(-EOVERFLOW, pl_sem_post(&sem, PL_SEM_MAX));
	EXPECT_EQ(-EINVAL, pl_sem_post(&sem, UINT32_MAX));
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(-EOVERFLOW, pl_sem_post(&sem, 1));
	EXPECT_EQ(0, pl_sem_trywait(&sem));
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(PL_SEM_MAX, sem.word.value);
}

static void wait_for_one(void *arg)
{
	EXPECT_EQ(0, pl_sem_wait(&sem));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(sem, post_releases_as_many_waiters)
{
	static struct mixed m;
	int i, nr = 0;

	mixed_start(&m, 50, 4, wait_for_one, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == 54));
	for (i = 0; nr < 54; i = i % 4 + 1) {
		/* A post of no unit wakes none, and no waiter is forgotten. */
		EXPECT_EQ(0, pl_sem_post(&sem, i));
		nr += i;
		if (nr > 54)
			break;
		ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == 54 - nr));
		ASSERT_TRUE(UNTIL(nr_back == nr));
		EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
	}
	mixed_join(&m);
	EXPECT_EQ(54, nr_back);
	for (i = 54; i < nr; i++)
		EXPECT_EQ(0, pl_sem_trywait(&sem));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
}

static int order[50];

/*
 * On one worker: each post but the first finds no mark, since the woken waiter
 * has not run yet.
 */
static void post_one_by_one(void *arg)
{
	int i;

	for (i = 0; i < 20; i++)
		spawn(wait_for_one, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == 20));
	for (i = 0; i < 20; i++)
		EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(19, nr_waiters(&sem.word));
	EXPECT_EQ(0, nr_back);
	EXPECT_TRUE(UNTIL(nr_back == 20));
}

TEST_F(sem, each_post_releases_one_waiter)
{
	start_with(1, 1);
	run_in_task(post_one_by_one, NULL);
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
}

static void note_place(void *arg)
{
	EXPECT_EQ(0, pl_sem_wait(&sem));
	order[nr_back++] = (int)(uintptr_t)arg;
}

static void overtake_the_first(void *arg)
{
	uintptr_t i;

	for (i = 0; i < 3; i++) {
		spawn(note_place, (void *)i);
		ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == (int)i + 1));
	}
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(0, pl_sem_trywait(&sem));
	ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == 3));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, pl_sem_post(&sem, 1));
		ASSERT_TRUE(UNTIL(nr_back == (int)i + 1));
		EXPECT_EQ(i, order[i]);
	}
}

TEST_F(sem, overtaken_waiter_stays_the_first)
{
	start_with(1, 1);
	run_in_task(overtake_the_first, NULL);
}

/* ---- latch ---- */

RT_FIXTURE(latch)

static struct pl_latch latch;

TEST_F(latch, latch_counts_down_to_0)
{
	struct pl_latch init = PL_LATCH_INIT(0), three = PL_LATCH_INIT(3), l;

	EXPECT_EQ(0, memcmp(&init, &latch, sizeof(latch)));
	EXPECT_EQ(0, pl_latch_wait(&latch));
	EXPECT_EQ(0, pl_latch_wait_until(&latch, 0));
	EXPECT_EQ(0, pl_latch_init(&l, 3));
	EXPECT_EQ(0, memcmp(&three, &l, sizeof(l)));
	EXPECT_EQ(0, pl_latch_done(&l));
	EXPECT_EQ(0, pl_latch_add(&l, 2));
	EXPECT_EQ(0, pl_latch_done(&l));
	EXPECT_EQ(0, pl_latch_done(&l));
	EXPECT_EQ(0, pl_latch_done(&l));
	EXPECT_EQ(-ETIMEDOUT, pl_latch_wait_until(&l, 0));
	EXPECT_EQ(0, pl_latch_done(&l));
	EXPECT_EQ(0, pl_latch_wait_until(&l, 0));
}

TEST_F(latch, done_below_0_is_refused)
{
	EXPECT_EQ(-EINVAL, pl_latch_done(&latch));
	EXPECT_EQ(0, pl_latch_wait_until(&latch, 0));
	EXPECT_EQ(0, pl_latch_add(&latch, 1));
	EXPECT_EQ(-ETIMEDOUT, pl_latch_wait_until(&latch, 0));
	EXPECT_EQ(0, pl_latch_done(&latch));
	EXPECT_EQ(-EINVAL, pl_latch_done(&latch));
	EXPECT_EQ(0, pl_latch_wait_until(&latch, 0));
}

TEST_F(latch, add_beyond_the_most_adds_nothing)
{
	EXPECT_EQ(0, pl_latch_init(&latch, PL_LATCH_MAX - 1));
	EXPECT_EQ(-EOVERFLOW, pl_latch_add(&latch, 2));
	EXPECT_EQ(-EOVERFLOW, pl_latch_add(&latch, UINT32_MAX));
	EXPECT_EQ(0, pl_latch_add(&latch, 1));
	/* Waited for once, which changes nothing. */
	EXPECT_EQ(-ETIMEDOUT, pl_latch_wait_until(&latch, in_ms(1)));
	EXPECT_EQ(-EOVERFLOW, pl_latch_add(&latch, 1));
	EXPECT_EQ(0, pl_latch_done(&latch));
	EXPECT_EQ(0, pl_latch_add(&latch, 1));
	EXPECT_EQ(-EOVERFLOW, pl_latch_add(&latch, 1));
}

static void wait_for_0(void *arg)
{
	EXPECT_EQ(0, pl_latch_wait(&latch));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(latch, last_done_releases_all)
{
	static struct mixed m;
	pl_task_t t;
	int i;

	EXPECT_EQ(0, pl_latch_init(&latch, 10));
	mixed_start(&m, 50, 4, wait_for_0, NULL);
	t = spawn_as(PL_STACK_WORKER, wait_for_0, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&latch.word) == 55));
	for (i = 0; i < 20; i++) {
		/* One more before every other that is done. */
		if (i % 2)
			EXPECT_EQ(0, pl_latch_add(&latch, 1));
		EXPECT_EQ(0, pl_latch_done(&latch));
		if (i == 18)
			break;
		EXPECT_EQ(55, nr_waiters(&latch.word));
		EXPECT_EQ(0, nr_back);
	}
	join(t);
	mixed_join(&m);
	EXPECT_EQ(55, nr_back);
	EXPECT_EQ(-EINVAL, pl_latch_done(&latch));
}

/* ---- barrier ---- */

RT_FIXTURE(barrier)

static struct pl_barrier barrier;
static atomic_int nr_ones;

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

static void meet(void)
{
	int ret = pl_barrier_wait(&barrier);

	EXPECT_TRUE(ret == 0 || ret == 1);
	atomic_fetch_add(&nr_ones, ret);
	atomic_fetch_add(&nr_back, 1);
}

static void meet_once(void *arg)
{
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

TEST_HARNESS_MAIN
