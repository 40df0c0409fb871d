/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * io: what each call of the system that waits is made of
 */
#ifndef PL_IO_H
#define PL_IO_H

#include "base/base.h"

struct io_uring_sqe;

/*
 * Waits for the completion of a copy of @sqe: its res, or why not.  A
 * descriptor that is non-blocking says -EAGAIN; then it is waited for, until
 * it has one of @events, and asked again.  0: -EAGAIN is the answer.
 */
int pl__io(const struct io_uring_sqe *sqe, uint32_t events,
	   uint64_t deadline_ns);

/* As much as one call of the kernel transfers. */
static inline unsigned int pl__io_clamp(size_t n)
{
	return n < 0x7ffff000 ? (unsigned int)n : 0x7ffff000;
}

#endif /* PL_IO_H */
