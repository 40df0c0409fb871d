/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sched: the next task of a worker, and the switch to it
 *
 * A worker is a thread with two queues of ready tasks.  What a running task
 * spawns or wakes is in the deque, and runs newest first: its data are in the
 * caches, and a tree of tasks takes little memory.  What an event makes ready
 * (completed I/O, a timer, a thread that is no worker) is in the event queue,
 * and runs oldest first.
 *
 * Each task runs on a stack of its own.  A task that blocks switches straight
 * to the next ready task or, if there is none, to the worker's loop (worker.c),
 * which steals, polls and parks.  The loop itself runs a task that asked for
 * the worker's own stack.
 *
 * A task may be made ready only after its context has been saved.  So a task
 * that switches away names an *after-switch callback*, which the next context
 * calls first (bthread's "remained").  The callback may make a task ready,
 * unlock or free; it does not switch, allocate or fail.
 */
#ifndef PL_SCHED_H
#define PL_SCHED_H

#include "sched/aside.h"
#include "sched/notify.h"
#include "sched/retry.h"
#include "sched/rt.h"
#include "sched/steal.h"
#include "sched/sysmon.h"
#include "sched/task.h"
#include "sched/task_exit.h"
#include "sched/stack_wait.h"
#include "sched/worker.h"
#include "sched/worker_thread.h"
#include "ctx/self.h"
#include "base/inject.h"

/*
 * Every 32nd task is the oldest of the deque, after the worker has looked at
 * its completions and inboxes.  Every second of these is instead stolen
 * from a stalled worker, if there is such a task.  So a task in the deque waits
 * for at most this number, or twice this number, times the length of the deque,
 * however fast new tasks come on top.  parklot-scheduling(7) promises it.
 */
#define PL__FAIR_EVERY	32	/* a power of 2 */

/*
 * Every 4th task is the oldest event, but for the 32nd.  So of 8 tasks one is
 * an event, if any is ready; parklot-scheduling(7) promises it.  While workers
 * are blocked 3 of 4 are events: what was spawned may block one more.
 */
#define PL__EVENT_EVERY	4	/* a power of 2 */

/* event_mask of a worker without events: each 32nd tick it looks for some */
#define PL__NO_EVENTS	(PL__FAIR_EVERY - 1)

/* Makes @t ready, and notifies. */
void pl__ready(struct pl__task *t);

/* Makes @t ready without notifying; after the last, call pl__notify_one(). */
void pl__ready_quietly(struct pl__task *t);

/* As pl__ready_quietly(), by @w, the caller. */
void pl__ready_quietly_by(struct pl__worker *w, struct pl__task *t);

/* As pl__ready_quietly(), of a task that an event makes ready. */
void pl__ready_event(struct pl__task *t);

/*
 * For a thread that is no worker: makes a chain of links ready, newest first.
 */
void pl__ready_chain(struct pl__link *newest, struct pl__link *oldest);

/* Queues @t in @d, a queue of @w, the caller, without notifying. */
void pl__queue_own(struct pl__worker *w, struct pl__deque *d,
		   struct pl__task *t);

/* Queues @t as an event of @w, the caller, without notifying. */
void pl__queue_event(struct pl__worker *w, struct pl__task *t);

/* The oldest event of @w, the caller; NULL: none. */
struct pl__task *pl__next_event(struct pl__worker *w);

/* The next ready task of worker @w itself; NULL: none, or @w is surplus. */
struct pl__task *pl__next(struct pl__worker *w);

/*
 * The loop runs @t, which is prepared, until a task switches back to the loop.
 */
void pl__run(struct pl__worker *w, struct pl__task *t);

/* The next ready task of @w that has a stack. */
struct pl__task *pl__next_prepared(struct pl__worker *w);

/* Every context calls it first after a switch to it.  Returns the worker. */
struct pl__worker *pl__switch_finish(void);

/* The context that runs @next, or the loop; it calls @after(@arg) first. */
struct pl__ctx *pl__switch_prepare(struct pl__worker *w, struct pl__task *next,
				   void (*after)(void *arg), void *arg);

/*
 * Makes the caller ready, @quietly as unsignalled, and runs the new task @t
 * now, or lets @t wait for a stack.  False, with nothing done: the caller
 * cannot switch away.
 */
bool pl__switch_to(struct pl__task *t, bool quietly);

#endif /* PL_SCHED_H */
