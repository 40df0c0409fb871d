/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * relief: workers that run beside stalled ones, which compute for long
 *
 * No task is preempted, but the kernel shares the processors among threads.  So
 * while tasks wait, and fewer workers take tasks than are meant to run, sysmon
 * marks each worker that has been in one task for stall_ns as STALLED: it no
 * longer counts as running, and another worker, its relief, is notified or
 * started as for a blocked one.  The stalled worker takes the mark back at its
 * next task; then it may be surplus, and parks.
 *
 * A task that did so is expected to do so again, see forecast.h, and is set
 * aside for a spare, which is STALLED from before it begins, see aside.h.  So a
 * pool of long computations does not take the reliefs as well.
 *
 * So many workers may be stalled as the limit says, of either kind: as many as
 * there are processors to use.  More would only take time from each other.
 * While tasks are set aside for want of that, and none is taken, or no worker
 * takes any task, the limit is raised by one, each time after twice the time.
 *
 *	worker that parks		stalled worker, next task
 *	nr_idle++	[idle-a]	nr_stalled--		[relief-a]
 *	full barrier			full barrier
 *	if (nr_stalled < limit) [relief-b]	if (nr_idle)
 *		look at those set aside		notify
 *	park
 *
 *	sysmon				worker that sets a task aside
 *	word = ASLEEP			queue it
 *	full barrier	[compute-a]	full barrier		[compute-b]
 *	if (one is set aside to compute)	if (word is ASLEEP)
 *		do not sleep			wake sysmon
 *
 * Invariant: sysmon does not sleep while such a task waits.  Otherwise the
 * limit is never raised, and the task waits until a stalled worker is through.
 *
 * Invariant: a task that may compute is not left to a parked worker.  Either
 * the worker that parks finds the lower nr_stalled and looks, or the one that
 * lowers it finds nr_idle and notifies; otherwise the task waits although too
 * few compute.  sysmon raises the limit in the same way.
 */
#ifndef PL_RELIEF_H
#define PL_RELIEF_H

#include "queue/rt.h"

/* The caller lowered nr_stalled, or raised the limit: notifies if need be. */
void pl__relief_recheck(void);

/*
 * sysmon, at each look: sets the limit.  @is_short: tasks wait, and workers
 * that compute are why too few take them.
 */
void pl__relief_look(uint64_t now, bool is_short);

/* sysmon: tasks wait until one more may compute, so it has to look on. */
bool pl__relief_is_due(void);

/* Before sysmon starts. */
void pl__relief_reset(void);

#endif /* PL_RELIEF_H */
