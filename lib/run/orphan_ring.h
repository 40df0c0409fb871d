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
#ifndef PL_ORPHAN_RING_H
#define PL_ORPHAN_RING_H

#include "queue/rt.h"

/*
 * A worker in one task for so long is stalled; also the least interval between
 * two times that its ring becomes ready.
 */
#define PL__STALLED_NS	(1000 * 1000ULL)

static inline struct pl__ring *pl__orphan_ring_of(struct pl__worker *w)
{
	return load_acquire(&w->ring_seen);
}

/*
 * @w, the caller, is about to park, and looks for completions itself: its ring
 * is no work for others any more.
 */
void pl__ring_take_back(struct pl__worker *w);

/* @w, the caller, polls the ring of @victim, if that is ORPHAN_READY. */
void pl__ring_reap_orphan(struct pl__worker *w, struct pl__worker *victim);

#endif /* PL_ORPHAN_RING_H */
