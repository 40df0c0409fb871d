/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * orphan_ring: the rings of workers that are held up, polled by others
 */
#ifndef PL_ORPHAN_RING_H
#define PL_ORPHAN_RING_H

#include "sched/rt.h"

/* In the same task for so long, it is held up; ready so often at most. */
#define PL__STALLED_NS	(1000 * 1000ULL)

static inline struct pl__ring *pl__orphan_ring_of(struct pl__worker *w)
{
	return load_acquire(&w->ring_seen);
}

/* Of sysmon's: how many rings became ready. */
uint32_t pl__orphan_ring_scan(uint64_t now);

/* There are rings whose owners may be held up any time. */
bool pl__orphan_ring_is_due(void);
bool pl__orphan_ring_may_be_due(void);	/* the same, once they run tasks */

/* Polls the ring of @victim, if it is ready: @w, the caller, then did so. */
void pl__ring_reap_orphan(struct pl__worker *w, struct pl__worker *victim);

/* The kernel may have requests that @w submitted for others. */
bool pl__orphan_ring_keeps(struct pl__worker *w);

#endif /* PL_ORPHAN_RING_H */
