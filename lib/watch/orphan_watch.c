/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "watch/orphan_watch.h"
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
