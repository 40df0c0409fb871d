/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * timers: kept buckets, while the thread hears of them, others delete, add and
 * tell.
 */
#include "kselftest_harness.h"
#include "timers_kept.h"

static void keep_cpu_ns(uint64_t ns)
{
	uint64_t end = pl__now_ns() + ns;

	while (pl__now_ns() < end)
		;
}

struct hearing {
	struct pl__timers	*t;
	uint32_t		nr;		/* rounds */
	uint64_t		far_ns;
	_Atomic uint32_t	round;		/* of the keeper */
	uint32_t		wrong;
};

/* The thread wakes as the keeper begins a round, or somewhat later. */
static void wake_thread(struct hearing *h)
{
	uint64_t rnd = 1;
	pl_timer_t id;
	uint32_t i;

	for (i = 1; i <= h->nr; i++) {
		while (h->round < i)
			sched_yield();
		keep_cpu_ns(next_random(&rnd) % 4000);
		id = add(h->t, OTHER, h->far_ns - 2 * i, nothing, NULL);
		while (h->round == i)
			sched_yield();
		pl__timer_del(h->t, id);
	}
}

/* The timer is called, by the keeper or by the thread. */
static void see_to(struct hearing *h, struct alarm *a, bool do_tell)
{
	if (do_tell)
		pl__timers_tell_kept(h->t, KEPT);
	while (!a->by_thread && !a->by_keeper) {
		pl__timers_fire_kept(h->t, KEPT, &cache);
		sched_yield();
	}
}

static void keep_two(struct hearing *h)
{
	struct alarm far, a;
	uint64_t rnd = 2;
	uint32_t i;

	for (i = 1; i <= h->nr; i++) {
		far = (struct alarm){ .due_ns = h->far_ns - 2 * i + 1 };
		h->round = i;
		list_kept(h->t, &cache, KEPT, &far);
		/* Now and then the thread has woken by then. */
		keep_cpu_ns(next_random(&rnd) % (i % 4 < 2 ? 4000 : 80000));
		a = (struct alarm){ .due_ns = pl__now_ns() + 20000 };
		list_kept(h->t, &cache, KEPT, &a);
		see_to(h, &a, i % 2);
		h->wrong += a.by_thread + a.by_keeper != 1;
		pl__timer_del(h->t, far.id);
		pl__timers_tell_kept(h->t, KEPT);
	}
	h->round = i;
}

static void keep_or_wake(unsigned int nth, void *arg)
{
	if (nth)
		wake_thread(arg);
	else
		keep_two(arg);
}

/*
 * A bucket is kept, and an earlier timer added, while the thread hears of it
 * and of another, which is earlier than what was kept first.  So it does not
 * pull the bucket; and if it misses the earlier one nothing makes it look.
 */
TEST_F_TIMEOUT(timers, kept_timer_is_called_whatever_the_thread_hears, 240)
{
	struct hearing h = { .t = self->t, .nr = ROUNDS(100000) };

	allow_keeping(self->t);
	h.far_ns = pl__now_ns() + FAR;
	team_run(2, keep_or_wake, &h);
	EXPECT_EQ(0, h.wrong);
	EXPECT_EQ(0, nr_early);
}

#define NR_KEEPERS	2
#define NR_DELETERS	2
#define NR_ALARMS	500

/* Threads: the keepers, which list all, their deleters, and two others. */
struct storm {
	struct pl__timers	*t;
	struct alarm		kept[NR_KEEPERS][NR_ALARMS];
	struct alarm		loud[NR_ALARMS];
	_Atomic uint32_t	nr_busy;	/* keepers */
	_Atomic uint32_t	odd;
};

static void keep_all(struct storm *s, unsigned int nth, uint64_t *rnd)
{
	struct pl__slab_cache own = { 0 };
	uint32_t bucket = KEPT + nth, i;
	struct alarm *a;

	for (i = 0; i < NR_ALARMS; i++) {
		a = &s->kept[nth][i];
		a->due_ns = pl__now_ns() + next_random(rnd) % 200000;
		list_kept(s->t, &own, bucket, a);
		if (next_random(rnd) % 4 == 0)
			pl__timers_fire_kept(s->t, bucket, &own);
	}
	while (pl__timers_kept_until(s->t, bucket) != PL_FOREVER) {
		pl__timers_fire_kept(s->t, bucket, &own);
		sched_yield();
	}
	s->nr_busy--;
}

static void delete_some(struct storm *s, struct alarm *alarms, uint64_t *rnd)
{
	uint64_t id;
	int i, ret;

	for (i = 0; i < NR_ALARMS; i++) {
		while (!(id = alarms[i].id))
			sched_yield();
		if (next_random(rnd) % 2)
			continue;
		ret = pl__timer_del(s->t, id);
		alarms[i].deleted += !ret;
		s->odd += ret && ret != -EBUSY && ret != -ENOENT;
	}
}

static void add_loud(struct storm *s, uint64_t *rnd)
{
	struct alarm *a;

	for (a = s->loud; a < s->loud + NR_ALARMS; a++) {
		a->due_ns = pl__now_ns() + next_random(rnd) % 200000;
		add(s->t, KEPT + (uint32_t)(next_random(rnd) % NR_KEEPERS),
		    a->due_ns, loud, a);
		keep_cpu_ns(next_random(rnd) % 4000);
	}
}

static void tell_at_random(struct storm *s, uint64_t *rnd)
{
	while (s->nr_busy) {
		pl__timers_tell_kept(s->t, KEPT + (uint32_t)
				     (next_random(rnd) % NR_KEEPERS));
		keep_cpu_ns(next_random(rnd) % 8000);
		sched_yield();
	}
}

static void rage(unsigned int nth, void *arg)
{
	struct storm *s = arg;
	uint64_t rnd = pl__now_ns() | 1;

	if (nth < NR_KEEPERS)
		keep_all(s, nth, &rnd);
	else if (nth < NR_KEEPERS + NR_DELETERS)
		delete_some(s, s->kept[nth - NR_KEEPERS], &rnd);
	else if (nth == NR_KEEPERS + NR_DELETERS)
		add_loud(s, &rnd);
	else
		tell_at_random(s, &rnd);
}

static bool is_over(struct alarm *a)
{
	return a->by_thread + a->by_keeper + a->deleted;
}

static uint32_t nr_not_once(struct alarm *a)
{
	uint32_t nr = 0, i;

	for (i = 0; i < NR_ALARMS; i++) {
		while (!is_over(&a[i]))
			sched_yield();
		nr += a[i].by_thread + a[i].by_keeper + a[i].deleted != 1;
	}
	return nr;
}

TEST_F_TIMEOUT(timers, kept_timer_is_called_or_deleted_once, 240)
{
	uint32_t wrong = 0, nr_kept = 0, round, i;
	struct storm *s = calloc(1, sizeof(*s));

	ASSERT_NE(NULL, s);
	allow_keeping(self->t);
	for (round = 0; round < ROUNDS(300); round++) {
		memset(s, 0, sizeof(*s));
		s->t = self->t;
		s->nr_busy = NR_KEEPERS;
		team_run(NR_KEEPERS + NR_DELETERS + 2, rage, s);
		for (i = 0; i < NR_KEEPERS; i++)
			wrong += nr_not_once(s->kept[i]);
		wrong += nr_not_once(s->loud) + s->odd;
		for (i = 0; i < NR_ALARMS; i++)
			nr_kept += s->kept[0][i].by_keeper;
		flush(self->t);
	}
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(0, nr_early);
	EXPECT_EQ(0, nr_alive(self->t));
	EXPECT_LT(0, nr_kept);
	free(s);
}

TEST_HARNESS_MAIN
