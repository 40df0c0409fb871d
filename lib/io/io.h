/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * io: waiting for one system call, by request or by nonblocking attempt
 */
#ifndef PL_IO_H
#define PL_IO_H

#include "base/base.h"

struct io_uring_sqe;

/*
 * Waits for the completion of a copy of @sqe; returns its res, or -errno.  If a
 * non-blocking descriptor returns -EAGAIN, waits until it has one of @events,
 * and asks again; @events 0: returns -EAGAIN.
 */
int pl__io(const struct io_uring_sqe *sqe, uint32_t events,
	   uint64_t deadline_ns);

/* After a call that did not wait: a task yields now and then. */
void pl__io_take_turn(void);

/* The most bytes that one system call transfers, or @n. */
static inline unsigned int pl__io_clamp(size_t n)
{
	return n < 0x7ffff000 ? (unsigned int)n : 0x7ffff000;
}

#endif /* PL_IO_H */
