/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keys: destructors that block, and those of threads.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(key_end)

static pl_key_t key;
static atomic_int nr_destroyed, nr_waiting, nr_back;

static pl_key_t key_new(void (*dtor)(void *value))
{
	pl_key_t k = 0;

	EXPECT_EQ(0, pl_key_create(&k, dtor));
	return k;
}

static void count(void *value)
{
	EXPECT_EQ(&key, value);
	atomic_fetch_add(&nr_destroyed, 1);
}

static void set_key(void *arg)
{
	EXPECT_EQ(0, pl_key_set(key, &key));
}

static struct pl_word gate, never;
static struct pl_mutex mutex;

/* Whatever was asked of the task, no call says so. */
static void block(void *value)
{
	uint64_t deadline = in_ms(1);

	atomic_fetch_add(&nr_waiting, 1);
	while (!gate.value) {
		int ret = pl_word_wait(&gate, 0, PL_FOREVER);

		EXPECT_TRUE(!ret || ret == -EAGAIN);
	}
	EXPECT_EQ(0, pl_sleep(1000));
	/* The task that opened the gate may not have woken all yet. */
	EXPECT_EQ(-ETIMEDOUT, pl_word_wait(&never, 0, deadline));
	EXPECT_LE(deadline, pl_now());
	EXPECT_EQ(0, pl_mutex_lock_until(&mutex, PL_FOREVER));
	pl_yield();
	pl_mutex_unlock(&mutex);
	count(value);
}

static void open_gate(void)
{
	gate.value = 1;
	pl_word_wake(&gate, UINT32_MAX);
}

TEST_F(key_end, destructors_are_not_interrupted_or_cancelled)
{
	pl_task_t t[12];
	int i;

	key = key_new(block);
	for (i = 0; i < 12; i++)
		t[i] = spawn_as(i % 4, set_key, NULL);
	for (i = 0; i < 12; i += 2) {
		EXPECT_EQ(0, pl_interrupt(t[i]));
		EXPECT_EQ(0, pl_cancel(t[i]));
	}
	ASSERT_TRUE(UNTIL(nr_waiting == 12));
	for (i = 0; i < 12; i++) {
		EXPECT_EQ(0, pl_interrupt(t[i]));
		EXPECT_EQ(0, pl_cancel(t[i]));
	}
	EXPECT_EQ(-ETIMEDOUT, pl_join_until(t[0], in_ms(2)));
	EXPECT_EQ(0, nr_destroyed);
	open_gate();
	for (i = 0; i < 12; i++)
		join(t[i]);
	EXPECT_EQ(12, nr_destroyed);
}

static void open_gate_when_stopping(void *arg)
{
	ASSERT_TRUE(UNTIL(nr_waiting == 9));
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	open_gate();
}

static void set_key_and_wait(void *arg)
{
	set_key(arg);
	if (pl_self())
		EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
}

static void *set_key_in_thread(void *arg)
{
	set_key(arg);
	return NULL;
}

TEST_F(key_end, stop_waits_for_destructors)
{
	pthread_t thread;
	int i;

	key = key_new(block);
	spawn(open_gate_when_stopping, NULL);
	for (i = 0; i < 8; i++)
		spawn_as(i % 4, i & 4 ? set_key : set_key_and_wait, NULL);
	ASSERT_EQ(0, pthread_create(&thread, NULL, set_key_in_thread, NULL));
	ASSERT_TRUE(UNTIL(nr_waiting == 5));
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(9, nr_destroyed);
}

static void end_after_cancel(void *arg)
{
	set_key(arg);
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	EXPECT_TRUE(pl_cancelled());
}

/* The next task in the slot starts with nothing of the last one's. */
static void begin_fresh(void *arg)
{
	EXPECT_NULL(pl_key_get(key));
	EXPECT_FALSE(pl_cancelled());
	EXPECT_EQ(-EINTR, pl_sleep_until(PL_FOREVER));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(key_end, next_task_of_the_slot_has_no_values)
{
	pl_task_t t;
	int i;

	start_with(1, 0);
	gate.value = 1;
	key = key_new(block);
	for (i = 1; i <= 40; i++) {
		t = spawn_as(i % 4, end_after_cancel, NULL);
		EXPECT_EQ(0, pl_cancel(t));
		join(t);
		t = spawn_as(i % 4, begin_fresh, NULL);
		EXPECT_EQ(0, pl_interrupt(t));
		join(t);
	}
	EXPECT_EQ(40, nr_destroyed);
	EXPECT_EQ(40, nr_back);
}

/* ---- threads ---- */

static pthread_key_t late_key;

/* A destructor of the thread's own that comes after ours. */
static void use_late(void *arg)
{
	int *rounds = arg;

	EXPECT_NULL(pl_key_get(key));
	EXPECT_EQ(0, pl_key_set(key, &key));
	EXPECT_EQ(0, pl_sleep(1000));
	if (++*rounds < 2)
		EXPECT_EQ(0, pthread_setspecific(late_key, rounds));
}

static void *thread_with_late_key(void *arg)
{
	set_key(NULL);
	EXPECT_EQ(0, pthread_setspecific(late_key, arg));
	return NULL;
}

TEST_F(key_end, end_of_a_thread_destroys_its_values)
{
	int i, nr = scaled(100), rounds[4];
	pthread_t thread[4];

	key = key_new(count);
	ASSERT_EQ(0, pl_key_set(key, &key));
	ASSERT_EQ(0, pthread_key_create(&late_key, use_late));
	for (; nr; nr--) {
		nr_destroyed = 0;
		for (i = 0; i < 4; i++) {
			rounds[i] = 0;
			ASSERT_EQ(0, pthread_create(&thread[i], NULL,
						    thread_with_late_key,
						    &rounds[i]));
		}
		for (i = 0; i < 4; i++)
			EXPECT_EQ(0, pthread_join(thread[i], NULL));
		EXPECT_EQ(12, nr_destroyed);
	}
	EXPECT_EQ(&key, pl_key_get(key));
}

static void set_in_worker(void *arg)
{
	set_key(arg);
	EXPECT_EQ(0, pl_self());
}

static void see_nothing(void *arg)
{
	EXPECT_NULL(pl_key_get(key));
}

TEST_F(key_end, values_of_a_worker_are_not_those_of_its_tasks)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	int cls;

	key = key_new(count);
	cfg.worker_start = set_in_worker;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	for (cls = 0; cls <= PL_STACK_WORKER; cls++)
		run_as(cls, see_nothing, NULL);
	EXPECT_EQ(0, nr_destroyed);
	EXPECT_EQ(0, pl_runtime_stop());
	/* Of one worker at least, and of the timer thread. */
	EXPECT_LE(2, nr_destroyed);
}

TEST_HARNESS_MAIN
