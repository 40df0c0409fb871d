/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * start_hook: what the program has each worker run first
 */
#ifndef PL_START_HOOK_H
#define PL_START_HOOK_H

#include "sched/worker.h"

/* There is one. */
void pl__run_start_hook(struct pl__worker *w);

#endif /* PL_START_HOOK_H */
