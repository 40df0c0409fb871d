/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * pace: how many workers run, and how many are meant to
 *
 * A worker runs while it is neither idle, blocked nor stalled; `active` are
 * meant to run.  More may run after a blocked worker returns or that number is
 * lowered.  Then those with the highest indices are surplus: such a worker
 * parks at the end of its task although there is work.
 *
 *	surplus worker			worker that blocks
 *	nr_idle++		[idle-a]	nr_blocked++
 *	full barrier			full barrier	[idle-b]
 *	if (enough run)			if (there is work, too few run)
 *		park				signal the lots
 *
 * Invariant: while there is work, no fewer workers run than are meant to.  Each
 * side writes its counter before it reads the other's, so either the surplus
 * worker sees nr_blocked and stays, or the blocking worker sees nr_idle and
 * signals.  Otherwise the first parks, the second blocks, and too few run.
 * A surplus worker leaves the tasks in its queues to an inbox.
 */
#ifndef PL_PACE_H
#define PL_PACE_H

#include "queue/rt.h"

/* Fewer workers run than are meant to. */
static inline bool pl__is_short(void)
{
	return load_relaxed(&pl__rt.nr_alive) <
	       load_relaxed(&pl__rt.active) + pl__nr_not_running();
}

/*
 * Blocked and stalled workers leave room for one more: those blocked now, and
 * those of the crew that were blocked for a while.  A worker in the start hook
 * leaves none, as its replacement would be blocked in the hook as well.
 */
static inline bool pl__is_start_due(void)
{
	uint32_t nr = load_relaxed(&pl__rt.nr_alive);

	return nr < pl__rt.cfg.max_workers &&
	       nr + load_relaxed(&pl__rt.nr_in_hook) <
		    load_relaxed(&pl__rt.active) +
		    load_relaxed(&pl__rt.nr_blocked) +
		    load_relaxed(&pl__rt.nr_stalled) +
		    load_relaxed(&pl__rt.nr_crew_blocked);
}

/* More workers are alive than are meant to run: some may be surplus. */
static inline bool pl__has_surplus_workers(void)
{
	return load_relaxed(&pl__rt.nr_alive) >
	       load_relaxed(&pl__rt.active);
}

/* As many as are meant to run have a lower index. */
bool pl__is_above_active(uint32_t index);

/*
 * @w, the caller, a running worker, is surplus: too many run, and it is one of
 * those with the highest indices.
 */
static inline bool pl__is_surplus(struct pl__worker *w)
{
	return unlikely(pl__has_surplus_workers()) &&
	       pl__nr_running() > load_relaxed(&pl__rt.active) &&
	       pl__is_above_active(w->index);
}

#endif /* PL_PACE_H */
