/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * config: the configuration of a runtime, with defaults and environment applied
 */
#ifndef PL_CONFIG_H
#define PL_CONFIG_H

#include "base/base.h"

#include "parklot.h"

#define PL__LOTS_MAX		1024
#define PL__TIMER_BUCKETS_MAX	1024

/*
 * Copies a caller's struct, which begins with its size, to @to, of @known
 * bytes.  Fields that an older header lacks are 0, the default; those that only
 * a newer header has must be 0.  False: they are not, or it has no good size.
 */
bool pl__opts_copy(void *to, size_t known, const void *from);

/* The default target concurrency, which is no more than @max_workers. */
uint32_t pl__config_target(uint32_t max_workers);

/* Fills in *@out, with the defaults; -EINVAL: bad value. */
int pl__config_resolve(const struct pl_config *cfg, struct pl_config *out);

/*
 * Sets *@ns to how long a worker may spin before it parks, as the environment
 * says; 0 with one processor, where no other thread could bring work meanwhile.
 */
int pl__config_spin(uint32_t nr_cpus, uint32_t *ns);

/* Sets whether sysmon looks for blocked workers. */
int pl__config_sysmon(bool *has_sysmon);

/*
 * Sets *@io to an enum pl_io, by the environment alone; NONE: whichever works.
 */
int pl__config_io(uint32_t *io);

/*
 * Sets *@wait to an enum pl_wait, by the environment alone; NONE: whichever
 * works.
 */
int pl__config_wait(uint32_t *wait);

/* True: the environment, not the program, chose the back end. */
bool pl__config_backend_is_env(void);

/*
 * cpus: how much of the machine's processors the process may use
 */

struct pl__cpus {
	double		nr;		/* of their time, in each period */
	uint64_t	period_ns;	/* 0: these processors, all the time */
};

/* The least that affinity and cgroup quotas (v2 and v1) allow. */
void pl__cpus_read(struct pl__cpus *cpus);

/* Rounded up, at least 1: so many may run at a time. */
uint32_t pl__cpus_at_a_time(const struct pl__cpus *cpus);
uint32_t pl__cpus_usable(void);

/* At most "QUOTA PERIOD", or "max PERIOD", as in cpu.max. */
void pl__cpus_limit(struct pl__cpus *cpus, const char *cpu_max);

#endif /* PL_CONFIG_H */
