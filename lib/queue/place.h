/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * place: where workers run, which are near each other, and pinning
 *
 * The kernel moves threads among CPUs.  So a worker notes its location whenever
 * it is about to steal, which it does before it parks, too; only if that has
 * changed it writes.  A location may be out of date: then a thief comes to a
 * worker earlier or later, and visits it all the same.
 *
 * The topology is read when the runtime starts, and again when the set of CPUs
 * on which sysmon may run is another: CPUs went offline or came back, or the
 * cpuset or the affinity of the process changed.  sysmon asks for that set once
 * a second while it is awake, and at its first look after it slept.
 *
 * If workers are pinned, worker i of the default group runs on the i-th of the
 * CPUs on which the process may run, in the order of pl__topology_order().
 * Workers beyond these may run on all of them: they stand in for blocked or
 * stalled ones, whichever these are.  So may those of other groups.  A change
 * of the CPUs and the start of a worker are in turn, by start_lock: so a worker
 * that starts meanwhile is pinned by the new order.
 *
 * A thief visits those on its own core first, then those of its cluster, of its
 * node, and all others; within a level they come in turn, from a random one on,
 * so that thieves do not all begin with the same one.  There is one pass over
 * the locations for each level that the machine has: 8 bytes a worker, which
 * change only when a worker moves, so that each processor keeps a copy of them.
 */
#ifndef PL_PLACE_H
#define PL_PLACE_H

#include "base/sys.h"
#include "base/topology.h"
#include "queue/rt.h"

/* For @nr workers of a group, which frees them; NULL: no memory. */
_Atomic uint64_t *pl__locations_new(uint32_t nr);

/* The runtime starts; 0, or -errno: no thread may be bound. */
int pl__locations_start(void);
void pl__locations_stop(void);

/*
 * sysmon, at each look: once a second reads the topology again if the CPUs have
 * changed, and pins workers anew.
 */
void pl__locations_follow(uint64_t now);

/* The worker, which is the caller, notes where it runs, and returns it. */
uint64_t pl__location_note(struct pl__worker *w);

/* ---- pinning ---- */

/* Under start_lock: the worker, the caller, has a thread id. */
void pl__pin_worker(struct pl__worker *w);

/* The CPUs on which the process may run; 0: workers are not pinned. */
uint32_t pl__pin_nr_cpus(void);

/* ---- the order of a thief's visits ---- */

#define PL__NO_VICTIM	UINT32_MAX

struct pl__victims {
	const _Atomic uint64_t *locations;	/* of its group's workers */
	uint64_t	at;	/* the thief's location */
	uint64_t	from;	/* of this pass: the nearest distance */
	uint64_t	end;	/* of this pass: beyond the farthest */
	uint32_t	levels;	/* not passed yet, the last one always */
	uint32_t	thief;	/* its index */
	uint32_t	nr;	/* workers */
	uint32_t	left;	/* workers that this pass has not looked at */
	uint32_t	next;	/* index of the next of them */
};

/* Of @nr workers, at least 1; @first: any number, from where on. */
void pl__victims_begin(struct pl__victims *v, struct pl__worker *thief,
		       uint64_t at, uint32_t nr, uint32_t first);

/*
 * The index of the next, or PL__NO_VICTIM.  Each but the thief once, unless it
 * moves meanwhile.
 */
uint32_t pl__victims_next(struct pl__victims *v);

#endif /* PL_PLACE_H */
