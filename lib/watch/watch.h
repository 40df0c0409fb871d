/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * watch: what looks at workers, which cannot tell that they are blocked
 *
 * sysmon, a thread of the runtime's, looks at each worker while tasks wait.  It
 * finds those that sleep in the kernel (sysmon.c), that compute for long
 * (stalled.c), or whose ring nobody polls meanwhile (the same file), and marks
 * them: so pace.h counts them no more, and another worker runs in their place.
 * It sleeps while no task waits (sysmon_sleep.c).
 *
 * The runtime starts and stops it; who queues a task wakes it, notify.h.  It
 * looks 50 us after a task has begun to wait, and again at intervals that
 * double up to 5 ms.
 */
#ifndef PL_WATCH_H
#define PL_WATCH_H

#include "queue/aside.h"
#include "pace/notify.h"
#include "run/run.h"

/*
 * Starts the thread that finds workers blocked in the kernel; 0, -ENOMEM,
 * -EAGAIN.
 */
int pl__sysmon_start(void);
void pl__sysmon_stop(void);

/* sysmon: the task that @w took at @tick does so. */
void pl__sysmon_learn(struct pl__worker *w, uint32_t tick, enum pl__run run);

/*
 * How soon sysmon looks again
 *
 * The interval doubles from look to look, and begins anew when a look finds
 * something.  A worker that waits for events runs for some us at a time; to
 * wake sysmon for each of these costs more than the tasks.  So while any worker
 * has taken a task since the last look, sysmon does not sleep without a
 * deadline, and is not to be woken.
 *
 * Only sysmon's thread calls these.
 */

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
uint64_t pl__pace_next(uint64_t spent_ns);

/* A task waits: there will be last looks afterwards. */
void pl__pace_renew(void);

/*
 * While no task waits, a few looks at workers that count as blocked: the time
 * of the next, or UINT64_MAX.
 */
uint64_t pl__pace_last_look(uint64_t now);

/* ---- sysmon_sleep.c: sleeps until its word changes or a ring is ready ---- */

/*
 * Sleeps as long as sysmon's word is @word.  True: an orphaned ring has
 * completions, so sysmon has to look.
 */
bool pl__sysmon_sleep(uint32_t word, uint64_t deadline_ns);

/* While no sysmon runs. */
void pl__sysmon_sleep_fini(void);

/* ---- whether a thread sleeps in the kernel, by /proc ---- */

/*
 * sysmon: the worker sleeps in the kernel, and does not wait for a processor.
 * Without /proc, or without a descriptor, that it used no processor time has to
 * suffice.
 */
bool pl__sysmon_is_asleep(struct pl__worker *w);

/* How often a thread has gone to sleep; 0: /proc does not say. */
uint64_t pl__sysmon_nr_sleeps(int tid);

/*
 * since: how long a worker has been in its task, as far as was seen
 *
 * No worker notes the time at which it takes a task.  But sysmon looks at
 * workers while tasks wait, and so do dumps.  Each look notes when it first saw
 * the worker in this task, and its thread at this processor time: so these
 * times are lower bounds, and 0 for the first look.  Any thread may look.
 */

/* ms for which @w has been in the task that it is in. */
uint32_t pl__since_task_ms(struct pl__worker *w, uint64_t now_ns);

/* ms for which the thread of @w, which used @cpu_ns, has not run. */
uint32_t pl__since_ran_ms(struct pl__worker *w, uint64_t cpu_ns,
			  uint64_t now_ns);

/* ---- stalled.c: workers that compute for long; what follows: pace.h ---- */

/*
 * sysmon: marks stalled workers; returns how many.  @has_work: tasks wait that
 * a worker may take.
 */
uint32_t pl__stalled_scan(struct pl__group *g, uint64_t now, bool has_work);

/* ---- the rings of stalled workers, see run.h ---- */

/* Called by sysmon; returns how many rings became ready. */
uint32_t pl__orphan_ring_scan(struct pl__group *g, uint64_t now);

/*
 * True: a worker with requests in flight runs tasks, so it may stall at any
 * time.
 */
bool pl__orphan_ring_is_due(struct pl__group *g);
/* True: a worker has requests in flight, and may run tasks again. */
bool pl__orphan_ring_may_be_due(struct pl__group *g);

/* ---- sysmon_report.c: max_workers are blocked while tasks wait ---- */

/*
 * Called by sysmon: counts, and prints once, that no worker is left to notify.
 */
void pl__sysmon_report(struct pl__group *g, uint64_t now, bool has_work);

#endif /* PL_WATCH_H */
