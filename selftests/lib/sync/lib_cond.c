/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The condition variable, for tasks and threads alike.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(cond)

static struct pl_mutex mutex;
static struct pl_cond cond, not_full, not_empty;
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
	(void)arg;
	pl_mutex_lock(&mutex);
	nr_waiting++;
	while (!is_open)
		EXPECT_EQ(0, pl_cond_wait(&cond, &mutex));
	check_locked_and_unlock();
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(cond, broadcast_releases_all)
{
	static struct mixed m;
	struct pl_cond init = PL_COND_INIT;

	EXPECT_EQ(0, memcmp(&init, &cond, sizeof(cond)));
	mixed_start(&m, 100, 4, wait_until_open, NULL);
	ASSERT_TRUE(UNTIL_LOCKED(nr_waiting == 104));
	is_open = 1;
	pl_cond_broadcast(&cond);
	pl_mutex_unlock(&mutex);
	mixed_join(&m);
	EXPECT_EQ(104, nr_back);
}

TEST_F(cond, broadcast_without_the_mutex_releases_all)
{
	static struct mixed m;

	mixed_start(&m, 100, 4, wait_until_open, NULL);
	ASSERT_TRUE(UNTIL_LOCKED(nr_waiting == 104));
	is_open = 1;
	pl_mutex_unlock(&mutex);
	pl_cond_broadcast(&cond);
	mixed_join(&m);
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

static void wait_past_deadline(void *arg)
{
	uint64_t deadline = in_ms(2);

	(void)arg;
	pl_mutex_lock(&mutex);
	EXPECT_EQ(-ETIMEDOUT, pl_cond_wait_until(&cond, &mutex, deadline));
	EXPECT_LE(deadline, pl_now());
	EXPECT_EQ(-EBUSY, pl_mutex_trylock(&mutex));
	EXPECT_EQ(-ETIMEDOUT, pl_cond_wait_until(&cond, &mutex, 0));
	check_locked_and_unlock();
}

TEST_F(cond, timed_out_wait_has_the_mutex)
{
	mixed_run(10, 3, wait_past_deadline, NULL);
	run_as(PL_STACK_WORKER, wait_past_deadline, NULL);
}

static void wait_until_ended(void *arg)
{
	(void)arg;
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

static void wait_until_stop(void *arg)
{
	(void)arg;
	pl_mutex_lock(&mutex);
	nr_waiting++;
	EXPECT_EQ(-ECANCELED, pl_cond_wait(&cond, &mutex));
	check_locked_and_unlock();
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(cond, wait_ends_when_the_runtime_stops)
{
	static struct mixed m;
	struct hold hold = { &nr_back, 54 };

	hold_stop_until(&hold);
	mixed_start(&m, 50, 4, wait_until_stop, NULL);
	ASSERT_TRUE(UNTIL_LOCKED(nr_waiting == 54));
	pl_mutex_unlock(&mutex);
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_TRUE(UNTIL(nr_back == 54));
	mixed_join(&m);
}

TEST_F(cond, bad_arguments_are_refused)
{
	EXPECT_EQ(-EINVAL, pl_cond_wait(NULL, &mutex));
	EXPECT_EQ(-EINVAL, pl_cond_wait(&cond, NULL));
	EXPECT_EQ(-EINVAL, pl_cond_wait_until(NULL, &mutex, 0));
}

/* ---- producers and consumers ---- */

#define CAPACITY	4

static long buffer[CAPACITY];	/* these under mutex */
static int head, fill, to_consume;
static long sum_in, sum_out;
static bool is_broadcasting;

static void wake(struct pl_cond *c)
{
	if (is_broadcasting)
		pl_cond_broadcast(c);
	else
		pl_cond_signal(c);
}

static void produce(void *arg)
{
	int i, nr = *(int *)arg;

	for (i = 1; i <= nr; i++) {
		pl_mutex_lock(&mutex);
		while (fill == CAPACITY)
			EXPECT_EQ(0, pl_cond_wait(&not_full, &mutex));
		buffer[(head + fill++) % CAPACITY] = i;
		sum_in += i;
		wake(&not_empty);
		pl_mutex_unlock(&mutex);
	}
}

static void consume(void *arg)
{
	bool is_over;

	(void)arg;
	do {
		pl_mutex_lock(&mutex);
		while (!fill && to_consume)
			EXPECT_EQ(0, pl_cond_wait(&not_empty, &mutex));
		if (fill) {
			sum_out += buffer[head];
			head = (head + 1) % CAPACITY;
			fill--;
			if (!--to_consume)
				pl_cond_broadcast(&not_empty);
			wake(&not_full);
		}
		is_over = !to_consume;
		pl_mutex_unlock(&mutex);
	} while (!is_over);
}

static void produce_and_consume(int nr_tasks, int nr_threads, int nr)
{
	static struct mixed producers, consumers;

	to_consume = (nr_tasks + nr_threads) * nr;
	mixed_start(&consumers, nr_tasks, nr_threads, consume, NULL);
	mixed_start(&producers, nr_tasks, nr_threads, produce, &nr);
	mixed_join(&producers);
	mixed_join(&consumers);
	EXPECT_EQ((nr_tasks + nr_threads) * (long)nr * (nr + 1) / 2, sum_in);
	EXPECT_EQ(sum_in, sum_out);
}

TEST_F(cond, no_signal_is_lost_between_tasks)
{
	produce_and_consume(8, 0, scaled(2000));
}

TEST_F(cond, no_signal_is_lost_between_threads)
{
	produce_and_consume(0, 4, scaled(1000));
}

TEST_F(cond, no_signal_is_lost_between_tasks_and_threads)
{
	produce_and_consume(6, 3, scaled(1000));
}

TEST_F(cond, no_broadcast_is_lost_between_tasks_and_threads)
{
	is_broadcasting = true;
	produce_and_consume(6, 3, scaled(500));
}

/*
 * Rounds of all waiting for a broadcast, some of them with deadlines that end
 * at about the same time, on the mutex to which the others were moved.
 */
static int round_now;			/* under mutex */

static void follow_rounds(void *arg)
{
	uint64_t seed = (uintptr_t)&arg | 1;
	int i, ret, nr = *(int *)arg;
	bool is_patient = next_random(&seed) % 2;

	for (i = 1; i <= nr; i++) {
		pl_mutex_lock(&mutex);
		nr_waiting++;
		while (round_now < i) {
			ret = is_patient ? pl_cond_wait(&cond, &mutex) :
			      pl_cond_wait_until(&cond, &mutex, pl_now() +
						 next_random(&seed) % 200000);
			EXPECT_TRUE(!ret || ret == -ETIMEDOUT);
		}
		check_locked_and_unlock();
	}
}

TEST_F(cond, broadcast_races_deadlines_without_loss)
{
	static struct mixed m;
	int i, nr = scaled(200);

	mixed_start(&m, 30, 3, follow_rounds, &nr);
	for (i = 1; i <= nr; i++) {
		ASSERT_TRUE(UNTIL_LOCKED(nr_waiting == 33));
		nr_waiting = 0;
		round_now = i;
		if (i % 2)
			pl_cond_broadcast(&cond);
		pl_mutex_unlock(&mutex);
		if (i % 2 == 0)
			pl_cond_broadcast(&cond);
	}
	mixed_join(&m);
}

/* ---- a loop that ignores why a wait has ended ---- */

static void open_the_door(void *arg)
{
	(void)arg;
	pl_mutex_lock(&mutex);
	is_open = 1;
	pl_cond_signal(&cond);
	pl_mutex_unlock(&mutex);
}

static void wait_stubbornly(void *arg)
{
	int nr = 0;

	(void)arg;
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
