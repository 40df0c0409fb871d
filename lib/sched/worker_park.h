/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * worker_park: an idle worker parks in its lot, in its ring or in the device
 */
#ifndef PL_WORKER_PARK_H
#define PL_WORKER_PARK_H

#include "sched/worker.h"

/*
 * Announced as idle: looks once more, and parks unless its lot has moved on
 * from @seq.  True: nobody notified it for the idle timeout.
 */
bool pl__worker_look_and_park(struct pl__worker *w, uint32_t seq);

#endif /* PL_WORKER_PARK_H */
