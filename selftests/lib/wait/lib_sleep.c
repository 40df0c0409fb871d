/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sleeping: what ends it before its time; lib_kept.c and lib_race.c have that
 * it is never too short.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(sleep)

#define FAR_NS		(3600 * NSEC_PER_SEC)

static void sleep_in_the_past(void *arg)
{
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

TEST_HARNESS_MAIN
