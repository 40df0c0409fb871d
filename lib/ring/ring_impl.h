/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * ring_impl: the two kinds of rings, of epoll and of io_uring
 *
 * Only the files of this room include it; the others use ring.h.
 */
#ifndef PL_RING_IMPL_H
#define PL_RING_IMPL_H

#include "ring/ring.h"
#include "base/base.h"

#include <liburing.h>

/* ---- of epoll, which a ring of another kind may become ---- */

/* What a ring that became one of epoll has left of its earlier kind. */
struct pl__ring_left_ops {
	/* Lock held: ends what is over; lowers *@deadline_ns to its next. */
	void (*look)(struct pl__ring *r, uint64_t *deadline_ns);
	void (*close)(struct pl__ring *r);	/* frees the ring, too */
};

/* L: ring.lock is held.  I: set at init, then read-only. */
struct pl__ring_poll {
	struct pl__ring		ring;
	int			epfd; /* L: -1: none is to be had now */
	bool			has_bell; /* L: the bell's eventfd is in it */
	uint32_t		round;	/* L: number of passes over fresh */
	struct pl__list		fresh;		/* L: requests to try */
	struct pl__list		later;	/* L: requests to try after a while */
	struct pl__list		complete;	/* L: requests before done() */
	struct pl__list		calling; /* L: requests in a blocking call */
	int			left_fd; /* I: of the earlier kind, or -1 */
	/* L: requests of the earlier kind, all with is_left set */
	struct pl__list		left;
	const struct pl__ring_left_ops *left_ops; /* L: or NULL */
};

/*
 * Lock held: @p, which was of another kind, is of epoll from now on; @left_fd
 * is readable when look() has something to do.
 */
void pl__ring_poll_become(struct pl__ring_poll *p,
			  const struct pl__ring_left_ops *left_ops,
			  int left_fd);

/* Lock held: @req has ended with @res; done() is called at the next poll. */
void pl__ring_poll_end(struct pl__ring_poll *p, struct pl__ring_req *req,
		       int res);

/* Lock held: a completion of @req has come, which may be its last. */
void pl__ring_poll_finish(struct pl__ring_poll *p, struct pl__ring_req *req);

/* ---- of io_uring, and what becomes of it if it fails ---- */

#define PL__URING_ENTRIES	256	/* a power of 2 */

#define PL__OP_FUTEX_WAIT	51	/* Linux 6.7; headers may be older */

/* The kind of a completion, in the low bits of its user_data. */
#define PL__URING_REQ		0
#define PL__URING_CANCEL	1	/* the cancel of that request */
/* a wait for the bell is over, or its cancel */
#define PL__URING_EVENT		2
#define PL__URING_AGAIN		3	/* time to retry cancels */
#define PL__URING_MASK		3

/* L: ring.lock is held.  I: set at init, then read-only. */
struct pl__uring {
	struct pl__ring_poll	poll;	/* L: what it becomes if it fails */
	struct io_uring		uring;		/* L */
	/* I: a request may poll before it tries */
	bool			can_poll_first;
	/* L: the ring waits for the bell */
	bool			is_event_armed;
	/* L: a thief submitted that wait */
	bool			is_event_others;
	/*
	 * L: of that wait, another each time; PL__URING_EVENT alone is a
	 * cancel's
	 */
	uint64_t		event_data;
	uint32_t		nr_heard; /* L: bell.nr_rung, when last read */
	uint64_t		event;	/* buffer for the eventfd's read */
	/* L: the retry's timeout is in flight */
	bool			is_again_armed;
	/* L: the retry's timeout has passed */
	bool			is_again_due;
	struct pl__list		again;	/* L: requests to cancel again */

	/* Used by uring_linked.c. */
	struct pl__list		later;	/* L: to cancel once begun */
	/* L: the last chain may not have been submitted */
	bool			has_chain;
	unsigned int		chain_end; /* L: the SQE behind that chain */

	/* Used by uring_failure.c. */
	uint64_t		left_ns; /* L: when to cancel again */
	uint64_t		left_pause_ns; /* L: between two cancels */
	uint64_t		nr_overflown; /* L: taken from /proc */
};

static inline struct pl__uring *pl__uring_of(struct pl__ring *r)
{
	return container_of(r, struct pl__uring, poll.ring);
}

static inline struct pl__ring_req *pl__uring_req_of(uint64_t data)
{
	data &= ~(uint64_t)PL__URING_MASK;
	return (struct pl__ring_req *)(uintptr_t)data;
}

/*
 * A completion with @flags, of @data, is the last of its request.  Until then
 * the kernel uses the request's buffer; the result is the first one's.
 */
static inline bool pl__uring_is_last(uint32_t flags, uint64_t data, int res)
{
	struct pl__ring_req *req = pl__uring_req_of(data);

	if (likely(!(flags & IORING_CQE_F_MORE)))
		return true;
	if (!req->has_first)
		req->res = res;
	req->has_first = true;
	return false;
}

/* ring_uring.c: @nr SQEs are free, after a submission if need be. */
bool pl__uring_has_room(struct pl__uring *u, uint32_t nr);

/* uring_linked.c; all with the lock held */

int pl__uring_add_linked(struct pl__ring *r, struct pl__ring_req *first,
			 uint32_t nr);

/* A cancel of @req, which waits for an earlier one, is made when that ends. */
void pl__uring_cancel_later(struct pl__uring *u, struct pl__ring_req *req);

/* @req, one of a chain, is over: the kernel begins the next, if any. */
void pl__uring_begin_next(struct pl__uring *u, const struct pl__ring_req *req);

/*
 * Before a submission: requests of a chain of which the kernel took the first
 * ones only do nothing, and end with -EAGAIN.
 */
void pl__uring_end_cut_chain(struct pl__uring *u);

/* uring_linked.c */

/* True: @req, on a descriptor that was closed, is queued still, and fails. */
bool pl__uring_withdraw(struct pl__uring *u, const struct pl__ring_req *req);

/* uring_failure.c */

/* 0, or what io_uring_setup() returned. */
int pl__uring_setup(struct io_uring *uring);
bool pl__uring_knows_futex(struct io_uring *uring);

/* uring_failure.c */

/* 0, or why the ring cannot be entered: -errno. */
int pl__uring_try_to_enter(const struct pl__uring *u);

/* Lock held: entering returned @err; the ring may have failed. */
void pl__uring_note_error(struct pl__uring *u, int err);

/* Lock held: @r has failed: it becomes a ring of epoll. */
void pl__uring_fail(struct pl__ring *r);

/*
 * uring_overflow: completions that an io_uring's queue had no room for, as the
 * kernel lists them in /proc
 *
 * That is how they are seen where io_uring_enter(), which would move them into
 * the queue, is forbidden.
 */

/*
 * Calls @take with user_data, result and flags of each completion but the first
 * @nr_taken; returns how many.  It may be 0 for want of memory or descriptors.
 */
uint64_t pl__uring_overflow(int ring_fd, uint64_t nr_taken,
			    void (*take)(void *arg, uint64_t data, int res,
					 uint32_t flags),
			    void *arg);

#endif /* PL_RING_IMPL_H */
