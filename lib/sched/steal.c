/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * steal: tasks from another worker's queues
 *
 * The lone task in the deque of a running worker was most likely queued a
 * moment ago by a task that is about to wait for it; its owner runs it next,
 * where its data is in the caches.  So an idle thief defers the steal for a
 * moment.  (Go does so with the task that a P runs next.)
 */
#include "sched/orphan_ring.h"
#include "sched/relief.h"
#include "sched/sched.h"
#include "ring/ring.h"
#include "base/sys.h"

#define NR_STEAL_MORE	8
#define STEAL_DEFER_NS	1500

static struct pl__worker *worker_of(uint32_t i)
{
	return pl__rt.workers[i];
}

bool pl__work_anywhere(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;
	bool is_held = pl__is_unstarted_held();

	if (unlikely(pl__aside_nr()))
		return true;
	for (i = 0; i < nr; i++)
		if (!pl__deque_empty(&worker_of(i)->deque) ||
		    !pl__deque_empty(&worker_of(i)->events) ||
		    (!is_held && !pl__deque_empty(&worker_of(i)->unstarted)) ||
		    !pl__inbox_empty(&worker_of(i)->inbox) ||
		    load_relaxed(&worker_of(i)->ring_state) == PL__ORPHAN_READY)
			return true;
	return false;
}

static uint32_t steal_next_random(struct pl__worker *w)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 17;
	w->rng ^= w->rng << 5;
	return w->rng;
}

struct pl__task *pl__steal_to_run(struct pl__worker *w, struct pl__deque *d)
{
	struct pl__task *t = pl__deque_steal(d);

	while (t && unlikely(pl__is_unstarted_held()) && !t->stack) {
		pl__queue_own(w, &w->unstarted, t);
		t = pl__deque_steal(d);
	}
	return t;
}

/* Moves up to half of @from to @to, a queue of @w; returns how many. */
static size_t steal_half(struct pl__worker *w, struct pl__deque *to,
			 struct pl__deque *from)
{
	size_t most = pl__deque_len(from) / 2, nr;
	struct pl__task *t;
	bool lost;

	if (most > NR_STEAL_MORE)
		most = NR_STEAL_MORE;
	for (nr = 0; nr < most; nr++) {
		t = pl__deque_steal_once(from, &lost);
		if (!t)
			break;
		pl__queue_own(w, to, t);
	}
	return nr;
}

/*
 * Takes up to half of the victim's tasks, so that thieves come less often.
 * Between the two workers no other searcher sees them; so the thief notifies
 * afterwards.
 */
static void steal_more(struct pl__worker *w, struct pl__worker *victim)
{
	size_t nr;

	if (pl__is_unstarted_held())
		return;
	nr = steal_half(w, &w->events, &victim->events);
	if (nr)
		w->event_mask &= PL__EVENT_EVERY - 1;
	nr += steal_half(w, &w->deque, &victim->deque);
	if (!nr)
		return;
	counter_add(&w->stat.steals, nr);
	pl__notify_one();
}

/* The deque did not change for a while, though its owner may run. */
static bool is_deque_unchanged(struct pl__deque *d)
{
	int64_t top = load_relaxed(&d->top), bottom = load_relaxed(&d->bottom);
	uint64_t end = pl__now_ns() + STEAL_DEFER_NS;

	do {
		pl__cpu_relax();
	} while (pl__now_ns() < end);
	return load_relaxed(&d->top) == top &&
	       load_relaxed(&d->bottom) == bottom;
}

static bool is_steal_deferred(struct pl__deque *d)
{
	return pl__deque_len(d) == 1 && !pl__nr_blocked() &&
	       !load_relaxed(&pl__rt.nr_stalled) &&
	       !is_deque_unchanged(d);
}

static struct pl__task *steal_spawned(struct pl__worker *w,
				      struct pl__worker *victim, bool has_time)
{
	return has_time && is_steal_deferred(&victim->deque) ?
	       NULL : pl__steal_to_run(w, &victim->deque);
}

/* The oldest event, or what was held back and is no more. */
static struct pl__task *steal_event(struct pl__worker *w,
				    struct pl__worker *victim)
{
	struct pl__task *t = pl__steal_to_run(w, &victim->events);

	if (!t && !pl__is_unstarted_held())
		t = pl__deque_steal(&victim->unstarted);
	return t;
}

/* Makes what waits in the victim's inbox and ring events of the thief. */
static struct pl__task *steal_by_look(struct pl__worker *w,
				      struct pl__worker *victim)
{
	struct pl__task *t = NULL;

	if (!pl__inbox_empty(&victim->inbox)) {
		pl__drain(w, &victim->inbox);
		t = pl__next_event(w);
	}
	if (!t &&
	    unlikely(load_relaxed(&victim->ring_state) == PL__ORPHAN_READY)) {
		pl__ring_reap_orphan(w, victim);
		t = pl__next_event(w);
	}
	return t;
}

/*
 * Takes events first, as for these the victim's task did not ask.  A stalled
 * victim queues no more of them, but its inbox and its ring may fill up again
 * and again: so every second time what was spawned comes before these.
 */
static struct pl__task *steal_one(struct pl__worker *w,
				  struct pl__worker *victim, bool has_time)
{
	bool look_first = w->nr_thefts++ % 2;
	struct pl__task *t = steal_event(w, victim);

	if (!t && look_first)
		t = steal_by_look(w, victim);
	if (!t)
		t = steal_spawned(w, victim, has_time);
	if (!t && !look_first)
		t = steal_by_look(w, victim);
	if (t)
		counter_inc(&w->stat.steals);
	return t;
}

static struct pl__task *steal_from(struct pl__worker *w,
				   struct pl__worker *victim, bool has_time)
{
	struct pl__task *t = steal_one(w, victim, has_time);

	if (t)
		steal_more(w, victim);
	return t;
}

/* Visits all other workers once, from a random one on. */
struct pl__task *pl__steal(struct pl__worker *w, bool has_time)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;
	uint32_t first = steal_next_random(w);
	struct pl__worker *victim;
	struct pl__task *t;

	/* No worker exists yet while the first one is being started. */
	for (i = 0; i < nr; i++) {
		victim = worker_of((uint32_t)(first + (uint64_t)i) % nr);
		t = victim == w ? NULL : steal_from(w, victim, has_time);
		if (!t)
			continue;
		/*
		 * Requests that wait to be submitted wait no longer than this.
		 */
		if (w->ring)
			pl__ring_poll(w->ring);
		return t;
	}
	return NULL;
}

/* A number that changes with the tasks which @w took. */
static uint64_t nr_moves(struct pl__worker *w)
{
	return load_relaxed(&w->stat.switches) + load_relaxed(&w->stat.ended);
}

/* Reads only the victim's counts, one cache line, unless they stand still. */
struct pl__task *pl__steal_from_stalled(struct pl__worker *w)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i = w->next_stalled;
	struct pl__worker *v = worker_of(i);
	bool is_stalled = v != w && nr_moves(v) == w->stalled_moves;

	i = i + 1 < nr ? i + 1 : 0;
	if (i == w->index)
		i = i + 1 < nr ? i + 1 : 0;
	w->next_stalled = i;
	w->stalled_moves = nr_moves(worker_of(i));
	return is_stalled ? steal_one(w, v, false) : NULL;
}
