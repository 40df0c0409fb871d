/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * io_order: what ThreadSanitizer is told of the order that I/O makes
 *
 * What a task did before it wrote has happened before what another one does
 * with what it read.  TSan knows that of read(2) and the like, and not of
 * requests.  As for its own sockets, one order stands for all descriptors.
 */
#ifndef PL_IO_ORDER_H
#define PL_IO_ORDER_H

#include "base/base.h"

#ifdef PL_TSAN

/* Before anything that another task may notice by its own I/O. */
void pl__io_order_release(void);
/* After anything that notices what another task did. */
void pl__io_order_acquire(void);

#else

static inline void pl__io_order_release(void)
{
}

static inline void pl__io_order_acquire(void)
{
}

#endif

#endif /* PL_IO_ORDER_H */
