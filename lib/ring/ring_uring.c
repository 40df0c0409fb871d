/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * ring_uring: a ring of io_uring
 *
 * No cancel finds a request that the kernel is just moving, as from its polls
 * to its threads.  Then the cancel is made again after a while, until the
 * request is over.
 *
 * The bell is an eventfd that the ring reads, or a futex on which the ring
 * waits:
 *
 *	owner				waker
 *	heard = nr_rung		[bell-b]	set state, or send a message
 *	check state, messages			nr_rung++	[bell-a]
 *	have the ring wait			futex_wake
 *	    while nr_rung == heard
 *
 * Invariant: the ring does not wait after the bell was rung for what the owner
 * has not checked.  The kernel compares nr_rung with the number that was read
 * when the last wait ended: either the owner checks after the waker has set the
 * state, or the kernel finds nr_rung changed.  Otherwise a waker that rings
 * between two waits is not heard.  A wait in the ring and its address last
 * until the bell is rung; so the owner rings before it closes the ring.
 *
 * A worker that parks in the device has the device poll the ring.
 *
 * A request that waits for an event is carried on by the thread that submitted
 * it, wherever in the kernel that thread is: if it sleeps so that a signal
 * could wake it, it goes back to sleep afterwards.  So thieves can reap what a
 * blocked worker submitted.  A ring of which only the owner can reap
 * (SINGLE_ISSUER, DEFER_TASKRUN) is no faster here; and a worker that parks in
 * the device would not wake for completions that are left to it.  (An eventfd
 * registered with such a ring does not help: the kernel defers the write to it
 * while it writes another eventfd; seen to hang with Linux 6.12.)
 */
#include "ring/ring_impl.h"
#include "base/inject.h"
#include "base/sys.h"

#include <liburing.h>
#include <sys/syscall.h>

#define AGAIN_NS	(1000 * 1000)

/* Headers may be older. */
#define FUTEX_U32	2
#define FUTEX_PRIVATE	128
#define FUTEX_ANY	0xffffffffU

/* ---- completions ---- */

/* The request is over: a cancel that waits to be made again is dropped. */
static uint32_t complete_request(struct pl__uring *u, struct pl__ring_req *req,
				 int res)
{
	if (unlikely(req->has_first))
		res = req->res;
	req->res = req->verdict && (res == -ECANCELED || res == -EINTR) ?
		   req->verdict : res;
	req->is_over = true;
	if (unlikely(req->submitter))
		atomic_fetch_sub(req->submitter, 1);
	pl__ring_unlist_req(req);
	if (unlikely(req->linked))
		pl__uring_begin_next(u, req);
	if (unlikely(!list_empty(&req->queue))) {
		list_del_init(&req->queue);
		pl__ring_finish(&u->poll.ring, req);
	}
	return pl__ring_finish(&u->poll.ring, req);
}

static uint32_t complete_cancel(struct pl__uring *u, struct pl__ring_req *req,
				int res)
{
	req->was_found |= res != -ENOENT;
	if (!res || req->is_over || !list_empty(&req->queue))
		return pl__ring_finish(&u->poll.ring, req);
	list_add_tail(&req->queue, &u->again);
	return 0;
}

/*
 * A wait for the bell is over; if that is an earlier one, which was cancelled,
 * nothing has rung.
 */
static void hear(struct pl__uring *u, uint64_t data, int res)
{
	bool is_earlier = data != u->event_data;

	if (is_earlier && (data == PL__URING_EVENT || res == -ECANCELED))
		return;
	/* [bell-b] pairs with [bell-a] in pl__bell_ring(). */
	u->nr_heard = atomic_load(&u->poll.ring.bell.nr_rung);
	PL_INJECT("bell-b");
	if (!is_earlier)
		u->is_event_armed = false;
	u->poll.ring.has_rung = true;
}

static uint32_t complete(struct pl__uring *u, uint64_t data, int res)
{
	struct pl__ring_req *req = pl__uring_req_of(data);

	switch (data & PL__URING_MASK) {
	case PL__URING_EVENT:
		hear(u, data, res);
		return 0;
	case PL__URING_AGAIN:
		u->is_again_armed = false;
		u->is_again_due = true;
		return 0;
	case PL__URING_CANCEL:
		return complete_cancel(u, req, res);
	}
	return complete_request(u, req, res);
}

static uint32_t uring_complete_all(struct pl__uring *u)
{
	struct io_uring_cqe *cqe;
	uint32_t nr = 0;
	uint64_t data;
	bool is_last;
	int res;

	while (io_uring_cq_ready(&u->uring)) {
		if (io_uring_peek_cqe(&u->uring, &cqe))
			break;
		data = cqe->user_data;
		res = cqe->res;
		is_last = pl__uring_is_last(cqe->flags, data, res);
		io_uring_cqe_seen(&u->uring, cqe);
		if (likely(is_last))
			nr += complete(u, data, res);
	}
	return nr;
}

/* ---- submission ---- */

/* The number of the SQE that the kernel takes next. */
static unsigned int uring_sq_head(const struct pl__uring *u)
{
	return IO_URING_READ_ONCE(*u->uring.sq.khead);
}

/* The kernel took the SQEs from @head on from a thief: count the requests. */
static void uring_count_for_thief(struct pl__uring *u, unsigned int head)
{
	const struct io_uring_sqe *sqe;
	struct pl__ring_req *req;

	for (; head != uring_sq_head(u); head++) {
		sqe = &u->uring.sq.sqes[head % PL__URING_ENTRIES];
		if ((sqe->user_data & PL__URING_MASK) != PL__URING_REQ)
			continue;
		req = (struct pl__ring_req *)(uintptr_t)sqe->user_data;
		req->submitter = u->poll.ring.thief;
		atomic_fetch_add(req->submitter, 1);
	}
}

/*
 * Requests for which the kernel has no memory stay, and are submitted next
 * time.
 */
static void uring_submit(struct pl__uring *u)
{
	unsigned int head = uring_sq_head(u);
	int ret;

	if (unlikely(u->has_chain))
		pl__uring_end_cut_chain(u);
	counter_inc(&u->poll.ring.nr_enters);
	ret = pl__uring_has_failed() ? -EPERM :
	      PL_FAULTY(-EAGAIN, io_uring_submit_and_get_events(&u->uring));
	if (unlikely(ret < 0))
		pl__uring_note_error(u, ret);
	if (unlikely(u->poll.ring.thief))
		uring_count_for_thief(u, head);
}

static struct io_uring_sqe *get_sqe(struct pl__uring *u)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->uring);

	if (likely(sqe))
		return sqe;
	/* The submission queue is full of requests that were not submitted. */
	uring_submit(u);
	uring_complete_all(u);
	return io_uring_get_sqe(&u->uring);
}

static void set_data(struct io_uring_sqe *sqe, const void *ptr, uint64_t tag)
{
	sqe->user_data = (uint64_t)(uintptr_t)ptr | tag;
}

static int uring_add(struct pl__ring *r, struct pl__ring_req *req)
{
	struct pl__uring *u = pl__uring_of(r);
	struct io_uring_sqe *sqe = get_sqe(u);

	if (!sqe)
		return -EAGAIN;
	*sqe = *req->sqe;
	if (req->got_eagain && u->can_poll_first)
		sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
	set_data(sqe, req, PL__URING_REQ);
	return 0;
}

/* A request that the kernel refuses ends a submission early. */
bool pl__uring_has_room(struct pl__uring *u, uint32_t nr)
{
	unsigned int head;

	do {
		if (io_uring_sq_space_left(&u->uring) >= nr)
			return true;
		head = uring_sq_head(u);
		uring_submit(u);
		uring_complete_all(u);
	} while (uring_sq_head(u) != head);
	return false;
}

static bool uring_cancel(struct pl__uring *u, struct pl__ring_req *req)
{
	struct io_uring_sqe *sqe;

	if (unlikely(req->linked & PL__LINKED_WAITS) && !req->is_over) {
		pl__uring_cancel_later(u, req);
		return true;
	}
	sqe = get_sqe(u);
	if (!sqe)
		return false;
	io_uring_prep_cancel64(sqe, (uint64_t)(uintptr_t)req, 0);
	set_data(sqe, req, PL__URING_CANCEL);
	return true;
}

/* A cancel for which there is no SQE waits for the next time. */
static void add_cancels(struct pl__uring *u)
{
	struct pl__link *l = pl__inbox_take(&u->poll.ring.cancels), *next;

	for (; l; l = next) {
		next = l->next;
		if (!uring_cancel(u,
				  container_of(l, struct pl__ring_req, link)))
			pl__inbox_push(&u->poll.ring.cancels, l);
	}
}

/* The cancel counts as one more completion, so that the request stays. */
static bool cancel_closed(struct pl__uring *u, struct pl__ring_closed *m)
{
	struct pl__ring_req *req;

	while ((req = pl__ring_next_closed(m))) {
		if (req->verdict == -EBADF && pl__uring_withdraw(u, req))
			continue;
		atomic_fetch_add(&req->pending, 1);
		if (uring_cancel(u, req))
			continue;
		req->verdict = 0;
		pl__ring_finish(&u->poll.ring, req);
		return false;
	}
	return true;
}

static void uring_take_closes(struct pl__uring *u)
{
	struct pl__link *l = pl__inbox_take(&u->poll.ring.closes), *next;

	for (; l; l = next) {
		next = l->next;
		if (cancel_closed(u, container_of(l, struct pl__ring_closed,
						  link)))
			pl__free(container_of(l, struct pl__ring_closed,
					      link));
		else
			pl__inbox_push(&u->poll.ring.closes, l);
	}
}

static void cancel_again(struct pl__uring *u)
{
	struct pl__ring_req *req;

	u->is_again_due = false;
	while (!list_empty(&u->again)) {
		req = list_entry(u->again.next, struct pl__ring_req, queue);
		list_del_init(&req->queue);
		if (uring_cancel(u, req))
			continue;
		list_add(&req->queue, &u->again);
		break;
	}
}

static void arm_again(struct pl__uring *u)
{
	static struct __kernel_timespec ts = { .tv_nsec = AGAIN_NS };
	struct io_uring_sqe *sqe = get_sqe(u);

	if (!sqe)
		return;
	io_uring_prep_timeout(sqe, &ts, 0, 0);
	set_data(sqe, NULL, PL__URING_AGAIN);
	u->is_again_armed = true;
}

static void prep_futex_wait(struct io_uring_sqe *sqe, _Atomic uint32_t *word,
			    uint32_t expected)
{
	io_uring_prep_rw(PL__OP_FUTEX_WAIT, sqe, FUTEX_U32 | FUTEX_PRIVATE,
			 word, 0, expected);
	sqe->addr3 = FUTEX_ANY;
}

static void arm_event(struct pl__uring *u)
{
	struct io_uring_sqe *sqe;

	if (u->is_event_armed)
		return;
	PL_INJECT("bell-b");
	sqe = get_sqe(u);
	if (!sqe)
		return;
	if (pl__ring_way(&u->poll.ring) == PL_WAIT_FUTEX)
		prep_futex_wait(sqe, &u->poll.ring.bell.nr_rung, u->nr_heard);
	else
		io_uring_prep_read(sqe,
				   load_relaxed(&u->poll.ring.bell.eventfd),
				   &u->event,
				   sizeof(u->event), 0);
	u->event_data = (u->event_data + PL__URING_MASK + 1) | PL__URING_EVENT;
	sqe->user_data = u->event_data;
	u->is_event_armed = true;
}

/* The kernel has completions that it makes only in a call of this thread. */
static bool has_task_work(struct pl__uring *u)
{
	return IO_URING_READ_ONCE(*u->uring.sq.kflags) &
	       (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

static void uring_take_messages(struct pl__uring *u)
{
	if (!pl__inbox_empty(&u->poll.ring.cancels))
		add_cancels(u);
	if (!pl__inbox_empty(&u->poll.ring.closes))
		uring_take_closes(u);
	if (likely(list_empty(&u->again)))
		return;
	if (u->is_again_due)
		cancel_again(u);
	else if (!u->is_again_armed)
		arm_again(u);
}

/* As fail_if_due(), where done() may be called. */
static uint32_t poll_if_due(struct pl__uring *u)
{
	if (likely(!u->poll.ring.has_failed))
		return 0;
	pl__uring_fail(&u->poll.ring);
	return u->poll.ring.ops->poll(&u->poll.ring);
}

static uint32_t uring_poll(struct pl__ring *r)
{
	struct pl__uring *u = pl__uring_of(r);
	uint32_t nr;

	uring_take_messages(u);
	if (io_uring_sq_ready(&u->uring) || has_task_work(u))
		uring_submit(u);
	nr = uring_complete_all(u);
	return nr + poll_if_due(u);
}

/*
 * Arms the bell, so that the next message makes the ring readable; so do the
 * cancels that are due by now.
 */
static uint32_t uring_poll_for_owner(struct pl__ring *r)
{
	struct pl__uring *u = pl__uring_of(r);
	uint32_t nr = uring_poll(r);

	if (u->poll.left_ops)
		return nr;
	uring_take_messages(u);
	if (!u->is_event_armed) {
		arm_event(u);
		u->is_event_others = u->is_event_armed;
	}
	if (io_uring_sq_ready(&u->uring))
		uring_submit(u);
	return nr + poll_if_due(u);
}

static uint32_t uring_reap(struct pl__ring *r)
{
	struct pl__uring *u = pl__uring_of(r);

	if (!io_uring_cq_ready(&u->uring) && has_task_work(u))
		return uring_poll(r);
	return uring_complete_all(u);
}

/* Calls no done(). */
static void fail_if_due(struct pl__uring *u)
{
	if (unlikely(u->poll.ring.has_failed))
		pl__uring_fail(&u->poll.ring);
}

static void __pl_noinline note_end_of_sleep(struct pl__uring *u, int ret,
					    uint64_t deadline_ns)
{
	if (ret == -ETIME && pl__now_ns() >= deadline_ns)
		return;
	pl__uring_note_error(u, ret);
	fail_if_due(u);
}

static void uring_sleep_until(struct pl__uring *u, uint64_t deadline_ns)
{
	uint64_t now = deadline_ns == UINT64_MAX ? 0 : pl__now_ns();
	uint64_t ns = deadline_ns > now ? deadline_ns - now : 0;
	struct __kernel_timespec ts = {
		.tv_sec = (long long)(ns / NSEC_PER_SEC),
		.tv_nsec = (long long)(ns % NSEC_PER_SEC),
	};
	struct io_uring_cqe *cqe;
	int ret;

	if (unlikely(u->has_chain))
		pl__uring_end_cut_chain(u);
	counter_inc(&u->poll.ring.nr_enters);
	ret = PL_FAULTY(-EAGAIN, io_uring_submit_and_wait_timeout(&u->uring,
			&cqe, 1, deadline_ns == UINT64_MAX ? NULL : &ts, NULL));
	if (unlikely(ret < 0))
		note_end_of_sleep(u, ret, deadline_ns);
}

/*
 * The owner submits its own wait for the bell: that of a thief would complete
 * in the thief's thread, which may stall in turn.  The thief's is cancelled;
 * otherwise one more would be left each time.  The kernel looks at the bell
 * again as it begins the owner's, so a ring that the cancelled wait has seen is
 * not lost.
 */
static void arm_own_event(struct pl__uring *u)
{
	struct io_uring_sqe *sqe;

	if (unlikely(u->is_event_armed && u->is_event_others)) {
		sqe = get_sqe(u);
		if (!sqe)
			return;
		io_uring_prep_cancel64(sqe, u->event_data, 0);
		sqe->user_data = PL__URING_EVENT;
		u->is_event_armed = false;
	}
	u->is_event_others = false;
	arm_event(u);
}

/* Without a bell in its own name the owner must not sleep: it only polls. */
static bool has_own_event(const struct pl__uring *u)
{
	return u->is_event_armed && !u->is_event_others;
}

static void uring_wait(struct pl__ring *r, uint64_t deadline_ns)
{
	struct pl__uring *u = pl__uring_of(r);

	uring_take_messages(u);
	arm_own_event(u);
	if (has_own_event(u) && !u->poll.ring.has_rung &&
	    !io_uring_cq_ready(&u->uring))
		uring_sleep_until(u, deadline_ns);
}

static int uring_pollfd(struct pl__ring *r, uint64_t *deadline_ns)
{
	struct pl__uring *u = pl__uring_of(r);

	(void)deadline_ns;
	uring_take_messages(u);
	arm_own_event(u);
	if (io_uring_sq_ready(&u->uring))
		uring_submit(u);
	fail_if_due(u);
	return has_own_event(u) && !u->poll.ring.has_rung &&
	       !io_uring_sq_ready(&u->uring) &&
	       !io_uring_cq_ready(&u->uring) ? u->uring.ring_fd : -1;
}

static void uring_polled(struct pl__ring *r, bool is_ready)
{
	(void)r;
	(void)is_ready;
}

/* ---- the whole ---- */

/* Opens the bell, by which other threads reach the owner. */
static int open_bell(struct pl__uring *u)
{
	int fd;

	if (pl__ring_way(&u->poll.ring) == PL_WAIT_FUTEX) {
		store_relaxed(&u->poll.ring.bell.eventfd, -1);
		return pl__uring_knows_futex(&u->uring) ? 0 : -EOPNOTSUPP;
	}
	fd = pl__eventfd();
	store_relaxed(&u->poll.ring.bell.eventfd, fd);
	return fd < 0 ? fd : 0;
}

static void uring_close(struct pl__ring *r)
{
	struct pl__uring *u = pl__uring_of(r);

	if (pl__ring_way(&u->poll.ring) == PL_WAIT_FUTEX)
		pl__bell_ring(&u->poll.ring.bell);
	io_uring_queue_exit(&u->uring);
	pl__free(u);
}

static const struct pl__ring_ops uring_ops = {
	.close	= uring_close,
	.add	= uring_add,
	.add_linked = pl__uring_add_linked,
	.poll	= uring_poll,
	.reap	= uring_reap,
	.poll_for_owner = uring_poll_for_owner,
	.wait	= uring_wait,
	.pollfd	= uring_pollfd,
	.polled	= uring_polled,
	.fail	= pl__uring_fail,
};

int pl__ring_uring_open(struct pl__ring **out, enum pl_wait way)
{
	struct pl__uring *u = pl__alloc(sizeof(*u));
	int ret;

	if (!u)
		return -ENOMEM;
	u->poll.ring.ops = &uring_ops;
	list_init(&u->again);
	list_init(&u->later);
	store_relaxed(&u->poll.ring.way, way ? way : PL_WAIT_EVENTFD);
	ret = pl__uring_setup(&u->uring);
	if (ret)
		goto err_free;
	/*
	 * IORING_SETUP_COOP_TASKRUN and polling first both came with Linux
	 * 5.19, and an older kernel refuses only the flag.
	 */
	u->can_poll_first = u->uring.flags & IORING_SETUP_COOP_TASKRUN;
	ret = pl__uring_try_to_enter(u) ? -EPERM : open_bell(u);
	if (ret)
		goto err_exit;
	u->uring.ring_fd = pl__fd_move_up(u->uring.ring_fd);
	u->uring.enter_ring_fd = u->uring.ring_fd;
	store_relaxed(&u->poll.ring.fd, u->uring.ring_fd);
	*out = &u->poll.ring;
	return 0;

err_exit:
	io_uring_queue_exit(&u->uring);
err_free:
	pl__free(u);
	return ret;
}
