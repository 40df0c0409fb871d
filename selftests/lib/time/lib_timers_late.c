// SPDX-License-Identifier: GPL-2.0-only
/*
 * timers: what holds when the timer thread is late, or is given timers that
 * were past when they were armed: the order of those that were armed in time,
 * and for how long the past ones delay another.
 *
 * The thread is made late by a callback that does not return.
 */
#include "kselftest_harness.h"
#include "timers.h"

#define LATE_MAX	(100 * MSEC)	/* parklot-scheduling(7) */

struct shot {
	uint64_t		deadline;
	struct shot		*next;		/* the one fired after it */
	_Atomic bool		is_fired;
};

static struct shot *last_shot;

static void shoot(void *arg)
{
	struct shot *s = arg;

	if (last_shot)
		last_shot->next = s;
	last_shot = s;
	s->is_fired = true;
}

static void arm_shot(struct pl__timers *t, uint32_t bucket, uint64_t deadline,
		     struct shot *s)
{
	s->deadline = deadline;
	add(t, bucket, deadline, shoot, s);
}

static void sleep_past(uint64_t ns)
{
	while (pl__now_ns() <= ns)
		pl__sleep_ns(MSEC);
}

/* False: they were armed more than a little late. */
static bool fire_two_due(struct pl__timers *t, struct shot *earlier,
			 struct shot *later)
{
	bool is_little;
	struct gate g;
	uint64_t ns;

	/* The thread has just seen that it is late: this one is due at 0. */
	close_gate(t, &g);
	ns = pl__now_ns() - 10 * MSEC;
	arm_shot(t, 1, ns, later);
	arm_shot(t, 2, ns - 1, earlier);
	is_little = pl__now_ns() < ns + LATE_MAX / 2;
	sleep_past(ns + LATE_MAX);
	sem_post(&g.leave);
	while (!earlier->is_fired || !later->is_fired)
		pl__sleep_ns(MSEC);
	return is_little;
}

/* Due ones, too, as long as they are armed less than 50 ms late. */
TEST_F(timers, late_thread_fires_two_armed_a_little_late_in_order)
{
	struct shot earlier, later;

	do {
		memset(&earlier, 0, sizeof(earlier));
		memset(&later, 0, sizeof(later));
		last_shot = NULL;
	} while (!fire_two_due(self->t, &earlier, &later));
	EXPECT_EQ(&later, earlier.next);
	EXPECT_EQ(NULL, later.next);
}

/* ---- timers of long ago ---- */

#define NR_CHAINS	3
#define CHAIN_MAX	1000	/* what fires no more by then never does */

/* Each timer adds the next one, due at 0, until the chain is to end. */
struct chain {
	struct pl__timers	*t;
	uint32_t		nr_buckets;	/* to which it adds in turn */
	uint32_t		nr;
	uint64_t		callback_ns;	/* how long each takes */
	uint64_t		armed_ns;	/* the pending one; 0: first */
	uint64_t		due_ns;		/* of the delayed timer */
	uint32_t		nr_behind;	/* armed too late after it */
	_Atomic bool		*may_end;
	sem_t			ended;
};

static void add_old(struct chain *c);

static void fire_old(void *arg)
{
	struct chain *c = arg;

	if (c->callback_ns)
		pl__sleep_ns(c->callback_ns);
	if (!*c->may_end && c->armed_ns > c->due_ns + LATE_MAX)
		c->nr_behind++;
	if (*c->may_end || c->nr_behind == CHAIN_MAX) {
		sem_post(&c->ended);
		return;
	}
	c->armed_ns = pl__now_ns();
	add_old(c);
}

static void add_old(struct chain *c)
{
	add(c->t, c->nr++ % c->nr_buckets, 0, fire_old, c);
}

static void set_true(void *arg)
{
	*(_Atomic bool *)arg = true;
}

/* One of each chain may be in the heap when the thread sees how late it is. */
static void expect_short_delay(struct __test_metadata *_metadata,
			       struct pl__timers *t, int nr,
			       uint32_t nr_buckets)
{
	struct chain chains[NR_CHAINS] = { { .t = NULL } };
	_Atomic bool is_fired = false;
	uint64_t due_ns;
	struct gate g;
	int i;

	/* All are armed before the thread sees one of them. */
	close_gate(t, &g);
	due_ns = pl__now_ns() + 5 * MSEC;
	add(t, NR_BUCKETS - 1, due_ns, set_true, &is_fired);
	for (i = 0; i < nr; i++) {
		chains[i] = (struct chain){
			.t = t, .nr_buckets = nr_buckets, .nr = (uint32_t)i,
			.due_ns = due_ns, .may_end = &is_fired,
		};
		sem_init(&chains[i].ended, 0, 0);
		add_old(&chains[i]);
	}
	sem_post(&g.leave);
	for (i = 0; i < nr; i++) {
		sem_wait(&chains[i].ended);
		EXPECT_GE(1, chains[i].nr_behind);
	}
	EXPECT_TRUE(is_fired);
}

/* One chain, several, and in each bucket. */
TEST_TIMED(endless_old_timers_delay_a_due_one_by_100_ms,
	   "an event must come before a deadline")
TEST_F(timers, endless_old_timers_delay_a_due_one_by_100_ms)
{
	expect_short_delay(_metadata, self->t, 1, 1);
	expect_short_delay(_metadata, self->t, NR_CHAINS, 1);
	expect_short_delay(_metadata, self->t, NR_CHAINS, NR_BUCKETS);
}

/* ---- all at once ---- */

#define NR_SHOTS	400

static void stall(void *arg)
{
	pl__sleep_ns(LATE_MAX + 50 * MSEC);
}

/* False: @in_ns was too short to arm all in time. */
static bool arm_volley(struct pl__timers *t, struct shot *shots,
		       uint64_t in_ns)
{
	uint64_t rnd = 5, base = pl__now_ns() + in_ns, ns;
	int i;

	for (i = 0; i < NR_SHOTS; i++) {
		ns = base + next_random(&rnd) % (40 * MSEC);
		/* The old ones come to bucket 0, and have it pulled. */
		arm_shot(t, 1 + (uint32_t)i % (NR_BUCKETS - 1), ns, &shots[i]);
		/* So that some are in the heap, some are not. */
		if (i % 100 == 0)
			until_asleep();
	}
	add(t, 3, base - 10 * MSEC, stall, NULL);
	add(t, 4, base + 25 * MSEC, stall, NULL);
	return pl__now_ns() < base - 10 * MSEC;
}

static void run_volley(struct pl__timers *t, struct shot *shots, bool *in_time,
		       uint64_t in_ns)
{
	_Atomic bool may_end = false;
	struct chain c = {
		.t = t, .nr_buckets = 1, .callback_ns = MSEC / 2,
		.due_ns = PL_FOREVER / 2, .may_end = &may_end,
	};
	int i;

	sem_init(&c.ended, 0, 0);
	*in_time = arm_volley(t, shots, in_ns);
	add_old(&c);
	for (i = 0; i < NR_SHOTS; i++)
		while (!shots[i].is_fired)
			pl__sleep_ns(MSEC);
	may_end = true;
	sem_wait(&c.ended);
}

TEST_F(timers, late_thread_fires_many_armed_in_time_in_order_among_old_ones)
{
	static struct shot shots[NR_SHOTS];
	uint64_t in_ns = 50 * MSEC;
	int i, nr_disordered = 0;
	bool is_in_time;

	do {
		memset(shots, 0, sizeof(shots));
		last_shot = NULL;
		in_ns *= 2;
		run_volley(self->t, shots, &is_in_time, in_ns);
	} while (!is_in_time);
	for (i = 0; i < NR_SHOTS; i++)
		nr_disordered += shots[i].next &&
				 shots[i].next->deadline < shots[i].deadline;
	EXPECT_EQ(0, nr_disordered);
}

TEST_HARNESS_MAIN
