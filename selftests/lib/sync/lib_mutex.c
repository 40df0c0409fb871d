/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The mutex: one at a time, of tasks and threads alike.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(mutex)

static struct pl_mutex mutex;
static atomic_int nr_back;

static void try_it_locked(void *arg)
{
	uint64_t deadline = in_ms(2);

	EXPECT_EQ(-EBUSY, pl_mutex_trylock(&mutex));
	EXPECT_EQ(-ETIMEDOUT, pl_mutex_lock_until(&mutex, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_mutex_lock_until(&mutex, deadline));
	EXPECT_LE(deadline, pl_now());
}

static void try_it_free(void *arg)
{
	EXPECT_EQ(0, pl_mutex_trylock(&mutex));
	EXPECT_EQ(-EBUSY, pl_mutex_trylock(&mutex));
	pl_mutex_unlock(&mutex);
	EXPECT_EQ(0, pl_mutex_lock_until(&mutex, 0));
	pl_mutex_unlock(&mutex);
	EXPECT_EQ(0, pl_mutex_lock_until(&mutex, PL_FOREVER));
	pl_mutex_unlock(&mutex);
}

TEST_F(mutex, trylock_and_lock_until_return_in_time)
{
	struct pl_mutex init = PL_MUTEX_INIT;

	EXPECT_EQ(0, memcmp(&init, &mutex, sizeof(mutex)));
	pl_mutex_lock(&mutex);
	try_it_locked(NULL);
	mixed_run(10, 2, try_it_locked, NULL);
	run_as(PL_STACK_WORKER, try_it_locked, NULL);
	pl_mutex_unlock(&mutex);
	try_it_free(NULL);
	run_in_task(try_it_free, NULL);
	run_as(PL_STACK_WORKER, try_it_free, NULL);
}

/* ---- fairness ---- */

/* The word, while none waits, and while waiters are impatient. */
#define LOCKED		1
#define IMPATIENT	3

static atomic_int is_over;

static void *lock_until_over(void *arg)
{
	pl_mutex_lock(&mutex);
	nr_back = 1;
	EXPECT_TRUE(UNTIL(is_over));
	pl_mutex_unlock(&mutex);
	return NULL;
}

/*
 * With the mutex locked: as if the caller had unlocked it, and another thread
 * had locked it before the waiter was woken.
 */
static void overtake(void)
{
	store_relaxed(&mutex.word.value, LOCKED);
	pl__wake(&mutex.word.value, 1);
}

/* It is overtaken once it has waited for longer than a millisecond. */
static void make_waiter_impatient(void)
{
	ASSERT_TRUE(UNTIL(nr_waiters(&mutex.word) == 1));
	spin_ns(2 * NSEC_PER_MSEC);
	overtake();
	ASSERT_TRUE(UNTIL(mutex.word.value == IMPATIENT &&
			  nr_waiters(&mutex.word) == 1));
}

TEST_F(mutex, overtaken_waiter_is_handed_the_mutex)
{
	pthread_t t;

	pl_mutex_lock(&mutex);
	ASSERT_EQ(0, pthread_create(&t, NULL, lock_until_over, NULL));
	make_waiter_impatient();
	EXPECT_EQ(0, nr_back);
	pl_mutex_unlock(&mutex);
	EXPECT_EQ(-EBUSY, pl_mutex_trylock(&mutex));
	ASSERT_TRUE(UNTIL(nr_back));
	is_over = 1;
	pthread_join(t, NULL);
	EXPECT_EQ(0, pl_mutex_trylock(&mutex));
}

static void lock_until_cancelled(void *arg)
{
	EXPECT_EQ(-ECANCELED, pl_mutex_lock_until(&mutex, PL_FOREVER));
}

TEST_F(mutex, mutex_is_free_after_the_overtaken_waiter_gave_up)
{
	pl_task_t t;

	pl_mutex_lock(&mutex);
	t = spawn(lock_until_cancelled, NULL);
	make_waiter_impatient();
	EXPECT_EQ(0, pl_cancel(t));
	join(t);
	EXPECT_EQ(IMPATIENT, mutex.word.value);
	pl_mutex_unlock(&mutex);
	EXPECT_EQ(0, pl_mutex_trylock(&mutex));
}

TEST_HARNESS_MAIN
