/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * forecast: whether a task is expected to block its worker in the kernel
 *
 * A start routine that blocked before will block again.  A small table has a
 * score for each routine, which goes up by 2 when a worker is found blocked in
 * a task of it, and down by 1 when a task that was expected to block does not.
 * A task that ran before has a score of its own, as routines such as that of a
 * connection serve requests of several kinds.
 *
 * The table is of fixed size, and a routine may lose its place to another.  It
 * is a hint: threads read and write it without order, and a forecast that is
 * wrong costs a switch between threads.
 */
#ifndef PL_FORECAST_H
#define PL_FORECAST_H

#include "sched/task.h"

#define PL__FORECAST_ROUTINES	256	/* a power of 2 */
#define PL__FORECAST_MOST	3	/* the highest score */
#define PL__FORECAST_BLOCKS	2	/* from here on it is expected to */

/* Any routine has been found to block. */
extern _Atomic bool pl__forecast_has_any;

void pl__forecast_add(void (*fn)(void *arg), bool has_blocked);
bool pl__forecast_of(void (*fn)(void *arg));
void pl__forecast_reset(void);

uint8_t pl__forecast_score(uint8_t score, bool has_blocked);

/* The caller owns @t, which is ready. */
static inline bool pl__forecast_blocks(const struct pl__task *t)
{
	if (likely(!load_relaxed(&pl__forecast_has_any)))
		return false;
	if (t->stack)
		return t->score >= PL__FORECAST_BLOCKS;
	return pl__forecast_of(pl__task_fn(t));
}

#endif /* PL_FORECAST_H */
