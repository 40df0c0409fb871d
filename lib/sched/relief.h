/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * relief: workers that run beside stalled ones, which compute for long
 *
 * No task is preempted, but the kernel shares the processors among threads.  So
 * while tasks wait, and fewer than half of the target concurrency takes tasks,
 * sysmon marks each worker that has been in one task for stall_ns as STALLED:
 * it no longer counts as running, and another worker, its relief, is notified
 * or started as for a blocked one.  The stalled worker takes the mark back at
 * its next task; then it may be surplus, and parks.
 *
 * A pool of long computations must not take the reliefs as well.  Once as many
 * workers are stalled as the limit says, tasks that have not started are held
 * back: workers run only what was started before, which events and other tasks
 * woke, and what these spawn.  Where a look finds a task that has not started,
 * it moves it out of the way, see held.h.  The limit is the
 * target at first.  While tasks are held back, or workers stall beyond it, it
 * is raised by one, each time after twice the time.  The queue of background
 * tasks (background.h) is held back as long, whether these have started or not.
 *
 *	worker that parks		stalled worker, next task
 *	nr_idle++	[idle-a]	nr_stalled--		[relief-a]
 *	full barrier			full barrier
 *	if (nr_stalled < limit) [relief-b]	if (nr_idle)
 *		look at those held back		notify
 *	park
 *
 *	sysmon				worker that holds a task back
 *	word = ASLEEP			move it out of the way
 *	full barrier	[held-a]	full barrier		[held-b]
 *	if (a task is held back)	if (word is ASLEEP)
 *		do not sleep			wake sysmon
 *
 * Invariant: sysmon does not sleep while a task is held back.  Otherwise the
 * limit is never raised, and the task waits until the stalled worker is back.
 *
 * Invariant: a task that is held back no longer is not left to a parked worker.
 * Either the worker that parks finds the lower nr_stalled and looks, or the one
 * that lowers it finds nr_idle and notifies; otherwise the task waits although
 * too few run.  sysmon raises the limit in the same way.
 */
#ifndef PL_RELIEF_H
#define PL_RELIEF_H

#include "sched/rt.h"

/* Tasks that have not started are held back. */
static inline bool pl__is_unstarted_held(void)
{
	/* [relief-b] pairs with [relief-a] in pl__relief_recheck(). */
	return unlikely(load_relaxed(&pl__rt.nr_stalled) >=
			load_relaxed(&pl__rt.stalled_limit));
}

/*
 * The caller lowered nr_stalled, raised the limit, or moved a task to held.h's
 * queue: notifies if need be.
 */
void pl__relief_recheck(void);

/*
 * sysmon: marks stalled workers; returns how many.  @has_work: tasks wait that
 * are not held back.
 */
uint32_t pl__relief_scan(uint64_t now, bool has_work);

/* sysmon: tasks are held back, so it has to look on. */
bool pl__relief_is_due(void);

/* Before sysmon starts. */
void pl__relief_reset(void);

#endif /* PL_RELIEF_H */
