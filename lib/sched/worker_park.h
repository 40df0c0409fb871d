/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * worker_park: an idle worker parks in its lot, in its ring or in the device
 */
#ifndef PL_WORKER_PARK_H
#define PL_WORKER_PARK_H

#include "sched/worker.h"

/*
 * Counted as idle: rechecks every queue, and parks unless the sequence of its
 * lot differs from @seq.  True: the idle timeout has passed without a
 * notification.
 */
bool pl__worker_look_and_park(struct pl__worker *w, uint32_t seq);

#endif /* PL_WORKER_PARK_H */
