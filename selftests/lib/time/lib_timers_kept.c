/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * timers: buckets that their callers keep: what is due there is called in
 * order, by the keeper or by the thread, and the thread sleeps meanwhile.
 */
#include "kselftest_harness.h"
#include "timers.h"
#include "time/timer_impl.h"

#define KEPT		3	/* the bucket */
#define OTHER		1	/* the thread looks there first */

/* A timer that notes where it is called. */
struct alarm {
	uint64_t		due_ns;
	struct gate		*gate;		/* where it stays, or NULL */
	_Atomic uint64_t	id;
	_Atomic uint32_t	by_thread, by_keeper;
	_Atomic uint32_t	nth;		/* of all that were called */
	uint32_t		nr_written;	/* plainly, by the function */
};

static _Atomic uint32_t nr_called, nr_early, nr_ends;

static void note_call(struct alarm *a)
{
	a->nth = ++nr_called;
	nr_early += pl__now_ns() < a->due_ns;
	if (a->gate)
		stand_in_gate(a->gate);
	a->nr_written++;
}

static void by_thread(void *arg)
{
	struct alarm *a = arg;

	note_call(a);
	a->by_thread++;
}

static void by_keeper(void *arg)
{
	struct alarm *a = arg;

	note_call(a);
	a->by_keeper++;
}

static void end_batch(void)
{
	nr_ends++;
}

/* A function that only the thread may call. */
static void loud(void *arg)
{
	by_thread(arg);
}

static bool list_kept(struct pl__timers *t, struct pl__slab_cache *c,
			     uint32_t bucket, struct alarm *a)
{
	struct pl__timer *r = pl__timer_reserve(t, c);

	if (!r)
		abort();
	pl__timers_make_room(t, bucket);
	a->id = pl__timer_set(t, r, bucket, a->due_ns, by_thread, a);
	pl__timer_list_kept(t, c, r);
	return pl__timers_kept_until(t, bucket) != PL_FOREVER;
}

static struct pl__slab_cache cache;

static void allow_keeping(struct pl__timers *t)
{
	pl__timers_batch(t, by_thread, end_batch);
	pl__timers_keep(t, by_keeper);
}

static bool is_kept(struct pl__timers *t)
{
	return pl__timers_kept_until(t, KEPT) != PL_FOREVER;
}

static struct alarm base;

/* The bucket is kept for long; the first that is listed has no room. */
static void begin_keeping(struct pl__timers *t)
{
	allow_keeping(t);
	settled_switches();
	do {
		if (base.id)
			pl__timer_del(t, base.id);
		base.due_ns = pl__now_ns() + FAR;
		list_kept(t, &cache, KEPT, &base);
		settled_switches();
	} while (!is_kept(t));
}

static void keep_in_ns(struct pl__timers *t, struct alarm *a, uint64_t ns)
{
	a->due_ns = pl__now_ns() + ns;
	if (!list_kept(t, &cache, KEPT, a))
		abort();
}

static void sleep_until(uint64_t ns)
{
	while (pl__now_ns() < ns)
		pl__sleep_ns(MSEC / 10);
}

static void until_called(struct alarm *a)
{
	while (!a->by_thread && !a->by_keeper)
		pl__sleep_ns(MSEC / 10);
}

/* ---- by the keeper ---- */

TEST_F(timers, keeper_calls_in_order_and_the_thread_sleeps)
{
	enum { NR = 40 };
	static struct alarm a[NR];
	uint64_t before = 0, start;
	uint32_t i, k, nr = 0;
	long switches;

	begin_keeping(self->t);
	switches = settled_switches();
	start = pl__now_ns() + MSEC;
	for (i = 0; i < NR; i++) {
		/* Two are due at each time. */
		a[i].due_ns = start + (i * 7 % NR / 2) * MSEC / 4;
		EXPECT_TRUE(list_kept(self->t, &cache, KEPT, &a[i]));
	}
	EXPECT_EQ(start, pl__timers_kept_until(self->t, KEPT));
	EXPECT_EQ(0, pl__timers_fire_kept(self->t, OTHER, &cache));
	while (nr < NR)
		nr += pl__timers_fire_kept(self->t, KEPT, &cache);
	EXPECT_EQ(NR, nr);
	for (i = 0; i < NR; i++) {
		EXPECT_EQ(1, a[i].by_keeper);
		EXPECT_EQ(0, a[i].by_thread);
		for (k = 0; k < NR; k++)
			if (a[i].due_ns < a[k].due_ns)
				EXPECT_LT(a[i].nth, a[k].nth);
		before += a[i].nth;
	}
	EXPECT_EQ(NR * (NR + 1) / 2, before);
	EXPECT_EQ(0, nr_early);
	EXPECT_EQ(base.due_ns, pl__timers_kept_until(self->t, KEPT));
	EXPECT_EQ(0, self->t->fired);
	EXPECT_EQ(NR, nr_fired(self->t));
	EXPECT_EQ(switches, settled_switches());
}

TEST_F(timers, nothing_is_fired_before_it_is_due)
{
	static struct alarm a;

	begin_keeping(self->t);
	keep_in_ns(self->t, &a, FAR / 2);
	EXPECT_EQ(a.due_ns, pl__timers_kept_until(self->t, KEPT));
	EXPECT_EQ(0, pl__timers_fire_kept(self->t, KEPT, &cache));
	EXPECT_EQ(a.due_ns, pl__timers_kept_until(self->t, KEPT));
	EXPECT_EQ(0, nr_called);
	EXPECT_EQ(PL_FOREVER, pl__timers_kept_until(self->t, OTHER));
}

/* ---- by a thief ---- */

TEST_F(timers, thief_takes_a_batch_of_what_is_due_and_waits_for_no_lock)
{
	enum { NR = 100 };
	struct bucket *b = &self->t->buckets[KEPT];
	static struct alarm a[NR];
	uint64_t now = pl__now_ns();
	uint32_t i, nr = 0, some;

	begin_keeping(self->t);
	for (i = 0; i < NR; i++) {
		a[i].due_ns = now;
		list_kept(self->t, &cache, KEPT, &a[i]);
	}
	EXPECT_EQ(0, pl__timers_take_kept(self->t, KEPT, now - 1, &cache));
	pl__lock(&b->lock);
	EXPECT_EQ(0, pl__timers_take_kept(self->t, KEPT, now, &cache));
	pl__unlock(&b->lock);
	do {
		some = pl__timers_take_kept(self->t, KEPT, now, &cache);
		EXPECT_GT(NR, some);
		nr += some;
	} while (some);
	EXPECT_EQ(NR, nr);
	EXPECT_EQ(NR, nr_called);
	EXPECT_EQ(0, self->t->fired);
	EXPECT_EQ(base.due_ns, pl__timers_kept_until(self->t, KEPT));
}

/* ---- by the thread ---- */

TEST_F(timers, timer_that_is_told_is_called_by_the_thread)
{
	static struct alarm a[2];

	begin_keeping(self->t);
	/* Far apart: each is counted from its own call on. */
	keep_in_ns(self->t, &a[0], 150 * MSEC);
	keep_in_ns(self->t, &a[1], 2 * MSEC);
	pl__timers_tell_kept(self->t, KEPT);
	EXPECT_FALSE(is_kept(self->t));
	until_called(&a[0]);
	EXPECT_EQ(0, pl__timers_fire_kept(self->t, KEPT, &cache));
	EXPECT_EQ(1, a[1].nth);
	EXPECT_EQ(2, a[0].nth);
	EXPECT_EQ(0, a[0].by_keeper + a[1].by_keeper);
	EXPECT_EQ(0, nr_early);
	flush(self->t);
	EXPECT_LT(0, nr_ends);
	/* Nothing to tell. */
	pl__timers_tell_kept(self->t, KEPT);
	pl__timers_tell_kept(self->t, OTHER);
}

static void add_loudly(struct pl__timers *t, struct alarm *a, bool in_two_steps)
{
	struct pl__timer *r;

	if (!in_two_steps) {
		add(t, KEPT, a->due_ns, loud, a);
		return;
	}
	r = pl__timer_reserve(t, NULL);
	pl__timer_arm(t, r, KEPT, a->due_ns, loud, a);
}

TEST_F(timers, loud_timer_in_a_kept_bucket_is_called_by_the_thread)
{
	static struct alarm a[4];
	int i;

	for (i = 0; i < 2; i++) {
		begin_keeping(self->t);
		keep_in_ns(self->t, &a[i], 4 * MSEC);
		a[2 + i].due_ns = a[i].due_ns - 2 * MSEC;
		add_loudly(self->t, &a[2 + i], i);
		EXPECT_EQ(a[i].due_ns, pl__timers_kept_until(self->t, KEPT));
		until_called(&a[2 + i]);
		EXPECT_EQ(1, a[2 + i].by_thread);
		/* It has left the keeper its own. */
		while (!pl__timers_fire_kept(self->t, KEPT, &cache))
			;
		EXPECT_EQ(1, a[i].by_keeper);
		EXPECT_EQ(2 * i + 1, a[2 + i].nth);
		EXPECT_EQ(2 * i + 2, a[i].nth);
	}
	EXPECT_EQ(0, nr_early);
}

/* As many as a crowd of sleepers has, in any order. */
TEST_F(timers, thread_sleeps_while_a_crowd_is_kept)
{
	enum { NR = 4000 };
	static struct alarm a[NR];
	uint64_t rnd = 1;
	uint32_t nr = 0, i;
	long switches;

	begin_keeping(self->t);
	switches = settled_switches();
	for (i = 0; i < NR; i++) {
		a[i].due_ns = pl__now_ns() + next_random(&rnd) % (20 * MSEC);
		EXPECT_TRUE(list_kept(self->t, &cache, KEPT, &a[i]));
		nr += pl__timers_fire_kept(self->t, KEPT, &cache);
	}
	while (nr < NR)
		nr += pl__timers_fire_kept(self->t, KEPT, &cache);
	EXPECT_EQ(NR, nr);
	EXPECT_EQ(NR, nr_called);
	EXPECT_EQ(0, nr_early);
	EXPECT_EQ(0, self->t->fired);
	EXPECT_EQ(switches, settled_switches());
}

TEST_F_TIMEOUT(timers, more_than_a_crowd_is_left_to_the_thread, 120)
{
	enum { NR = PL__TIMERS_KEPT_MAX + 100 };
	struct bucket *b = &self->t->buckets[KEPT];
	static struct alarm a[NR];
	uint64_t due;
	uint32_t i;

	begin_keeping(self->t);
	due = pl__now_ns() + 200 * MSEC;
	for (i = 0; i < NR; i++) {
		a[i].due_ns = due;
		list_kept(self->t, &cache, KEPT, &a[i]);
	}
	EXPECT_EQ(PL__TIMERS_KEPT_MAX, b->heap.nr);
	/* With the base there are 101 too many. */
	while (nr_called < 101)
		pl__sleep_ns(MSEC);
	EXPECT_EQ(101, self->t->fired);
	EXPECT_EQ(due, pl__timers_kept_until(self->t, KEPT));
	/* The heap is full: the thread takes it all. */
	pl__timers_tell_kept(self->t, KEPT);
	for (i = 0; i < NR; i++)
		until_called(&a[i]);
	EXPECT_EQ(0, pl__timers_fire_kept(self->t, KEPT, &cache));
	EXPECT_EQ(NR, self->t->fired);
	EXPECT_EQ(0, nr_early);
	/* There is room again. */
	keep_in_ns(self->t, &a[0], FAR);
	EXPECT_EQ(1, b->heap.nr);
}

static struct gate gate;

TEST_F(timers, thread_that_wakes_before_leaves_what_is_kept)
{
	static struct alarm kept, other;

	begin_keeping(self->t);
	keep_in_ns(self->t, &kept, 5 * MSEC);
	other.due_ns = kept.due_ns - 4 * MSEC;
	add(self->t, OTHER, other.due_ns, loud, &other);
	until_called(&other);
	sleep_until(kept.due_ns + 5 * MSEC);
	EXPECT_EQ(0, kept.by_thread);
	EXPECT_EQ(kept.due_ns, pl__timers_kept_until(self->t, KEPT));
	EXPECT_EQ(1, pl__timers_fire_kept(self->t, KEPT, &cache));
	EXPECT_EQ(1, kept.by_keeper);
	EXPECT_EQ(0, nr_early);
}

/* Nor does it go on without the keeper once that has been told of. */
TEST_F(timers, keeper_keeps_again_beside_what_was_told)
{
	static struct alarm told, kept;

	begin_keeping(self->t);
	keep_in_ns(self->t, &told, FAR / 2);
	pl__timers_tell_kept(self->t, KEPT);
	/* It has taken the heap. */
	settled_switches();
	keep_in_ns(self->t, &kept, MSEC);
	EXPECT_EQ(kept.due_ns, pl__timers_kept_until(self->t, KEPT));
	while (!pl__timers_fire_kept(self->t, KEPT, &cache))
		;
	EXPECT_EQ(1, kept.by_keeper);
	EXPECT_EQ(0, told.by_thread + told.by_keeper);
}

/* ---- deleted ones ---- */

TEST_F(timers, deleted_kept_timers_are_not_called)
{
	static struct alarm a[8];
	size_t i;

	begin_keeping(self->t);
	for (i = 0; i < ARRAY_SIZE(a); i++)
		keep_in_ns(self->t, &a[i], MSEC + i);
	for (i = 0; i < ARRAY_SIZE(a); i += 2)
		EXPECT_EQ(0, pl__timer_del(self->t, a[i].id));
	sleep_until(a[7].due_ns);
	EXPECT_EQ(4, pl__timers_fire_kept(self->t, KEPT, &cache));
	for (i = 0; i < ARRAY_SIZE(a); i++) {
		EXPECT_EQ(i % 2, a[i].by_keeper);
		EXPECT_EQ(-ENOENT, pl__timer_del(self->t, a[i].id));
	}
	EXPECT_EQ(1, nr_alive(self->t));
	EXPECT_EQ(base.due_ns, pl__timers_kept_until(self->t, KEPT));
}

TEST_F(timers, bucket_of_dead_timers_is_kept_no_more)
{
	struct bucket *b = &self->t->buckets[KEPT];
	static struct alarm a[5];
	size_t i;

	begin_keeping(self->t);
	for (i = 0; i < ARRAY_SIZE(a); i++) {
		keep_in_ns(self->t, &a[i], MSEC);
		EXPECT_EQ(0, pl__timer_del(self->t, a[i].id));
	}
	EXPECT_EQ(0, pl__timer_del(self->t, base.id));
	EXPECT_EQ(0, nr_alive(self->t));
	EXPECT_LE(5, b->heap.nr);
	sleep_until(a[0].due_ns);
	EXPECT_EQ(0, pl__timers_fire_kept(self->t, KEPT, &cache));
	EXPECT_FALSE(is_kept(self->t));
	EXPECT_EQ(0, b->heap.nr);
	EXPECT_EQ(NULL, b->head);
	EXPECT_EQ(b->died_listed, b->swept);
	EXPECT_EQ(0, nr_called);
	EXPECT_EQ(0, self->t->fired);
}

TEST_F_TIMEOUT(timers, kept_timers_take_the_memory_of_few, 120)
{
	uint32_t i, max = 0, nr = 0;
	static struct alarm far, now;

	begin_keeping(self->t);
	for (i = 0; i < ROUNDS(200000); i++) {
		far.due_ns = pl__now_ns() + FAR / 2;
		list_kept(self->t, &cache, KEPT, &far);
		if ((uint32_t)far.id > max)
			max = (uint32_t)far.id;
		EXPECT_EQ(0, pl__timer_del(self->t, far.id));
		if (i % 64)
			continue;
		list_kept(self->t, &cache, KEPT, &now);
		nr++;
		while (now.by_thread + now.by_keeper < nr)
			pl__timers_fire_kept(self->t, KEPT, &cache);
	}
	EXPECT_GT(1000, max);
}

static void fire_one(unsigned int nth, void *arg)
{
	(void)nth;
	pl__timers_fire_kept(arg, KEPT, &cache);
}

TEST_F(timers, delete_while_the_keeper_calls_is_ebusy)
{
	static struct alarm a = { .gate = &gate };
	struct team team;

	gate_init(&gate);
	begin_keeping(self->t);
	keep_in_ns(self->t, &a, 0);
	team_start(&team, 1, fire_one, self->t);
	sem_wait(&gate.entered);
	EXPECT_EQ(-EBUSY, pl__timer_del(self->t, a.id));
	EXPECT_EQ(-EBUSY, pl__timer_del(self->t, a.id));
	/* Nor does the bucket need the keeper. */
	EXPECT_EQ(base.due_ns, pl__timers_kept_until(self->t, KEPT));
	pl__timers_tell_kept(self->t, KEPT);
	sem_post(&gate.leave);
	while (pl__timer_del(self->t, a.id) == -EBUSY)
		sched_yield();
	EXPECT_EQ(-ENOENT, pl__timer_del(self->t, a.id));
	EXPECT_EQ(1, a.nr_written);
	team_join(&team);
	EXPECT_EQ(1, nr_called);
}

TEST_HARNESS_MAIN
