/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * held: the queue of tasks that are held back
 *
 * While too many workers are stalled, see relief.h, a look that finds a task
 * that has not started moves it here, out of the way of what waits behind it.
 * It is one queue of the runtime, first in, first out: the worker that moved a
 * task may be parked by the time when this one may run, and those that run then
 * have tasks of their own, and would not steal.  Each of them takes one from
 * here in turn with its events.
 *
 *	worker that moves a task	stalled worker, next task
 *	take it off its queue		nr_stalled--		[relief-a]
 *	put it here			full barrier
 *	full barrier	[relief-a]	if (a task is here)
 *	if (none is held back)			notify
 *		notify
 *
 * Invariant: a task that is held back no longer is not left to parked workers
 * since it was on its way.  Either the stalled worker finds it here, or the one
 * that has moved it finds the lower nr_stalled.
 */
#ifndef PL_HELD_H
#define PL_HELD_H

#include "sched/relief.h"
#include "sched/rt.h"

/*
 * Number of tasks in the queue.  What the worker that took one did before is
 * seen after this, see inbox.h.
 */
static inline uint32_t pl__held_nr(void)
{
	return load_acquire(&pl__rt.held.nr);
}

/* Tasks are here that may run now. */
static inline bool pl__held_is_ready(void)
{
	return unlikely(pl__held_nr()) && !pl__is_unstarted_held();
}

/* Moves @t here, which has not started and is in no other queue. */
void pl__held_put(struct pl__task *t);

/* After pl__held_put(): they are run, or sysmon looks at them. */
void pl__held_notify(void);

/* The oldest, unless they are held back; NULL: there is none. */
struct pl__task *pl__held_take(void);

#endif /* PL_HELD_H */
