/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "ring/ring_impl.h"
#include "base/inject.h"
#include "base/base.h"
#include "base/sys.h"

#include <liburing.h>

/* A ring of io_uring was opened: what was requested and had is not refused. */
static _Atomic bool has_had_uring;

static int ring_open_uring(struct pl__ring **out, enum pl_wait way)
{
	int ret = -EPERM;

	if (!pl__uring_has_failed())
		ret = pl__ring_uring_open(out, way);
	if (!ret) {
		store_relaxed(&(*out)->kind, PL_IO_URING);
		store_relaxed(&has_had_uring, true);
	}
	return ret;
}

int pl__ring_open(struct pl__ring **out, enum pl_io want, enum pl_wait way)
{
	int ret;

	if (want != PL_IO_POLL) {
		ret = ring_open_uring(out, way);
		if (ret != -ENOSYS && ret != -EPERM)
			return ret;
		if (load_relaxed(&has_had_uring))
			way = way == PL_WAIT_FUTEX ? PL_WAIT_EVENTFD : way;
		else if (want == PL_IO_URING)
			return ret;
	}
	ret = pl__ring_poll_open(out, way);
	if (!ret)
		store_relaxed(&(*out)->kind, PL_IO_POLL);
	return ret;
}

enum pl_io pl__ring_kind(const struct pl__ring *r)
{
	return (enum pl_io)load_relaxed(&r->kind);
}

enum pl_wait pl__ring_way(const struct pl__ring *r)
{
	return (enum pl_wait)load_relaxed(&r->way);
}

void pl__ring_close(struct pl__ring *r)
{
	int eventfd = load_relaxed(&r->bell.eventfd);
	struct pl__link *l = pl__inbox_take(&r->closes), *next;

	for (; l; l = next) {
		next = l->next;
		pl__free(container_of(l, struct pl__ring_closed, link));
	}
	r->ops->close(r);
	if (eventfd >= 0)
		pl__close(eventfd);
}

int pl__ring_fd(const struct pl__ring *r)
{
	return load_relaxed(&r->fd);
}

struct pl__bell *pl__ring_bell(struct pl__ring *r)
{
	return &r->bell;
}

bool pl__ring_is_busy(const struct pl__ring *r)
{
	return load_relaxed(&r->nr_added) != load_relaxed(&r->nr_done);
}

void pl__ring_stat(const struct pl__ring *r, struct pl__ring_stat *st)
{
	/* First, so that what is in flight is not negative. */
	st->completed = load_acquire(&r->nr_done);
	st->submitted = load_relaxed(&r->nr_added);
	st->enters = load_relaxed(&r->nr_enters);
}

static __pl_always_inline void ring_list_req(struct pl__ring *r,
					      struct pl__ring_req *req)
{
	struct pl__ring_bucket *b = pl__ring_bucket(r, req->fd);

	if (unlikely(!b->reqs.next))
		list_init(&b->reqs);
	list_add_tail(&req->by_fd, &b->reqs);
	/* [close-a] pairs with [close-b] in pl_close(). */
	counter_inc_release(&b->nr);
	PL_INJECT("close-a");
}

static __pl_always_inline void ring_init_req(struct pl__ring *r,
					     struct pl__ring_req *req,
					     const struct io_uring_sqe *sqe,
					     int fd, uint64_t nr)
{
	req->ring = r;
	req->sqe = sqe;
	req->fd = fd;
	req->nr = nr;
	req->verdict = 0;
	req->res = 0;
	req->is_over = false;
	req->has_first = false;
	req->is_left = false;
	req->was_found = false;
	req->linked = 0;
	req->submitter = NULL;
	list_init(&req->queue);
	store_relaxed(&req->pending, 1);
	ring_list_req(r, req);
}

static __pl_always_inline int ring_add_locked(struct pl__ring *r,
					      struct pl__ring_req *req,
					      const struct io_uring_sqe *sqe,
					      int fd)
{
	int ret;

	ring_init_req(r, req, sqe, fd, load_relaxed(&r->nr_added));
	ret = r->ops->add(r, req);
	if (ret) {
		pl__ring_unlist_req(req);
		return ret;
	}
	counter_inc(&r->nr_added);
	return 0;
}

/* @ret: what an attempt to add @req has returned. */
static int __pl_noinline ring_add_failed(struct pl__ring *r,
					 struct pl__ring_req *req, int ret)
{
	r->ops->fail(r);
	if (ret && req->fd != req->sqe->fd)
		return -ERESTART;
	return ret ? ring_add_locked(r, req, req->sqe, req->fd) : 0;
}

int pl__ring_add_for(struct pl__ring *r, struct pl__ring_req *req,
		     const struct io_uring_sqe *sqe, int fd)
{
	int ret;

	pl__lock(&r->lock);
	ret = ring_add_locked(r, req, sqe, fd);
	if (unlikely(r->has_failed))
		ret = ring_add_failed(r, req, ret);
	PL_INJECT("added");
	pl__unlock(&r->lock);
	if (!ret)
		PL_PROBE3(io_submit, req, (uint32_t)sqe->opcode, sqe->fd);
	return ret;
}

/* ---- linked requests ---- */

static struct pl__ring_req *next_linked(const struct pl__ring_req *req)
{
	return req->linked & PL__LINKED_NEXT ? req->next : NULL;
}

static void init_linked(struct pl__ring *r, struct pl__ring_req *first,
			uint32_t nr)
{
	struct pl__ring_req *req = first;
	uint32_t i;

	for (i = 0; i < nr; i++, req = req->next) {
		ring_init_req(r, req, req->sqe, req->sqe->fd,
			      load_relaxed(&r->nr_added) + i);
		if (i)
			req->linked |= PL__LINKED_PREV | PL__LINKED_WAITS;
		if (i < nr - 1)
			req->linked |= PL__LINKED_NEXT;
	}
}

static int add_linked_locked(struct pl__ring *r, struct pl__ring_req *first,
			     uint32_t nr)
{
	struct pl__ring_req *req;
	int ret;

	if (!r->ops->add_linked)
		return -EOPNOTSUPP;
	init_linked(r, first, nr);
	ret = r->ops->add_linked(r, first, nr);
	if (!ret)
		counter_add(&r->nr_added, nr);
	for (req = first; ret && req; req = next_linked(req))
		pl__ring_unlist_req(req);
	return ret;
}

int pl__ring_add_linked(struct pl__ring *r, struct pl__ring_req *first,
			uint32_t nr)
{
	struct pl__ring_req *req;
	int ret;

	pl__lock(&r->lock);
	ret = add_linked_locked(r, first, nr);
	if (unlikely(r->has_failed)) {
		r->ops->fail(r);
		ret = ret ? -EOPNOTSUPP : 0;
	}
	PL_INJECT("added");
	for (req = ret ? NULL : first; req; req = next_linked(req))
		PL_PROBE3(io_submit, req, (uint32_t)req->sqe->opcode, req->fd);
	pl__unlock(&r->lock);
	return ret;
}

uint32_t pl__ring_finish(struct pl__ring *r, struct pl__ring_req *req)
{
	/* [cancel-b] pairs with [cancel-a] in pl__ring_cancel(). */
	if (atomic_fetch_sub(&req->pending, 1) != 1)
		return 0;
	counter_inc(&r->nr_done);
	PL_PROBE2(io_done, req, req->res);
	req->done(req, req->res);
	return 1;
}

/*
 * The cancel counts as a completion to come, so that the request's memory stays
 * until the kernel has looked for the request:
 *
 *	canceller			owner
 *	pending++, unless it is 0	pending--	[cancel-b]
 *		    [cancel-a]		if (it was the last)
 *	send the owner a message		done()
 *
 * Invariant: the kernel does not look for a request after its done().  Changes
 * of `pending` have one order: either the canceller finds 0 and sends no
 * message, or the owner's decrement is not the last.  Otherwise the cancel
 * reads freed memory, or hits a later request at the same address.
 */
void pl__ring_cancel(struct pl__ring_req *req)
{
	struct pl__ring *r = req->ring;
	uint32_t n = atomic_load(&req->pending);

	/* [cancel-a] pairs with [cancel-b] in pl__ring_finish(). */
	do {
		if (!n)
			return;
	} while (!atomic_compare_exchange_weak(&req->pending, &n, n + 1));
	PL_INJECT("cancel-a");
	pl__inbox_push(&r->cancels, &req->link);
	pl__bell_ring(&r->bell);
}

/* ---- closed descriptors ---- */

bool pl__ring_may_have(struct pl__ring *r, int fd)
{
	return load_acquire(&pl__ring_bucket(r, fd)->nr);
}

uint64_t pl__ring_nr_added(struct pl__ring *r)
{
	return load_acquire(&r->nr_added);
}

void pl__ring_tell(struct pl__ring_closed *m)
{
	struct pl__ring *r = m->ring;

	pl__inbox_push(&r->closes, &m->link);
	pl__bell_ring(&r->bell);
}

struct pl__ring_req *pl__ring_next_closed(const struct pl__ring_closed *m)
{
	struct pl__list *all = &pl__ring_bucket(m->ring, m->fd)->reqs, *pos, *n;
	struct pl__ring_req *req;
	bool is_marked;

	if (!all->next)
		return NULL;
	list_for_each_safe(pos, n, all) {
		req = list_entry(pos, struct pl__ring_req, by_fd);
		if (req->fd != m->fd)
			continue;
		is_marked = req->verdict;
		if (req->nr < m->before)
			req->verdict = -EBADF;
		else if (!is_marked)
			req->verdict = -ERESTART;
		if (!is_marked)
			return req;
	}
	return NULL;
}

/* ---- polling: by the owner, and by thieves ---- */

uint32_t pl__ring_poll(struct pl__ring *r)
{
	uint32_t nr;

	pl__lock(&r->lock);
	nr = r->ops->poll(r);
	r->has_rung = false;
	pl__unlock(&r->lock);
	return nr;
}

uint32_t pl__ring_reap(struct pl__ring *r)
{
	uint32_t nr;

	pl__lock(&r->lock);
	nr = r->ops->reap(r);
	r->has_rung = false;
	pl__unlock(&r->lock);
	return nr;
}

bool pl__ring_poll_for_owner(struct pl__ring *r,
			     _Atomic uint32_t *nr_submitted)
{
	if (!pl__trylock(&r->lock))
		return false;
	r->thief = nr_submitted;
	/* [rung-b] pairs with [rung-a] in pl__ring_wait(). */
	r->ops->poll_for_owner(r);
	r->thief = NULL;
	PL_INJECT("rung-b");
	pl__unlock(&r->lock);
	return true;
}

void pl__ring_wait(struct pl__ring *r, uint64_t deadline_ns)
{
	PL_INJECT("rung-a");
	pl__lock(&r->lock);
	/* [rung-a] pairs with [rung-b] in pl__ring_poll_for_owner(). */
	if (likely(!r->has_rung))
		r->ops->wait(r, deadline_ns);
	r->has_rung = false;
	pl__unlock(&r->lock);
}

int pl__ring_pollfd(struct pl__ring *r, uint64_t *deadline_ns)
{
	int fd = -1;

	PL_INJECT("rung-a");
	pl__lock(&r->lock);
	if (likely(!r->has_rung))
		fd = r->ops->pollfd(r, deadline_ns);
	r->has_rung = false;
	pl__unlock(&r->lock);
	return fd;
}

void pl__ring_polled(struct pl__ring *r, bool is_ready)
{
	pl__lock(&r->lock);
	r->ops->polled(r, is_ready);
	pl__unlock(&r->lock);
}
