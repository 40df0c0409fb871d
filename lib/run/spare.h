/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * spare: workers that run what is set aside
 *
 * A *spare* takes a task that is set aside (aside.h): it counts as blocked, or
 * as stalled, from before it begins the task, so that as many others run beside
 * it whatever the task does.  A worker becomes a spare if it finds nothing else
 * to do.  Spares are woken, or started, as tasks are set aside; a few at a time
 * are started, and each of these starts the next.  So many may block as there
 * are workers, but only so many may compute as relief.h says.
 *
 *	worker that sets aside		idle worker
 *	queue the task			nr_idle++
 *	full barrier	[aside-b]	full barrier		[aside-a]
 *	if (nr_idle) signal		if (a task is set aside)
 *	else if (few are starting)		take it
 *		start a spare		else park
 *
 *					spare that starts
 *					take a task, or nr_idle++
 *					nr_starting--		[aside-a]
 *					full barrier
 *					if (a task is set aside)
 *						notify as on the left
 *
 * Invariant: a task that is set aside is not left while a worker may be woken
 * or started.  The submitter that finds an idle, searching or starting worker
 * leaves the task to it only if that worker looks in the queue later on: each
 * side writes its own word before it reads the other's.  Otherwise the task
 * waits although workers are idle.  A thread that counts as the searcher while
 * it notifies looks there, too, once it has woken none.
 *
 * A worker in its start hook starts, but is not waited for: an idle one is
 * woken beside it.
 *
 * If max_workers are alive the task waits for the next spare that is through.
 * If none has been taken for a while, the workers that run others take one.
 */
#ifndef PL_SPARE_H
#define PL_SPARE_H

#include "queue/aside.h"

static inline bool pl__can_have_spares(void)
{
	return pl__rt.cfg.max_workers > load_relaxed(&pl__rt.target);
}

/*
 * Sets the new task @t aside, by worker @w or, NULL, by another thread, as one
 * that blocked before.  False: there can be no spare.
 */
bool pl__aside_spawn(struct pl__worker *w, struct pl__task *t);

/*
 * Sets @t aside if it is expected to keep its worker from others.  False: it is
 * not, or no other task waits and @w is now the spare that runs it.
 */
bool pl__aside_put(struct pl__worker *w, struct pl__task *t);

/* A task that was set aside, for @w, which is now a spare; NULL: none. */
struct pl__task *pl__aside_take(struct pl__worker *w);

/* As pl__aside_take(), if none has been taken for long; @w is no spare. */
struct pl__task *pl__aside_take_overdue(struct pl__worker *w);

/* The spare @w is through with its task: notes what that did. */
void pl__spare_judge(struct pl__worker *w);

#endif /* PL_SPARE_H */
