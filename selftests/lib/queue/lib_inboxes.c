/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As many inboxes as a large runtime has, each with tasks of its own threads: a
 * worker finds them while it has other tasks, and when it has none.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "ctx/self.h"

RT_FIXTURE(inboxes)

#define NR_THREADS_MAX	1000
#define NR_YIELDERS	4

static atomic_int is_over, nr_yielding;
static uint64_t sent_to;	/* a bit for each inbox */

static void *send_one(void *arg)
{
	sent_to |= 1ULL << pl__self_number() % pl__rt.main.nr_inboxes;
	spawn(count, NULL);
	return arg;
}

/* Few of the workers run, so that each has to find all. */
static void start_with_many_inboxes(uint32_t nr_running)
{
	_Static_assert(PL__NR_INBOXES == 64, "a bit each");
	start_with(PL__NR_INBOXES, PL__NR_INBOXES);
	ASSERT_EQ(PL__NR_INBOXES, (int)pl__rt.main.nr_inboxes);
	ASSERT_EQ(0, pl_runtime_set_workers(nr_running));
	nr_ran = 0;
	sent_to = 0;
}

static void expect_one_from_each(void)
{
	pthread_t thread;
	int i;

	for (i = 0; i < NR_THREADS_MAX && ~sent_to; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, send_one, NULL));
		pthread_join(thread, NULL);
		ASSERT_TRUE(UNTIL(nr_ran == i + 1));
	}
	EXPECT_EQ(UINT64_MAX, sent_to);
}

/* With others like it the worker has always a task to run. */
static void yield_until_over(void *arg)
{
	atomic_fetch_add(&nr_yielding, 1);
	while (!is_over)
		pl_yield();
}

TEST_F(inboxes, busy_worker_looks_in_each)
{
	pl_task_t tasks[NR_YIELDERS];
	int i;

	start_with_many_inboxes(1);
	is_over = nr_yielding = 0;
	for (i = 0; i < NR_YIELDERS; i++)
		tasks[i] = spawn(yield_until_over, NULL);
	ASSERT_TRUE(UNTIL(nr_yielding == NR_YIELDERS));
	expect_one_from_each();
	is_over = 1;
	for (i = 0; i < NR_YIELDERS; i++)
		join(tasks[i]);
}

TEST_F(inboxes, idle_workers_look_in_each)
{
	start_with_many_inboxes(2);
	expect_one_from_each();
}

#define NR_TASKS	200

static void send_many(void *arg)
{
	int i;

	for (i = 0; i < NR_TASKS; i++)
		spawn(count, NULL);
}

static void run_with(uint32_t nr_workers, uint32_t nr_inboxes)
{
	start_fixed(nr_workers, nr_workers);
	EXPECT_EQ(nr_inboxes, pl__rt.main.nr_inboxes);
	nr_ran = 0;
	mixed_run(16, 16, send_many, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == 32 * NR_TASKS));
	EXPECT_EQ(0, pl_runtime_stop());
}

/* Slots for tasks are exchanged 128 at a time, then 32, then 128 again. */
TEST_F(inboxes, there_are_as_many_as_workers_where_these_are_many)
{
	run_with(16, 16);
	run_with(2, 1);
	run_with(16, 16);
}

TEST_HARNESS_MAIN
