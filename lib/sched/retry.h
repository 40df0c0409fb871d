/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * retry: what memory or threads were refused for, tried again in a while
 */
#ifndef PL_RETRY_H
#define PL_RETRY_H

#include "base/base.h"

/* Memory or threads were refused: tries again in a while. */
void pl__retry_later(void);

/* Stacks that nobody uses are to be given back, too: in @ns at the latest. */
void pl__retry_deferred_in(uint64_t ns);

#endif /* PL_RETRY_H */
