/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon_sleep: sysmon sleeps until its word changes or a ring is ready
 */
#ifndef PL_SYSMON_SLEEP_H
#define PL_SYSMON_SLEEP_H

#include "queue/rt.h"

/*
 * Sleeps as long as sysmon's word is @word.  True: an orphaned ring has
 * completions, so sysmon has to look.
 */
bool pl__sysmon_sleep(uint32_t word, uint64_t deadline_ns);

/* While no sysmon runs. */
void pl__sysmon_sleep_fini(void);

#endif /* PL_SYSMON_SLEEP_H */
