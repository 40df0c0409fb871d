/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * runtime: its start, its end, and its start at first use
 */
#ifndef PL_RUNTIME_H
#define PL_RUNTIME_H

#include "sched/sched.h"

/*
 * Lets the caller, an ordinary thread, take part in the runtime, which is
 * started if need be, until pl__rt_exit().  Workers need not ask.
 * -ECANCELED while it stops; what pl_runtime_start() says.
 */
int pl__runtime_enter(void);

#endif /* PL_RUNTIME_H */
