/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * uring_overflow: completions that an io_uring's queue had no room for, as the
 * kernel lists them in /proc
 *
 * That is how they are seen where io_uring_enter(), which would move them into
 * the queue, is forbidden.
 */
#ifndef PL_URING_OVERFLOW_H
#define PL_URING_OVERFLOW_H

#include "base/base.h"

/*
 * Calls @take with user_data, result and flags of each completion but the first
 * @nr_taken; returns how many.  It may be 0 for want of memory or descriptors.
 */
uint64_t pl__uring_overflow(int ring_fd, uint64_t nr_taken,
			    void (*take)(void *arg, uint64_t data, int res,
					 uint32_t flags),
			    void *arg);

#endif /* PL_URING_OVERFLOW_H */
