/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * kept: deadlines that a worker keeps itself
 *
 * The deadline of a task's wait is in the bucket of its worker.  If the worker
 * is idle when that is due, it sleeps until the deadline, and the timer thread
 * need not wake, see time/timer_thread.c.  If it is not idle, it calls what is
 * due where it looks for events; but it may be in a long task, or blocked.  So
 * at each look sysmon tells the timer thread of what those workers keep that
 * are not idle, and are in the same task as at the look before, or late; and of
 * all that are not idle before it sleeps:
 *
 *	sysmon				worker
 *	word = ASLEEP		[kept-a]	keep a deadline, or RUNS
 *	full barrier			full barrier		[kept-b]
 *	for workers that are not idle	if (word is ASLEEP)
 *		tell the timer thread		tell it, or wake sysmon
 *
 * Invariant: while sysmon sleeps no worker keeps a deadline but those that are
 * idle.  Either sysmon sees what the worker keeps or the worker sees ASLEEP;
 * otherwise the deadline passes while the worker computes.  The worker need not
 * look each time: if its bucket was kept before, under the lock, either sysmon
 * was awake then or it tells of the new deadline as well.
 *
 * Others come to them before that: a worker that has no task takes what is due,
 * and one that takes tasks, now and then, what is late.  So a worker that lacks
 * a processor keeps no deadline for long while another has one.
 *
 * A worker of which sysmon has told keeps nothing more until it is idle again,
 * or has taken a task by the next look.  A worker that becomes a spare for a
 * task that it expects to block tells itself.
 */
#ifndef PL_KEPT_H
#define PL_KEPT_H

#include "queue/rt.h"

/* Before the first worker starts. */
void pl__kept_start(void);

/* As pl__timer_list(), by @w, the caller, of the deadline of a wait. */
void pl__kept_list(struct pl__worker *w, struct pl__timer *timer);

/* The earliest deadline that @w keeps, or PL_FOREVER. */
static inline uint64_t pl__kept_ns(struct pl__worker *w)
{
	return w->number < pl__rt.nr_keepers ?
	       pl__timers_kept_until(pl__rt.timers, w->number) : PL_FOREVER;
}

static inline bool pl__is_keeping(struct pl__worker *w)
{
	return pl__kept_ns(w) != PL_FOREVER;
}

/* @w, the caller, is idle, and may keep more: until when it may sleep. */
uint64_t pl__kept_until(struct pl__worker *w);

/* Makes the tasks ready of which @w, the caller, has kept the deadline. */
void pl__kept_fire_slow(struct pl__worker *w);
static inline void pl__kept_fire(struct pl__worker *w)
{
	if (pl__is_keeping(w))
		pl__kept_fire_slow(w);
}

/*
 * @w, the caller, takes tasks: makes those ready of which another worker, the
 * next one at each call, has kept the deadline for too long.  How many.
 */
uint32_t pl__kept_take_late(struct pl__worker *w);
/* The same, of one that keeps what is due, where it has none; notifies. */
bool pl__kept_steal(struct pl__worker *w);

/* sysmon: tells the timer thread what workers keep that are not idle. */
void pl__kept_tell(struct pl__group *g);

/* sysmon, once a look: the same, of those that do not come to it in time. */
void pl__kept_look(struct pl__group *g);

/* @w, the caller, ends or is about to block, or sysmon sleeps. */
void pl__kept_give_up(struct pl__worker *w);

#endif /* PL_KEPT_H */
