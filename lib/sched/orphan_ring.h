/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * orphan_ring: rings of stalled workers, polled by thieves
 */
#ifndef PL_ORPHAN_RING_H
#define PL_ORPHAN_RING_H

#include "sched/rt.h"

/*
 * A worker in one task for so long is stalled; also the least interval between
 * two times that its ring becomes ready.
 */
#define PL__STALLED_NS	(1000 * 1000ULL)

static inline struct pl__ring *pl__orphan_ring_of(struct pl__worker *w)
{
	return load_acquire(&w->ring_seen);
}

/* Called by sysmon; returns how many rings became ready. */
uint32_t pl__orphan_ring_scan(uint64_t now);

/*
 * True: a worker with requests in flight runs tasks, so it may stall at any
 * time.
 */
bool pl__orphan_ring_is_due(void);
/* True: a worker has requests in flight, and may run tasks again. */
bool pl__orphan_ring_may_be_due(void);

/*
 * @w, the caller, is about to park, and looks for completions itself: its ring
 * is no work for others any more.
 */
void pl__ring_take_back(struct pl__worker *w);

/* @w, the caller, polls the ring of @victim, if that is ORPHAN_READY. */
void pl__ring_reap_orphan(struct pl__worker *w, struct pl__worker *victim);

/*
 * True: @w must not end, as requests that it submitted for others may be in
 * flight.
 */
bool pl__orphan_ring_keeps(struct pl__worker *w);

#endif /* PL_ORPHAN_RING_H */
