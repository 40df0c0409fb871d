/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The semaphore: units for tasks and threads alike, none lost, none made up.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(sem)

static struct pl_sem sem;
static atomic_int nr_back;

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

/* ---- which waiters are woken ---- */

static void wait_for_one(void *arg)
{
	(void)arg;
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

	(void)arg;
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

	(void)arg;
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

TEST_HARNESS_MAIN
