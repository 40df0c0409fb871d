/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lock for one writer or many readers: which of them get in together, and
 * in which order; lib_race.c has their races.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "rwlock.h"

RT_FIXTURE(rwlock)

static atomic_int nr_back;

/* ---- which of them get in together ---- */

static void try_it_free(void *arg)
{
	EXPECT_EQ(0, pl_rwlock_tryrdlock(&lock));
	EXPECT_EQ(0, pl_rwlock_tryrdlock(&lock));
	EXPECT_EQ(0, pl_rwlock_rdlock_until(&lock, 0));
	EXPECT_EQ(-EBUSY, pl_rwlock_trywrlock(&lock));
	pl_rwlock_rdunlock(&lock);
	pl_rwlock_rdunlock(&lock);
	EXPECT_EQ(-EBUSY, pl_rwlock_trywrlock(&lock));
	pl_rwlock_rdunlock(&lock);
	EXPECT_EQ(0, pl_rwlock_trywrlock(&lock));
	EXPECT_EQ(-EBUSY, pl_rwlock_trywrlock(&lock));
	EXPECT_EQ(-EBUSY, pl_rwlock_tryrdlock(&lock));
	pl_rwlock_wrunlock(&lock);
	EXPECT_EQ(0, pl_rwlock_wrlock_until(&lock, 0));
	pl_rwlock_wrunlock(&lock);
	EXPECT_EQ(0, pl_rwlock_wrlock_until(&lock, PL_FOREVER));
	pl_rwlock_wrunlock(&lock);
	pl_rwlock_wrlock(&lock);
	pl_rwlock_wrunlock(&lock);
	pl_rwlock_rdlock(&lock);
	pl_rwlock_rdunlock(&lock);
}

TEST_F(rwlock, zero_filled_and_unlocked_locks_are_free)
{
	struct pl_rwlock init = PL_RWLOCK_INIT;

	EXPECT_EQ(0, memcmp(&init, &lock, sizeof(lock)));
	try_it_free(NULL);
	run_in_task(try_it_free, NULL);
	run_as(PL_STACK_WORKER, try_it_free, NULL);
	check_free();
}

static void write_past_deadline(void *arg)
{
	uint64_t deadline = in_ms(2);

	EXPECT_EQ(-EBUSY, pl_rwlock_trywrlock(&lock));
	EXPECT_EQ(-ETIMEDOUT, pl_rwlock_wrlock_until(&lock, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_rwlock_wrlock_until(&lock, deadline));
	EXPECT_LE(deadline, pl_now());
}

static void read_past_deadline(void *arg)
{
	uint64_t deadline = in_ms(2);

	EXPECT_EQ(-EBUSY, pl_rwlock_tryrdlock(&lock));
	EXPECT_EQ(-ETIMEDOUT, pl_rwlock_rdlock_until(&lock, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_rwlock_rdlock_until(&lock, deadline));
	EXPECT_LE(deadline, pl_now());
}

TEST_F(rwlock, writer_keeps_all_others_out)
{
	pl_rwlock_wrlock(&lock);
	mixed_run(10, 2, read_past_deadline, NULL);
	mixed_run(10, 2, write_past_deadline, NULL);
	run_as(PL_STACK_WORKER, read_past_deadline, NULL);
	run_as(PL_STACK_WORKER, write_past_deadline, NULL);
	pl_rwlock_wrunlock(&lock);
	check_free();
}

TEST_F(rwlock, reader_keeps_writers_out)
{
	pl_rwlock_rdlock(&lock);
	mixed_run(10, 2, write_past_deadline, NULL);
	run_as(PL_STACK_WORKER, write_past_deadline, NULL);
	/* None of them is in the way of readers any more. */
	EXPECT_EQ(0, pl_rwlock_tryrdlock(&lock));
	pl_rwlock_rdunlock(&lock);
	pl_rwlock_rdunlock(&lock);
	check_free();
}

static void look_often(void *arg)
{
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++)
		EXPECT_EQ(-ETIMEDOUT, pl_rwlock_wrlock_until(&lock, i % 2));
	atomic_fetch_add(&nr_back, 1);
}

/* A deadline that has passed is a look, and keeps no reader out. */
TEST_F(rwlock, trywrlock_delays_no_reader)
{
	static struct mixed m;
	int nr = scaled(20000);

	pl_rwlock_rdlock(&lock);
	mixed_start(&m, 1, 1, look_often, &nr);
	while (nr_back < 2) {
		EXPECT_EQ(0, pl_rwlock_tryrdlock(&lock));
		pl_rwlock_rdunlock(&lock);
	}
	mixed_join(&m);
	EXPECT_EQ(1, lock.word.value);
	pl_rwlock_rdunlock(&lock);
}

/* ---- in which order ---- */

static char journal[128];	/* R and W as they come in, r and w out */
static int journal_len;
static struct pl_mutex journal_lock;

static void note(char what)
{
	pl_mutex_lock(&journal_lock);
	journal[journal_len++] = what;
	pl_mutex_unlock(&journal_lock);
}

static bool has_noted(const char *what)
{
	bool same;

	pl_mutex_lock(&journal_lock);
	same = !strcmp(journal, what);
	pl_mutex_unlock(&journal_lock);
	return same;
}

static void read_and_note(void *arg)
{
	pl_rwlock_rdlock(&lock);
	note('R');
	pl_yield();
	pl_rwlock_rdunlock(&lock);
}

/* As number @arg: writers come in in order. */
static void write_and_note(void *arg)
{
	pl_rwlock_wrlock(&lock);
	note((char)('0' + (uintptr_t)arg));
	pl_yield();
	note('w');
	pl_rwlock_wrunlock(&lock);
}

static pl_task_t queued[32];
static int nr_queued;

/* Every fifth on its worker's own stack. */
static void queue_up(void (*fn)(void *arg), uintptr_t nth)
{
	int nr = nr_rw_queued(&lock);

	queued[nr_queued] = spawn_as(nr_queued % 5 == 4 ? PL_STACK_WORKER :
				     PL_STACK_NORMAL, fn, (void *)nth);
	nr_queued++;
	ASSERT_TRUE(UNTIL(nr_rw_queued(&lock) == nr + 1));
}

static void join_queued(void)
{
	while (nr_queued)
		join(queued[--nr_queued]);
	check_free();
}

TEST_F(rwlock, new_readers_wait_for_a_waiting_writer)
{
	pl_rwlock_rdlock(&lock);
	queue_up(write_and_note, 1);
	EXPECT_EQ(-EBUSY, pl_rwlock_tryrdlock(&lock));
	EXPECT_EQ(-ETIMEDOUT, pl_rwlock_rdlock_until(&lock, in_ms(1)));
	queue_up(read_and_note, 0);
	queue_up(read_and_note, 0);
	EXPECT_TRUE(has_noted(""));
	pl_rwlock_rdunlock(&lock);
	join_queued();
	EXPECT_STREQ("1wRR", journal);
}

TEST_F(rwlock, waiting_readers_enter_after_one_writer)
{
	int i;

	pl_rwlock_wrlock(&lock);
	queue_up(write_and_note, 1);
	queue_up(read_and_note, 0);
	queue_up(write_and_note, 2);
	queue_up(write_and_note, 3);
	for (i = 0; i < 5; i++)
		queue_up(read_and_note, 0);
	pl_rwlock_wrunlock(&lock);
	join_queued();
	/* All of them at once, then the writers as they came. */
	EXPECT_STREQ("RRRRRR1w2w3w", journal);
}

TEST_F(rwlock, writers_enter_in_order)
{
	uintptr_t i;

	pl_rwlock_rdlock(&lock);
	for (i = 0; i < 10; i++)
		queue_up(write_and_note, i);
	EXPECT_TRUE(has_noted(""));
	pl_rwlock_rdunlock(&lock);
	join_queued();
	EXPECT_STREQ("0w1w2w3w4w5w6w7w8w9w", journal);
}

static atomic_int nr_streaming, may_stop;

/* Never without a reader: each holds it until the next one has come. */
static void read_in_a_stream(void *arg)
{
	int turn;

	while (!may_stop) {
		pl_rwlock_rdlock(&lock);
		turn = atomic_fetch_add(&nr_streaming, 1);
		UNTIL(nr_streaming != turn + 1 || may_stop ||
		      lock.word.value >> 30);
		pl_rwlock_rdunlock(&lock);
		/* With one worker the woken waiter needs it. */
		pl_yield();
	}
}

static void write_in_a_stream(void *arg)
{
	while (!may_stop) {
		pl_rwlock_wrlock(&lock);
		pl_rwlock_wrunlock(&lock);
		/* With one worker the woken waiter needs it. */
		pl_yield();
	}
}

static void write_often(void *arg)
{
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++) {
		pl_rwlock_wrlock(&lock);
		atomic_fetch_add(&nr_back, 1);
		pl_rwlock_wrunlock(&lock);
	}
}

static void read_often(void *arg)
{
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++) {
		pl_rwlock_rdlock(&lock);
		atomic_fetch_add(&nr_back, 1);
		pl_rwlock_rdunlock(&lock);
	}
}

static void expect_admitted(void (*stream)(void *arg), void (*often)(void *arg))
{
	static struct mixed m;
	int nr = scaled(100);

	mixed_start(&m, 4, 2, stream, NULL);
	mixed_run(3, 1, often, &nr);
	EXPECT_EQ(4 * nr, nr_back);
	may_stop = 1;
	mixed_join(&m);
	check_free();
}

TEST_F(rwlock, endless_readers_admit_writers)
{
	expect_admitted(read_in_a_stream, write_often);
}

TEST_F(rwlock, endless_writers_admit_readers)
{
	expect_admitted(write_in_a_stream, read_often);
}

/* ---- giving up ---- */

static void write_until_ended(void *arg)
{
	EXPECT_EQ(*(int *)arg, pl_rwlock_wrlock_until(&lock, PL_FOREVER));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(rwlock, interrupted_writer_admits_waiting_readers)
{
	int i, ret[2] = { -EINTR, -ECANCELED };
	uint32_t cls;
	pl_task_t t;

	for (cls = 0; cls <= PL_STACK_WORKER; cls++)
		for (i = 0; i < 2; i++) {
			memset(journal, 0, sizeof(journal));
			journal_len = 0;
			pl_rwlock_rdlock(&lock);
			t = spawn_as(cls, write_until_ended, &ret[i]);
			ASSERT_TRUE(UNTIL(nr_rw_queued(&lock) == 1));
			queue_up(read_and_note, 0);
			queue_up(read_and_note, 0);
			EXPECT_TRUE(has_noted(""));
			EXPECT_EQ(0, i ? pl_cancel(t) : pl_interrupt(t));
			ASSERT_TRUE(UNTIL(has_noted("RR")));
			join(t);
			EXPECT_EQ(0, pl_rwlock_tryrdlock(&lock));
			pl_rwlock_rdunlock(&lock);
			pl_rwlock_rdunlock(&lock);
			join_queued();
		}
}

TEST_F(rwlock, remaining_writer_keeps_readers_waiting)
{
	int interrupted = -EINTR;
	pl_task_t t;

	pl_rwlock_rdlock(&lock);
	t = spawn(write_until_ended, &interrupted);
	ASSERT_TRUE(UNTIL(nr_rw_queued(&lock) == 1));
	queue_up(write_and_note, 1);
	queue_up(read_and_note, 0);
	EXPECT_EQ(0, pl_interrupt(t));
	join(t);
	EXPECT_EQ(2, nr_rw_queued(&lock));
	EXPECT_EQ(-EBUSY, pl_rwlock_tryrdlock(&lock));
	EXPECT_TRUE(has_noted(""));
	pl_rwlock_rdunlock(&lock);
	join_queued();
	EXPECT_STREQ("1wR", journal);
}

static void lock_too_late(void *arg)
{
	/* It was handed the lock before it ran again. */
	if (arg) {
		EXPECT_EQ(0, pl_rwlock_wrlock_until(&lock, PL_FOREVER));
		EXPECT_EQ(-EBUSY, pl_rwlock_tryrdlock(&lock));
		pl_rwlock_wrunlock(&lock);
	} else {
		EXPECT_EQ(0, pl_rwlock_rdlock_until(&lock, PL_FOREVER));
		EXPECT_EQ(-EBUSY, pl_rwlock_trywrlock(&lock));
		pl_rwlock_rdunlock(&lock);
	}
	EXPECT_EQ(-EINTR, pl_sleep_until(0));
}

static void end_it_and_unlock(void *arg)
{
	pl_task_t t;

	pl_rwlock_wrlock(&lock);
	t = spawn(lock_too_late, arg);
	ASSERT_TRUE(UNTIL(nr_rw_queued(&lock) == 1 &&
			  atomic_load(&pl__task_slot(t)->waiter.word)));
	EXPECT_EQ(0, pl_interrupt(t));
	pl_rwlock_wrunlock(&lock);
	join(t);
	check_free();
}

TEST_F(rwlock, interrupt_after_the_hand_over_leaves_the_lock)
{
	start_with(1, 1);
	run_in_task(end_it_and_unlock, &lock);
	run_in_task(end_it_and_unlock, NULL);
}

TEST_HARNESS_MAIN
