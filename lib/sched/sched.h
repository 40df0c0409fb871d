/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sched: the next task of a worker, and the switch to it
 *
 * A worker is a thread with a deque of ready tasks.  It runs them, newest
 * first, each on a stack of its own; what blocks switches straight to the
 * next ready task, or, where there is none, back to the worker's loop
 * (worker.c), which steals, polls and parks.  A task that asked for the
 * worker's own stack is run by the loop itself.
 *
 * Who has switched away may be made ready only once it really left its
 * registers behind.  So it names an *after-switch callback*, which the next
 * one to run calls first (bthread's "remained").  That may make ready, unlock
 * or free; it may not switch, allocate or fail.
 */
#ifndef PL_SCHED_H
#define PL_SCHED_H

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
 * One task in so many is the oldest there is; completions and the inbox are
 * looked at then.  So nothing ready waits longer than the queue is long times
 * this, however fast new tasks come on top; or twice this, as each second time
 * is for what waits behind others, if there are such.  parklot(7) promises it.
 */
#define PL__FAIR_EVERY	32	/* a power of 2 */

/* Makes @t ready, and calls for help. */
void pl__ready(struct pl__task *t);

/* The same for many: queue each, then pl__notify_one() once. */
void pl__ready_quietly(struct pl__task *t);

/* By a thread that is no worker: a chain of links, the newest first. */
void pl__ready_chain(struct pl__link *newest, struct pl__link *oldest);

/* Into the queue of @w, the caller; nobody is told. */
void pl__queue_own(struct pl__worker *w, struct pl__task *t);

/* The next ready task of worker @w itself; NULL: none, or it is surplus. */
struct pl__task *pl__next(struct pl__worker *w);

/* Moves all of inbox @from, its own or another's, to the deque of @w. */
void pl__drain(struct pl__worker *w, struct pl__inbox *from);

/* From the worker's loop: runs @t, prepared, until one comes back to it. */
void pl__run(struct pl__worker *w, struct pl__task *t);

/* The same, with a stack. */
struct pl__task *pl__next_prepared(struct pl__worker *w);

/* To be called first on every stack that was switched to. */
void pl__switch_finish(void);

/* What to switch to so that @next runs, or the loop, and calls @after first. */
struct pl__ctx *pl__switch_prepare(struct pl__worker *w, struct pl__task *next,
				   void (*after)(void *arg), void *arg);

/* @t, that runs on @w, until somebody switches back to it. */
static inline void pl__leave(struct pl__worker *w, struct pl__task *t,
			     struct pl__task *next, void (*after)(void *arg),
			     void *arg)
{
	pl__stack_check(t->stack);
	pl__ctx_switch(&t->ctx, pl__switch_prepare(w, next, after, arg));
	pl__switch_finish();
}

/* Switches away; @after(@arg) makes the caller ready in its time. */
static inline void pl__block(void (*after)(void *arg), void *arg)
{
	struct pl__worker *w = pl__self();
	struct pl__task *t = w->current;

	pl__leave(w, t, pl__next_prepared(w), after, arg);
}

/*
 * Makes the caller ready and runs @t, which is new, at once; or lets @t wait
 * for a stack.  False, and nothing is done: the caller cannot switch away.
 */
bool pl__switch_to(struct pl__task *t);

#endif /* PL_SCHED_H */
