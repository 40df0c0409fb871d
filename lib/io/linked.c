/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * linked: a task waits once for several requests, which the kernel begins one
 * after the other
 *
 * Each is a request of its own for the ring: a close of its descriptor ends it,
 * and so does the caller that gives up, which asks for the end of all.  The one
 * that ends last wakes the waiter.
 *
 * A request that was added when its descriptor's number had just been closed
 * ends with -ERESTART, as it may be for another file.  If it was begun, and
 * nothing after it, it is made again with the rest.
 */
#include "io/io.h"
#include "base/sys.h"

#include "parklot.h"

#include <liburing.h>

struct linked_op {
	const struct io_uring_sqe *sqe;
	int			*res;
	unsigned int		nr;
	uint64_t		deadline_ns;
};

struct chain_req {
	struct pl__ring_req	req;
	struct chain		*chain;
};

/* L: the lock of the ring is held.  I: set when the chain is added. */
struct chain {
	/* the end of all; its SQE is one that has not ended, for dumps */
	struct pl__request	r;
	uint32_t		nr_left; /* L: requests that have not ended */
	struct chain_req	*reqs;	/* I */
};

static void chain_req_done(struct pl__ring_req *req, int res)
{
	struct chain *c = container_of(req, struct chain_req, req)->chain;

	(void)res;
	if (!--c->nr_left)
		pl__io_request_done(&c->r.req, 0);
	else if (req->linked & PL__LINKED_NEXT)
		c->r.req.sqe = req->next->sqe;
}

static void chain_init(struct chain *c, const struct linked_op *a,
		       unsigned int from)
{
	unsigned int i;

	for (i = from; i < a->nr; i++) {
		c->reqs[i].chain = c;
		c->reqs[i].req.done = chain_req_done;
		c->reqs[i].req.got_eagain = false;
		c->reqs[i].req.sqe = &a->sqe[i];
		c->reqs[i].req.next = i + 1 < a->nr ? &c->reqs[i + 1].req :
						      NULL;
	}
	c->nr_left = a->nr - from;
	c->r.req.sqe = &a->sqe[from];
	c->r.req.nr = 1;	/* no latency is measured */
	store_relaxed(&c->r.done, 0);
}

static int chain_submit(struct chain *c, const struct linked_op *a,
			unsigned int from)
{
	struct pl__worker *w = pl__self();
	struct pl__ring *ring = pl__io_ring(w);
	int ret;

	if (!ring)
		return w->ring_error ? -EOPNOTSUPP : -ENOMEM;
	chain_init(c, a, from);
	c->r.waiter = pl__wait_lone_begin(&c->r.done);
	ret = pl__ring_add_linked(ring, &c->reqs[from].req, a->nr - from);
	if (!ret)
		pl__sysmon_notify_io();
	else if (c->r.waiter)
		pl__wait_lone_end(c->r.waiter);
	return ret;
}

/* The caller has given up; true: that has ended a request. */
static bool chain_cancel(struct chain *c, const struct linked_op *a,
			 unsigned int from)
{
	bool has_ended = false;
	unsigned int i;

	for (i = from; i < a->nr; i++)
		pl__ring_cancel(&c->reqs[i].req);
	pl__io_wait_uninterruptible(&c->r);
	for (i = from; i < a->nr; i++) {
		a->res[i] = c->reqs[i].req.res;
		if (!pl__io_was_ended(a->res[i]))
			continue;
		a->res[i] = -ECANCELED;
		has_ended = true;
	}
	return has_ended;
}

/* The requests after number @at have done nothing. */
static bool is_last_begun(const struct chain *c, const struct linked_op *a,
			  unsigned int at)
{
	while (++at < a->nr)
		if (c->reqs[at].req.res != -ECANCELED &&
		    c->reqs[at].req.res != -ERESTART)
			return false;
	return true;
}

/*
 * All have ended by themselves.  Returns 0; 1: those from number *@from on are
 * made again; -EOPNOTSUPP: the ring has failed.
 */
static int chain_results(struct chain *c, const struct linked_op *a,
			 unsigned int *from)
{
	const struct pl__ring_req *req;
	int ret = 0;
	unsigned int i;

	for (i = *from; i < a->nr; i++) {
		req = &c->reqs[i].req;
		a->res[i] = req->res != -ERESTART ? req->res : -ECANCELED;
		if (req->res != -ERESTART)
			continue;
		if (pl__ring_kind(req->ring) != PL_IO_URING) {
			ret = -EOPNOTSUPP;
		} else if (req->was_found && is_last_begun(c, a, i)) {
			*from = i;
			return 1;
		} else if (req->was_found) {
			a->res[i] = -EAGAIN;
		}
	}
	return ret;
}

static int chain_wait_once(struct chain *c, const struct linked_op *a,
			   unsigned int *from)
{
	int ret = pl__wait_pending();

	if (!ret)
		ret = chain_submit(c, a, *from);
	if (ret)
		return ret;
	do {
		ret = pl__io_wait_for(&c->r, a->deadline_ns, 0);
	} while (!pl__io_is_done(&c->r) && (!ret || ret == -EAGAIN));
	if (!pl__io_is_done(&c->r) && chain_cancel(c, a, *from))
		return ret;
	pl__interrupt_restore(ret);
	return chain_results(c, a, from);
}

static int linked_wait(const struct linked_op *a)
{
	struct chain c;
	unsigned int from = 0;
	int ret;

	c.reqs = pl__alloc(a->nr * sizeof(*c.reqs));
	if (!c.reqs)
		return -ENOMEM;
	pl__io_order_release();
	do {
		ret = chain_wait_once(&c, a, &from);
	} while (ret > 0);
	pl__io_order_acquire();
	pl__free(c.reqs);
	return ret;
}

static int linked_wait_in_task(const void *arg)
{
	return linked_wait(arg);
}

/* The link of the last one would tie it to another call's. */
static bool can_be_linked(const struct io_uring_sqe *sqe, unsigned int nr)
{
	unsigned int i;
	uint8_t links;

	for (i = 0; i < nr; i++) {
		links = i < nr - 1 ? IOSQE_IO_LINK | IOSQE_IO_HARDLINK : 0;
		if (!pl__io_has_one_result(&sqe[i], links))
			return false;
	}
	return true;
}

int pl_io_wait_linked(const struct io_uring_sqe *sqe, int *res, unsigned int nr,
		      uint64_t deadline_ns)
{
	struct linked_op a = { sqe, res, nr, deadline_ns };
	unsigned int i;

	if (!sqe || !res || !nr || nr > PL_IO_LINKED_MAX ||
	    !can_be_linked(sqe, nr))
		return -EINVAL;
	for (i = 0; i < nr; i++)
		res[i] = -ECANCELED;
	return pl__current() ? linked_wait(&a) :
			       pl__io_by_proxy(linked_wait_in_task, &a);
}
