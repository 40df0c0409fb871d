/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As lib_small.c: workers that go idle while tasks come.  Where tasks meet,
 * each needs a worker of its own.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "few_tasks.h"

static struct pl_word word;
static uint32_t nr_workers;
static uint64_t begin;

FIXTURE(idlers) { char unused; };

FIXTURE_SETUP(idlers)
{
	nr_workers = nr_workers_of_seed();
	start_by_seed(_metadata, __test_seed % 4 == 1 || __test_seed % 4 == 2);
	begin = pl_now();
}

FIXTURE_TEARDOWN(idlers)
{
	join_all();
	rt_end();
}

static void spawn_batch(void *arg)
{
	size_t nr = (uintptr_t)arg;
	void *args[4] = { arg, arg, arg, arg };

	ASSERT_EQ(nr, pl_spawn_many(NULL, nr, meet, args, NULL));
	EXPECT_TRUE(UNTIL(nr_done == (int)nr));
}

TEST_F(idlers, batch_gets_a_worker_for_each)
{
	if (__test_seed % 8 < 4)
		spawn_batch((void *)(uintptr_t)nr_workers);
	else
		go(spawn_batch, nr_workers);
}

static void sleep_and_count(void *arg)
{
	pl_sleep((uintptr_t)arg * 30 * NSEC_PER_USEC);
	atomic_fetch_add(&nr_done, 1);
}

TEST_F(idlers, sleeps_end_beside_one_that_computes)
{
	uintptr_t i;

	for (i = 1; i < 6; i++)
		go(sleep_and_count, i);
	pl_sleep(__test_seed % 16 * 10 * NSEC_PER_USEC);
	go(meet, 6);
	join_all();
	EXPECT_GT(begin + NSEC_PER_SEC, pl_now());
}

static void count_up(void *arg)
{
	atomic_fetch_add(&nr_done, 1);
}

TEST_F(idlers, stop_waits_for_tasks_that_end)
{
	int i;

	for (i = 0; i < 6; i++)
		ASSERT_EQ(0, pl_spawn(NULL, count_up, NULL, NULL));
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(6, nr_done);
}

static void *submit_one(void *arg)
{
	ASSERT_EQ(0, pl_spawn(NULL, meet, arg, NULL));
	return NULL;
}

TEST_F(idlers, submitters_at_once_get_a_worker_each)
{
	void *arg = (void *)(uintptr_t)nr_workers;
	pthread_t t[4];
	uint32_t i;

	for (i = 0; i < nr_workers; i++)
		ASSERT_EQ(0, pthread_create(&t[i], NULL, submit_one, arg));
	for (i = 0; i < nr_workers; i++)
		pthread_join(t[i], NULL);
	EXPECT_TRUE(UNTIL(nr_done == (int)nr_workers));
}

/* The first worker is about to park, and others may not have been started. */
TEST_F(idlers, tasks_beside_one_that_parks_get_a_worker_each)
{
	uint32_t i;

	go(count_up, 0);
	while (!nr_done)
		pl__cpu_relax();
	for (i = 1; i < nr_workers; i++)
		go(meet, nr_workers + 1);
	if (__test_seed % 8 < 4)
		pl_sleep(__test_seed % 16 * 200);
	go(meet, nr_workers + 1);
	join_all();
}

static void submit_and_meet(void *arg)
{
	uintptr_t k = (uintptr_t)arg;

	if (k)
		go(submit_and_meet, k - 1);
	meet((void *)(uintptr_t)nr_workers);
}

TEST_F(idlers, chain_of_tasks_gets_a_worker_for_each)
{
	go(submit_and_meet, nr_workers - 1);
	EXPECT_TRUE(UNTIL(nr_done == (int)nr_workers));
}

static void yield_and_submit(void *arg)
{
	uintptr_t i, nr = (uintptr_t)arg;

	for (i = __test_seed % 7; i; i--)
		pl_yield();
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, pl_spawn(NULL, meet,
				      (void *)(uintptr_t)nr_workers, NULL));
}

TEST_F(idlers, tasks_from_inside_and_outside_get_a_worker_each)
{
	uint32_t i, nr_outside = nr_workers / 2;

	go(yield_and_submit, nr_workers - nr_outside);
	pl_sleep(__test_seed % 32 * 100);
	for (i = 0; i < nr_outside; i++)
		go(meet, nr_workers);
	EXPECT_TRUE(UNTIL(nr_done == (int)nr_workers));
}

static void wait_and_meet(void *arg)
{
	while (!atomic_load(&word.value))
		pl_word_wait(&word, 0, PL_FOREVER);
	meet(arg);
}

static void wake_all(void *arg)
{
	atomic_store(&word.value, 1);
	pl_word_wake(&word, UINT32_MAX);
}

TEST_F(idlers, tasks_woken_at_once_get_a_worker_each)
{
	uint32_t i;

	for (i = 0; i < nr_workers; i++)
		go(wait_and_meet, nr_workers);
	pl_sleep(__test_seed % 16 * 1000);
	if (__test_seed % 8 < 4)
		wake_all(NULL);
	else
		go(wake_all, 0);
	EXPECT_TRUE(UNTIL(nr_done == (int)nr_workers));
}

static void sleep_and_meet(void *arg)
{
	pl_sleep_until(begin + 50 * NSEC_PER_USEC);
	meet(arg);
}

static void yield_meanwhile(void *arg)
{
	while (nr_done < (int)nr_workers)
		pl_yield();
}

TEST_F(idlers, tasks_of_one_deadline_get_a_worker_each)
{
	uint32_t i;

	for (i = 0; i < nr_workers; i++)
		go(sleep_and_meet, nr_workers);
	if (__test_seed % 3)
		go(yield_meanwhile, 0);
	join_all();
}

/* Spares come and go; soon block_and_count() is known to block. */
TEST_F(idlers, tasks_run_while_spares_start_and_end)
{
	int i, round;

	store_relaxed(&pl__idle_timeout_ns, 1 + __test_seed % 5 * 1000000);
	for (round = 1; round <= 4; round++) {
		for (i = 0; i < 8; i++)
			go(block_and_count, (uintptr_t)(1 + i % 3) * 500000);
		if (__test_seed % 2)
			join_all();
		pl_sleep(__test_seed % 7 * NSEC_PER_MSEC);
		go(count_up, 0);
	}
	join_all();
	EXPECT_EQ(36, nr_done);
}

TEST_HARNESS_MAIN
