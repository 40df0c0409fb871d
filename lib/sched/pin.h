/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * pin: workers bound to CPUs, if the configuration says so
 *
 * Worker i runs on the i-th of the CPUs on which the process may run, in the
 * order of pl__topology_order().  Workers beyond these may run on all of them:
 * they stand in for blocked or stalled ones, whichever these are.
 *
 * A change of the CPUs and the start of a worker are in turn, by start_lock: so
 * a worker that starts meanwhile is pinned by the new order.
 */
#ifndef PL_PIN_H
#define PL_PIN_H

#include "base/topology.h"
#include "sched/rt.h"

/* The runtime starts; 0, or -errno: the kernel lets no thread be bound. */
int pl__pin_start(const struct pl__topology *t);
void pl__pin_stop(void);

/* sysmon: pins all workers that have a thread. */
void pl__pin_all(const struct pl__topology *t);

/* Under start_lock: the worker, the caller, has a thread id. */
void pl__pin_worker(struct pl__worker *w);

/* The CPUs on which the process may run; 0: workers are not pinned. */
uint32_t pl__pin_nr_cpus(void);

#endif /* PL_PIN_H */
