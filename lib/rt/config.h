/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * config: what a runtime is started with, defaults and environment applied
 */
#ifndef PL_CONFIG_H
#define PL_CONFIG_H

#include "base/base.h"

#include "parklot.h"

#define PL__WORKERS_MAX		65536
#define PL__LOTS_MAX		1024
#define PL__TIMER_BUCKETS_MAX	1024

/*
 * A caller's struct of @size bytes, of which we know the first @known: it may
 * be newer than we are, if what we do not know is 0.
 */
bool pl__opts_are_sane(const void *opts, size_t size, size_t known);

/* Fills in *@out, where nothing is 0 then; -EINVAL for what makes no sense. */
int pl__config_resolve(const struct pl_config *cfg, struct pl_config *out);

/*
 * How long a worker may look for work before it parks, at most, as the
 * environment says; 0: with one processor nobody could bring any.
 */
int pl__config_spin(uint32_t nr_cpus, uint32_t *ns);

/* Whether workers that are blocked in the kernel are to be looked for. */
int pl__config_sysmon(bool *has_sysmon);

/* enum pl_io, by the environment alone; NONE: whichever is to be had. */
int pl__config_io(uint32_t *io);

/* enum pl_wait, likewise. */
int pl__config_wait(uint32_t *wait);

/* Whether the environment, not the program, chose the back end. */
bool pl__config_backend_is_env(void);

#endif /* PL_CONFIG_H */
