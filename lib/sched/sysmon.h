/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon: the thread that looks for blocked and stalled workers
 */
#ifndef PL_SYSMON_H
#define PL_SYSMON_H

#include "sched/rt.h"
#include "base/inject.h"

/* The thread that sees who is blocked in the kernel; -ENOMEM, -EAGAIN. */
int pl__sysmon_start(void);
void pl__sysmon_stop(void);

/* True: and the crew, which may not have seen who blocked until now. */
bool pl__sysmon_notify_slow(void);

/* It is to look at workers, though no task waits. */
void pl__sysmon_kick(void);

/* A worker parks, since there is nothing; true: now there is something. */
bool pl__sysmon_clear_backlog(void);

/*
 * After a full barrier: tasks were queued, and enough workers run, if they do;
 * true: look again whether they do.
 */
static inline bool pl__sysmon_notify(void)
{
	/* [sysmon-b] pairs with [sysmon-a], [backlog-b] with [backlog-a]. */
	return unlikely(load_relaxed(&pl__rt.sysmon) != PL__SYSMON_AWAKE) &&
	       pl__sysmon_notify_slow();
}

/*
 * The caller runs tasks, or is about to, and has I/O in flight: should it be
 * held up, somebody is to see that.
 */
static inline void pl__sysmon_notify_io(void)
{
	/* [orphan-b] pairs with [orphan-a] in sysmon.c. */
	pl__full_barrier();
	PL_INJECT("orphan-b");
	if (unlikely(load_relaxed(&pl__rt.sysmon) == PL__SYSMON_ASLEEP))
		pl__sysmon_kick();
}

#endif /* PL_SYSMON_H */
