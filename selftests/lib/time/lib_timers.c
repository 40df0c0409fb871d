// SPDX-License-Identifier: GPL-2.0-only
/*
 * timers: the timer thread below pl_timer_*(): in order, never early, once,
 * and asleep when there is nothing to do.
 */
#include "kselftest_harness.h"
#include "timers.h"
#include "time/timer_impl.h"

#include <sys/mman.h>

TEST(bad_numbers_of_buckets_are_refused)
{
	struct pl__timers *t;

	EXPECT_EQ(-EINVAL, pl__timers_start(&t, 0, NULL, NULL));
	EXPECT_EQ(-EINVAL, pl__timers_start(&t, 1025, NULL, NULL));
	ASSERT_EQ(0, pl__timers_start(&t, 1, NULL, NULL));
	pl__timers_stop(t);
	ASSERT_EQ(0, pl__timers_start(&t, 1024, NULL, NULL));
	pl__timers_stop(t);
}

/* How many were called since the batch ended. */
static _Atomic uint32_t nr_open, most_open, nr_ended;

static void be_in_batch(void *arg)
{
	nr_open++;
	if (nr_open > most_open)
		most_open = nr_open;
}

/* A thread that sees that they have ended finds none open. */
static void end_batch(void)
{
	nr_ended += atomic_exchange(&nr_open, 0);
}

struct other {
	uint32_t	nr_open;
	uint32_t	nr_ended;
	sem_t		done;
};

static void see_batch(void *arg)
{
	struct other *o = arg;

	o->nr_open = nr_open;
	o->nr_ended = nr_ended;
	sem_post(&o->done);
}

TEST_TIMED(batch_is_bounded_and_ends_before_the_next_call,
	   "an event must come before a deadline")
TEST_F(timers, batch_is_bounded_and_ends_before_the_next_call)
{
	struct other o;
	struct gate g;
	uint64_t ns;
	uint32_t i;

	sem_init(&o.done, 0, 0);
	gate_init(&g);
	pl__timers_batch(self->t, be_in_batch, end_batch);
	add(self->t, 0, 0, stand_in_gate, &g);
	sem_wait(&g.entered);
	/* All are added in time, and due together: they are called in order. */
	ns = pl__now_ns() + 100 * MSEC;
	for (i = 0; i < 120; i++)
		add(self->t, i, ns + i, be_in_batch, NULL);
	add(self->t, 0, ns + 69, see_batch, &o);
	while (pl__now_ns() <= ns + 120)
		pl__sleep_ns(MSEC);
	sem_post(&g.leave);
	sem_wait(&o.done);
	EXPECT_EQ(0, o.nr_open);
	EXPECT_LE(69, o.nr_ended);
	EXPECT_GE(70, o.nr_ended);
	while (nr_ended < 120)
		pl__sleep_ns(MSEC);
	EXPECT_LT(1, most_open);
	EXPECT_GT(40, most_open);
}

/* What is added there is an earlier one for the thread to see to. */
static void be_in_batch_and_add(void *arg)
{
	be_in_batch(NULL);
	add(arg, 0, pl__now_ns() + FAR - MSEC * nr_ended, nothing, NULL);
}

TEST_F(timers, batch_ends_before_the_thread_sleeps)
{
	uint32_t i;

	pl__timers_batch(self->t, be_in_batch_and_add, end_batch);
	for (i = 0; i < 20; i++) {
		add(self->t, 0, 0, be_in_batch_and_add, self->t);
		while (nr_ended == i)
			pl__sleep_ns(MSEC / 10);
	}
	EXPECT_EQ(0, nr_open);
	EXPECT_EQ(20, nr_ended);
}

TEST_F(timers, reservation_may_be_returned)
{
	struct pl__slab_cache cache = { 0 };
	struct pl__timer *r, *again;

	r = pl__timer_reserve(self->t, &cache);
	ASSERT_NE(NULL, r);
	pl__timer_release(self->t, &cache, r);
	again = pl__timer_reserve(self->t, &cache);
	EXPECT_EQ(r, again);
	/* Neither was ever a timer. */
	EXPECT_EQ(-ENOENT, pl__timer_del(self->t, 1ULL << 32));
	pl__timer_release(self->t, NULL, again);
}

TEST_F_TIMEOUT(timers, reservation_without_memory_fails_and_the_rest_fires, 240)
{
	const uint32_t max = 4 << 20;
	struct pl__slab_cache cache = { 0 };
	_Atomic uint32_t fired = 0;
	struct pl__timer *r;
	struct gate g;
	uint32_t nr;

	if (!limit_memory(8 << 20))
		SKIP(return, "memory cannot be limited here");
	/* Or what is fired meanwhile is memory again. */
	close_gate(self->t, &g);
	for (nr = 0; (r = pl__timer_reserve(self->t, &cache)); nr++) {
		ASSERT_LT(nr, max);
		pl__timer_arm(self->t, r, nr, nr % 2, count, &fired);
	}
	ASSERT_LT(PL__SLAB_BATCH, nr);
	sem_post(&g.leave);
	while (fired != nr)
		pl__sleep_ns(MSEC);
	EXPECT_NE(NULL, pl__timer_reserve(self->t, &cache));
}

TEST_F(timers, counters_of_a_quiet_thread_are_exact)
{
	uint64_t added, fired, deleted, busy;
	pl_timer_t id[5];
	uint32_t alive;
	int i;

	for (i = 0; i < 5; i++)
		id[i] = add(self->t, i, pl__now_ns() + FAR, nothing, NULL);
	EXPECT_EQ(0, pl__timer_del(self->t, id[3]));
	EXPECT_EQ(0, pl__timer_del(self->t, id[4]));
	flush(self->t);
	flush(self->t);
	pl__timers_stat(self->t, &added, &fired, &deleted, &busy, &alive);
	EXPECT_EQ(7, added);
	EXPECT_EQ(2, fired);
	EXPECT_EQ(2, deleted);
	EXPECT_EQ(3, alive);
	EXPECT_LT(0, busy);
	EXPECT_LT(busy, 10 * NSEC_PER_SEC);
}

struct shot {
	uint64_t	deadline;
	uint64_t	at;
	uint32_t	nr;		/* times fired */
	struct volley	*volley;
};

struct volley {
	struct shot	*shots;
	struct shot	**order;	/* as they were fired */
	_Atomic uint32_t fired;
};

static void shoot(void *arg)
{
	struct shot *s = arg;
	struct volley *v = s->volley;

	s->at = pl__now_ns();
	s->nr++;
	v->order[v->fired] = s;
	v->fired++;
}

static void check_volley(struct __test_metadata *_metadata, struct volley *v,
			 uint32_t nr)
{
	uint32_t i, early = 0, disordered = 0, once = 0;

	for (i = 0; i < nr; i++) {
		once += v->shots[i].nr == 1;
		early += v->shots[i].at < v->shots[i].deadline;
		disordered += i && v->order[i]->deadline <
				   v->order[i - 1]->deadline;
	}
	EXPECT_EQ(nr, once);
	EXPECT_EQ(0, early);
	EXPECT_EQ(0, disordered);
	EXPECT_EQ(nr, v->fired);
}

/* False: @in_ns was too short to add all before the first is due. */
static bool fire_volley_in(struct __test_metadata *_metadata,
			   struct pl__timers *t, uint32_t nr,
			   uint32_t nr_buckets, uint64_t in_ns,
			   uint64_t spread_ns)
{
	struct pl__slab_cache cache = { 0 };
	uint64_t rnd = 11, base = pl__now_ns() + in_ns;
	struct volley v = { .fired = 0 };
	struct pl__timer *r;
	uint32_t i;
	bool late;

	v.shots = calloc(nr, sizeof(*v.shots));
	v.order = calloc(nr, sizeof(*v.order));
	ASSERT_TRUE(v.shots && v.order);
	for (i = 0; i < nr; i++) {
		v.shots[i].deadline = base + next_random(&rnd) % spread_ns;
		v.shots[i].volley = &v;
		r = pl__timer_reserve(t, &cache);
		ASSERT_NE(NULL, r);
		pl__timer_arm(t, r, i % nr_buckets, v.shots[i].deadline, shoot,
			      &v.shots[i]);
	}
	late = pl__now_ns() >= base;
	while (v.fired < nr)
		pl__sleep_ns(MSEC);
	if (!late)
		check_volley(_metadata, &v, nr);
	free(v.shots);
	free(v.order);
	return !late;
}

static void fire_volley(struct __test_metadata *_metadata, struct pl__timers *t,
			uint32_t nr, uint32_t nr_buckets, uint64_t in_ns,
			uint64_t spread_ns)
{
	while (!fire_volley_in(_metadata, t, nr, nr_buckets, in_ns, spread_ns))
		in_ns *= 2;
}

TEST(timers_of_a_thousand_buckets_fire_in_order_and_once)
{
	struct pl__timers *t;

	ASSERT_EQ(0, pl__timers_start(&t, 1024, NULL, NULL));
	fire_volley(_metadata, t, 3000, 1024, 200 * MSEC, 30 * MSEC);
	pl__timers_stop(t);
}

/* Resident pages of the buckets. */
static size_t nr_touched(struct pl__timers *t)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE), nr = 0, i;
	unsigned char in[1024];
	size_t pages = (t->nr_buckets * sizeof(*t->buckets) + size - 1) / size;

	if (pages > sizeof(in) || mincore(t->buckets, pages * size, in))
		abort();
	for (i = 0; i < pages; i++)
		nr += in[i] & 1;
	return nr;
}

TEST(unused_buckets_take_no_memory)
{
	struct pl__timers *t;

	ASSERT_EQ(0, pl__timers_start(&t, 1024, NULL, NULL));
	EXPECT_EQ(0, nr_touched(t));
	add(t, 1, pl__now_ns() + FAR, nothing, NULL);
	add(t, 1023, pl__now_ns() + FAR, nothing, NULL);
	EXPECT_LE(nr_touched(t), 2);
	pl__timers_stop(t);
}

TEST_F_TIMEOUT(timers, million_timers_at_once_fire, 240)
{
	fire_volley(_metadata, self->t, ROUNDS(1000000), NR_BUCKETS,
		    5 * NSEC_PER_SEC, 300 * MSEC);
}

struct slept {
	struct pl__timers	*t;
	uint32_t		nr;
	uint32_t		max_ns;		/* how far away they are */
};

static void one_after_the_other(unsigned int nth, void *arg)
{
	struct slept *s = arg;
	uint64_t rnd = nth + 1;
	sem_t done;
	uint32_t i;

	sem_init(&done, 0, 0);
	for (i = 0; i < s->nr; i++) {
		add(s->t, nth, pl__now_ns() + next_random(&rnd) % s->max_ns,
		    post, &done);
		sem_wait(&done);
	}
}

/*
 * Each adder waits for its timer before it adds the next: none can be missed.
 * Two timers with past deadlines meet a thread that is about to sleep for good.
 */
TEST_F_TIMEOUT(timers, thread_sleeps_through_no_deadline, 240)
{
	struct slept s = { .t = self->t };

	s.nr = ROUNDS(10000);
	s.max_ns = 60000;
	team_run(1, one_after_the_other, &s);
	team_run(4, one_after_the_other, &s);
	EXPECT_EQ(5ULL * s.nr, nr_fired(self->t));
	s.nr = 20000;
	s.max_ns = 1;
	team_run(2, one_after_the_other, &s);
}

TEST_TIMED(later_deadline_leaves_the_thread_asleep, "switches of a thread")
TEST_F(timers, later_deadline_leaves_the_thread_asleep)
{
	long before;
	int i;

	for (i = 0; i < NR_BUCKETS; i++)
		add(self->t, i, pl__now_ns() + FAR, nothing, NULL);
	before = settled_switches();
	if (before < 0)
		SKIP(return, "no count of context switches");
	for (i = 0; i < 1000; i++) {
		add(self->t, i, pl__now_ns() + 2 * FAR, nothing, NULL);
		EXPECT_TRUE(is_asleep());
	}
	EXPECT_EQ(before, nr_switches());
}

TEST_TIMED(thread_without_timers_sleeps_for_good, "switches of a thread")
TEST_F(timers, thread_without_timers_sleeps_for_good)
{
	long before;

	flush(self->t);
	add(self->t, 3, pl__now_ns() + MSEC, nothing, NULL);
	while (nr_fired(self->t) < 2)
		pl__sleep_ns(MSEC);
	before = settled_switches();
	if (before < 0)
		SKIP(return, "no count of context switches");
	if (sleeps_untimed() >= 0)
		EXPECT_EQ(1, sleeps_untimed());
	pl__sleep_ns(300 * MSEC);
	EXPECT_EQ(before, nr_switches());
	EXPECT_TRUE(is_asleep());
}

/*
 * Else each would cost a system call and two context switches.  The gate
 * makes sure that the thread finds the first one dead.
 */
TEST_TIMED(add_and_delete_leave_the_thread_asleep, "switches of a thread")
TEST_F(timers, add_and_delete_leave_the_thread_asleep)
{
	uint64_t deadline = pl__now_ns() + FAR;
	long before;
	struct gate g;
	int i, ret;

	close_gate(self->t, &g);
	ret = pl__timer_del(self->t, add(self->t, 1, deadline, nothing, NULL));
	sem_post(&g.leave);
	flush(self->t);
	before = settled_switches();
	if (before < 0)
		SKIP(return, "no count of context switches");
	for (i = 0; i < 10000; i++)
		ret |= pl__timer_del(self->t,
				     add(self->t, i, deadline + i, nothing,
					 NULL));
	EXPECT_EQ(0, ret);
	until_asleep();
	EXPECT_EQ(before, nr_switches());
}

TEST_HARNESS_MAIN
