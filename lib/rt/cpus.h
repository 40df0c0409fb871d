/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * cpus: how many CPUs the process may use at a time
 */
#ifndef PL_CPUS_H
#define PL_CPUS_H

#include "base/base.h"

/* The least that affinity and cgroup quotas (v2 and v1) allow, at least 1. */
unsigned int pl__cpus_usable(void);

/*
 * CPUs of "QUOTA PERIOD" or "max PERIOD", as in cpu.max, rounded up; 0: no
 * quota.
 */
unsigned int pl__cpus_parse_quota(const char *cpu_max);

#endif /* PL_CPUS_H */
