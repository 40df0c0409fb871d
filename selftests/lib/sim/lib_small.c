/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Few tasks that use one thing each: short enough for thousands of seeds, which
 * find lost wakeups and wrong orders in the library.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "few_tasks.h"

static struct pl_mutex mutex;
static struct pl_cond cond;
static struct pl_sem sem;
static struct pl_rwlock rwlock;
static struct pl_word word;
static struct pl_chan *chan;
static int plain;

FIXTURE(small) { char unused; };

FIXTURE_SETUP(small)
{
	start_by_seed(_metadata, __test_seed % 4 == 2);
}

FIXTURE_TEARDOWN(small)
{
	join_all();
	rt_end();
}

/* ---- locks ---- */

static void add_under_mutex(void *arg)
{
	int i, before;

	for (i = 0; i < 5; i++) {
		pl_mutex_lock(&mutex);
		before = plain;
		if ((i + (uintptr_t)arg) % 2)
			pl_yield();
		plain = before + 1;
		pl_mutex_unlock(&mutex);
	}
}

TEST_F(small, mutex_admits_one_and_wakes_the_next)
{
	uintptr_t i;

	for (i = 0; i < 8; i++)
		go(add_under_mutex, i);
	add_under_mutex(NULL);
	join_all();
	EXPECT_EQ(45, plain);
}

static void lock_for_a_while(void *arg)
{
	int ret = pl_mutex_lock_until(&mutex,
				      pl_now() + (uintptr_t)arg * 700);

	if (ret) {
		EXPECT_EQ(-ETIMEDOUT, ret);
		return;
	}
	EXPECT_EQ(0, plain++);
	pl_yield();
	plain--;
	pl_mutex_unlock(&mutex);
}

TEST_F(small, mutex_goes_on_after_waiters_timed_out)
{
	uintptr_t i;

	for (i = 0; i < 12; i++)
		go(lock_for_a_while, i);
	join_all();
	EXPECT_EQ(0, pl_mutex_trylock(&mutex));
}

static void read_twice(void *arg)
{
	int i, before;

	for (i = 0; i < 3; i++) {
		pl_rwlock_rdlock(&rwlock);
		before = plain;
		pl_yield();
		EXPECT_EQ(before, plain);
		pl_rwlock_rdunlock(&rwlock);
	}
}

static void write_twice(void *arg)
{
	int i;

	for (i = 0; i < 3; i++) {
		pl_rwlock_wrlock(&rwlock);
		plain++;
		pl_yield();
		plain++;
		pl_rwlock_wrunlock(&rwlock);
	}
}

TEST_F(small, rwlock_keeps_writers_alone)
{
	int i;

	for (i = 0; i < 9; i++)
		go(i % 3 ? read_twice : write_twice, 0);
	join_all();
	EXPECT_EQ(18, plain);
}

/* ---- signals from one to another ---- */

static void take_one(void *arg)
{
	pl_mutex_lock(&mutex);
	while (!plain)
		EXPECT_EQ(0, pl_cond_wait(&cond, &mutex));
	plain--;
	pl_mutex_unlock(&mutex);
}

static void give_one(void *arg)
{
	pl_mutex_lock(&mutex);
	plain++;
	pl_mutex_unlock(&mutex);
	if (arg)
		pl_cond_signal(&cond);
	else
		pl_cond_broadcast(&cond);
}

TEST_F(small, cond_loses_no_signal)
{
	uintptr_t i;

	for (i = 0; i < 12; i++)
		go(i % 2 ? give_one : take_one, i % 4 / 2);
	join_all();
	EXPECT_EQ(0, plain);
}

static void post_one(void *arg)
{
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
}

static void wait_one(void *arg)
{
	EXPECT_EQ(0, pl_sem_wait(&sem));
	atomic_fetch_add(&nr_done, 1);
}

TEST_F(small, semaphore_loses_no_unit)
{
	int i;

	pl_sem_init(&sem, 0);
	for (i = 0; i < 12; i++)
		go(i % 2 ? post_one : wait_one, 0);
	join_all();
	EXPECT_EQ(6, nr_done);
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
}

static void wait_for_word(void *arg)
{
	int ret = 0;

	while (!atomic_load(&word.value) && ret != -ETIMEDOUT) {
		ret = pl_word_wait(&word, 0, pl_now() + (uintptr_t)arg * 3000);
		EXPECT_TRUE(!ret || ret == -EAGAIN || ret == -ETIMEDOUT);
	}
	atomic_fetch_add(&nr_done, 1);
}

static void wait_for_word_for_ever(void *arg)
{
	while (!atomic_load(&word.value))
		pl_word_wait(&word, 0, PL_FOREVER);
	atomic_fetch_add(&nr_done, 1);
}

TEST_F(small, word_wakes_all_that_wait)
{
	uintptr_t i;

	for (i = 0; i < 10; i++)
		go(i % 2 ? wait_for_word : wait_for_word_for_ever, i + 1);
	pl_sleep(__test_seed % 16 * 1000);
	atomic_store(&word.value, 1);
	pl_word_wake(&word, UINT32_MAX);
	join_all();
	EXPECT_EQ(10, nr_done);
}

static void send_four(void *arg)
{
	int i;

	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, pl_chan_send(chan, arg));
}

static void receive_all(void *arg)
{
	void *item;

	while (!pl_chan_recv(chan, &item))
		atomic_fetch_add(&nr_done, 1);
}

TEST_F(small, channel_passes_each_item_once)
{
	int i;

	ASSERT_EQ(0, pl_chan_create(&chan, __test_seed % 3));
	for (i = 0; i < 5; i++)
		go(send_four, 1);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pl_spawn(NULL, receive_all, NULL, NULL));
	join_all();
	pl_chan_close(chan);
	EXPECT_TRUE(UNTIL(rt_stat().tasks_alive == 0));
	EXPECT_EQ(20, nr_done);
	EXPECT_EQ(0, pl_chan_destroy(chan));
}

static void select_one(void *arg)
{
	struct pl_chan_case c[2] = {
		PL_CHAN_CASE_RECV(chan), PL_CHAN_CASE_SEND(chan, arg),
	};

	EXPECT_LE(0, pl_chan_select(c, 2, PL_FOREVER));
	atomic_fetch_add(&nr_done, 1);
}

TEST_F(small, selects_pair_up)
{
	int i;

	ASSERT_EQ(0, pl_chan_create(&chan, 0));
	for (i = 0; i < 6; i++)
		go(select_one, 1);
	join_all();
	EXPECT_EQ(6, nr_done);
	EXPECT_EQ(0, pl_chan_destroy(chan));
}

/* ---- tasks ---- */

static void spawn_two(void *arg)
{
	uintptr_t depth = (uintptr_t)arg;
	pl_task_t t[2];
	int i;

	atomic_fetch_add(&nr_done, 1);
	if (!depth)
		return;
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pl_spawn(&t[i], spawn_two, (void *)(depth - 1),
				      NULL));
	for (i = 0; i < 2; i++)
		join(t[i]);
}

TEST_F(small, tree_of_tasks_is_joined)
{
	go(spawn_two, 5);
	join_all();
	EXPECT_EQ(63, nr_done);
}

static void be_done(void *arg)
{
	atomic_fetch_add(&nr_done, 1);
}

/* Each batch after the workers have parked, or nearly. */
TEST_F(small, every_spawn_reaches_a_parked_worker)
{
	int i;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, pl_spawn(NULL, be_done, NULL, NULL));
		pl_sleep(__test_seed % 7 * 500);
	}
	ASSERT_EQ(10, pl_spawn_many(NULL, 10, be_done, NULL, NULL));
	EXPECT_TRUE(UNTIL(nr_done == 20));
}

static pl_task_t waiting_for[4];

TEST_F(small, ready_tasks_get_all_workers_beside_those_that_compute)
{
	uint32_t nr = 2 + (uint32_t)(__test_seed % 3), i;

	for (i = 0; i < nr; i++)
		go(meet, nr);
	join_all();
}

static void spawn_meeting(void *arg)
{
	uint32_t nr = (uint32_t)(uintptr_t)arg;
	uint32_t i;

	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, pl_spawn(&waiting_for[i], meet, arg, NULL));
	for (i = 0; i < nr; i++)
		join(waiting_for[i]);
}

TEST_F(small, tasks_of_one_worker_get_the_others)
{
	go(spawn_meeting, 2 + __test_seed % 3);
	join_all();
}

TEST_F(small, tasks_behind_blocked_ones_run)
{
	int i;

	for (i = 0; i < 6; i++)
		go(block_and_count, 5 * NSEC_PER_MSEC);
	for (i = 0; i < 6; i++)
		go(be_done, 0);
	EXPECT_TRUE(UNTIL(nr_done >= 6));
	join_all();
	EXPECT_EQ(12, nr_done);
}

/* From the second round on their function is known to block. */
TEST_F(small, tasks_that_are_known_to_block_all_run)
{
	int i, round;

	for (round = 1; round <= 4; round++) {
		for (i = 0; i < 8; i++)
			go(block_and_count, (uintptr_t)(1 + i % 3) *
					    NSEC_PER_MSEC / 2);
		go(be_done, 0);
		if (__test_seed % 2)
			join_all();
	}
	join_all();
	EXPECT_EQ(36, nr_done);
}

/* ---- time ---- */

static void sleep_a_while(void *arg)
{
	uint64_t ns = (uintptr_t)arg * 7001, begin = pl_now();

	EXPECT_EQ(0, pl_sleep(ns));
	EXPECT_LE(begin + ns, pl_now());
}

TEST_F(small, sleeps_end_after_their_deadlines)
{
	uintptr_t i;

	for (i = 0; i < 12; i++)
		go(sleep_a_while, i * 5 % 12);
	join_all();
}

static void count_up(void *arg)
{
	atomic_fetch_add(&nr_done, 1);
}

TEST_F(small, timers_fire_or_are_deleted_once)
{
	pl_timer_t t[8];
	int i, deleted = 0;

	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, pl_timer_add(&t[i], pl_now() + (i * 5 % 8) * 900,
					  count_up, NULL));
	for (i = 0; i < 8; i += 2)
		deleted += !pl_timer_del(t[i]);
	EXPECT_TRUE(UNTIL(nr_done + deleted == 8));
}

/* Earlier ones while the timer thread is on its way to sleep. */
TEST_F(small, timer_that_is_earlier_than_all_fires_in_time)
{
	uint64_t begin = pl_now();
	int i;

	for (i = 0; i < 6; i++)
		ASSERT_EQ(0, pl_timer_add(NULL, begin + NSEC_PER_SEC -
					  (uint64_t)i * 150 * NSEC_PER_MSEC,
					  count_up, NULL));
	EXPECT_TRUE(UNTIL(nr_done == 1));
	EXPECT_GT(begin + 300 * NSEC_PER_MSEC, pl_now());
	EXPECT_TRUE(UNTIL(nr_done == 6));
}

/* ---- ends ---- */

static void sleep_until_told(void *arg)
{
	int ret = pl_sleep(1000 * NSEC_PER_SEC);

	EXPECT_TRUE(ret == -ECANCELED || ret == -EINTR);
}

TEST_F(small, interrupts_and_cancels_end_sleeps)
{
	int i;

	for (i = 0; i < 8; i++)
		go(sleep_until_told, 0);
	for (i = 0; i < 8; i++)
		EXPECT_EQ(0, i % 2 ? pl_cancel(tasks[i]) :
				     pl_interrupt(tasks[i]));
	join_all();
}

static intptr_t child(void *arg)
{
	uintptr_t k = (uintptr_t)arg;

	if (k % 5 != 4)
		pl_sleep(k % 3 ? 3000 : 400 * NSEC_PER_MSEC);
	atomic_fetch_add(&nr_done, 1);
	return k % 5 == 4 ? -EIO : 0;
}

TEST_F(small, scope_ends_with_all_of_its_children)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct pl_child c[4] = { 0 };
	int nr_started = 0;
	uintptr_t i;

	ASSERT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	for (i = 0; i < 4; i++)
		nr_started += !pl_scope_spawn(&s, &c[i], child,
					      (void *)(__test_seed + i), NULL);
	pl_scope_leave(&s);
	EXPECT_EQ(nr_started, nr_done);
}

/* ---- descriptors ---- */

static int sockets[2];

static void read_one(void *arg)
{
	char c;

	EXPECT_EQ(1, pl_read(sockets[0], &c, 1));
	atomic_fetch_add(&nr_done, 1);
}

static void write_one(void *arg)
{
	char c = 'x';

	pl_sleep((uintptr_t)arg * 500);
	EXPECT_EQ(1, pl_write(sockets[1], &c, 1));
}

TEST_F(small, each_byte_ends_one_read)
{
	int i;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	for (i = 0; i < 8; i++)
		go(i % 2 ? write_one : read_one, (uintptr_t)i);
	join_all();
	EXPECT_EQ(4, nr_done);
	close(sockets[0]);
	close(sockets[1]);
}

TEST_HARNESS_MAIN
