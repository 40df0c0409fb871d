/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon: the thread that looks for blocked and stalled workers
 */
#ifndef PL_SYSMON_H
#define PL_SYSMON_H

#include "queue/forecast.h"
#include "pace/sysmon_wake.h"

/*
 * Starts the thread that finds workers blocked in the kernel; 0, -ENOMEM,
 * -EAGAIN.
 */
int pl__sysmon_start(void);
void pl__sysmon_stop(void);

/* sysmon: the task that @w took at @tick does so. */
void pl__sysmon_learn(struct pl__worker *w, uint32_t tick, enum pl__run run);

#endif /* PL_SYSMON_H */
