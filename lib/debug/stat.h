/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * stat: sums of the workers' counters
 */
#ifndef PL_STAT_H
#define PL_STAT_H

#include "run/run.h"

/*
 * Tasks spawned and ended since the process began.  A spawn that was undone
 * counts as both.  Called inside of the runtime, or while it is taken apart.
 */
uint64_t pl__stat_spawned(void);
uint64_t pl__stat_ended(void);

/* Processor time of all threads that the worker has had. */
uint64_t pl__worker_cpu_ns(const struct pl__worker *w);

/*
 * From pl__stat_drain(), before none may enter the runtime any more, to
 * pl__stat_keep(), before its workers are freed, its counters are read all the
 * same.
 */
void pl__stat_drain(void);
void pl__stat_keep(void);

#endif /* PL_STAT_H */
