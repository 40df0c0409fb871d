/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * ring_poll: a ring of epoll, which a ring of another kind may become
 */
#ifndef PL_RING_POLL_H
#define PL_RING_POLL_H

#include "ring/ring.h"

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

#endif /* PL_RING_POLL_H */
