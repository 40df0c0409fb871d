/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * mutex: what condition variables need of it
 */
#ifndef PL_MUTEX_H
#define PL_MUTEX_H

#include "wait/wait.h"

/*
 * Locks as a thread that has slept, so that the next unlock wakes another.  0,
 * or what pl__wait() returns except -EAGAIN.
 */
int pl__mutex_lock_contended(struct pl_mutex *m, uint64_t deadline_ns,
			     uint32_t flags);

/*
 * spin: how long a locker watches a lock before it waits
 */

/*
 * The pauses double, some microseconds in all, so that spinners do not take the
 * cache line from the owner.
 */
#define PL__NR_BACKOFFS	8

/* Ready tasks of the caller's worker use the time better. */
static inline bool pl__may_spin(void)
{
	struct pl__worker *w = pl__self();

	return !w || ((load_relaxed(&w->group->nr_alive) > 1 ||
		       load_relaxed(&pl__rt.nr_groups) > 1) &&
		      pl__deque_empty(&w->deque) &&
		      pl__deque_empty(&w->events));
}

static inline void pl__back_off(int nth)
{
	int i;

	for (i = 0; i < 1 << nth; i++)
		pl__cpu_relax();
}

#endif /* PL_MUTEX_H */
