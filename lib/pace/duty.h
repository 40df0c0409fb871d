/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * duty: what a worker does, as all others see it, and the counters of that
 *
 * The counter goes up before a worker is marked, and the thread that takes the
 * mark back lowers it: so none falls below zero.  [duty-a] and [duty-b] are
 * drawn in sysmon.c.
 */
#ifndef PL_DUTY_H
#define PL_DUTY_H

#include "ring/ring.h"
#include "queue/rt.h"

static inline bool pl__has_io(struct pl__worker *w)
{
	return w->ring && pl__ring_is_busy(w->ring);
}

/* The worker leaves PL__RUNS for @duty, and returns to PL__RUNS. */
void pl__worker_leaves(struct pl__worker *w, enum pl__duty duty);
void pl__worker_runs(struct pl__worker *w);

/*
 * The worker has a next task, or does something else than it was marked for:
 * takes BLOCKED or STALLED back.  True: it was BLOCKED.
 */
bool pl__unblocked(struct pl__worker *w);

/* The caller has taken @duty back: lowers its counters. */
void pl__duty_uncount(uint32_t duty);

/*
 * @w, which runs or is counted as idle, becomes a spare.  The caller issues a
 * full barrier and notifies.
 */
void pl__spare_begin(struct pl__worker *w);

/* The spare @w computes: nr_stalled has it already. */
void pl__spare_begin_to_compute(struct pl__worker *w);

/*
 * The spare @w is about to block, or through with its task: true: it computes
 * no more.  The caller looks whether another task may.
 */
bool pl__spare_stop_to_compute(struct pl__worker *w);

/* @w is a spare no more, and runs. */
void pl__spare_end(struct pl__worker *w);

#endif /* PL_DUTY_H */
