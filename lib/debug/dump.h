/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * dump: what tasks do, or wait for
 */
#ifndef PL_DUMP_H
#define PL_DUMP_H

#include "parklot.h"

/*
 * Names the tasks that are alive: the first ones on standard error and in
 * *@report, which may be NULL.  The caller keeps the runtime from ending.
 */
void pl__dump_left(struct pl_stop_report *report);

#endif /* PL_DUMP_H */
