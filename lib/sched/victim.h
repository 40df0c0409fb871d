/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * victim: the workers from which a thief steals, in the order of its visits
 *
 * Those on its own core come first, then those of its cluster, of its node, and
 * all others; within a level they come in turn, from a random one on, so that
 * thieves do not all begin with the same one.  There is one pass over the
 * locations for each level that the machine has: 8 bytes a worker, which change
 * only when a worker moves, so that each processor keeps a copy of them.
 */
#ifndef PL_VICTIM_H
#define PL_VICTIM_H

#include "base/topology.h"
#include "sched/rt.h"

#define PL__NO_VICTIM	UINT32_MAX

struct pl__victims {
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
void pl__victims_begin(struct pl__victims *v, uint32_t thief, uint64_t at,
		       uint32_t nr, uint32_t first);

/*
 * The index of the next, or PL__NO_VICTIM.  Each but the thief once, unless it
 * moves meanwhile.
 */
uint32_t pl__victims_next(struct pl__victims *v);

#endif /* PL_VICTIM_H */
