/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The barrier: no user goes on before all have come, round after round.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "race_rounds.h"
#include "uaf_page.h"

RT_FIXTURE(barrier)

static struct pl_barrier barrier;
static atomic_int nr_back, nr_ones, nr_waiting;

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

TEST_F(barrier, bad_arguments_are_refused)
{
	EXPECT_EQ(-EINVAL, pl_barrier_init(NULL, 1));
	EXPECT_EQ(-EINVAL, pl_barrier_init(&barrier, 0));
	EXPECT_EQ(-EINVAL, pl_barrier_wait(NULL));
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

TEST_F(barrier, rounds_follow_each_other_among_tasks)
{
	walk(20, 0, scaled(500));
}

TEST_F(barrier, rounds_follow_each_other_among_threads)
{
	walk(0, 4, scaled(500));
}

TEST_F(barrier, rounds_follow_each_other_among_tasks_and_threads)
{
	walk(10, 3, scaled(300));
}

TEST_F(barrier, barrier_works_before_the_runtime_starts)
{
	walk(0, 3, scaled(100));
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
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

/* ---- a user that leaves does not count ---- */

static void come_and_leave(void *arg)
{
	(void)arg;
	nr_waiting = 1;
	EXPECT_EQ(-EINTR, pl_barrier_wait(&barrier));
	nr_waiting = 2;
	EXPECT_EQ(-ECANCELED, pl_barrier_wait(&barrier));
	EXPECT_EQ(-ECANCELED, pl_barrier_wait(&barrier));
}

TEST_F(barrier, interrupted_or_cancelled_task_has_not_arrived)
{
	uint32_t cls;
	pl_task_t t, other;

	EXPECT_EQ(0, pl_barrier_init(&barrier, 3));
	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		nr_waiting = nr_back = 0;
		other = spawn(meet_once, NULL);
		ASSERT_TRUE(UNTIL(nr_waiters(&barrier.word) == 1));
		t = spawn_as(cls, come_and_leave, NULL);
		ASSERT_TRUE(UNTIL(nr_waiters(&barrier.word) == 2));
		EXPECT_EQ(0, pl_interrupt(t));
		ASSERT_TRUE(UNTIL(nr_waiting == 2));
		EXPECT_EQ(0, pl_cancel(t));
		join(t);
		/* One waits, another came three times and left: two lack. */
		t = spawn(meet_once, NULL);
		ASSERT_TRUE(UNTIL(nr_waiters(&barrier.word) == 2));
		EXPECT_EQ(0, nr_back);
		EXPECT_EQ(1, pl_barrier_wait(&barrier));
		join(other);
		join(t);
		EXPECT_EQ(0, nr_ones);
	}
}

TEST_F(barrier, late_wake_of_another_wait_releases_none)
{
	uint32_t cls;
	pl_task_t t;
	int i;

	EXPECT_EQ(0, pl_barrier_init(&barrier, 2));
	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		nr_back = 0;
		t = spawn_as(cls, meet_once, NULL);
		for (i = 0; i < 20; i++) {
			ASSERT_TRUE(UNTIL(nr_waiters(&barrier.word) == 1));
			wake_late(t);
		}
		EXPECT_EQ(-ETIMEDOUT, pl_join_until(t, in_ms(1)));
		EXPECT_EQ(0, nr_back);
		EXPECT_EQ(1, pl_barrier_wait(&barrier));
		join(t);
	}
}

static void wait_until_stop(void *arg)
{
	(void)arg;
	EXPECT_EQ(-ECANCELED, pl_barrier_wait(&barrier));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(barrier, wait_ends_when_the_runtime_stops)
{
	static struct mixed m;
	struct hold hold = { &nr_back, 54 };

	EXPECT_EQ(0, pl_barrier_init(&barrier, 55));
	hold_stop_until(&hold);
	mixed_start(&m, 50, 4, wait_until_stop, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&barrier.word) == 54));
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_TRUE(UNTIL(nr_back == 54));
	mixed_join(&m);
	/* All of them took it back. */
	EXPECT_EQ(0, barrier.state);
}

static void meet_too_late(void *arg)
{
	(void)arg;
	/* The round was over before it ran again. */
	EXPECT_EQ(0, pl_barrier_wait(&barrier));
	EXPECT_EQ(-EINTR, pl_sleep_until(0));
	EXPECT_EQ(0, pl_barrier_wait(&barrier));
	EXPECT_EQ(-ECANCELED, pl_sleep_until(0));
}

static void end_it_and_come(void *arg)
{
	pl_task_t t = spawn(meet_too_late, arg);

	ASSERT_TRUE(UNTIL(nr_waiters(&barrier.word) == 1));
	EXPECT_EQ(0, pl_interrupt(t));
	EXPECT_EQ(1, pl_barrier_wait(&barrier));
	ASSERT_TRUE(UNTIL(nr_waiters(&barrier.word) == 1));
	EXPECT_EQ(0, pl_cancel(t));
	EXPECT_EQ(1, pl_barrier_wait(&barrier));
	join(t);
}

TEST_F(barrier, interrupt_after_the_round_leaves_the_arrival)
{
	start_with(1, 1);
	EXPECT_EQ(0, pl_barrier_init(&barrier, 2));
	run_in_task(end_it_and_come, NULL);
	EXPECT_EQ(2ULL << 32, barrier.state);
}

/* ---- races ---- */

static int by_striker;

static void strike_meet(struct race *r)
{
	(void)r;
	by_striker = pl_barrier_wait(&barrier);
}

/* It comes again if it was interrupted, or the other would wait for ever. */
static void meet_in_rounds(void *arg)
{
	struct race *r = arg;
	int i, ret, last;

	for (i = 1; i <= r->nr_rounds; i++) {
		race_rounds_begin(r, i);
		ret = last = pl_barrier_wait(&barrier);
		if (ret == -EINTR)
			last = pl_barrier_wait(&barrier);
		race_rounds_end(r, ret);
		EXPECT_EQ(1, last + by_striker);
		EXPECT_EQ((uint64_t)i << 32, barrier.state);
	}
}

TEST_F(barrier, round_and_interrupt_end_a_tasks_wait_once)
{
	EXPECT_EQ(0, pl_barrier_init(&barrier, 2));
	run_race_rounds(PL_STACK_NORMAL, meet_in_rounds,
			(void (*[])(struct race *)){ strike_meet, NULL });
}

TEST_F(barrier, round_and_interrupt_end_a_workers_wait_once)
{
	start_with(2, 0);
	EXPECT_EQ(0, pl_barrier_init(&barrier, 2));
	run_race_rounds(PL_STACK_WORKER, meet_in_rounds,
			(void (*[])(struct race *)){ strike_meet, NULL });
}

static void meet_to_be_cancelled(void *arg)
{
	*(int *)arg = pl_barrier_wait(&barrier);
}

TEST_F(barrier, cancel_and_round_end_a_wait_once)
{
	int i, nr = scaled(2000), ret, nr_cancelled = 0;
	uint64_t seed = 4711;
	pl_task_t t, other;

	EXPECT_EQ(0, pl_barrier_init(&barrier, 2));
	for (i = 0; i < nr; i++) {
		t = spawn_as(i % 5 ? PL_STACK_NORMAL : PL_STACK_WORKER,
			     meet_to_be_cancelled, &ret);
		spin_ns(next_random(&seed) % 20000);
		if (i % 2)
			pl_cancel(t);
		other = spawn(meet_once, NULL);
		if (i % 2 == 0)
			pl_cancel(t);
		join(t);
		EXPECT_TRUE(ret == 0 || ret == 1 || ret == -ECANCELED);
		/* The user that came in its place completes the round. */
		if (ret < 0)
			EXPECT_LE(0, pl_barrier_wait(&barrier));
		nr_cancelled += ret < 0;
		join(other);
	}
	EXPECT_EQ((uint64_t)nr << 32, barrier.state);
	TH_LOG("woken %d cancelled %d", nr - nr_cancelled, nr_cancelled);
}

/* ---- freed ---- */

struct party {
	struct pl_barrier	barrier;
	atomic_int		refs;
};

static void meet_and_free(void *arg)
{
	struct party *p = arg;

	EXPECT_LE(0, pl_barrier_wait(&p->barrier));
	if (atomic_fetch_sub(&p->refs, 1) == 1) {
		free_for_good(p);
		atomic_fetch_add(&nr_back, 1);
	}
}

TEST_F(barrier, barrier_may_be_freed_when_all_have_returned)
{
	int i, k, nr = scaled(1000);
	struct party *p;

	for (i = 0; i < nr; i++) {
		p = new_zeroed(sizeof(*p));
		p->refs = 5;
		EXPECT_EQ(0, pl_barrier_init(&p->barrier, 5));
		for (k = 0; k < 4; k++)
			spawn_as(k ? PL_STACK_NORMAL : PL_STACK_WORKER,
				 meet_and_free, p);
		meet_and_free(p);
	}
	EXPECT_TRUE(UNTIL(nr_back == nr));
}

TEST_HARNESS_MAIN
