/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * io_request: how the caller of a request waits for its end
 */
#ifndef PL_IO_REQUEST_H
#define PL_IO_REQUEST_H

#include "ring/request.h"
#include "run/run.h"
#include "wait/wait_lone.h"

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

#endif /* PL_IO_REQUEST_H */
