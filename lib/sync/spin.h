/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * spin: how long a locker watches a lock before it waits
 */
#ifndef PL_SPIN_H
#define PL_SPIN_H

#include "wait/wait.h"

/*
 * The pauses double, some microseconds in all, so that spinners do not take the
 * cache line from the owner.
 */
#define PL__NR_BACKOFFS	8

/* Ready tasks of the caller's worker use the time better. */
static inline bool pl__may_spin(void)
{
	struct pl__worker *w = pl__self();

	return !w || (load_relaxed(&pl__rt.nr_alive) > 1 &&
		      pl__deque_empty(&w->deque) &&
		      pl__deque_empty(&w->events));
}

static inline void pl__back_off(int nth)
{
	int i;

	for (i = 0; i < 1 << nth; i++)
		pl__cpu_relax();
}

#endif /* PL_SPIN_H */
