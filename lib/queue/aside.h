/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * aside: ready tasks that would keep their worker from others
 *
 * A task that is expected to block, or to compute for long (aside.h), is set
 * aside: it goes to one queue of its kind, first in, first out, so that no
 * other task waits behind it.  Those that have run before overtake those that
 * have not started, to which every 4th turn belongs.
 *
 * Spares run them, see run.h: so many may block as there are workers, but
 * only so many may compute as pace.h says.
 */
#ifndef PL_ASIDE_H
#define PL_ASIDE_H

#include "queue/task.h"
#include "queue/ready.h"
#include "queue/rt.h"

/*
 * forecast: whether a task is expected to keep its worker from others
 *
 * A start routine that blocked in the kernel, or computed for long, will do so
 * again.  A small table has a score for each routine, which goes up by 2 when a
 * worker is found so in a task of it, and down by 1 when a task that was
 * expected to do so does not.  A task that ran before has a score of its own,
 * as routines such as that of a connection serve requests of several kinds.
 *
 * The table is of fixed size, and a routine may lose its place to another.  It
 * is a hint: threads read and write it without order, and a forecast that is
 * wrong costs a switch between threads.
 */

#define PL__FORECAST_ROUTINES	256	/* a power of 2 */
#define PL__FORECAST_MOST	3	/* the highest score */
#define PL__FORECAST_SURE	2	/* from here on it is expected */

/* What a run did, or is expected to do. */
enum pl__run {
	PL__RUN_SHORT,		/* left the worker soon */
	PL__RUN_BLOCKS,		/* slept in the kernel */
	PL__RUN_COMPUTES,	/* for stall_ns, or nearly */
};

/* Any routine has been found to do one of these. */
extern _Atomic bool pl__forecast_has_any;

/* A run of a task of @fn was so. */
void pl__forecast_add(void (*fn)(void *arg), enum pl__run run);
enum pl__run pl__forecast_of(void (*fn)(void *arg));
void pl__forecast_reset(void);

/* A score, which says what of, after a run that was so. */
uint8_t pl__forecast_score(uint8_t score, enum pl__run run);

/* That of a task that blocks, for sure. */
uint8_t pl__forecast_blocks(void);

/* What a run is to be, by a score. */
enum pl__run pl__forecast_by(uint8_t score);

/* The caller owns @t, which is ready. */
static inline enum pl__run pl__forecast(const struct pl__task *t)
{
	if (likely(!load_relaxed(&pl__forecast_has_any)))
		return PL__RUN_SHORT;
	return t->stack ? pl__forecast_by(t->score) :
			  pl__forecast_of(pl__task_fn(t));
}

/* None was taken for so long: a worker that runs others takes one. */
#define PL__ASIDE_OVERDUE_NS	(10 * 1000 * 1000ULL)

/* Number of tasks that are set aside and may run now. */
static inline uint32_t pl__aside_nr(struct pl__group *g)
{
	uint32_t nr = load_relaxed(&g->aside.compute.nr), most;

	if (unlikely(nr)) {
		most = pl__nr_may_compute(g);
		nr = nr < most ? nr : most;
	}
	return load_relaxed(&g->aside.block.nr) + nr;
}

/* The same, if @w, a spare, leaves its task. */
static inline bool pl__aside_is_any_for(struct pl__worker *w)
{
	return pl__aside_nr(w->group) ||
	       (load_relaxed(&w->group->aside.compute.nr) &&
		pl__is_stalled(w));
}

/* Queues @t, which is expected to do @run. */
void pl__aside_push(struct pl__task *t, enum pl__run run);

/*
 * The next one that may run, and what it is expected to do; one that computes
 * is counted in nr_stalled.  @was_short: so was the last one of this spare.
 */
struct pl__task *pl__aside_pop(struct pl__group *g, bool was_short,
			       enum pl__run *run);

/* One that none took for long, though it may run; it is not counted. */
struct pl__task *pl__aside_pop_overdue(struct pl__group *g);

/* One more may compute: a spare takes the next soon, if any is idle. */
void pl__aside_renew_compute(struct pl__group *g);

/*
 * background: ready tasks that run when nothing else is ready
 *
 * A task that was spawned with PL_SPAWN_BACKGROUND goes to one queue of its
 * group, first in, first out, each time it becomes ready.  A worker takes one
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
 * While as many workers compute for long as pace.h allows, none is taken: it
 * would take a processor from these, and [relief-a] is there for both.
 */

/* None was taken for so long: one runs though others are ready. */
#define PL__BACKGROUND_NS	(10 * 1000 * 1000ULL)

static inline bool pl__is_background(const struct pl__task *t)
{
	return unlikely(t->waiter.place & PL__PLACE_BACKGROUND);
}

/* Number of ready tasks in the queue. */
static inline uint32_t pl__background_nr(struct pl__group *g)
{
	return load_relaxed(&g->background.nr);
}

/* What @w takes next is not all that is ready in its queues and in this one. */
static inline bool pl__has_more_than_next(struct pl__worker *w)
{
	return pl__nr_queued(w) > 1 ||
	       (unlikely(pl__background_nr(w->group)) &&
		pl__nr_may_compute(w->group));
}

/* Makes @t ready, which is one, without notifying. */
void pl__background_put(struct pl__task *t);

/* Others compute, as many as may: none of those that wait is taken. */
static inline bool pl__background_is_held(struct pl__group *g)
{
	return unlikely(pl__background_nr(g)) && !pl__nr_may_compute(g);
}

/* The oldest; NULL: there is none, or they are held. */
struct pl__task *pl__background_take(struct pl__group *g);

/* As pl__background_take(), if none has been taken for long. */
struct pl__task *pl__background_take_overdue(struct pl__group *g);

#endif /* PL_ASIDE_H */
