/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * since: times are lower bounds, of one task and of one rest.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "watch/watch.h"

static struct pl__worker worker;
static struct pl__task tasks[2];

static uint32_t task_ms(uint64_t at_ms)
{
	return pl__since_task_ms(&worker, at_ms * NSEC_PER_MSEC);
}

static uint32_t ran_ms(uint64_t cpu_ns, uint64_t at_ms)
{
	return pl__since_ran_ms(&worker, cpu_ns, at_ms * NSEC_PER_MSEC);
}

TEST(looks_count_from_the_first_one_that_saw_the_task)
{
	worker.current = &tasks[0];
	EXPECT_EQ(0, task_ms(1000));
	EXPECT_EQ(5, task_ms(1005));
	EXPECT_EQ(3005, task_ms(4005));
}

TEST(next_task_starts_anew)
{
	worker.current = &tasks[0];
	task_ms(1000);
	worker.tick++;
	EXPECT_EQ(0, task_ms(2000));
	EXPECT_EQ(7, task_ms(2007));
	/* Also one that follows without a look at the queues. */
	worker.current = &tasks[1];
	EXPECT_EQ(0, task_ms(3000));
	EXPECT_EQ(1, task_ms(3001));
}

TEST(thread_that_ran_starts_anew)
{
	EXPECT_EQ(0, ran_ms(700, 1000));
	EXPECT_EQ(900, ran_ms(700, 1900));
	EXPECT_EQ(0, ran_ms(701, 2000));
	EXPECT_EQ(1, ran_ms(701, 2001));
}

TEST(look_with_an_earlier_clock_has_no_time)
{
	ran_ms(700, 1000);
	EXPECT_EQ(0, ran_ms(700, 999));
	EXPECT_EQ(1, ran_ms(700, 1001));
}

/* Milliseconds are kept in 32 bits. */
TEST(clock_that_wraps_is_no_long_time)
{
	uint64_t at = (1ULL << 32) - 10;

	EXPECT_EQ(0, ran_ms(700, at));
	EXPECT_EQ(20, ran_ms(700, at + 20));
}

TEST_HARNESS_MAIN
