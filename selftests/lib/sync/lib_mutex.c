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

	(void)arg;
	EXPECT_EQ(-EBUSY, pl_mutex_trylock(&mutex));
	EXPECT_EQ(-ETIMEDOUT, pl_mutex_lock_until(&mutex, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_mutex_lock_until(&mutex, deadline));
	EXPECT_LE(deadline, pl_now());
}

static void try_it_free(void *arg)
{
	(void)arg;
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

#define NR_LOCKERS	100
/* The word, while none waits, and while waiters are impatient. */
#define LOCKED		1
#define IMPATIENT	3

static atomic_int is_over;
static _Atomic uint64_t nr_locks[NR_LOCKERS];

static void lock_without_yielding(void *arg)
{
	_Atomic uint64_t *nr = arg;

	while (!is_over) {
		pl_mutex_lock(&mutex);
		counter_inc(nr);
		pl_mutex_unlock(&mutex);
	}
}

static int nr_lockers_below(uint64_t nr)
{
	int i, sum = 0;

	for (i = 0; i < NR_LOCKERS; i++)
		sum += load_relaxed(&nr_locks[i]) < nr;
	return sum;
}

/*
 * Each has the mutex a few times in a second in which both workers run: a round
 * takes 1 ms, and the switches.  Of a busy machine they may not get that, and
 * an emulator's processor time is the longer: 2 s, by the factor of the limits.
 */
TEST_REAL(lockers_that_never_yield_all_have_their_turns,
	  "seconds of processor time are millions of points")
TEST_TIMED(lockers_that_never_yield_all_have_their_turns, "processor time")
TEST_F(mutex, lockers_that_never_yield_all_have_their_turns)
{
	pl_task_t t[NR_LOCKERS];
	int i;

	start_with(2, 2);
	for (i = 0; i < NR_LOCKERS; i++)
		t[i] = spawn(lock_without_yielding, &nr_locks[i]);
	EXPECT_TRUE(UNTIL(!nr_lockers_below(10) ||
			  rt_cpu_ns() >= stuck_ns() / 10));
	EXPECT_EQ(0, nr_lockers_below(10));
	is_over = 1;
	for (i = 0; i < NR_LOCKERS; i++)
		join(t[i]);
}

static void *lock_until_over(void *arg)
{
	(void)arg;
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
	(void)arg;
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
