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

static void sleep_until_not_early(void *arg)
{
	uint64_t deadline = in_ms(3);

	(void)arg;
	EXPECT_EQ(0, pl_sleep_until(deadline));
	EXPECT_LE(deadline, pl_now());
}

TEST_F(sleep, sleep_until_is_never_early)
{
	mixed_run(20, 2, sleep_until_not_early, NULL);
	run_as(PL_STACK_WORKER, sleep_until_not_early, NULL);
}

static void sleep_in_the_past(void *arg)
{
	(void)arg;
	EXPECT_EQ(0, pl_sleep_until(0));
	EXPECT_EQ(0, pl_sleep_until(1));
	EXPECT_EQ(0, pl_sleep_until(pl_now()));
	EXPECT_EQ(0, pl_sleep(0));
}

TEST_F(sleep, late_wake_of_another_wait_leaves_the_sleep)
{
	pl_task_t t = spawn(sleep_until_not_early, NULL);
	uint64_t end = in_ms(2);

	while (pl_now() < end)
		wake_late(t);
	join(t);
}

TEST_F(sleep, deadline_in_the_past_returns_at_once)
{
	mixed_run(1, 1, sleep_in_the_past, NULL);
	run_as(PL_STACK_WORKER, sleep_in_the_past, NULL);
}

static atomic_int nr_sleepers, nr_back;
static atomic_int result;

static void sleep_for_ever(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nr_sleepers, 1);
	atomic_store(&result, pl_sleep_until(PL_FOREVER));
}

static void sleep_long(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nr_sleepers, 1);
	atomic_store(&result, pl_sleep(FAR_NS));
}

static void sleep_longest(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nr_sleepers, 1);
	atomic_store(&result, pl_sleep(UINT64_MAX - 1));
}

static void (*const long_sleeps[])(void *arg) = {
	sleep_for_ever, sleep_long, sleep_longest,
};

/* Each long sleep, in each kind of task, is ended by @end with @expected. */
static void end_sleeps(int (*end)(pl_task_t t), int expected)
{
	uint32_t cls;
	pl_task_t t;
	size_t i;

	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		for (i = 0; i < ARRAY_SIZE(long_sleeps); i++) {
			atomic_store(&nr_sleepers, 0);
			t = spawn_as(cls, long_sleeps[i], NULL);
			ASSERT_TRUE(UNTIL(nr_sleepers == 1));
			EXPECT_EQ(-ETIMEDOUT, pl_join_until(t, in_ms(2)));
			EXPECT_EQ(0, end(t));
			join(t);
			EXPECT_EQ(expected, result);
		}
	}
}

TEST_F(sleep, interrupt_ends_a_sleep)
{
	end_sleeps(pl_interrupt, -EINTR);
}

TEST_F(sleep, cancel_ends_a_sleep)
{
	end_sleeps(pl_cancel, -ECANCELED);
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

/*
 * Rounds of a sleep that is interrupted at about the time it is over: it says
 * -EINTR, or the next call does.  Where processors are short a round takes
 * milliseconds: then fewer are made.
 */
#define NO_MORE		(-1)

struct race {
	atomic_int	round;		/* NO_MORE: the last one is over */
	int		nr_rounds;
	uint64_t	end_ns;		/* no other round begins then */
	int		nr_now, nr_later;
};

static void sleep_and_look(void *arg)
{
	struct race *r = arg;
	uint64_t seed = 88172645463325252ULL;
	int i, ret;

	for (i = 0; i < r->nr_rounds && (!i || pl_now() < r->end_ns); i++) {
		atomic_store(&r->round, 2 * i + 1);
		ret = pl_sleep(next_random(&seed) % 60000);
		/* Wait until the interrupter has done it. */
		ASSERT_TRUE(UNTIL(atomic_load(&r->round) == 2 * i + 2));
		r->nr_now += ret == -EINTR;
		if (ret != -EINTR) {
			EXPECT_EQ(0, ret);
			EXPECT_EQ(-EINTR, pl_sleep_until(0));
			r->nr_later++;
		}
		EXPECT_EQ(0, pl_sleep_until(0));
	}
	atomic_store(&r->round, NO_MORE);
}

static void race_interrupt(uint32_t cls)
{
	struct race r = {
		.nr_rounds = scaled(3000),
		.end_ns = pl_now() + stuck_ns() / 4,
	};
	uint64_t seed = 1234567;
	pl_task_t t;
	int i;

	t = spawn_as(cls, sleep_and_look, &r);
	for (i = 0; ; i++) {
		ASSERT_TRUE(UNTIL(atomic_load(&r.round) == 2 * i + 1 ||
				  atomic_load(&r.round) == NO_MORE));
		if (r.round == NO_MORE)
			break;
		spin_ns(next_random(&seed) % 100000);
		EXPECT_EQ(0, pl_interrupt(t));
		atomic_store(&r.round, 2 * i + 2);
	}
	join(t);
	EXPECT_LE(1, i);
	EXPECT_EQ(i, r.nr_now + r.nr_later);
}

TEST_TIMED(late_interrupt_ends_the_next_sleep,
	   "time that passed; both ends of a race must be seen")
TEST_F(sleep, late_interrupt_ends_the_next_sleep)
{
	race_interrupt(PL_STACK_NORMAL);
}

TEST_TIMED(late_interrupt_is_kept_on_the_worker_stack,
	   "time that passed; both ends of a race must be seen")
TEST_F(sleep, late_interrupt_is_kept_on_the_worker_stack)
{
	race_interrupt(PL_STACK_WORKER);
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

static void sleep_for_ever_from_thread(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nr_sleepers, 1);
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(sleep, stop_ends_the_sleep_of_a_thread)
{
	static struct mixed m;
	struct hold hold = { &nr_back, 4 };

	hold_stop_until(&hold);
	mixed_start(&m, 0, 4, sleep_for_ever_from_thread, NULL);
	ASSERT_TRUE(UNTIL(nr_sleepers == 4));
	EXPECT_EQ(0, pl_runtime_stop());
	mixed_join(&m);
}

TEST_HARNESS_MAIN
