/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sleeping: never too short, and what ends it before its time.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(sleep)

#define FAR_NS		(3600 * NSEC_PER_SEC)

static void sleep_not_early(void *arg)
{
	int i, nr = scaled(20);
	uint64_t t;

	(void)arg;
	for (i = 0; i < nr; i++) {
		t = pl_now();
		EXPECT_EQ(0, pl_sleep(i * 100 * NSEC_PER_USEC));
		EXPECT_LE(t + i * 100 * NSEC_PER_USEC, pl_now());
	}
}

TEST_F(sleep, sleep_is_never_too_short)
{
	mixed_run(20, 2, sleep_not_early, NULL);
	run_as(PL_STACK_WORKER, sleep_not_early, NULL);
}

static void sleep_in_the_past(void *arg)
{
	(void)arg;
	EXPECT_EQ(0, pl_sleep_until(0));
	EXPECT_EQ(0, pl_sleep_until(1));
	EXPECT_EQ(0, pl_sleep_until(pl_now()));
	EXPECT_EQ(0, pl_sleep(0));
}

TEST_F(sleep, deadline_in_the_past_returns_at_once)
{
	mixed_run(1, 1, sleep_in_the_past, NULL);
	run_as(PL_STACK_WORKER, sleep_in_the_past, NULL);
}

static void interrupt_self_first(void *arg)
{
	(void)arg;
	EXPECT_EQ(0, pl_interrupt(pl_self()));
	EXPECT_EQ(-EINTR, pl_sleep(FAR_NS));
	EXPECT_EQ(0, pl_sleep(1));

	/* Twice before is once. */
	EXPECT_EQ(0, pl_interrupt(pl_self()));
	EXPECT_EQ(0, pl_interrupt(pl_self()));
	EXPECT_EQ(-EINTR, pl_sleep_until(PL_FOREVER));
	EXPECT_EQ(0, pl_sleep(1));

	/* A sleep that polls is a blocking call all the same. */
	EXPECT_EQ(0, pl_interrupt(pl_self()));
	EXPECT_EQ(-EINTR, pl_sleep_until(0));
	EXPECT_EQ(0, pl_sleep_until(0));
}

TEST_F(sleep, early_interrupt_ends_the_next_sleep_only)
{
	run_in_task(interrupt_self_first, NULL);
	run_as(PL_STACK_WORKER, interrupt_self_first, NULL);
}

static void cancel_self_first(void *arg)
{
	int i;

	(void)arg;
	EXPECT_FALSE(pl_cancelled());
	EXPECT_EQ(0, pl_cancel(pl_self()));
	EXPECT_TRUE(pl_cancelled());
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(-ECANCELED, pl_sleep(FAR_NS));
		EXPECT_EQ(-ECANCELED, pl_sleep_until(0));
	}
	pl_yield();
	EXPECT_TRUE(pl_cancelled());

	/* To be interrupted as well changes nothing. */
	EXPECT_EQ(0, pl_interrupt(pl_self()));
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
}

TEST_F(sleep, cancel_ends_all_later_sleeps)
{
	run_in_task(cancel_self_first, NULL);
	run_as(PL_STACK_WORKER, cancel_self_first, NULL);
}

static void is_not_cancelled(void *arg)
{
	(void)arg;
	EXPECT_FALSE(pl_cancelled());
	EXPECT_EQ(0, pl_sleep(1));
}

TEST_F(sleep, cancel_does_not_reach_the_next_task_of_the_slot)
{
	int i;

	for (i = 0; i < 100; i++) {
		run_in_task(cancel_self_first, NULL);
		run_in_task(is_not_cancelled, NULL);
	}
	EXPECT_FALSE(pl_cancelled());
}

static atomic_int nr_done;

static void sleep_a_bit(void *arg)
{
	EXPECT_EQ(0, pl_sleep((uintptr_t)arg));
	atomic_fetch_add(&nr_done, 1);
}

TEST_F(sleep, ten_thousand_sleepers_all_wake)
{
	int i, nr = scaled(10000);

	for (i = 0; i < nr; i++)
		spawn_as(PL_STACK_SMALL, sleep_a_bit,
			 (void *)(uintptr_t)(i % 64 * NSEC_PER_MSEC));
	EXPECT_TRUE(UNTIL(nr_done == nr));
}

TEST_HARNESS_MAIN
