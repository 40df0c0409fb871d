/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * background: ready tasks that run when nothing else is ready
 *
 * A task that was spawned with PL_SPAWN_BACKGROUND goes to one queue of the
 * runtime, first in, first out, each time it becomes ready.  A worker takes one
 * from there only when it would park otherwise: it has looked in its queues, in
 * its ring and the inboxes, has tried to steal, and finds no task set aside.
 *
 * So this queue is one more of those in which an idle worker looks after it has
 * counted itself as idle, and a submitter puts a task there and notifies as for
 * any other: [idle-a] and [idle-b] of notify.h hold as they are.
 *
 * Where other tasks are always ready a worker takes one at every 64th task, if
 * none was taken for PL__BACKGROUND_NS; each of these may be long, so a number
 * of tasks alone would be no bound on what they take from the others.
 *
 * While as many workers compute for long as relief.h allows, none is taken: it
 * would take a processor from these, and [relief-a] is there for both.
 */
#ifndef PL_BACKGROUND_H
#define PL_BACKGROUND_H

#include "queue/rt.h"

/* None was taken for so long: one runs though others are ready. */
#define PL__BACKGROUND_NS	(10 * 1000 * 1000ULL)

/* The new task @t is one, until it ends. */
void pl__background_begin(struct pl__task *t);
void pl__background_end(struct pl__task *t);

static inline bool pl__is_background(const struct pl__task *t)
{
	return unlikely(t->waiter.is_background);
}

/* Number of ready tasks in the queue. */
static inline uint32_t pl__background_nr(void)
{
	return load_relaxed(&pl__rt.background.nr);
}

/* Makes @t ready, which is one, without notifying. */
void pl__background_put(struct pl__task *t);

/* Others compute, as many as may: none of those that wait is taken. */
static inline bool pl__background_is_held(void)
{
	return unlikely(pl__background_nr()) && !pl__nr_may_compute();
}

/* The oldest; NULL: there is none, or they are held. */
struct pl__task *pl__background_take(void);

/* As pl__background_take(), if none has been taken for long. */
struct pl__task *pl__background_take_overdue(void);

#endif /* PL_BACKGROUND_H */
