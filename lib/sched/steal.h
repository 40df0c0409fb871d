/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * steal: tasks from another worker's queues
 */
#ifndef PL_STEAL_H
#define PL_STEAL_H

#include "sched/worker.h"

/*
 * A task of another worker's, or NULL.  Who has time leaves to a worker that
 * runs what it may be about to take itself.
 */
struct pl__task *pl__steal(struct pl__worker *w, bool has_time);

/*
 * The same, but only of one that took none since the call before: it is in a
 * long task, blocked or surplus.  Looks at all others in turn.
 */
struct pl__task *pl__steal_from_stalled(struct pl__worker *w);

/* Whether there is a task in anybody's queue, or in a ring that is ready. */
bool pl__work_anywhere(void);

#endif /* PL_STEAL_H */
