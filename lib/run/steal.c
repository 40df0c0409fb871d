/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * steal: tasks from another worker's queues
 *
 * The lone task in the deque of a running worker was most likely queued a
 * moment ago by a task that is about to wait for it; its owner runs it next,
 * where its data is in the caches.  So an idle thief defers the steal: only if
 * it finds nothing else it watches all such tasks together for a moment, and
 * takes one of which the deque has not changed.  (Go does so with the task that
 * a P runs next, on its last round, one P after the other.)
 */
#include "queue/aside.h"
#include "queue/ready.h"
#include "queue/place.h"
#include "run/run.h"
#include "pace/kept.h"
#include "pace/pace.h"
#include "ring/ring.h"
#include "base/inject.h"
#include "base/sys.h"
#include "pace/notify.h"

#define NR_STEAL_MORE	8
#define STEAL_DEFER_NS	1500
#define NR_LONES	16

/* Of the same group. */
static struct pl__worker *worker_of(struct pl__worker *w, uint32_t i)
{
	return w->group->workers[i];
}

static uint32_t steal_next_random(struct pl__worker *w)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 17;
	w->rng ^= w->rng << 5;
	return w->rng;
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

	w->has_left_half = false;
	nr = steal_half(w, &w->events, &victim->events);
	if (nr)
		w->event_mask &= PL__EVENT_EVERY - 1;
	nr += steal_half(w, &w->deque, &victim->deque);
	if (!nr)
		return;
	counter_add(&w->stat.steals, nr);
	w->has_left_half = w->is_searching;
	pl__notify_one(w->group);
}

size_t pl__nr_found(struct pl__worker *w)
{
	return w->has_left_half ? 2 * pl__nr_queued(w) : pl__nr_queued(w);
}

/* ---- lone tasks ---- */

struct lone {
	struct pl__worker	*victim;
	int64_t			top, bottom;	/* of its deque */
};

/* Those that a thief has come by, and has left to their owners. */
struct lones {
	bool			has_time;	/* for the watch */
	uint32_t		nr;
	struct lone		lone[NR_LONES];
};

static void note_lone(struct lones *l, struct pl__worker *victim)
{
	struct lone *lone = &l->lone[l->nr++];

	lone->victim = victim;
	lone->top = load_relaxed(&victim->deque.top);
	lone->bottom = load_relaxed(&victim->deque.bottom);
}

/*
 * @l, or NULL: takes a lone task at once.  Of more than it can note the thief
 * leaves the rest to others.
 */
static bool is_left_to_owner(struct lones *l, struct pl__worker *victim)
{
	if (!l || !l->has_time || pl__deque_len(&victim->deque) != 1 ||
	    pl__nr_blocked(victim->group) ||
	    load_relaxed(&victim->group->nr_stalled))
		return false;
	if (l->nr < NR_LONES)
		note_lone(l, victim);
	return true;
}

static struct pl__task *steal_if_unchanged(struct pl__worker *w,
					   struct lone *lone)
{
	struct pl__deque *d = &lone->victim->deque;
	struct pl__task *t;

	/* Changed: the owner runs. */
	if (load_relaxed(&d->top) != lone->top ||
	    load_relaxed(&d->bottom) != lone->bottom)
		return NULL;
	t = pl__deque_steal(d);
	if (t)
		counter_inc(&w->stat.steals);
	return t;
}

/* Watches all of them at once. */
static struct pl__task *steal_lone(struct pl__worker *w, struct lones *l)
{
	uint64_t end = pl__now_ns() + STEAL_DEFER_NS;
	struct pl__task *t = NULL;
	uint32_t i;

	do {
		pl__cpu_relax();
	} while (pl__now_ns() < end);
	for (i = 0; i < l->nr && !t; i++)
		t = steal_if_unchanged(w, &l->lone[i]);
	return t;
}

/* ---- any task ---- */

static struct pl__task *steal_spawned(struct pl__worker *victim,
				      struct lones *l)
{
	return is_left_to_owner(l, victim) ?
	       NULL : pl__deque_steal(&victim->deque);
}

/* Makes the completions in the victim's ring events of the thief. */
static struct pl__task *steal_by_look(struct pl__worker *w,
				      struct pl__worker *victim)
{
	if (likely(load_relaxed(&victim->ring_state) != PL__ORPHAN_READY))
		return NULL;
	pl__ring_reap_orphan(w, victim);
	return pl__next_event(w);
}

/*
 * Takes events first, as for these the victim's task did not ask.  A stalled
 * victim queues no more of them, but its ring may fill up again and again: so
 * every second time what was spawned comes before these.
 */
static struct pl__task *steal_one(struct pl__worker *w,
				  struct pl__worker *victim, struct lones *l)
{
	bool look_first = w->nr_thefts++ % 2;
	struct pl__task *t = pl__deque_steal(&victim->events);

	if (!t && look_first)
		t = steal_by_look(w, victim);
	if (!t)
		t = steal_spawned(victim, l);
	if (!t && !look_first)
		t = steal_by_look(w, victim);
	if (t)
		counter_inc(&w->stat.steals);
	return t;
}

static struct pl__task *steal_from(struct pl__worker *w,
				   struct pl__worker *victim, struct lones *l)
{
	struct pl__task *t = steal_one(w, victim, l);

	if (t)
		steal_more(w, victim);
	return t;
}

static struct pl__task *steal_near_first(struct pl__worker *w,
					 struct lones *l, uint32_t nr)
{
	struct pl__task *t = NULL;
	struct pl__victims v;
	uint32_t i;

	pl__victims_begin(&v, w, pl__location_note(w), nr,
			  steal_next_random(w));
	while (!t && (i = pl__victims_next(&v)) != PL__NO_VICTIM)
		t = steal_from(w, worker_of(w, i), l);
	return t;
}

static struct pl__task *steal_from_any(struct pl__worker *w, struct lones *l)
{
	uint32_t nr = load_acquire(&w->group->nr_started), i, left;
	struct pl__task *t = NULL;
	struct pl__worker *victim;

	/* No worker exists yet while the first one is being started. */
	if (nr < 2)
		return NULL;
	if (unlikely(load_relaxed(&pl__rt.levels)))
		return steal_near_first(w, l, nr);
	i = steal_next_random(w) % nr;
	for (left = nr; left && !t; left--) {
		victim = worker_of(w, i);
		i = i + 1 < nr ? i + 1 : 0;
		t = victim == w ? NULL : steal_from(w, victim, l);
	}
	return t;
}

/*
 * Visits all other workers once, from a random one on, or the near ones first,
 * see place.h; those with a lone task once more, if it finds nothing else.
 */
struct pl__task *pl__steal(struct pl__worker *w, bool has_time)
{
	struct lones lones;
	struct pl__task *t;

	lones.has_time = has_time;
	lones.nr = 0;
	t = steal_from_any(w, &lones);
	if (!t && load_relaxed(&w->group->nr_started) > 1 &&
	    pl__kept_steal(w)) {
		w->has_left_half = false;
		t = pl__next_event(w);
	}
	if (!t && lones.nr)
		t = steal_lone(w, &lones);
	/* Requests that wait to be submitted wait no longer than this. */
	if (t && w->ring)
		pl__ring_poll(w->ring);
	return t;
}

/* A number that changes with the tasks which @w took. */
static uint64_t nr_moves(struct pl__worker *w)
{
	return load_relaxed(&w->stat.switches) + load_relaxed(&w->stat.ended);
}

/* Reads only the victim's counts, one cache line, unless they stand still. */
struct pl__task *pl__steal_from_stalled(struct pl__worker *w)
{
	uint32_t nr = load_acquire(&w->group->nr_started), i = w->next_stalled;
	struct pl__worker *v = worker_of(w, i);
	bool is_stalled = v != w && nr_moves(v) == w->stalled_moves;

	i = i + 1 < nr ? i + 1 : 0;
	if (i == w->index)
		i = i + 1 < nr ? i + 1 : 0;
	w->next_stalled = i;
	w->stalled_moves = nr_moves(worker_of(w, i));
	return is_stalled ? steal_from(w, v, NULL) : NULL;
}

void pl__ring_take_back(struct pl__worker *w)
{
	uint32_t ready = PL__ORPHAN_READY;

	if (unlikely(load_relaxed(&w->ring_state) == ready))
		atomic_compare_exchange_strong(&w->ring_state, &ready,
					       PL__OWNED);
}

void pl__ring_reap_orphan(struct pl__worker *w, struct pl__worker *victim)
{
	uint32_t ready = PL__ORPHAN_READY, orphaned = PL__ORPHANED;
	struct pl__ring *ring;
	int fd;

	if (!atomic_compare_exchange_strong(&victim->ring_state, &ready,
					    PL__ORPHANED))
		return;
	ring = pl__orphan_ring_of(victim);
	fd = pl__ring_fd(ring);
	if (pl__ring_poll_for_owner(ring, &w->nr_for_others)) {
		/* Sysmon may wait for the earlier one. */
		if (unlikely(pl__ring_fd(ring) != fd))
			pl__sysmon_notify_io();
		return;
	}
	atomic_compare_exchange_strong(&victim->ring_state, &orphaned,
				       PL__OWNED);
	pl__sysmon_notify_io();
}
