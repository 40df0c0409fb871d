/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * worker_park: an idle worker parks in its lot, in its ring or in the device; a
 * task on its stack sleeps there, too
 */
#ifndef PL_WORKER_PARK_H
#define PL_WORKER_PARK_H

#include "queue/worker.h"

/*
 * Counted as idle: rechecks every queue, and parks unless the sequence of its
 * lot differs from @seq.  True: the idle timeout has passed without a
 * notification.
 */
bool pl__worker_look_and_park(struct pl__worker *w, uint32_t seq);

/*
 * Blocks a task on the worker's stack, or a thread that is no worker, until a
 * waker wakes @s (true) or @deadline_ns (false).  The caller has armed @s with
 * the bell that pl__sleep_bell() returns.
 */
struct pl__bell *pl__sleep_bell(struct pl__worker *w);
bool pl__sleep(struct pl__worker *w, struct pl__parker *s,
	       uint64_t deadline_ns);

#endif /* PL_WORKER_PARK_H */
