/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * dump_signal: pl_dump() to standard error at a signal
 *
 * The signal handler only counts the signal; a thread of its own, which exists
 * if a signal was chosen, does what no handler may.  That thread takes the
 * signal itself if all of the program's threads block it, as the library's do.
 */
#ifndef PL_DUMP_SIGNAL_H
#define PL_DUMP_SIGNAL_H

#include "base/base.h"

/* @sig 0: none.  -EINVAL: it cannot be caught; -EAGAIN: no thread. */
int pl__dump_signal_start(int sig);

/* The handler stays installed, and does nothing. */
void pl__dump_signal_stop(void);

#endif /* PL_DUMP_SIGNAL_H */
