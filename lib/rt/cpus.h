/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * cpus: how many CPUs the process may use at a time
 */
#ifndef PL_CPUS_H
#define PL_CPUS_H

#include "base/base.h"

/* The least of what affinity and cgroup quotas, of v2 and v1, allow; >= 1. */
unsigned int pl__cpus_usable(void);

/* "QUOTA PERIOD" or "max PERIOD", as in cpu.max: CPUs, rounded up; 0: any. */
unsigned int pl__cpus_parse_quota(const char *cpu_max);

#endif /* PL_CPUS_H */
