/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * steal: tasks from another worker's queues
 */
#ifndef PL_STEAL_H
#define PL_STEAL_H

#include "queue/worker.h"

/*
 * A task from another worker's queues, or NULL.  With @has_time the thief
 * defers the steal of a lone task that its running owner is about to take.
 */
struct pl__task *pl__steal(struct pl__worker *w, bool has_time);

/*
 * A task from one worker that took none since the previous call, as it is in a
 * long task, blocked or surplus.  Each call looks at the next worker in turn.
 */
struct pl__task *pl__steal_from_stalled(struct pl__worker *w);

/*
 * @w has searched and found a task: of how many more it knows.  These are in
 * its own queues; and as many in the victim's, if it took up to half of that.
 */
size_t pl__nr_found(struct pl__worker *w);

#endif /* PL_STEAL_H */
