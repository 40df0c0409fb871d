/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * dump: what tasks do, or wait for
 */
#ifndef PL_DUMP_H
#define PL_DUMP_H

#include "base/base.h"

#include "parklot.h"

/*
 * Names the tasks that are alive: the first ones on standard error and in
 * *@report, which may be NULL.  The caller keeps the runtime from ending.
 */
void pl__dump_left(struct pl_stop_report *report);

/*
 * dump_signal: pl_dump() to standard error at a signal
 *
 * The signal handler only counts the signal; a thread of its own, which exists
 * if a signal was chosen, does what no handler may.  That thread takes the
 * signal itself if all of the program's threads block it, as the library's do.
 */

/* @sig 0: none.  -EINVAL: it cannot be caught; -EAGAIN: no thread. */
int pl__dump_signal_start(int sig);

/* The handler stays installed, and does nothing. */
void pl__dump_signal_stop(void);

#endif /* PL_DUMP_H */
