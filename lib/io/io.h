/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * io: waiting for one system call, by request or by nonblocking attempt
 */
#ifndef PL_IO_H
#define PL_IO_H

#include "base/sys.h"

#include <sys/socket.h>

struct io_uring_sqe;

/*
 * Waits for the completion of a copy of @sqe; returns its res, or -errno.  If a
 * non-blocking descriptor returns -EAGAIN, waits until it has one of @events,
 * and asks again; @events 0: returns -EAGAIN.
 */
int pl__io(const struct io_uring_sqe *sqe, uint32_t events,
	   uint64_t deadline_ns);

/* Until @fd has some of @events, or an error: returns that, or -errno. */
int pl__io_poll(int fd, uint32_t events, uint64_t deadline_ns);

/*
 * A caller's own SQE may be submitted, with flags of @links.  All others tie it
 * to other requests of the ring, hide its completion, or need what was
 * registered with the ring.
 */
bool pl__io_has_one_result(const struct io_uring_sqe *sqe, uint8_t links);

/*
 * An ordinary thread has no ring: a task of the library's makes @call, which
 * waits for I/O.  Returns its result, or -errno.
 */
int pl__io_by_proxy(int (*call)(const void *arg), const void *arg);

/* After a call that did not wait: a task yields now and then. */
void pl__io_take_turn(void);

/* The most bytes that one system call transfers, or @n. */
static inline unsigned int pl__io_clamp(size_t n)
{
	return n < PL__TRANSFER_MAX ? (unsigned int)n : PL__TRANSFER_MAX;
}

/*
 * What to receive with.  There is no wait for the queue of errors, as in the
 * kernel.  What a look is to fill is repeated where the call is continued, so
 * it gets what there is, as POSIX allows.
 */
static inline int pl__io_recv_flags(int flags)
{
	if (flags & MSG_ERRQUEUE)
		flags |= MSG_DONTWAIT;
	if (flags & MSG_PEEK)
		flags &= ~MSG_WAITALL;
	return flags;
}

#endif /* PL_IO_H */
