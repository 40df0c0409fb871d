/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "ring.h"
#include "inject.h"
#include "sys.h"

#include <liburing.h>

#define NR_ENTRIES	256

/* What a completion is of, in the low bits of its user_data. */
#define TAG_REQ		0
#define TAG_CANCEL	1	/* of the attempt to cancel that request */
#define TAG_EVENT	2	/* the eventfd was read */
#define TAG_MASK	3

/* O: the owner's thread.  A: atomic. */
struct pl__ring {
	struct io_uring		uring;		/* O */
	int			eventfd;
	bool			is_event_armed;	/* O: a read is in flight */
	bool			has_rung;	/* O: it was reaped */
	uint64_t		event;		/* what it reads into */
	struct pl__inbox	cancels;	/* A: requests to cancel */
	_Atomic uint64_t	nr_added;	/* O writes, as the next two */
	_Atomic uint64_t	nr_done;
	_Atomic uint64_t	nr_enters;
};

static int setup(struct io_uring *uring)
{
	/* The best first: only the owner submits, and runs its own task work */
	static const unsigned int flags[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			IORING_SETUP_TASKRUN_FLAG,
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
		0,
	};
	size_t i;
	int ret = -EINVAL;

	for (i = 0; i < ARRAY_SIZE(flags) && ret == -EINVAL; i++)
		ret = PL_FAULTY(-ENOMEM, io_uring_queue_init(NR_ENTRIES, uring,
							     flags[i]));
	return ret;
}

int pl__ring_open(struct pl__ring **out)
{
	struct pl__ring *r = pl__alloc(sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	ret = setup(&r->uring);
	if (ret)
		goto err_free;
	r->eventfd = pl__eventfd();
	if (r->eventfd < 0) {
		ret = r->eventfd;
		goto err_exit;
	}
	*out = r;
	return 0;

err_exit:
	io_uring_queue_exit(&r->uring);
err_free:
	pl__free(r);
	return ret;
}

void pl__ring_close(struct pl__ring *r)
{
	io_uring_queue_exit(&r->uring);
	pl__close(r->eventfd);
	pl__free(r);
}

int pl__ring_eventfd(const struct pl__ring *r)
{
	return r->eventfd;
}

bool pl__ring_is_busy(const struct pl__ring *r)
{
	return load_relaxed(&r->nr_added) != load_relaxed(&r->nr_done);
}

void pl__ring_stat(const struct pl__ring *r, struct pl__ring_stat *st)
{
	st->completed = load_relaxed(&r->nr_done);
	st->submitted = load_relaxed(&r->nr_added);
	st->enters = load_relaxed(&r->nr_enters);
}

/* ---- completions ---- */

static uint32_t finish(struct pl__ring *r, struct pl__ring_req *req)
{
	/* [cancel-b] pairs with [cancel-a] in pl__ring_cancel(). */
	if (atomic_fetch_sub(&req->pending, 1) != 1)
		return 0;
	counter_inc(&r->nr_done);
	req->done(req, req->res);
	return 1;
}

static uint32_t complete(struct pl__ring *r, uint64_t data, int res)
{
	struct pl__ring_req *req;

	req = (struct pl__ring_req *)(uintptr_t)(data & ~(uint64_t)TAG_MASK);
	switch (data & TAG_MASK) {
	case TAG_EVENT:
		r->is_event_armed = false;
		r->has_rung = true;
		return 0;
	case TAG_REQ:
		req->res = res;
		break;
	}
	return finish(r, req);
}

static uint32_t complete_all(struct pl__ring *r)
{
	struct io_uring_cqe *cqe;
	uint32_t nr = 0;
	uint64_t data;
	int res;

	while (io_uring_cq_ready(&r->uring)) {
		if (io_uring_peek_cqe(&r->uring, &cqe))
			break;
		data = cqe->user_data;
		res = cqe->res;
		io_uring_cqe_seen(&r->uring, cqe);
		nr += complete(r, data, res);
	}
	return nr;
}

/* ---- submission ---- */

/* What the kernel has no memory for stays, to be submitted the next time. */
static void submit(struct pl__ring *r)
{
	counter_inc(&r->nr_enters);
	PL_FAULTY(-EAGAIN, io_uring_submit_and_get_events(&r->uring));
}

static struct io_uring_sqe *get_sqe(struct pl__ring *r)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->uring);

	if (likely(sqe))
		return sqe;
	/* Full of what was not submitted yet. */
	submit(r);
	complete_all(r);
	return io_uring_get_sqe(&r->uring);
}

static void set_data(struct io_uring_sqe *sqe, const void *ptr, uint64_t tag)
{
	sqe->user_data = (uint64_t)(uintptr_t)ptr | tag;
}

int pl__ring_add(struct pl__ring *r, struct pl__ring_req *req,
		 const struct io_uring_sqe *from)
{
	struct io_uring_sqe *sqe = get_sqe(r);

	if (!sqe)
		return -EAGAIN;
	*sqe = *from;
	req->ring = r;
	req->res = 0;
	atomic_store(&req->pending, 1);
	set_data(sqe, req, TAG_REQ);
	counter_inc(&r->nr_added);
	return 0;
}

/*
 * The attempt counts as a completion to come, so that the request's memory
 * stays until the kernel has looked for it:
 *
 *	canceller			owner
 *	pending++, unless it is 0	pending--	[cancel-b]
 *		    [cancel-a]		if (it was the last)
 *	tell the owner				done()
 */
void pl__ring_cancel(struct pl__ring_req *req)
{
	static const uint64_t one = 1;
	struct pl__ring *r = req->ring;
	uint32_t n = atomic_load(&req->pending);

	/* [cancel-a] pairs with [cancel-b] in finish(). */
	do {
		if (!n)
			return;
	} while (!atomic_compare_exchange_weak(&req->pending, &n, n + 1));
	PL_INJECT("cancel-a");
	pl__inbox_push(&r->cancels, &req->link);
	pl__fd_write(r->eventfd, &one, sizeof(one));
}

/* Without an SQE to be had now, they wait for the next time. */
static void add_cancels(struct pl__ring *r)
{
	struct pl__link *l = pl__inbox_take(&r->cancels), *next;
	struct io_uring_sqe *sqe;
	struct pl__ring_req *req;

	for (; l; l = next) {
		next = l->next;
		req = container_of(l, struct pl__ring_req, link);
		sqe = get_sqe(r);
		if (!sqe) {
			pl__inbox_push(&r->cancels, l);
			continue;
		}
		io_uring_prep_cancel64(sqe, (uint64_t)(uintptr_t)req, 0);
		set_data(sqe, req, TAG_CANCEL);
	}
}

static void arm_event(struct pl__ring *r)
{
	struct io_uring_sqe *sqe;

	if (r->is_event_armed)
		return;
	sqe = get_sqe(r);
	if (!sqe)
		return;
	io_uring_prep_read(sqe, r->eventfd, &r->event, sizeof(r->event), 0);
	set_data(sqe, NULL, TAG_EVENT);
	r->is_event_armed = true;
}

/* Completions that the kernel makes only while we are in it. */
static bool has_task_work(struct pl__ring *r)
{
	return IO_URING_READ_ONCE(*r->uring.sq.kflags) &
	       (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

uint32_t pl__ring_poll(struct pl__ring *r)
{
	if (!pl__inbox_empty(&r->cancels))
		add_cancels(r);
	if (io_uring_sq_ready(&r->uring) || has_task_work(r))
		submit(r);
	return complete_all(r);
}

uint32_t pl__ring_reap(struct pl__ring *r)
{
	if (!io_uring_cq_ready(&r->uring) && has_task_work(r))
		return pl__ring_poll(r);
	return complete_all(r);
}

static void sleep_until(struct pl__ring *r, uint64_t deadline_ns)
{
	uint64_t now = deadline_ns == UINT64_MAX ? 0 : pl__now_ns();
	uint64_t ns = deadline_ns > now ? deadline_ns - now : 0;
	struct __kernel_timespec ts = {
		.tv_sec = (long long)(ns / NSEC_PER_SEC),
		.tv_nsec = (long long)(ns % NSEC_PER_SEC),
	};
	struct io_uring_cqe *cqe;

	counter_inc(&r->nr_enters);
	PL_FAULTY(-EAGAIN, io_uring_submit_and_wait_timeout(&r->uring, &cqe, 1,
				deadline_ns == UINT64_MAX ? NULL : &ts, NULL));
}

void pl__ring_wait(struct pl__ring *r, uint64_t deadline_ns)
{
	/* From here on, an event that is reaped by the way has been missed. */
	r->has_rung = false;
	if (!pl__inbox_empty(&r->cancels))
		add_cancels(r);
	arm_event(r);
	/* Without an eventfd armed nobody could wake us: only look. */
	if (r->is_event_armed && !r->has_rung &&
	    !io_uring_cq_ready(&r->uring))
		sleep_until(r, deadline_ns);
}
