/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon_pace: how soon sysmon looks again
 *
 * The interval doubles from look to look, and begins anew when a look finds
 * something.  A worker that waits for events runs for some us at a time; to
 * wake sysmon for each of these costs more than the tasks.  So while any worker
 * has taken a task since the last look, sysmon does not sleep without a
 * deadline, and is not to be woken.
 *
 * Only sysmon's thread calls these.
 */
#ifndef PL_SYSMON_PACE_H
#define PL_SYSMON_PACE_H

#include "base/base.h"

/* The first look comes soon. */
void pl__pace_start(void);

/* A look found something: the next ones come soon. */
void pl__pace_hurry(void);

/*
 * Sysmon has slept for @ns without a task to look for; now one waits, or a
 * worker has begun to run.
 */
void pl__pace_wake(uint64_t ns, bool has_work);

/*
 * Once a look: true: sysmon may sleep while no task waits, as no worker has
 * taken any since the last look, and @has_none_to_look_at, or the longest
 * interval is over.
 */
bool pl__pace_may_sleep(bool has_none_to_look_at);

/* The time until the next look, after one that took @spent_ns. */
uint64_t pl__pace_next(uint64_t spent_ns, bool has_work);

/* A task waits: there will be last looks afterwards. */
void pl__pace_renew(void);

/*
 * While no task waits, a few looks at workers that count as blocked: the time
 * of the next, or UINT64_MAX.
 */
uint64_t pl__pace_last_look(uint64_t now);

#endif /* PL_SYSMON_PACE_H */
