/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * orphan_ring: the rings of workers that are held up
 *
 * What completes on a ring is seen by its owner between two tasks.  If a task
 * blocks that, or computes for long, others look in its place.  So while a
 * worker with I/O in flight runs tasks, sysmon looks whether it goes on to
 * the next; if not, its ring is orphaned.  Then it is one more queue to steal
 * from: ready at once, as there may be requests that were not submitted, and
 * again whenever the kernel says that something is complete, which sysmon waits
 * for.
 *
 *	OWNED --stalled--> ORPHAN_READY --polled by a thief--> ORPHANED
 *	 ^                  |        ^                          |  |
 *	 +----- goes on ----+        +-------- readable --------+  |
 *	 +----- goes on -------------------------------------------+
 *
 * Only sysmon orphans and takes back.  But who finds the lock taken, most
 * likely by an owner who has come back, takes back as well: what that is about
 * to add may have been counted when the ring was orphaned, so sysmon is to
 * look again.
 *
 * Sysmon sleeps for ever only if there is no such worker whose ring is not
 * orphaned, or has got more requests since:
 *
 *	sysmon				worker
 *	word = ASLEEP		[orphan-a]	RUNS, or I/O in flight
 *	full barrier			full barrier		[orphan-b]
 *	look for one			if (word is ASLEEP)
 *	if (none)			    word = NO_BACKLOG, wake it
 *		sleep
 */
#include "sched/orphan_ring.h"
#include "sched/sysmon.h"
#include "ring/ring.h"

static bool is_in_task(struct pl__worker *w)
{
	uint32_t duty = load_relaxed(&w->duty);

	return duty == PL__RUNS || duty == PL__BLOCKED;
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

/* It is not orphaned, or there are requests since it became ready. */
static bool has_more(struct pl__worker *w)
{
	return load_relaxed(&w->ring_state) == PL__OWNED ||
	       pl__ring_nr_added(pl__orphan_ring_of(w)) != w->sysmon.ready_nr;
}

/* True: it has become ready. */
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
	if (!was_readable && !has_more(w))
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

void pl__ring_reap_orphan(struct pl__worker *w, struct pl__worker *victim)
{
	uint32_t ready = PL__ORPHAN_READY, orphaned = PL__ORPHANED;

	if (!atomic_compare_exchange_strong(&victim->ring_state, &ready,
					    PL__ORPHANED))
		return;
	w->has_reaped_orphan = true;
	if (pl__ring_poll_for_owner(pl__orphan_ring_of(victim)))
		return;
	atomic_compare_exchange_strong(&victim->ring_state, &orphaned,
				       PL__OWNED);
	pl__sysmon_notify_io();
}

/*
 * The kernel cancels what a thread submitted when that ends.  Which requests
 * these are is not kept, so all have to be through for once.
 */
bool pl__orphan_ring_keeps(struct pl__worker *w)
{
	if (w->has_reaped_orphan)
		w->has_reaped_orphan = pl__orphan_ring_may_be_due();
	return w->has_reaped_orphan;
}
