/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon_asleep: whether a thread sleeps in the kernel, by /proc
 */
#ifndef PL_SYSMON_ASLEEP_H
#define PL_SYSMON_ASLEEP_H

#include "queue/worker.h"

/*
 * sysmon: the worker sleeps in the kernel, and does not wait for a processor.
 * Without /proc, or without a descriptor, that it used no processor time has to
 * suffice.
 */
bool pl__sysmon_is_asleep(struct pl__worker *w);

/* How often a thread has gone to sleep; 0: /proc does not say. */
uint64_t pl__sysmon_nr_sleeps(int tid);

#endif /* PL_SYSMON_ASLEEP_H */
