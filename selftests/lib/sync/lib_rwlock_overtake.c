/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lock for one writer or many readers when others overtake its waiters: a
 * free lock is anyone's, until a waiter has lost its patience.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "rwlock.h"

RT_FIXTURE(overtake)

static atomic_int is_over, nr_back;

/* ---- one step at a time ---- */

static void lock_as(bool writes)
{
	if (writes)
		pl_rwlock_wrlock(&lock);
	else
		pl_rwlock_rdlock(&lock);
}

static void unlock_as(bool writes)
{
	if (writes)
		pl_rwlock_wrunlock(&lock);
	else
		pl_rwlock_rdunlock(&lock);
}

static int lock_until_as(bool writes, uint64_t deadline_ns)
{
	return writes ? pl_rwlock_wrlock_until(&lock, deadline_ns) :
			pl_rwlock_rdlock_until(&lock, deadline_ns);
}

static void lock_and_unlock(void *arg)
{
	lock_as(arg != NULL);
	atomic_fetch_add(&nr_back, 1);
	unlock_as(arg != NULL);
}

static void lock_until_cancelled(void *arg)
{
	EXPECT_EQ(-ECANCELED, lock_until_as(arg != NULL, PL_FOREVER));
	atomic_fetch_add(&nr_back, 1);
}

/*
 * On one worker a task that was woken does not run yet: the caller comes before
 * it.
 */
static pl_task_t queue_as(bool writes, void (*fn)(void *arg))
{
	int nr = nr_rw_queued(&lock);
	pl_task_t t = spawn(fn, writes ? &lock : NULL);

	EXPECT_TRUE(UNTIL(nr_rw_queued(&lock) == nr + 1));
	EXPECT_TRUE(UNTIL(atomic_load(&pl__task_slot(t)->waiter.word)));
	return t;
}

static void overtake_writer(void *arg)
{
	pl_task_t t;

	pl_rwlock_wrlock(&lock);
	t = queue_as(true, lock_and_unlock);
	pl_rwlock_wrunlock(&lock);
	EXPECT_EQ(RW_WAITED_FOR | RW_WRITER_WAITS | RW_WOKEN, lock.word.value);
	EXPECT_EQ(0, pl_rwlock_trywrlock(&lock));
	pl_rwlock_wrunlock(&lock);
	EXPECT_EQ(0, pl_rwlock_tryrdlock(&lock));
	/* Readers would otherwise never leave it a free lock. */
	EXPECT_EQ(-EBUSY, pl_rwlock_tryrdlock(&lock));
	pl_rwlock_rdunlock(&lock);
	EXPECT_EQ(0, nr_back);
	join(t);
	EXPECT_EQ(1, nr_back);
	check_free();
}

TEST_F(overtake, free_lock_is_taken_before_the_woken_writer)
{
	start_with(1, 1);
	run_in_task(overtake_writer, NULL);
}

static void overtake_reader(void *arg)
{
	pl_task_t t;

	pl_rwlock_wrlock(&lock);
	t = queue_as(false, lock_and_unlock);
	pl_rwlock_wrunlock(&lock);
	EXPECT_EQ(RW_WAITED_FOR | RW_WOKEN, lock.word.value);
	EXPECT_EQ(0, pl_rwlock_trywrlock(&lock));
	pl_rwlock_wrunlock(&lock);
	EXPECT_EQ(0, pl_rwlock_tryrdlock(&lock));
	EXPECT_EQ(0, pl_rwlock_tryrdlock(&lock));
	pl_rwlock_rdunlock(&lock);
	EXPECT_EQ(0, nr_back);
	/* They share it. */
	join(t);
	EXPECT_EQ(1, nr_back);
	pl_rwlock_rdunlock(&lock);
	check_free();
}

TEST_F(overtake, free_lock_is_taken_before_the_woken_reader)
{
	start_with(1, 1);
	run_in_task(overtake_reader, NULL);
}

/* The first waiter is cancelled before it is woken or after: bits of @round. */
static void cancel_woken_waiter(int round)
{
	pl_task_t first, second;

	nr_back = 0;
	pl_rwlock_wrlock(&lock);
	first = queue_as(round & 1, lock_until_cancelled);
	second = queue_as(round & 2, lock_and_unlock);
	if (round & 4)
		EXPECT_EQ(0, pl_cancel(first));
	pl_rwlock_wrunlock(&lock);
	EXPECT_EQ(0, pl_rwlock_trywrlock(&lock));
	if (!(round & 4))
		EXPECT_EQ(0, pl_cancel(first));
	join(first);
	EXPECT_EQ(1, nr_back);
	pl_rwlock_wrunlock(&lock);
	join(second);
	EXPECT_EQ(2, nr_back);
	check_free();
}

static void cancel_woken_waiters(void *arg)
{
	int round;

	for (round = 0; round < 8; round++)
		cancel_woken_waiter(round);
}

TEST_F(overtake, cancelled_woken_waiter_leaves_the_lock_to_the_next)
{
	start_with(1, 1);
	run_in_task(cancel_woken_waiters, NULL);
}

/* ---- hand-over ---- */

/*
 * A waiter that is woken where its waker runs may take the free lock at once:
 * it is overtaken from another CPU only.
 */
static cpu_set_t cpus;

/*
 * With the lock locked: overtakes the waiter, which more often gets the lock
 * first, for as long as takes all its patience.
 */
static bool overtake(bool writes)
{
	unlock_as(writes);
	lock_as(writes);
	spin_ns(2 * NSEC_PER_MSEC);
	return lock.word.value & RW_IMPATIENT;
}

static atomic_bool is_impatient;

/* Locks until it was overtaken for so long that it lost its patience. */
static void *lock_until_impatient(void *arg)
{
	bool writes = arg;

	run_on_cpu(&cpus, 1);
	lock_as(writes);
	while (!is_impatient) {
		unlock_as(writes);
		lock_as(writes);
	}
	nr_back = 1;
	EXPECT_TRUE(UNTIL(is_over));
	unlock_as(writes);
	return NULL;
}

/* @owner and @waiter: as a writer. */
static void expect_handed_over(bool owner, bool waiter)
{
	pthread_t t;

	is_impatient = false;
	is_over = nr_back = 0;
	run_on_cpu(&cpus, 0);
	lock_as(owner);
	ASSERT_EQ(0, pthread_create(&t, NULL, lock_until_impatient,
				    waiter ? &lock : NULL));
	ASSERT_TRUE(UNTIL_BUSY(overtake(owner)));
	is_impatient = true;
	EXPECT_EQ(-EBUSY, pl_rwlock_tryrdlock(&lock));
	EXPECT_EQ(-EBUSY, pl_rwlock_trywrlock(&lock));
	EXPECT_EQ(0, nr_back);
	unlock_as(owner);
	EXPECT_EQ(-EBUSY, pl_rwlock_trywrlock(&lock));
	EXPECT_EQ(waiter ? RW_WRITER : 1, lock.word.value);
	ASSERT_TRUE(UNTIL(nr_back));
	is_over = 1;
	pthread_join(t, NULL);
	check_free();
}

TEST_TIMED(overtaken_writer_is_handed_the_lock,
	   "needs two processors, or samples /proc")
TEST_F(overtake, overtaken_writer_is_handed_the_lock)
{
	NEEDS_CPUS();
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(cpus), &cpus));
	expect_handed_over(true, true);
	expect_handed_over(false, true);
}

TEST_TIMED(overtaken_reader_is_handed_the_lock,
	   "needs two processors, or samples /proc")
TEST_F(overtake, overtaken_reader_is_handed_the_lock)
{
	NEEDS_CPUS();
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(cpus), &cpus));
	expect_handed_over(true, false);
}

static void lock_and_leave_until_cancelled(void *arg)
{
	bool writes = arg;
	int ret;

	run_on_cpu(&cpus, 1);
	while (!(ret = lock_until_as(writes, PL_FOREVER)))
		unlock_as(writes);
	EXPECT_EQ(-ECANCELED, ret);
}

TEST_TIMED(lock_admits_all_after_the_overtaken_waiter_gave_up,
	   "needs two processors, or samples /proc")
TEST_F(overtake, lock_admits_all_after_the_overtaken_waiter_gave_up)
{
	bool writes = true;
	pl_task_t t;

	NEEDS_CPUS();
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(cpus), &cpus));
	for (;;) {
		pl_rwlock_wrlock(&lock);
		t = spawn(lock_and_leave_until_cancelled,
			  writes ? &lock : NULL);
		run_on_cpu(&cpus, 0);
		ASSERT_TRUE(UNTIL_BUSY(overtake(true)));
		EXPECT_EQ(0, pl_cancel(t));
		join(t);
		EXPECT_EQ(RW_WRITER, lock.word.value);
		pl_rwlock_wrunlock(&lock);
		check_free();
		if (!writes)
			break;
		writes = false;
	}
}

TEST_HARNESS_MAIN
