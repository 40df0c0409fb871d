/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * refused: requests that need a thread of the kernel, which it cannot start
 *
 * Opens, and most reads and writes of files, are made by threads of io_uring.
 * Where it can start none, as at RLIMIT_NPROC, it ends the request with
 * -ECANCELED before it has done anything.  Then the library makes the call,
 * which blocks the worker as in pl_blocking().
 *
 * The library's own cancels end requests with -ECANCELED, too.  Not so the
 * result of a request that ended before its caller gave up: a descriptor that
 * was closed has a verdict, a ring that failed -ERESTART.  What is left is the
 * kernel's refusal, or the file system's; that one refuses again.  Other
 * descriptors have results of that number which are lost if asked for twice,
 * such as a timer's; so only files are asked.
 */
#ifndef PL_REFUSED_H
#define PL_REFUSED_H

#include "base/base.h"

struct io_uring_sqe;

/* Nothing was done of @sqe, the library's own, that ended with -ECANCELED. */
bool pl__refused_is(const struct io_uring_sqe *sqe);

/*
 * Makes the call of such an @sqe; returns its result.  -EOPNOTSUPP: it is an
 * open, which the caller makes.
 */
int pl__refused_call(const struct io_uring_sqe *sqe);

#endif /* PL_REFUSED_H */
