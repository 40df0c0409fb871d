/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waiting on a word: which waiters are woken, in what order, how many, and that
 * each wait ends once, for one reason.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "time/timer_impl.h"

#include <sys/mman.h>

RT_FIXTURE(word)

static struct pl_word word, other;
static atomic_int nr_back;

/* Waits once; the value never changes, so that only being let go ends it. */
static void wait_for_ever(void *arg)
{
	EXPECT_EQ(0, pl_word_wait(&word, 0, PL_FOREVER));
	atomic_fetch_add(&nr_back, 1);
}

static void wait_for_nothing(void *arg)
{
	struct pl_word w = { .value = 5 };
	uint64_t deadline = in_ms(2);

	EXPECT_EQ(-EAGAIN, pl_word_wait(&w, 4, PL_FOREVER));
	EXPECT_EQ(-EAGAIN, pl_word_wait(&w, 6, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_word_wait(&w, 5, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_word_wait(&w, 5, pl_now()));
	EXPECT_EQ(-ETIMEDOUT, pl_word_wait(&w, 5, deadline));
	EXPECT_LE(deadline, pl_now());
	EXPECT_EQ(0, pl_word_wake(&w, 1));
}

TEST_F(word, wait_ends_by_value_or_deadline)
{
	wait_for_nothing(NULL);
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
	mixed_run(10, 2, wait_for_nothing, NULL);
	run_as(PL_STACK_WORKER, wait_for_nothing, NULL);
}

TEST_F(word, wake_and_requeue_without_waiters_return_0)
{
	EXPECT_EQ(0, pl_word_wake(&word, UINT32_MAX));
	EXPECT_EQ(0, pl_word_requeue(&word, &other, 1, UINT32_MAX));
	run_in_task(wait_for_nothing, NULL);
	EXPECT_EQ(0, pl_word_wake(&word, UINT32_MAX));
}

TEST_F(word, wake_returns_its_count_and_wakes_no_more)
{
	static struct mixed m;

	mixed_start(&m, 20, 4, wait_for_ever, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&word) == 24));
	EXPECT_EQ(0, pl_word_wake(&word, 0));
	EXPECT_EQ(24, nr_waiters(&word));
	EXPECT_EQ(1, pl_word_wake(&word, 1));
	EXPECT_EQ(23, nr_waiters(&word));
	EXPECT_EQ(5, pl_word_wake(&word, 5));
	EXPECT_EQ(18, nr_waiters(&word));
	ASSERT_TRUE(UNTIL(nr_back == 6));
	EXPECT_EQ(18, pl_word_wake(&word, 100));
	EXPECT_EQ(0, pl_word_wake(&word, 100));
	mixed_join(&m);
	EXPECT_EQ(24, nr_back);
}

TEST_F(word, wake_leaves_waiters_on_other_words)
{
	static struct pl_word near[2];
	pl_task_t t = spawn(wait_for_ever, NULL);

	ASSERT_TRUE(UNTIL(nr_waiters(&word) == 1));
	EXPECT_EQ(0, pl_word_wake(&other, 1));
	EXPECT_EQ(0, pl_word_wake(&near[0], 1));
	EXPECT_EQ(0, pl_word_wake(&near[1], 1));
	EXPECT_EQ(1, pl_word_wake(&word, 1));
	join(t);
}

/* ---- order ---- */

#define NR_ORDER	40

static atomic_int next_place, place[NR_ORDER];

static void wait_and_take_place(void *arg)
{
	int me = (int)(uintptr_t)arg;

	EXPECT_EQ(0, pl_word_wait(&word, 0, PL_FOREVER));
	atomic_store(&place[me], atomic_fetch_add(&next_place, 1));
	atomic_fetch_add(&nr_back, 1);
}

static void *thread_takes_place(void *arg)
{
	wait_and_take_place(arg);
	return NULL;
}

/* Tasks and threads in turn, each listed before the next begins. */
static void start_in_order(pthread_t *thread)
{
	int i;

	for (i = 0; i < NR_ORDER; i++) {
		if (i % 4 == 3)
			ASSERT_EQ(0, pthread_create(&thread[i / 4], NULL,
						    thread_takes_place,
						    (void *)(uintptr_t)i));
		else
			spawn(wait_and_take_place, (void *)(uintptr_t)i);
		ASSERT_TRUE(UNTIL(nr_waiters(&word) == i + 1));
	}
}

static void wake_in_order(void)
{
	int i;

	for (i = 0; i < NR_ORDER; i++) {
		ASSERT_EQ(1, pl_word_wake(&other, 1));
		ASSERT_TRUE(UNTIL(nr_back == i + 1));
	}
	for (i = 0; i < NR_ORDER; i++)
		EXPECT_EQ(i, place[i]);
}

/* And a wake takes the longest waiting first. */
TEST_F(word, requeue_keeps_the_order)
{
	pthread_t thread[NR_ORDER / 4];
	int i;

	start_in_order(thread);
	/* The first half goes, the other follows. */
	EXPECT_EQ(NR_ORDER / 2, pl_word_requeue(&word, &other, 0,
						NR_ORDER / 2));
	EXPECT_EQ(NR_ORDER / 2, pl_word_requeue(&word, &other, 0, UINT32_MAX));
	EXPECT_EQ(0, pl_word_wake(&word, UINT32_MAX));
	wake_in_order();
	for (i = 0; i < NR_ORDER / 4; i++)
		pthread_join(thread[i], NULL);
}

/* ---- moving ---- */

TEST_F(word, requeue_counts_woken_and_moved_waiters)
{
	static struct mixed m;

	mixed_start(&m, 20, 4, wait_for_ever, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&word) == 24));
	EXPECT_EQ(0, pl_word_requeue(&word, &other, 0, 0));
	EXPECT_EQ(12, pl_word_requeue(&word, &other, 2, 10));
	ASSERT_TRUE(UNTIL(nr_back == 2));
	EXPECT_EQ(12, nr_waiters(&word));
	EXPECT_EQ(10, nr_waiters(&other));
	EXPECT_EQ(3, pl_word_requeue(&word, &other, 3, 0));
	EXPECT_EQ(9, pl_word_requeue(&word, &other, 0, 100));
	EXPECT_EQ(0, pl_word_wake(&word, 100));
	EXPECT_EQ(19, pl_word_wake(&other, 100));
	mixed_join(&m);
}

static void wait_until_deadline(void *arg)
{
	uint64_t deadline = in_ms(*(uint64_t *)arg);

	EXPECT_EQ(-ETIMEDOUT, pl_word_wait(&word, 0, deadline));
	EXPECT_LE(deadline, pl_now());
	atomic_fetch_add(&nr_back, 1);
}

static int move_until_deadline(uint64_t ms)
{
	static struct mixed m;
	int nr_moved = 0;

	nr_back = 0;
	mixed_start(&m, 20, 4, wait_until_deadline, &ms);
	while (nr_back < 24) {
		nr_moved += pl_word_requeue(&word, &other, 0, 5);
		nr_moved += pl_word_requeue(&other, &word, 0, 7);
		sched_yield();
	}
	mixed_join(&m);
	return nr_moved;
}

TEST_F(word, moved_waiters_keep_their_deadlines)
{
	uint64_t ms = 20;

	/* If all of them were over before they could be moved: later ones. */
	while (!move_until_deadline(ms))
		ms *= 2;
	EXPECT_EQ(0, nr_waiters(&word) + nr_waiters(&other));
}

static void wait_interrupted(void *arg)
{
	EXPECT_EQ(-EINTR, pl_word_wait(&word, 0, PL_FOREVER));
	EXPECT_EQ(-ECANCELED, pl_word_wait(&word, 0, PL_FOREVER));
}

TEST_F(word, moved_waiters_are_interrupted_and_cancelled)
{
	pl_task_t t = spawn(wait_interrupted, NULL);

	ASSERT_TRUE(UNTIL(nr_waiters(&word) == 1));
	EXPECT_EQ(1, pl_word_requeue(&word, &other, 0, 1));
	EXPECT_EQ(0, pl_interrupt(t));
	ASSERT_TRUE(UNTIL(nr_waiters(&word) == 1));
	EXPECT_EQ(0, nr_waiters(&other));
	EXPECT_EQ(1, pl_word_requeue(&word, &other, 0, 1));
	EXPECT_EQ(0, pl_cancel(t));
	join(t);
	EXPECT_EQ(0, nr_waiters(&other));
}

/* Waiters are requeued to and fro while others are woken: none is lost. */
static atomic_int is_over;

static void move_about(void *arg)
{
	while (!is_over) {
		pl_word_requeue(&word, &other, 0, 3);
		pl_word_requeue(&other, &word, 0, 2);
		pl_yield();
	}
}

static void wait_again_and_again(void *arg)
{
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, pl_word_wait(&word, 0, PL_FOREVER));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F_TIMEOUT(word, requeue_racing_wakes_loses_no_waiter, 120)
{
	static struct mixed movers, waiters;
	int nr = scaled(200);
	uint64_t nr_woken = 0;

	mixed_start(&waiters, 20, 2, wait_again_and_again, &nr);
	mixed_start(&movers, 2, 1, move_about, NULL);
	EXPECT_TRUE(UNTIL_NO_MORE((nr_woken += pl_word_wake(&word, 2) +
					       pl_word_wake(&other, 1),
				   nr_back == 22), nr_woken));
	EXPECT_EQ((uint64_t)nr * 22, nr_woken);
	is_over = 1;
	mixed_join(&movers);
	mixed_join(&waiters);
}

/* ---- deadlines in the past ---- */

static struct pl_rwlock locked;
static atomic_bool has_run;

static void run_behind(void *arg)
{
	has_run = true;
}

static int wait_expired(int kind)
{
	if (!kind)
		return pl_word_wait(&word, 0, pl_now());
	if (kind == 1)
		return pl_rwlock_rdlock_until(&locked, pl_now());
	EXPECT_EQ(0, pl_sleep_until(pl_now()));
	return -ETIMEDOUT;
}

static void expire_in_a_loop(void *arg)
{
	struct patience p = { 0, 0 };
	int kind;

	for (kind = 0; kind < 3; kind++) {
		has_run = false;
		spawn(run_behind, NULL);
		while (!has_run && is_patient(&p))
			EXPECT_EQ(-ETIMEDOUT, wait_expired(kind));
		EXPECT_TRUE(has_run);
	}
}

/* Objects wait on words; only rwlocks and sleeps look by themselves. */
TEST_F(word, expired_waits_in_a_loop_let_others_run)
{
	start_with(1, 1);
	pl_rwlock_wrlock(&locked);
	run_in_task(expire_in_a_loop, NULL);
}

/* ---- timers of waits ---- */

static void lock_all_timers(void)
{
	uint32_t i;

	for (i = 0; i < pl__rt.timers->nr_buckets; i++)
		pl__lock(&pl__rt.timers->buckets[i].lock);
}

static void unlock_all_timers(void)
{
	uint32_t i;

	for (i = 0; i < pl__rt.timers->nr_buckets; i++)
		pl__unlock(&pl__rt.timers->buckets[i].lock);
}

static void wait_for_an_hour(void *arg)
{
	EXPECT_EQ(0, pl_word_wait(&word, 0, in_ms(3600 * 1000)));
}

/*
 * The waiter's worker waits for the timers' locks, that of the word's bucket
 * dropped; so another runs the waiter to its end.  Without sysmon, which may
 * wait for such a lock, too.  So may that other worker before it parks, where
 * it keeps the timers of its tasks itself, as sysmon is there to watch it.
 */
TEST_F(word, waker_waits_for_no_timer_of_the_waiter)
{
	pl_task_t t;
	int i;

	setenv("PARKLOT_WATCH", "0", 1);
	start_fixed(2, 2);
	for (i = 0; i < scaled(100); i++) {
		lock_all_timers();
		t = spawn(wait_for_an_hour, NULL);
		ASSERT_TRUE(UNTIL(nr_waiters(&word) == 1));
		EXPECT_EQ(1, pl_word_wake(&word, 1));
		join(t);
		unlock_all_timers();
		ASSERT_TRUE(UNTIL(is_all_parked()));
	}
}

TEST_HARNESS_MAIN
