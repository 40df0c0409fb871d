/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The latch: waiters go on when all is done, and not before.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "race_rounds.h"
#include "uaf_page.h"

RT_FIXTURE(latch)

static struct pl_latch latch;
static atomic_int nr_waiting, nr_back;

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

TEST_F(latch, bad_arguments_are_refused)
{
	EXPECT_EQ(-EINVAL, pl_latch_init(NULL, 1));
	EXPECT_EQ(-EINVAL, pl_latch_init(&latch, PL_LATCH_MAX + 1));
	EXPECT_EQ(-EINVAL, pl_latch_add(NULL, 1));
	EXPECT_EQ(-EINVAL, pl_latch_done(NULL));
	EXPECT_EQ(-EINVAL, pl_latch_wait(NULL));
	EXPECT_EQ(-EINVAL, pl_latch_wait_until(NULL, 0));
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

/* ---- which waiters are woken, and when ---- */

static void wait_for_0(void *arg)
{
	(void)arg;
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

TEST_F(latch, late_wake_of_another_wait_releases_none)
{
	uint32_t cls;
	pl_task_t t;
	int i;

	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		EXPECT_EQ(0, pl_latch_add(&latch, 1));
		nr_back = 0;
		t = spawn_as(cls, wait_for_0, NULL);
		for (i = 0; i < 20; i++) {
			ASSERT_TRUE(UNTIL(nr_waiters(&latch.word) == 1));
			wake_late(t);
		}
		EXPECT_EQ(-ETIMEDOUT, pl_join_until(t, in_ms(1)));
		EXPECT_EQ(0, nr_back);
		EXPECT_EQ(0, pl_latch_done(&latch));
		join(t);
	}
}

/* Plain numbers: a sanitizer sees if the latch orders nothing. */
static long result[64];

static void work(void *arg)
{
	long *r = arg;

	if (r - result > 2)
		pl_yield();
	*r = r - result;
	EXPECT_EQ(0, pl_latch_done(&latch));
}

static void sum_up(void *arg)
{
	uint64_t end = pl_now() + stuck_ns() / 4;
	int i, k, nr = *(int *)arg;
	long sum;

	/* Beside other programs rounds may take longer than a test has. */
	for (i = 0; i < nr && pl_now() < end; i++) {
		memset(result, 0, sizeof(result));
		/* Counted up again once all have returned. */
		for (k = 0; k < 64; k++) {
			EXPECT_EQ(0, pl_latch_add(&latch, 1));
			spawn_as(k % 16 == 7 ? PL_STACK_WORKER :
				 PL_STACK_SMALL, work, &result[k]);
		}
		EXPECT_EQ(0, pl_latch_wait(&latch));
		for (sum = 0, k = 0; k < 64; k++)
			sum += result[k];
		EXPECT_EQ(63 * 64 / 2, sum);
	}
}

TEST_F(latch, writes_before_done_are_seen_after_the_wait)
{
	int nr = scaled(200);

	run_in_task(sum_up, &nr);
	sum_up(&nr);
}

/* ---- how a wait ends ---- */

static void wait_past_deadline(void *arg)
{
	uint64_t deadline = in_ms(2);

	(void)arg;
	EXPECT_EQ(-ETIMEDOUT, pl_latch_wait_until(&latch, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_latch_wait_until(&latch, deadline));
	EXPECT_LE(deadline, pl_now());
}

TEST_F(latch, wait_until_ends_at_its_deadline)
{
	EXPECT_EQ(0, pl_latch_init(&latch, 1));
	mixed_run(10, 3, wait_past_deadline, NULL);
	run_as(PL_STACK_WORKER, wait_past_deadline, NULL);
	EXPECT_EQ(0, pl_latch_done(&latch));
	EXPECT_EQ(0, pl_latch_wait_until(&latch, 0));
}

static void wait_until_ended(void *arg)
{
	(void)arg;
	nr_waiting = 1;
	EXPECT_EQ(-EINTR, pl_latch_wait(&latch));
	nr_waiting = 2;
	EXPECT_EQ(-ECANCELED, pl_latch_wait_until(&latch, PL_FOREVER));
	EXPECT_EQ(-ECANCELED, pl_latch_wait(&latch));
	EXPECT_EQ(0, pl_latch_done(&latch));
	/* A point of cancellation, whether or not it would block. */
	EXPECT_EQ(-ECANCELED, pl_latch_wait(&latch));
	EXPECT_EQ(-ECANCELED, pl_latch_wait_until(&latch, 0));
}

TEST_F(latch, wait_is_interrupted_and_cancelled)
{
	uint32_t cls;
	pl_task_t t;

	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		nr_waiting = 0;
		EXPECT_EQ(0, pl_latch_add(&latch, 1));
		t = spawn_as(cls, wait_until_ended, NULL);
		ASSERT_TRUE(UNTIL(nr_waiting == 1));
		EXPECT_EQ(0, pl_interrupt(t));
		ASSERT_TRUE(UNTIL(nr_waiting == 2));
		EXPECT_EQ(0, pl_cancel(t));
		join(t);
		EXPECT_EQ(0, pl_latch_wait(&latch));
	}
}

static void wait_until_stop(void *arg)
{
	(void)arg;
	EXPECT_EQ(-ECANCELED, pl_latch_wait(&latch));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(latch, wait_ends_when_the_runtime_stops)
{
	static struct mixed m;
	struct hold hold = { &nr_back, 54 };

	EXPECT_EQ(0, pl_latch_init(&latch, 1));
	hold_stop_until(&hold);
	mixed_start(&m, 50, 4, wait_until_stop, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&latch.word) == 54));
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_TRUE(UNTIL(nr_back == 54));
	mixed_join(&m);
	EXPECT_EQ(0, pl_latch_done(&latch));
}

/* ---- races ---- */

static void wait_in_rounds(void *arg)
{
	struct race *r = arg;
	uint64_t seed = 99991;
	int i, ret;

	for (i = 1; i <= r->nr_rounds; i++) {
		EXPECT_EQ(0, pl_latch_add(&latch, 2));
		race_rounds_begin(r, i);
		ret = pl_latch_wait_until(&latch, race_deadline(&seed));
		if (!ret)
			EXPECT_EQ(-EINVAL, pl_latch_done(&latch));
		race_rounds_end(r, ret);
		EXPECT_EQ(0, pl_latch_wait_until(&latch, 0));
	}
}

static void strike_done(struct race *r)
{
	(void)r;
	EXPECT_EQ(0, pl_latch_done(&latch));
}

static void strike_done_and_wait(struct race *r)
{
	(void)r;
	EXPECT_EQ(0, pl_latch_done(&latch));
	EXPECT_EQ(0, pl_latch_wait(&latch));
}

TEST_F(latch, done_deadline_and_interrupt_end_a_tasks_wait_once)
{
	run_race_rounds(PL_STACK_NORMAL, wait_in_rounds,
			(void (*[])(struct race *)){ strike_done, strike_done,
					      NULL });
}

TEST_F(latch, done_deadline_and_interrupt_end_a_workers_wait_once)
{
	start_with(2, 0);
	run_race_rounds(PL_STACK_WORKER, wait_in_rounds,
			(void (*[])(struct race *)){ strike_done, strike_done,
					      NULL });
}

/* The waiter without a deadline is woken whatever becomes of the other. */
TEST_F(latch, timed_out_waiter_delays_no_other)
{
	run_race_rounds(PL_STACK_NORMAL, wait_in_rounds,
			(void (*[])(struct race *)){ strike_done_and_wait,
					      strike_done, NULL });
}

static void wait_to_be_cancelled(void *arg)
{
	*(int *)arg = pl_latch_wait(&latch);
}

TEST_F(latch, cancel_and_done_end_a_wait_once)
{
	int i, nr = scaled(2000), ret, nr_cancelled = 0;
	uint64_t seed = 4711;
	pl_task_t t;

	for (i = 0; i < nr; i++) {
		EXPECT_EQ(0, pl_latch_add(&latch, 1));
		t = spawn_as(i % 5 ? PL_STACK_NORMAL : PL_STACK_WORKER,
			     wait_to_be_cancelled, &ret);
		spin_ns(next_random(&seed) % 20000);
		if (i % 2)
			EXPECT_EQ(0, pl_latch_done(&latch));
		pl_cancel(t);
		if (i % 2 == 0)
			EXPECT_EQ(0, pl_latch_done(&latch));
		join(t);
		EXPECT_TRUE(ret == 0 || ret == -ECANCELED);
		nr_cancelled += ret != 0;
	}
	TH_LOG("woken %d cancelled %d", nr - nr_cancelled, nr_cancelled);
}

/* ---- freed by a waiter ---- */

static void do_it(void *arg)
{
	EXPECT_EQ(0, pl_latch_done(arg));
}

static void wait_and_free(void *arg)
{
	struct pl_latch *l = arg;

	EXPECT_EQ(0, pl_latch_wait(l));
	free_for_good(l);
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(latch, latch_may_be_freed_by_a_released_waiter)
{
	int i, k, nr = scaled(1000);
	struct pl_latch *l;

	for (i = 0; i < nr; i++) {
		l = new_zeroed(sizeof(*l));
		EXPECT_EQ(0, pl_latch_init(l, 4));
		for (k = 0; k < 3; k++)
			spawn_as(k ? PL_STACK_NORMAL : PL_STACK_WORKER, do_it,
				 l);
		if (i % 2) {
			spawn(wait_and_free, l);
			do_it(l);
		} else {
			spawn(do_it, l);
			wait_and_free(l);
		}
	}
	EXPECT_TRUE(UNTIL(nr_back == nr));
}

static void done_by_threads(void *arg)
{
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, pl_latch_done(&latch));
	EXPECT_EQ(0, pl_latch_wait(&latch));
}

TEST_F(latch, latch_works_before_the_runtime_starts)
{
	int nr = scaled(5000);

	EXPECT_EQ(0, pl_latch_init(&latch, 4U * (uint32_t)nr));
	mixed_run(0, 4, done_by_threads, &nr);
	EXPECT_EQ(-EINVAL, pl_latch_done(&latch));
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
}

TEST_HARNESS_MAIN
