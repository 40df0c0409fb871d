/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * runtime: its start, its end, and its start at first use
 */
#ifndef PL_RUNTIME_H
#define PL_RUNTIME_H

#include "run/run.h"

/*
 * Lets the caller, an ordinary thread, use the runtime until pl__rt_exit(), and
 * starts the runtime if need be.  Workers need not call it.  0, -ECANCELED
 * while it stops, or what pl_runtime_start() returns.
 */
int pl__runtime_enter(void);

#endif /* PL_RUNTIME_H */
