/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * orphan_watch: finds the rings of stalled workers, see orphan_ring.h
 */
#ifndef PL_ORPHAN_WATCH_H
#define PL_ORPHAN_WATCH_H

#include "run/orphan_ring.h"

/* Called by sysmon; returns how many rings became ready. */
uint32_t pl__orphan_ring_scan(uint64_t now);

/*
 * True: a worker with requests in flight runs tasks, so it may stall at any
 * time.
 */
bool pl__orphan_ring_is_due(void);
/* True: a worker has requests in flight, and may run tasks again. */
bool pl__orphan_ring_may_be_due(void);

#endif /* PL_ORPHAN_WATCH_H */
