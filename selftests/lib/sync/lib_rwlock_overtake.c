/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lock for one writer or many readers when others overtake its waiters: how
 * many locks a second that gives, and that no waiter starves.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "rwlock.h"

#include <limits.h>

RT_FIXTURE(overtake)

static atomic_int is_begun, is_over, nr_back;

/* ---- locks a second ---- */

#define NR_THREADS	12

static pthread_rwlock_t pthread_lock = PTHREAD_RWLOCK_INITIALIZER;
static bool by_pthread;
static int nr_writers;
static long nr_locks[NR_THREADS];

static void lock_once(bool writes)
{
	if (by_pthread) {
		if (writes)
			pthread_rwlock_wrlock(&pthread_lock);
		else
			pthread_rwlock_rdlock(&pthread_lock);
		pthread_rwlock_unlock(&pthread_lock);
	} else if (writes) {
		pl_rwlock_wrlock(&lock);
		pl_rwlock_wrunlock(&lock);
	} else {
		pl_rwlock_rdlock(&lock);
		pl_rwlock_rdunlock(&lock);
	}
}

static void *lock_in_a_loop(void *arg)
{
	long nth = (intptr_t)arg, nr = 0;

	while (!is_over) {
		lock_once(nth < nr_writers);
		nr += is_begun;
	}
	nr_locks[nth] += nr;
	return NULL;
}

/* Returns how often they wrote within a time, once all of them run. */
static long nr_writes(bool pthreads, int writers)
{
	struct timespec ts = { .tv_nsec = 150 * NSEC_PER_MSEC };
	pthread_t t[NR_THREADS];
	long i, sum = 0;

	by_pthread = pthreads;
	nr_writers = writers;
	is_begun = is_over = 0;
	memset(nr_locks, 0, sizeof(nr_locks));
	for (i = 0; i < NR_THREADS; i++)
		ASSERT_EQ(0, pthread_create(&t[i], NULL, lock_in_a_loop,
					    (void *)i));
	nanosleep(&ts, NULL);
	is_begun = 1;
	nanosleep(&ts, NULL);
	is_over = 1;
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < writers; i++)
		sum += nr_locks[i];
	return sum;
}

/*
 * @writers of the threads write; beside it all write under a pthread_rwlock, in
 * turns, so that both have as much of the machine.  What was seen is 10 times
 * the bounds and more.
 */
static void expect_writes(int writers, int per_thousand)
{
	long ours = 0, theirs = 0;
	int i;

	for (i = 0; i < 4; i++) {
		ours += nr_writes(false, writers);
		theirs += nr_writes(true, NR_THREADS);
	}
	TH_LOG("%ld writes, pthread_rwlock %ld", ours, theirs);
	EXPECT_LT(0, ours);
	if (!RT_ASAN && !RT_TSAN && !RT_INJECT)
		EXPECT_LE(theirs / 1000 * per_thousand, ours);
	check_free();
}

TEST_REAL(writers_keep_up_with_pthread_rwlock,
	  "seconds of processor time are millions of points")
TEST_TIMED(writers_keep_up_with_pthread_rwlock, "a ratio of throughputs")
TEST_F(overtake, writers_keep_up_with_pthread_rwlock)
{
	expect_writes(NR_THREADS, 100);
}

TEST_REAL(writer_keeps_up_among_readers,
	  "seconds of processor time are millions of points")
TEST_TIMED(writer_keeps_up_among_readers, "a ratio of throughputs")
TEST_F(overtake, writer_keeps_up_among_readers)
{
	expect_writes(1, 20);
}

/* ---- no waiter starves ---- */

#define NR_LOCKERS	24

static struct locker {
	bool		writes;
	uint64_t	longest_ns;
	atomic_long	nr;
} lockers[NR_LOCKERS];

static void lock_in_turns(void *arg)
{
	struct locker *me = arg;
	uint64_t began_ns, took_ns;
	long nr = 0;

	while (!is_over) {
		began_ns = pl_now();
		if (me->writes)
			pl_rwlock_wrlock(&lock);
		else
			pl_rwlock_rdlock(&lock);
		took_ns = pl_now() - began_ns;
		if (me->writes)
			pl_rwlock_wrunlock(&lock);
		else
			pl_rwlock_rdunlock(&lock);
		if (took_ns > me->longest_ns)
			me->longest_ns = took_ns;
		/* A task that never yields delays those behind it. */
		store_relaxed(&me->nr, ++nr);
		if (nr % 16 == 0 && pl_self())
			pl_yield();
	}
}

static void *lock_in_thread(void *arg)
{
	lock_in_turns(arg);
	return NULL;
}

static long least_locks(void)
{
	long least = LONG_MAX, nr;
	int i;

	for (i = 0; i < NR_LOCKERS; i++) {
		nr = load_relaxed(&lockers[i].nr);
		least = nr < least ? nr : least;
	}
	return least;
}

/* CPU time of both workers: what they get in a second or two; 2 s natively. */
#define ENOUGH_CPU_NS	(stuck_ns() / 10)

/*
 * The first @writers write; tasks and threads, of each sort.  A second is
 * enough for each, unless its thread gets no processor.
 */
static void expect_turns(int writers)
{
	struct timespec second = { .tv_sec = 1 };
	uint64_t longest_ns = 0;
	pl_task_t t[NR_LOCKERS];
	pthread_t thread[NR_LOCKERS];
	int i;

	start_with(2, 2);
	for (i = 0; i < NR_LOCKERS; i++) {
		lockers[i].writes = i < writers;
		if (i % 3)
			t[i] = spawn(lock_in_turns, &lockers[i]);
		else
			ASSERT_EQ(0, pthread_create(&thread[i], NULL,
						    lock_in_thread,
						    &lockers[i]));
	}
	nanosleep(&second, NULL);
	EXPECT_TRUE(UNTIL(least_locks() >= 10 || rt_cpu_ns() >= ENOUGH_CPU_NS));
	EXPECT_LE(10, least_locks());
	is_over = 1;
	for (i = 0; i < NR_LOCKERS; i++) {
		if (i % 3)
			join(t[i]);
		else
			pthread_join(thread[i], NULL);
		if (lockers[i].longest_ns > longest_ns)
			longest_ns = lockers[i].longest_ns;
	}
	TH_LOG("least %ld longest wait %llu us", least_locks(),
	       (unsigned long long)longest_ns / 1000);
	check_free();
}

TEST_REAL(writer_has_its_turns_among_readers,
	  "seconds of processor time are millions of points")
TEST_TIMED(writer_has_its_turns_among_readers, "processor time")
TEST_F(overtake, writer_has_its_turns_among_readers)
{
	expect_turns(1);
}

TEST_REAL(readers_have_their_turns_among_writers,
	  "seconds of processor time are millions of points")
TEST_TIMED(readers_have_their_turns_among_writers, "processor time")
TEST_F(overtake, readers_have_their_turns_among_writers)
{
	expect_turns(NR_LOCKERS - 2);
}

TEST_REAL(readers_and_writers_have_their_turns,
	  "seconds of processor time are millions of points")
TEST_TIMED(readers_and_writers_have_their_turns, "processor time")
TEST_F(overtake, readers_and_writers_have_their_turns)
{
	expect_turns(NR_LOCKERS / 2);
}

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

	(void)arg;
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

	(void)arg;
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

	(void)arg;
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

static void lock_with_deadlines(void *arg)
{
	bool writes = arg;
	int ret;

	while (!is_over) {
		ret = lock_until_as(writes, in_ms(2));
		if (!ret)
			unlock_as(writes);
		else
			EXPECT_EQ(-ETIMEDOUT, ret);
	}
}

/* Deadlines pass as waiters lose their patience, are woken and handed over. */
TEST_F(overtake, deadlines_among_overtaken_waiters_leave_others_waiting)
{
	static struct mixed m[2];
	static struct locker other[2] = { { .writes = true } };
	pl_task_t t[2];
	int i, k, nr = scaled(300);

	for (i = 0; i < 2; i++) {
		mixed_start(&m[i], 4, 2, lock_with_deadlines,
			    i ? &lock : NULL);
		t[i] = spawn(lock_in_turns, &other[i]);
	}
	for (i = 0; i < nr; i++)
		for (k = 0; k < 2; k++) {
			lock_as(k);
			spin_ns(20 * NSEC_PER_USEC);
			unlock_as(k);
		}
	is_over = 1;
	for (i = 0; i < 2; i++) {
		mixed_join(&m[i]);
		join(t[i]);
	}
	check_free();
}

TEST_HARNESS_MAIN
