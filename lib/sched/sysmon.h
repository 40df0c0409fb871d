/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon: the thread that looks for blocked and stalled workers
 */
#ifndef PL_SYSMON_H
#define PL_SYSMON_H

#include "sched/forecast.h"
#include "sched/rt.h"
#include "base/inject.h"

/*
 * Starts the thread that finds workers blocked in the kernel; 0, -ENOMEM,
 * -EAGAIN.
 */
int pl__sysmon_start(void);
void pl__sysmon_stop(void);

/*
 * The slow path of pl__sysmon_notify(); true: recheck, as the crew had not
 * counted blocked workers yet.
 */
bool pl__sysmon_notify_slow(void);

/* sysmon: the task that @w took at @tick does so. */
void pl__sysmon_learn(struct pl__worker *w, uint32_t tick, enum pl__run run);

/* Makes sysmon look at the workers, though no task waits. */
void pl__sysmon_kick(void);

/*
 * A worker that parks for want of work clears the backlog; true: now there is
 * work.
 */
bool pl__sysmon_clear_backlog(void);

/*
 * The submitter has queued tasks, issued a full barrier, and counted enough
 * running workers.  Wakes sysmon; true: count them again.
 */
static inline bool pl__sysmon_notify(void)
{
	/* [sysmon-b] pairs with [sysmon-a], [backlog-b] with [backlog-a]. */
	return unlikely(load_relaxed(&pl__rt.sysmon) != PL__SYSMON_AWAKE) &&
	       pl__sysmon_notify_slow();
}

/*
 * The caller has I/O in flight and runs tasks, or is about to.  Wakes sysmon,
 * which orphans the ring if the caller stalls.
 */
static inline void pl__sysmon_notify_io(void)
{
	/* [orphan-b] pairs with [orphan-a] in sysmon.c. */
	pl__full_barrier();
	PL_INJECT("orphan-b");
	if (unlikely(load_relaxed(&pl__rt.sysmon) == PL__SYSMON_ASLEEP))
		pl__sysmon_kick();
}

/*
 * The caller has set a task aside that is to compute when others do so no more.
 * Wakes sysmon, which raises the limit in time, or finds that one of these
 * blocks.
 */
static inline void pl__sysmon_notify_compute(void)
{
	/* [compute-b] pairs with [compute-a] in sysmon.c. */
	pl__full_barrier();
	PL_INJECT("compute-b");
	if (unlikely(load_relaxed(&pl__rt.sysmon) == PL__SYSMON_ASLEEP))
		pl__sysmon_kick();
}

#endif /* PL_SYSMON_H */
