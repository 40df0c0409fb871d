/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
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
#ifndef PL_FORECAST_H
#define PL_FORECAST_H

#include "queue/task.h"

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

#endif /* PL_FORECAST_H */
