/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * orphan_ring: rings of stalled workers, polled by thieves
 *
 * The owner of a ring sees completions between two tasks.  If a task blocks it,
 * or computes for long, other workers look in its place.  So while a worker
 * with I/O in flight runs tasks, sysmon checks whether it comes to the next
 * task; if not, sysmon orphans its ring.  Thieves then poll the ring like one
 * more queue: at once, as there may be requests that were not submitted, and
 * again whenever the kernel reports a completion, for which sysmon waits.
 *
 *	OWNED --stalled--> ORPHAN_READY --polled by a thief--> ORPHANED
 *	 ^                  |        ^                          |  |
 *	 +-- next task, park +       +-------- readable --------+  |
 *	 +--- next task -------------------------------------------+
 *
 * Only sysmon sets ORPHAN_READY, and OWNED when the owner comes to its next
 * task.  The owner itself does so before it parks, as no worker parks while a
 * ring is ready: alone it would look on until sysmon's next look.  And a
 * thief that finds the ring's lock taken, most likely by the owner that has
 * returned, sets OWNED: a request that the owner is about to add may already be
 * in the count that sysmon took, so sysmon has to look again.
 *
 * Sysmon sleeps without a deadline only if no stalled worker has a ring that is
 * OWNED, or has got requests since it became ready:
 *
 *	sysmon				worker
 *	word = ASLEEP		[orphan-a]	RUNS, or I/O in flight
 *	full barrier			full barrier		[orphan-b]
 *	look for such a worker		if (word is ASLEEP)
 *	if (there is none)		    word = NO_BACKLOG, wake it
 *		sleep
 *
 * Either sysmon sees the worker's I/O or the worker sees ASLEEP; otherwise
 * completions in the ring of a worker that stalls wait until its task ends.
 */
#include "sched/orphan_ring.h"
#include "sched/sysmon.h"
#include "ring/ring.h"

static bool is_in_task(struct pl__worker *w)
{
	uint32_t duty = load_relaxed(&w->duty);

	return duty == PL__RUNS || duty == PL__BLOCKED || duty == PL__STALLED;
}

static bool is_busy(struct pl__worker *w)
{
	struct pl__ring *ring = pl__orphan_ring_of(w);

	return ring && pl__ring_is_busy(ring);
}

static bool is_at_risk(struct pl__worker *w)
{
	return is_busy(w) && is_in_task(w);
}

static bool is_stalled(struct pl__worker *w, uint64_t now)
{
	struct pl__sysmon_view *s = &w->sysmon;
	uint32_t tick = load_relaxed(&w->tick);

	if (!is_at_risk(w)) {
		s->stalled_since_ns = 0;
		return false;
	}
	if (!s->stalled_since_ns || s->stalled_tick != tick) {
		s->stalled_since_ns = now;
		s->stalled_tick = tick;
		return false;
	}
	return now - s->stalled_since_ns >= PL__STALLED_NS;
}

/* The ring is OWNED, or has got requests since it became ready. */
static bool has_more(struct pl__worker *w)
{
	return load_relaxed(&w->ring_state) == PL__OWNED ||
	       pl__ring_nr_added(pl__orphan_ring_of(w)) != w->sysmon.ready_nr;
}

/* True: the ring has become ready. */
static bool orphan_ring_look_at(struct pl__worker *w, uint64_t now)
{
	struct pl__sysmon_view *s = &w->sysmon;
	bool was_readable = s->is_readable;

	s->is_readable = false;
	if (!is_stalled(w, now)) {
		if (load_relaxed(&w->ring_state) != PL__OWNED)
			atomic_store(&w->ring_state, PL__OWNED);
		return false;
	}
	/* Its owner may hold the lock, so that a thief could do nothing. */
	if (now - s->ready_ns < PL__STALLED_NS ||
	    (!was_readable && !has_more(w)))
		return false;
	s->ready_ns = now;
	s->ready_nr = pl__ring_nr_added(pl__orphan_ring_of(w));
	return atomic_exchange(&w->ring_state,
			       PL__ORPHAN_READY) != PL__ORPHAN_READY;
}

uint32_t pl__orphan_ring_scan(uint64_t now)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i, nr_ready = 0;

	for (i = 0; i < nr; i++)
		nr_ready += orphan_ring_look_at(pl__rt.workers[i], now);
	return nr_ready;
}

bool pl__orphan_ring_is_due(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;

	for (i = 0; i < nr; i++)
		if (is_at_risk(pl__rt.workers[i]) &&
		    has_more(pl__rt.workers[i]))
			return true;
	return false;
}

bool pl__orphan_ring_may_be_due(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;

	for (i = 0; i < nr; i++)
		if (is_busy(pl__rt.workers[i]))
			return true;
	return false;
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

/* The kernel cancels the requests of a thread that ends. */
bool pl__orphan_ring_keeps(struct pl__worker *w)
{
	return load_relaxed(&w->nr_for_others);
}
