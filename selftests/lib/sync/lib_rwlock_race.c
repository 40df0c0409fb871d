/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lock for one writer or many readers, with all coming, leaving and giving
 * up at once.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "race_rounds.h"
#include "uaf_page.h"
#include "rwlock.h"

RT_FIXTURE(race)

static atomic_int readers_in, writers_in, nr_back;
static long counter;		/* written by writers, plain */

static void be_in_as_reader(uint64_t *seed)
{
	long was = counter;

	atomic_fetch_add(&readers_in, 1);
	EXPECT_EQ(0, writers_in);
	if (next_random(seed) % 8 == 0)
		pl_yield();
	EXPECT_EQ(was, counter);
	EXPECT_EQ(0, writers_in);
	atomic_fetch_sub(&readers_in, 1);
}

static void be_in_as_writer(uint64_t *seed)
{
	EXPECT_EQ(0, atomic_fetch_add(&writers_in, 1));
	EXPECT_EQ(0, readers_in);
	counter++;
	if (next_random(seed) % 8 == 0)
		pl_yield();
	EXPECT_EQ(0, readers_in);
	atomic_fetch_sub(&writers_in, 1);
}

/* Every fourth time it writes, the first time too. */
static long nr_writes(long nr_users, int nr)
{
	return nr_users * ((nr + 3) / 4);
}

static void come_and_go(void *arg)
{
	uint64_t seed = (uintptr_t)&arg | 1;
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++) {
		if (i % 4) {
			pl_rwlock_rdlock(&lock);
			be_in_as_reader(&seed);
			pl_rwlock_rdunlock(&lock);
		} else {
			pl_rwlock_wrlock(&lock);
			be_in_as_writer(&seed);
			pl_rwlock_wrunlock(&lock);
		}
		/* Waiters get their chance, too, since they are overtaken. */
		if (next_random(&seed) % 8 == 0)
			pl_yield();
	}
}

TEST_F(race, writer_is_alone_among_tasks)
{
	int nr = scaled(1000);

	mixed_run(20, 0, come_and_go, &nr);
	EXPECT_EQ(nr_writes(20, nr), counter);
	check_free();
}

TEST_F(race, writer_is_alone_among_threads)
{
	int nr = scaled(400);

	mixed_run(0, 6, come_and_go, &nr);
	EXPECT_EQ(nr_writes(6, nr), counter);
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
	check_free();
}

TEST_F(race, writer_is_alone_among_tasks_and_threads)
{
	int nr = scaled(400);
	pl_task_t t = spawn_as(PL_STACK_WORKER, come_and_go, &nr);

	mixed_run(12, 4, come_and_go, &nr);
	join(t);
	EXPECT_EQ(nr_writes(17, nr), counter);
	check_free();
}

static void come_by_trylock(void *arg)
{
	uint64_t seed = (uintptr_t)&arg | 1;
	int i, nr = *(int *)arg, ret;

	for (i = 0; i < nr; ) {
		ret = i % 4 ? pl_rwlock_tryrdlock(&lock) :
			      pl_rwlock_trywrlock(&lock);
		if (ret) {
			EXPECT_EQ(-EBUSY, ret);
			breathe();
			continue;
		}
		if (i++ % 4) {
			be_in_as_reader(&seed);
			pl_rwlock_rdunlock(&lock);
		} else {
			be_in_as_writer(&seed);
			pl_rwlock_wrunlock(&lock);
		}
	}
}

TEST_F(race, trywrlock_owner_is_alone)
{
	static struct mixed m;
	int nr = scaled(200);

	mixed_start(&m, 4, 2, come_by_trylock, &nr);
	mixed_run(4, 2, come_and_go, &nr);
	mixed_join(&m);
	EXPECT_EQ(nr_writes(12, nr), counter);
	check_free();
}

/* ---- giving up ---- */

static void come_by_deadline(void *arg)
{
	uint64_t seed = (uintptr_t)&arg | 1, deadline;
	int i, nr = *(int *)arg, ret;
	bool is_writer;

	for (i = 0; i < nr; i++) {
		is_writer = next_random(&seed) % 2;
		deadline = pl_now() + next_random(&seed) % 50000;
		ret = is_writer ? pl_rwlock_wrlock_until(&lock, deadline) :
				  pl_rwlock_rdlock_until(&lock, deadline);
		if (ret) {
			EXPECT_EQ(-ETIMEDOUT, ret);
		} else if (is_writer) {
			be_in_as_writer(&seed);
			atomic_fetch_add(&nr_back, 1);
			if (i % 8 == 0)
				pl_sleep(10000);
			pl_rwlock_wrunlock(&lock);
		} else {
			be_in_as_reader(&seed);
			pl_rwlock_rdunlock(&lock);
		}
	}
}

/* Waiters that give up leave no other waiting for ever. */
TEST_F(race, timed_out_waits_leave_other_waiters)
{
	static struct mixed m;
	int nr = scaled(200);
	pl_task_t t = spawn_as(PL_STACK_WORKER, come_by_deadline, &nr);

	mixed_start(&m, 10, 2, come_by_deadline, &nr);
	mixed_run(10, 2, come_and_go, &nr);
	mixed_join(&m);
	join(t);
	EXPECT_EQ(nr_writes(12, nr) + nr_back, counter);
	check_free();
}

/*
 * The waiter has a striker unlock what it has locked, and comes again.  A
 * reader waits behind it, or before it.
 */
static bool is_write_held, is_writing;

static void wait_in_rounds(void *arg)
{
	struct race *r = arg;
	uint64_t seed = 99991, deadline;
	int i, ret;

	for (i = 1; i <= r->nr_rounds; i++) {
		is_write_held = next_random(&seed) % 2;
		is_writing = !is_write_held || next_random(&seed) % 2;
		if (is_write_held)
			pl_rwlock_wrlock(&lock);
		else
			pl_rwlock_rdlock(&lock);
		race_rounds_begin(r, i);
		deadline = race_deadline(&seed);
		ret = is_writing ? pl_rwlock_wrlock_until(&lock, deadline) :
				   pl_rwlock_rdlock_until(&lock, deadline);
		if (!ret && is_writing)
			pl_rwlock_wrunlock(&lock);
		else if (!ret)
			pl_rwlock_rdunlock(&lock);
		race_rounds_end(r, ret);
		check_free();
	}
}

static void strike_unlock(struct race *r)
{
	(void)r;
	if (is_write_held)
		pl_rwlock_wrunlock(&lock);
	else
		pl_rwlock_rdunlock(&lock);
}

static void strike_read(struct race *r)
{
	(void)r;
	pl_rwlock_rdlock(&lock);
	pl_rwlock_rdunlock(&lock);
}

static void strike_write(struct race *r)
{
	(void)r;
	pl_rwlock_wrlock(&lock);
	pl_rwlock_wrunlock(&lock);
}

TEST_F(race, unlock_deadline_and_interrupt_end_a_tasks_wait_once)
{
	run_race_rounds(PL_STACK_NORMAL, wait_in_rounds,
			(void (*[])(struct race *)){ strike_unlock, NULL });
}

TEST_F(race, unlock_deadline_and_interrupt_end_a_workers_wait_once)
{
	start_with(2, 0);
	run_race_rounds(PL_STACK_WORKER, wait_in_rounds,
			(void (*[])(struct race *)){ strike_unlock, NULL });
}

TEST_F(race, timed_out_waiter_delays_no_reader_or_writer)
{
	run_race_rounds(PL_STACK_NORMAL, wait_in_rounds,
			(void (*[])(struct race *)){ strike_read, strike_unlock,
					      strike_write, NULL });
}

static void wait_to_be_cancelled(void *arg)
{
	int *ret = arg;

	*ret = *ret ? pl_rwlock_wrlock_until(&lock, PL_FOREVER) :
		      pl_rwlock_rdlock_until(&lock, PL_FOREVER);
}

TEST_F(race, cancel_and_unlock_end_a_wait_once)
{
	int i, nr = scaled(2000), ret, nr_cancelled = 0;
	uint64_t seed = 4711;
	bool is_writer;
	pl_task_t t;

	for (i = 0; i < nr; i++) {
		pl_rwlock_wrlock(&lock);
		ret = is_writer = next_random(&seed) % 2;
		t = spawn_as(i % 5 ? PL_STACK_NORMAL : PL_STACK_WORKER,
			     wait_to_be_cancelled, &ret);
		spin_ns(next_random(&seed) % 20000);
		if (i % 2)
			pl_rwlock_wrunlock(&lock);
		pl_cancel(t);
		if (i % 2 == 0)
			pl_rwlock_wrunlock(&lock);
		join(t);
		if (!ret && is_writer)
			pl_rwlock_wrunlock(&lock);
		else if (!ret)
			pl_rwlock_rdunlock(&lock);
		else
			EXPECT_EQ(-ECANCELED, ret);
		nr_cancelled += ret != 0;
		check_free();
	}
	TH_LOG("let in %d cancelled %d", nr - nr_cancelled, nr_cancelled);
}

/* ---- freed by its last holder ---- */

struct shared {
	struct pl_rwlock	lock;
	int			refs;
};

static void drop_reference(void *arg)
{
	struct shared *s = arg;
	bool is_last;

	pl_rwlock_rdlock(&s->lock);
	EXPECT_LE(1, s->refs);
	pl_rwlock_rdunlock(&s->lock);
	/* Comes again if it had to give up. */
	while (pl_rwlock_wrlock_until(&s->lock, pl_now() + 20000))
		pl_yield();
	is_last = !--s->refs;
	pl_rwlock_wrunlock(&s->lock);
	if (is_last) {
		free_for_good(s);
		atomic_fetch_add(&nr_back, 1);
	}
}

TEST_F(race, rwlock_may_be_freed_by_its_last_owner)
{
	int i, k, nr = scaled(1000);
	struct shared *s;

	for (i = 0; i < nr; i++) {
		s = new_zeroed(sizeof(*s));
		s->refs = 5;
		for (k = 0; k < 4; k++)
			spawn_as(k ? PL_STACK_NORMAL : PL_STACK_WORKER,
				 drop_reference, s);
		drop_reference(s);
	}
	EXPECT_TRUE(UNTIL(nr_back == nr));
}

static void write_and_free(void *arg)
{
	struct shared *s = arg;

	pl_rwlock_wrlock(&s->lock);
	pl_rwlock_wrunlock(&s->lock);
	free_for_good(s);
	atomic_fetch_add(&nr_back, 1);
}

static void read_and_free(void *arg)
{
	struct shared *s = arg;

	pl_rwlock_rdlock(&s->lock);
	pl_rwlock_rdunlock(&s->lock);
	free_for_good(s);
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(race, rwlock_may_be_freed_by_its_new_owner)
{
	int i, nr = scaled(1000);
	struct shared *s;

	for (i = 0; i < nr; i++) {
		s = new_zeroed(sizeof(*s));
		if (i % 3)
			pl_rwlock_wrlock(&s->lock);
		else
			pl_rwlock_rdlock(&s->lock);
		spawn_as(i % 7 ? PL_STACK_NORMAL : PL_STACK_WORKER,
			 i % 3 == 1 ? read_and_free : write_and_free, s);
		if (i % 4)
			ASSERT_TRUE(UNTIL(nr_rw_queued(&s->lock) == 1));
		if (i % 3)
			pl_rwlock_wrunlock(&s->lock);
		else
			pl_rwlock_rdunlock(&s->lock);
	}
	EXPECT_TRUE(UNTIL(nr_back == nr));
}

TEST_HARNESS_MAIN
