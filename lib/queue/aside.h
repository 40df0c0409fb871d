/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * aside: ready tasks that would keep their worker from others
 *
 * A task that is expected to block, or to compute for long (forecast.h), is set
 * aside: it goes to one queue of its kind, first in, first out, so that no
 * other task waits behind it.  Those that have run before overtake those that
 * have not started, to which every 4th turn belongs.
 *
 * Spares run them, see spare.h: so many may block as there are workers, but
 * only so many may compute as relief.h says.
 */
#ifndef PL_ASIDE_H
#define PL_ASIDE_H

#include "queue/forecast.h"
#include "queue/rt.h"

/* None was taken for so long: a worker that runs others takes one. */
#define PL__ASIDE_OVERDUE_NS	(10 * 1000 * 1000ULL)

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

/* Queues @t, which is expected to do @run. */
void pl__aside_push(struct pl__task *t, enum pl__run run);

/*
 * The next one that may run, and what it is expected to do; one that computes
 * is counted in nr_stalled.  @was_short: so was the last one of this spare.
 */
struct pl__task *pl__aside_pop(bool was_short, enum pl__run *run);

/* One that none took for long, though it may run; it is not counted. */
struct pl__task *pl__aside_pop_overdue(void);

/* One more may compute: a spare takes the next soon, if any is idle. */
void pl__aside_renew_compute(void);

#endif /* PL_ASIDE_H */
