/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The mutex: one at a time, of tasks and threads alike.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(mutex)

static struct pl_mutex mutex;
static atomic_int nr_inside, nr_waiting, nr_back;
static long counter;

static void enter_and_leave(void *arg)
{
	uint64_t seed = (uintptr_t)&arg | 1;
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++) {
		pl_mutex_lock(&mutex);
		EXPECT_EQ(0, atomic_fetch_add(&nr_inside, 1));
		counter++;
		/* Now and then the holder switches away. */
		if (next_random(&seed) % 16 == 0)
			pl_yield();
		atomic_fetch_sub(&nr_inside, 1);
		pl_mutex_unlock(&mutex);
	}
}

TEST_F(mutex, lock_admits_one_task_at_a_time)
{
	int nr = scaled(2000);

	mixed_run(20, 4, enter_and_leave, &nr);
	EXPECT_EQ(24L * nr, counter);
	EXPECT_EQ(0, pl_mutex_trylock(&mutex));
}

static void enter_by_trylock(void *arg)
{
	int i, nr = *(int *)arg, ret;

	for (i = 0; i < nr; ) {
		ret = pl_mutex_trylock(&mutex);
		if (ret) {
			EXPECT_EQ(-EBUSY, ret);
			breathe();
			continue;
		}
		EXPECT_EQ(0, atomic_fetch_add(&nr_inside, 1));
		counter++;
		atomic_fetch_sub(&nr_inside, 1);
		pl_mutex_unlock(&mutex);
		i++;
	}
}

TEST_F(mutex, trylock_admits_one_task_at_a_time)
{
	static struct mixed m;
	int nr = scaled(1000);

	mixed_start(&m, 4, 2, enter_by_trylock, &nr);
	mixed_run(4, 2, enter_and_leave, &nr);
	mixed_join(&m);
	EXPECT_EQ(12L * nr, counter);
}

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

static void lock_until_ended(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nr_waiting, 1);
	EXPECT_EQ(-EINTR, pl_mutex_lock_until(&mutex, PL_FOREVER));
	atomic_fetch_add(&nr_waiting, 1);
	EXPECT_EQ(-ECANCELED, pl_mutex_lock_until(&mutex, PL_FOREVER));
	EXPECT_EQ(-ECANCELED, pl_mutex_lock_until(&mutex, 0));
}

TEST_F(mutex, lock_until_is_interrupted_and_cancelled)
{
	uint32_t cls;
	pl_task_t t;

	pl_mutex_lock(&mutex);
	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		nr_waiting = 0;
		t = spawn_as(cls, lock_until_ended, NULL);
		ASSERT_TRUE(UNTIL(nr_waiting == 1));
		EXPECT_EQ(0, pl_interrupt(t));
		ASSERT_TRUE(UNTIL(nr_waiting == 2));
		EXPECT_EQ(0, pl_cancel(t));
		join(t);
	}
	pl_mutex_unlock(&mutex);
	EXPECT_EQ(0, pl_mutex_trylock(&mutex));
}

static void lock_whatever_comes(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nr_waiting, 1);
	pl_mutex_lock(&mutex);
	EXPECT_EQ(0, atomic_fetch_add(&nr_inside, 1));
	atomic_fetch_add(&nr_back, 1);
	EXPECT_EQ(-ECANCELED, pl_sleep_until(0));
	atomic_fetch_sub(&nr_inside, 1);
	pl_mutex_unlock(&mutex);
}

/*
 * Interrupted and cancelled before, while or after they begin to wait, they
 * have the mutex when they are back.
 */
TEST_F(mutex, lock_is_no_cancellation_point)
{
	pl_task_t t[20];
	int i;

	pl_mutex_lock(&mutex);
	for (i = 0; i < 20; i++) {
		t[i] = spawn_as(i % 4, lock_whatever_comes, NULL);
		if (i % 3)
			ASSERT_TRUE(UNTIL(nr_waiting == i + 1));
		EXPECT_EQ(0, pl_interrupt(t[i]));
		EXPECT_EQ(0, pl_cancel(t[i]));
		ASSERT_TRUE(UNTIL(nr_waiting == i + 1));
	}
	EXPECT_EQ(-ETIMEDOUT, pl_join_until(t[0], in_ms(2)));
	EXPECT_EQ(0, nr_back);
	pl_mutex_unlock(&mutex);
	for (i = 0; i < 20; i++)
		join(t[i]);
	EXPECT_EQ(20, nr_back);
}

static void lock_while_stopping(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nr_waiting, 1);
	pl_mutex_lock(&mutex);
	EXPECT_EQ(0, atomic_fetch_add(&nr_inside, 1));
	atomic_fetch_sub(&nr_inside, 1);
	pl_mutex_unlock(&mutex);
	atomic_fetch_add(&nr_back, 1);
}

static void hold_until_stopping(void *arg)
{
	(void)arg;
	pl_mutex_lock(&mutex);
	atomic_fetch_add(&nr_waiting, 1);
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	pl_yield();
	pl_mutex_unlock(&mutex);
}

TEST_F(mutex, lock_holds_while_the_runtime_stops)
{
	int i;

	spawn(hold_until_stopping, NULL);
	ASSERT_TRUE(UNTIL(nr_waiting == 1));
	for (i = 0; i < 20; i++)
		spawn_as(i % 4, lock_while_stopping, NULL);
	ASSERT_TRUE(UNTIL(nr_waiting == 21));
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(20, nr_back);
}

/* The mutex lives in memory that the last one to lock it frees. */
struct shared {
	struct pl_mutex	mutex;
	int		refs;
};

static void drop_reference(void *arg)
{
	struct shared *s = arg;
	bool is_last;

	pl_mutex_lock(&s->mutex);
	is_last = !--s->refs;
	pl_mutex_unlock(&s->mutex);
	if (is_last) {
		memset(s, 0xff, sizeof(*s));
		free(s);
		atomic_fetch_add(&nr_back, 1);
	}
}

TEST_F(mutex, mutex_may_be_freed_by_its_last_owner)
{
	int i, k, nr = scaled(2000);
	struct shared *s;

	for (i = 0; i < nr; i++) {
		s = calloc(1, sizeof(*s));
		s->refs = 5;
		for (k = 0; k < 4; k++)
			spawn(drop_reference, s);
		drop_reference(s);
	}
	EXPECT_TRUE(UNTIL(nr_back == nr));
}

static void lock_by_deadline(void *arg)
{
	uint64_t seed = (uintptr_t)&arg | 1;
	int i, ret, nr = *(int *)arg;

	for (i = 0; i < nr; i++) {
		ret = pl_mutex_lock_until(&mutex, pl_now() +
					  next_random(&seed) % 50000);
		if (ret) {
			EXPECT_EQ(-ETIMEDOUT, ret);
			continue;
		}
		EXPECT_EQ(0, atomic_fetch_add(&nr_inside, 1));
		counter++;
		if (i % 8 == 0)
			pl_sleep(10000);
		atomic_fetch_sub(&nr_inside, 1);
		pl_mutex_unlock(&mutex);
		atomic_fetch_add(&nr_back, 1);
	}
}

/* Waiters that give up leave no other waiting for ever. */
TEST_F(mutex, timed_out_lock_leaves_other_waiters)
{
	static struct mixed m;
	int nr = scaled(400);

	mixed_start(&m, 10, 2, lock_by_deadline, &nr);
	mixed_run(10, 2, enter_and_leave, &nr);
	mixed_join(&m);
	EXPECT_EQ(12L * nr + nr_back, counter);
	EXPECT_EQ(0, pl_mutex_trylock(&mutex));
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

TEST_F(mutex, mutex_works_before_the_runtime_starts)
{
	int nr = scaled(2000);

	mixed_run(0, 4, enter_and_leave, &nr);
	EXPECT_EQ(4L * nr, counter);
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
}

TEST_HARNESS_MAIN
