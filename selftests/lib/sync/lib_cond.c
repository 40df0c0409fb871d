/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The condition variable, for tasks and threads alike.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(cond)

static struct pl_mutex mutex;
static struct pl_cond cond;
static int nr_waiting, is_open;		/* under mutex */
static atomic_int nr_back;

/* With the mutex: waiters have counted themselves under it. */
#define UNTIL_LOCKED(condition) \
	UNTIL((pl_mutex_lock(&mutex), (condition) ? true : \
	       (pl_mutex_unlock(&mutex), false)))

static void check_locked_and_unlock(void)
{
	EXPECT_EQ(-EBUSY, pl_mutex_trylock(&mutex));
	pl_mutex_unlock(&mutex);
}

static void wait_until_open(void *arg)
{
	pl_mutex_lock(&mutex);
	nr_waiting++;
	while (!is_open)
		EXPECT_EQ(0, pl_cond_wait(&cond, &mutex));
	check_locked_and_unlock();
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(cond, broadcast_with_and_without_the_mutex_releases_all)
{
	static struct mixed m;
	struct pl_cond init = PL_COND_INIT;
	int i;

	EXPECT_EQ(0, memcmp(&init, &cond, sizeof(cond)));
	for (i = 0; i < 2; i++) {
		nr_waiting = is_open = 0;
		nr_back = 0;
		mixed_start(&m, 100, 4, wait_until_open, NULL);
		ASSERT_TRUE(UNTIL_LOCKED(nr_waiting == 104));
		is_open = 1;
		if (i)
			pl_mutex_unlock(&mutex);
		pl_cond_broadcast(&cond);
		if (!i)
			pl_mutex_unlock(&mutex);
		mixed_join(&m);
		EXPECT_EQ(104, nr_back);
	}
}

TEST_F(cond, signal_and_broadcast_without_waiters_do_nothing)
{
	int i;

	for (i = 0; i < 100; i++) {
		pl_cond_signal(&cond);
		pl_cond_broadcast(&cond);
	}
	EXPECT_EQ(0, nr_back);
	EXPECT_EQ(0, pl_mutex_trylock(&mutex));
	EXPECT_EQ(-ETIMEDOUT, pl_cond_wait_until(&cond, &mutex, in_ms(1)));
	check_locked_and_unlock();
}

/* ---- order ---- */

static int nr_tickets, order[50], nr_ordered;	/* under mutex */

static void wait_for_ticket(void *arg)
{
	pl_mutex_lock(&mutex);
	nr_waiting++;
	/* No task here spends a ticket before its signal. */
	EXPECT_EQ(0, pl_cond_wait(&cond, &mutex));
	EXPECT_EQ(1, nr_tickets);
	nr_tickets--;
	order[nr_ordered++] = (int)(uintptr_t)arg;
	pl_mutex_unlock(&mutex);
}

TEST_F(cond, signal_releases_the_longest_waiting)
{
	int i;

	for (i = 0; i < 50; i++) {
		spawn_as(i % 10 == 9 ? PL_STACK_WORKER : PL_STACK_SMALL,
			 wait_for_ticket, (void *)(uintptr_t)i);
		ASSERT_TRUE(UNTIL_LOCKED(nr_waiting == i + 1));
		pl_mutex_unlock(&mutex);
		ASSERT_TRUE(UNTIL(nr_waiters(&cond.seq) == i + 1));
	}
	for (i = 0; i < 50; i++) {
		pl_mutex_lock(&mutex);
		nr_tickets++;
		pl_cond_signal(&cond);
		pl_mutex_unlock(&mutex);
		ASSERT_TRUE(UNTIL_LOCKED(nr_ordered == i + 1));
		EXPECT_EQ(i, order[i]);
		pl_mutex_unlock(&mutex);
	}
}

/* ---- how a wait ends ---- */

static void wait_until_ended(void *arg)
{
	pl_mutex_lock(&mutex);
	nr_waiting = 1;
	EXPECT_EQ(-EINTR, pl_cond_wait(&cond, &mutex));
	EXPECT_EQ(-EBUSY, pl_mutex_trylock(&mutex));
	nr_waiting = 2;
	EXPECT_EQ(-ECANCELED, pl_cond_wait_until(&cond, &mutex, PL_FOREVER));
	EXPECT_EQ(-EBUSY, pl_mutex_trylock(&mutex));
	/* Pending, and so before it waits. */
	EXPECT_EQ(-ECANCELED, pl_cond_wait(&cond, &mutex));
	EXPECT_EQ(-ECANCELED, pl_cond_wait_until(&cond, &mutex, 0));
	check_locked_and_unlock();
}

/* Ended with the mutex held, so that the waiter must wait for that as well. */
TEST_F(cond, interrupted_or_cancelled_wait_has_the_mutex)
{
	uint32_t cls;
	pl_task_t t;

	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		nr_waiting = 0;
		t = spawn_as(cls, wait_until_ended, NULL);
		ASSERT_TRUE(UNTIL_LOCKED(nr_waiting == 1));
		EXPECT_EQ(0, pl_interrupt(t));
		EXPECT_EQ(-ETIMEDOUT, pl_join_until(t, in_ms(1)));
		EXPECT_EQ(1, nr_waiting);
		pl_mutex_unlock(&mutex);
		ASSERT_TRUE(UNTIL_LOCKED(nr_waiting == 2));
		EXPECT_EQ(0, pl_cancel(t));
		EXPECT_EQ(-ETIMEDOUT, pl_join_until(t, in_ms(1)));
		pl_mutex_unlock(&mutex);
		join(t);
	}
}

/* ---- a loop that ignores why a wait has ended ---- */

static void open_the_door(void *arg)
{
	pl_mutex_lock(&mutex);
	is_open = 1;
	pl_cond_signal(&cond);
	pl_mutex_unlock(&mutex);
}

static void wait_stubbornly(void *arg)
{
	int nr = 0;

	pl_cancel(pl_self());
	pl_mutex_lock(&mutex);
	spawn(open_the_door, NULL);
	while (!is_open && nr++ < 100000)
		EXPECT_EQ(-ECANCELED, pl_cond_wait(&cond, &mutex));
	EXPECT_TRUE(is_open);
	check_locked_and_unlock();
}

TEST_F(cond, cancelled_wait_unlocks_the_mutex_all_the_same)
{
	start_with(1, 1);
	run_in_task(wait_stubbornly, NULL);
}

TEST_HARNESS_MAIN
