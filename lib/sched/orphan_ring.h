/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * orphan_ring: the rings of workers that are held up, polled by others
 */
#ifndef PL_ORPHAN_RING_H
#define PL_ORPHAN_RING_H

#include "sched/sched.h"

/* Of sysmon's: how many rings became ready. */
uint32_t pl__orphan_ring_scan(uint64_t now);

/* There are rings whose owners may be held up any time. */
bool pl__orphan_ring_is_due(void);
bool pl__orphan_ring_may_be_due(void);	/* the same, once they run tasks */

/*
 * Sleeps as long as sysmon's word is @word; true: since an orphaned ring has
 * cause, it is to look.
 */
bool pl__sysmon_sleep(uint32_t word, uint64_t deadline_ns);

/* Sysmon's word has changed: ends its sleep. */
void pl__sysmon_end_sleep(void);
void pl__sysmon_sleep_fini(void);

/* Polls the ring of @victim, if it is ready: @w, the caller, then did so. */
void pl__ring_reap_orphan(struct pl__worker *w, struct pl__worker *victim);

/* The kernel may have requests that @w submitted for others. */
bool pl__orphan_ring_keeps(struct pl__worker *w);

#endif /* PL_ORPHAN_RING_H */
