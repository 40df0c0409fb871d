/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * start_hook: the program's function that each worker calls first
 */
#ifndef PL_START_HOOK_H
#define PL_START_HOOK_H

#include "sched/worker.h"

/* Calls the start hook, which is set. */
void pl__run_start_hook(struct pl__worker *w);

#endif /* PL_START_HOOK_H */
