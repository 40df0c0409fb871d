/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * run: the next task of a worker, and the switch to it
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
#ifndef PL_RUN_H
#define PL_RUN_H

#include "queue/aside.h"
#include "queue/ready.h"
#include "queue/rt.h"
#include "queue/task.h"
#include "queue/worker.h"
#include "pace/duty.h"
#include "pace/notify.h"
#include "pace/pace.h"
#include "pace/retry.h"
#include "pace/sysmon_wake.h"
#include "pace/worker_thread.h"
#include "run/spare.h"
#include "run/stack_wait.h"
#include "run/steal.h"
#include "run/task_exit.h"
#include "ctx/cxx.h"
#include "ctx/self.h"
#include "base/inject.h"

/* Makes @t ready, and notifies. */
void pl__ready(struct pl__task *t);

/*
 * For a thread that is no worker: makes a chain of links ready, newest first.
 */
void pl__ready_chain(struct pl__link *newest, struct pl__link *oldest);

/* The loop of @w, the caller, until the runtime ends, or the worker. */
void pl__worker_loop(struct pl__worker *w);

/* The next ready task of worker @w itself; NULL: none, or @w is surplus. */
struct pl__task *pl__next(struct pl__worker *w);

/*
 * The oldest background task; where none may run sysmon is to see to it that
 * one does.  NULL: none.
 */
struct pl__task *pl__next_background(void);

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

/* Also saves the task's C++ exceptions, and calls the hooks. */
void pl__leave_slow(struct pl__worker *w, struct pl__task *t,
		    struct pl__task *next, void (*after)(void *arg), void *arg);

/*
 * Switches from @t, which runs on @w, and returns when a worker resumes @t.
 * errno goes with the task.
 */
static inline void pl__leave(struct pl__worker *w, struct pl__task *t,
			     struct pl__task *next, void (*after)(void *arg),
			     void *arg)
{
	int error = *w->errno_at;

	if (unlikely(pl__cxx_is_due())) {
		pl__leave_slow(w, t, next, after, arg);
		return;
	}
	pl__stack_check(t->stack);
	pl__ctx_switch(&t->ctx, pl__switch_prepare(w, next, after, arg));
	*pl__switch_finish()->errno_at = error;
}

/* Switches away; @after(@arg) arranges for a waker to make the caller ready. */
static inline void pl__block(void (*after)(void *arg), void *arg)
{
	struct pl__worker *w = pl__self();
	struct pl__task *t = w->current;

	pl__leave(w, t, pl__next_prepared(w), after, arg);
}

#endif /* PL_RUN_H */
