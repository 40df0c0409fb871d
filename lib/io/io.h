/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * io: waiting for one system call, by request or by nonblocking attempt
 */
#ifndef PL_IO_H
#define PL_IO_H

#include "base/sys.h"
#include "ring/ring.h"
#include "run/run.h"
#include "wait/wait_lone.h"
#include "base/base.h"

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

/*
 * io_request: how the caller of a request waits for its end
 */

#define PL__KERNEL_ERESTARTSYS	512

struct pl__ring *pl__io_ring_open(struct pl__worker *w);

/* The worker's ring, which opens at the first use; NULL: see w->ring_error. */
static inline struct pl__ring *pl__io_ring(struct pl__worker *w)
{
	return likely(w->ring) || w->ring_error ? w->ring :
						  pl__io_ring_open(w);
}

/* As done() of the request in a struct pl__request: wakes the waiter. */
void pl__io_request_done(struct pl__ring_req *req, int res);

static inline bool pl__io_is_done(struct pl__request *r)
{
	return likely(r->waiter) ? pl__wait_lone_is_done(r->waiter) :
				   load_acquire(&r->done);
}

static inline int pl__io_wait_for(struct pl__request *r, uint64_t deadline_ns,
				  uint32_t flags)
{
	flags |= PL__FOR_IO;
	return likely(r->waiter) ?
		pl__wait_lone(r->waiter, deadline_ns, flags) :
		pl__wait(&r->done, 0, deadline_ns, flags);
}

static inline void pl__io_wait_uninterruptible(struct pl__request *r)
{
	while (!pl__io_is_done(r))
		pl__io_wait_for(r, PL_FOREVER, PL__WAIT_UNINTERRUPTIBLE);
}

/*
 * The kernel ended the request when it was asked to.  An open says so by the
 * kernel's own ERESTARTSYS, which no program sees otherwise.
 */
static inline bool pl__io_was_ended(int res)
{
	return res == -ECANCELED || res == -EINTR || res == -ERESTART ||
	       res == -PL__KERNEL_ERESTARTSYS;
}

/*
 * io_order: what ThreadSanitizer is told of the order that I/O makes
 *
 * What a task did before it wrote has happened before what another one does
 * with what it read.  TSan knows that of read(2) and the like, and not of
 * requests.  As for its own sockets, one order stands for all descriptors.
 */

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

struct io_uring_sqe;

/* Nothing was done of @sqe, the library's own, that ended with -ECANCELED. */
bool pl__refused_is(const struct io_uring_sqe *sqe);

/*
 * Makes the call of such an @sqe; returns its result.  -EOPNOTSUPP: it is an
 * open, which the caller makes.
 */
int pl__refused_call(const struct io_uring_sqe *sqe);

#endif /* PL_IO_H */
