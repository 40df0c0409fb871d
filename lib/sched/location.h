/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * location: where each worker ran last, so that a thief goes to near ones first
 *
 * The kernel moves threads among CPUs.  So a worker notes its location whenever
 * it is about to steal, which it does before it parks, too; only if that has
 * changed it writes.  A location may be out of date: then a thief comes to a
 * worker earlier or later, and visits it all the same.
 *
 * The topology is read when the runtime starts, and again when the set of CPUs
 * on which sysmon may run is another: CPUs went offline or came back, or the
 * cpuset or the affinity of the process changed.  sysmon asks for that set once
 * a second while it is awake, and at its first look after it slept.
 */
#ifndef PL_LOCATION_H
#define PL_LOCATION_H

#include "base/sys.h"
#include "base/topology.h"
#include "sched/rt.h"

/* The runtime starts; 0, -ENOMEM, or an error of pl__pin_start(). */
int pl__locations_start(void);
void pl__locations_stop(void);

/*
 * sysmon, at each look: once a second reads the topology again if the CPUs have
 * changed, and pins workers anew.
 */
void pl__locations_follow(uint64_t now);

/* The worker, which is the caller, notes where it runs, and returns it. */
uint64_t pl__location_note(struct pl__worker *w);

#endif /* PL_LOCATION_H */
