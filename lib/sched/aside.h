/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * aside: ready tasks that would keep their worker from others, and the spares
 * that run them
 *
 * A task that is expected to block, or to compute for long (forecast.h), is set
 * aside: it goes to one queue of its kind, first in, first out, so that no
 * other task waits behind it.  Those that have run before overtake those that
 * have not started, to which every 4th turn belongs.
 * A *spare* takes it from there: a worker that counts as blocked, or stalled,
 * from before it begins the task, so that as many others run beside it whatever
 * the task does.  A worker becomes a spare if it finds nothing else to do.
 * Spares are woken, or started, as tasks are set aside; a few at a time are
 * started, and each of these starts the next.  So many may block as there are
 * workers, but only so many may compute as relief.h says.
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
 * waits although workers are idle.
 *
 * A worker in its start hook starts, but is not waited for: an idle one is
 * woken beside it.
 *
 * If max_workers are alive the task waits for the next spare that is through.
 * If none has been taken for a while, the workers that run others take one.
 */
#ifndef PL_ASIDE_H
#define PL_ASIDE_H

#include "sched/forecast.h"
#include "sched/relief.h"

/* Spares that are started at a time, at most: one for each processor. */
#define PL__ASIDE_STARTERS	4

/* None was taken for so long: a worker that runs others takes one. */
#define PL__ASIDE_OVERDUE_NS	(10 * 1000 * 1000ULL)

static inline bool pl__can_have_spares(void)
{
	return pl__rt.cfg.max_workers > load_relaxed(&pl__rt.target);
}

/* Number of tasks that are set aside and may run now. */
static inline uint32_t pl__aside_nr(void)
{
	uint32_t nr = load_relaxed(&pl__rt.aside.compute.nr), most;

	if (unlikely(nr)) {
		most = pl__nr_may_compute();
		nr = nr < most ? nr : most;
	}
	return load_relaxed(&pl__rt.aside.block.nr) + nr;
}

/* The same, if @w, a spare, leaves its task. */
static inline bool pl__aside_is_any_for(struct pl__worker *w)
{
	return pl__aside_nr() || (load_relaxed(&pl__rt.aside.compute.nr) &&
				  load_relaxed(&w->duty) == PL__STALLED);
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

/* How many more workers may start at a time now. */
uint32_t pl__nr_may_start(void);

/* Wakes or starts spares for tasks that are set aside. */
void pl__aside_notify(struct pl__worker *w);

/* A task that was set aside, for @w, which is now a spare; NULL: none. */
struct pl__task *pl__aside_take(struct pl__worker *w);

/* As pl__aside_take(), if none has been taken for long; @w is no spare. */
struct pl__task *pl__aside_take_overdue(struct pl__worker *w);

/*
 * @w, which runs or is counted as idle, becomes a spare.  The caller issues a
 * full barrier and notifies.
 */
void pl__spare_begin(struct pl__worker *w);

/*
 * The spare @w is about to block, or through with its task: true: it computes
 * no more.  The caller looks whether another task may.
 */
bool pl__spare_stop_to_compute(struct pl__worker *w);

/* @w is a spare no more, and runs. */
void pl__spare_end(struct pl__worker *w);

/* The spare @w is through with its task: notes what that did. */
void pl__spare_judge(struct pl__worker *w);

#endif /* PL_ASIDE_H */
