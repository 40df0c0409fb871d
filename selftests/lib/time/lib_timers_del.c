// SPDX-License-Identifier: GPL-2.0-only
/*
 * timers: what is deleted never fires and takes no memory; what callbacks
 * may do; and how it ends.
 */
#include "kselftest_harness.h"
#include "timers.h"

TEST_F(timers, handle_of_a_reused_slot_is_enoent)
{
	enum { NR = 1000 };
	pl_timer_t stale[NR], id[NR];
	uint32_t i, reused = 0, newest = 0;
	struct gate g;

	/* What the thread has pulled by chance would be used again later. */
	close_gate(self->t, &g);
	for (i = 0; i < NR; i++)
		stale[i] = add(self->t, 0, pl__now_ns() + FAR, nothing, NULL);
	for (i = 0; i < NR; i++)
		EXPECT_EQ(0, pl__timer_del(self->t, stale[i]));
	for (i = 0; i < NR; i++) {
		id[i] = add(self->t, 0, pl__now_ns() + FAR, nothing, NULL);
		reused += (uint32_t)id[i] < NR;
	}
	for (i = 0; i < NR; i++)
		EXPECT_EQ(-ENOENT, pl__timer_del(self->t, stale[i]));
	for (i = 0; i < NR; i++)
		newest += !pl__timer_del(self->t, id[i]);
	EXPECT_LT(NR / 2, reused);
	EXPECT_EQ(NR, newest);
	sem_post(&g.leave);
}

/* What the heap holds can be deleted as well as what it does not. */
TEST_TIMED(deleted_timers_never_fire, "all are added before one is due")
TEST_F(timers, deleted_timers_never_fire)
{
	static _Atomic uint32_t fired, spared;
	uint64_t soon = pl__now_ns() + 300 * MSEC;
	pl_timer_t id[2000];
	struct gate g;
	int i;

	for (i = 0; i < 1000; i++)
		id[i] = add(self->t, i, soon + i, count, &fired);
	flush(self->t);			/* these were pulled */
	close_gate(self->t, &g);
	if (fired) {
		sem_post(&g.leave);
		SKIP(return, "too slow: due before all were added");
	}
	for (; i < 2000; i++)
		id[i] = add(self->t, i, soon + i, count, &fired);
	add(self->t, 0, soon + 5000, count, &spared);
	for (i = 0; i < 2000; i++)
		EXPECT_EQ(0, pl__timer_del(self->t, id[i]));
	sem_post(&g.leave);
	while (!spared)
		pl__sleep_ns(MSEC);
	EXPECT_EQ(0, fired);
}

#define NR_RACED	1000
#define NR_DELETERS	3

struct hunt {
	struct pl__timers	*t;
	_Atomic uint64_t	ids[NR_RACED];
	_Atomic uint32_t	fired[NR_RACED];
	_Atomic uint32_t	deleted[NR_RACED];
	_Atomic uint32_t	odd;		/* answers that cannot be */
};

/* Thread 0 adds; the others follow on its heels. */
static void add_or_delete(unsigned int nth, void *arg)
{
	struct hunt *h = arg;
	uint64_t rnd = nth + 1, id;
	int i, ret;

	for (i = 0; !nth && i < NR_RACED; i++)
		h->ids[i] = add(h->t, i, pl__now_ns() +
				next_random(&rnd) % 20000, count, &h->fired[i]);
	for (i = 0; nth && i < NR_RACED; i++) {
		while (!(id = h->ids[i]))
			sched_yield();
		ret = pl__timer_del(h->t, id);
		if (!ret)
			h->deleted[i]++;
		else
			h->odd += ret != -EBUSY && ret != -ENOENT;
	}
}

TEST_F_TIMEOUT(timers, racing_timer_is_fired_or_deleted_once, 240)
{
	uint64_t added, fired, deleted, busy, sum = 0;
	struct hunt *h = calloc(1, sizeof(*h));
	uint32_t alive, wrong = 0, round, i;

	ASSERT_NE(NULL, h);
	for (round = 0; round < ROUNDS(300); round++) {
		memset(h, 0, sizeof(*h));
		h->t = self->t;
		team_run(1 + NR_DELETERS, add_or_delete, h);
		for (i = 0; i < NR_RACED; i++)
			while (!h->fired[i] && !h->deleted[i])
				sched_yield();
		flush(self->t);
		for (i = 0; i < NR_RACED; i++) {
			wrong += h->fired[i] + h->deleted[i] != 1;
			sum += h->deleted[i];
		}
		wrong += h->odd;
	}
	EXPECT_EQ(0, wrong);
	pl__timers_stat(self->t, &added, &fired, &deleted, &busy, &alive);
	EXPECT_EQ(added, fired + deleted);
	EXPECT_EQ(sum, deleted);
	EXPECT_EQ(0, alive);
	free(h);
}

/* A deleter that is told that the callback ran sees its effects. */
static void write_plain(void *arg)
{
	*(uint64_t *)arg = 42;
}

TEST_F(timers, enoent_sees_the_writes_of_the_callback)
{
	uint64_t value, wrong = 0;
	pl_timer_t id;
	int i, ret;

	for (i = 0; i < ROUNDS(20000); i++) {
		value = 0;
		id = add(self->t, 0, 0, write_plain, &value);
		do {
			ret = pl__timer_del(self->t, id);
		} while (ret == -EBUSY);
		wrong += value != (ret ? 42 : 0);
	}
	EXPECT_EQ(0, wrong);
}

struct busybody {
	struct pl__timers	*t;
	sem_t			done;
	_Atomic uint64_t	self;		/* handle */
	pl_timer_t		victim;
	int			ret_self;
	int			ret_victim;
	char			order[8];
	int			nr_order;
	uint64_t		due_ns;		/* of those in order */
	uint64_t		end_ns;
};

static void delete_self_and_other(void *arg)
{
	struct busybody *b = arg;

	while (!b->self)
		sched_yield();
	b->ret_self = pl__timer_del(b->t, b->self);
	b->ret_victim = pl__timer_del(b->t, b->victim);
	sem_post(&b->done);
}

TEST_F(timers, callback_deletes_others_and_itself_is_ebusy)
{
	_Atomic uint32_t fired = 0;
	struct busybody b = { .t = self->t };

	sem_init(&b.done, 0, 0);
	b.victim = add(self->t, 1, pl__now_ns() + FAR, count, &fired);
	b.self = add(self->t, 0, pl__now_ns(), delete_self_and_other, &b);
	sem_wait(&b.done);
	EXPECT_EQ(-EBUSY, b.ret_self);
	EXPECT_EQ(0, b.ret_victim);
	EXPECT_EQ(0, fired);
}

static void mark(struct busybody *b, char c)
{
	b->order[b->nr_order++] = c;
}

static void mark_2(void *arg)
{
	mark(arg, '2');
}

static void mark_3(void *arg)
{
	struct busybody *b = arg;

	mark(b, '3');
	b->end_ns = pl__now_ns();
	sem_post(&b->done);
}

static void mark_1(void *arg)
{
	struct busybody *b = arg;

	mark(b, '1');
	add(b->t, 5, b->due_ns + 2, mark_2, b);
}

static void add_two(void *arg)
{
	struct busybody *b = arg;

	b->due_ns = pl__now_ns() - 3;
	add(b->t, 1, b->due_ns + 3, mark_3, b);
	add(b->t, 2, b->due_ns + 1, mark_1, b);
}

/*
 * Due ones too: a timer that is added meanwhile takes its place among them;
 * unless the thread stalls in between, so that it is added long after it is
 * due.
 */
TEST_F(timers, timers_added_by_callbacks_fire_in_order)
{
	static struct busybody b;

	do {
		memset(&b, 0, sizeof(b));
		b.t = self->t;
		sem_init(&b.done, 0, 0);
		add(self->t, 0, 0, add_two, &b);
		sem_wait(&b.done);
		flush(self->t);
		flush(self->t);
	} while (b.end_ns > b.due_ns + 100 * MSEC);
	EXPECT_STREQ("123", b.order);
}

struct churn {
	struct pl__timers	*t;
	_Atomic uint32_t	max_slot;
	uint32_t		nr;		/* pairs a thread */
	uint32_t		nr_alive;	/* kept by a thread */
	_Atomic uint32_t	odd;
};

static void add_and_delete(unsigned int nth, void *arg)
{
	struct pl__slab_cache cache = { 0 };
	struct churn *c = arg;
	uint64_t base = pl__now_ns() + FAR;
	pl_timer_t *ids = calloc(c->nr_alive + 1, sizeof(*ids));
	struct pl__timer *r;
	uint32_t i, k, max = 0;

	for (i = 0; i < c->nr + c->nr_alive; i++) {
		k = i % (c->nr_alive + 1);
		if (ids[k] && pl__timer_del(c->t, ids[k]))
			c->odd++;
		r = pl__timer_reserve(c->t, &cache);
		ids[k] = pl__timer_arm(c->t, r, nth, base + i, nothing, NULL);
		if ((uint32_t)ids[k] > max)
			max = (uint32_t)ids[k];
	}
	for (k = 0; k <= c->nr_alive; k++)
		if (ids[k] && pl__timer_del(c->t, ids[k]))
			c->odd++;
	free(ids);
	for (k = c->max_slot; k < max;)
		if (atomic_compare_exchange_weak(&c->max_slot, &k, max))
			break;
}

TEST_F_TIMEOUT(timers, pairs_of_several_threads_take_the_memory_of_few, 240)
{
	struct churn c = { .t = self->t, .nr = ROUNDS(1000000) };

	team_run(8, add_and_delete, &c);
	EXPECT_EQ(0, c.odd);
	EXPECT_LT(c.max_slot, 8 * 512);
}

/* So many living that their lists are pulled and the heap has the dead. */
TEST_F_TIMEOUT(timers, deleted_timers_in_the_heap_are_reclaimed, 240)
{
	struct churn c = {
		/* Not fewer where it is slow: the heap must turn over. */
		.t = self->t, .nr = 100000, .nr_alive = 10000,
	};
	uint32_t round;

	/* Earlier than all the others: none of those wakes the thread. */
	add(self->t, 12, pl__now_ns() + FAR / 2, nothing, NULL);
	for (round = 0; round < 3; round++)
		team_run(2, add_and_delete, &c);
	EXPECT_EQ(0, c.odd);
	EXPECT_LT(c.max_slot, 2 * 10000 * 5);
}

TEST(stop_frees_pending_timers_and_fires_none)
{
	_Atomic uint32_t fired = 0;
	struct pl__timers *t;
	uint32_t round, i, before;

	for (round = 0; round < 20; round++) {
		ASSERT_EQ(0, pl__timers_start(&t, NR_BUCKETS, NULL, NULL));
		for (i = 0; i < 3000; i++)
			add(t, i, i % 2 ? 0 : pl__now_ns() + i * 1000, count,
			    &fired);
		pl__timers_halt(t);
		before = fired;
		EXPECT_EQ(before, nr_fired(t));
		pl__timers_stop(t);
		EXPECT_EQ(before, fired);
		fired = 0;
	}
}

struct halt {
	struct pl__timers	*t;
	_Atomic bool		halted;
	_Atomic bool		in_callback;
	_Atomic uint32_t	late;
	_Atomic uint32_t	odd;
	_Atomic uint32_t	nr_after;	/* adders at work after it */
	sem_t			entered;
};

static void note_late(void *arg)
{
	struct halt *h = arg;

	h->late += h->halted;
}

static void add_throughout(unsigned int nth, void *arg)
{
	struct halt *h = arg;
	uint64_t rnd = nth + 1;
	uint32_t after = 0;
	pl_timer_t id;
	int ret;

	while (after < 200) {
		/* What is added faster than it is fired only piles up. */
		while (!h->halted && nr_alive(h->t) > 10000)
			sched_yield();
		after += h->halted;
		id = add(h->t, nth, pl__now_ns() + next_random(&rnd) % 2000,
			 note_late, h);
		if (next_random(&rnd) % 2)
			continue;
		ret = pl__timer_del(h->t, id);
		h->odd += ret && ret != -EBUSY && ret != -ENOENT;
	}
	h->nr_after += after;
}

TEST(concurrent_adds_during_stop_are_safe)
{
	struct team team;
	struct halt h;
	int round;

	for (round = 0; round < 20; round++) {
		memset(&h, 0, sizeof(h));
		ASSERT_EQ(0, pl__timers_start(&h.t, NR_BUCKETS, NULL, NULL));
		team_start(&team, 3, add_throughout, &h);
		while (nr_fired(h.t) < 100)
			sched_yield();
		pl__timers_halt(h.t);
		h.halted = true;
		team_join(&team);
		EXPECT_EQ(0, h.late);
		EXPECT_EQ(0, h.odd);
		EXPECT_EQ(600, h.nr_after);
		pl__timers_stop(h.t);
	}
}

TEST_HARNESS_MAIN
