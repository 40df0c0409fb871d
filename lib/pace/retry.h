/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * retry: retries after a while what failed for want of memory or threads
 */
#ifndef PL_RETRY_H
#define PL_RETRY_H

#include "base/base.h"

/* Memory or threads were refused: retries after a while. */
void pl__retry_later(void);

/* Also gives back stacks that no task uses: in @ns at the latest. */
void pl__retry_deferred_in(uint64_t ns);

/* Set by stack_wait.c: tasks may wait for memory for stacks. */
extern void (*pl__retry_stacks)(void);

#endif /* PL_RETRY_H */
