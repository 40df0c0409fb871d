/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * stat: what the workers counted, summed up
 */
#ifndef PL_STAT_H
#define PL_STAT_H

#include "sched/sched.h"

/*
 * Tasks spawned and ended since the process began.  Spawns that were taken
 * back count as both.  Inside the runtime, or while it is taken apart.
 */
uint64_t pl__stat_spawned(void);
uint64_t pl__stat_ended(void);

/* Keeps the counts of a runtime whose workers are about to be freed. */
void pl__stat_keep(void);

#endif /* PL_STAT_H */
