/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * ring_poll: a ring for kernels without io_uring, of epoll and plain calls
 *
 * A request is tried when the owner polls, reaps or waits.  If it would block,
 * it waits for its descriptor's events in the owner's epoll set, and is tried
 * again.  So the owner sleeps once for all requests and the eventfd, as in an
 * io_uring.
 *
 *	poll_add() --> fresh --try--> complete --> done()
 *		    ^  |  \
 *		    |  |   +--> later, if no event tells: a while
 *	   an event +--+--> armed, in epoll
 *
 * A descriptor is armed for one event at a time, for all requests that wait for
 * it; it stays known to epoll, disarmed, until it is closed.
 *
 * A ring that was of another kind cannot refuse to be one of epoll.  Where no
 * descriptors are to be had for that, it is blind: it tries all requests again,
 * and looks for messages, after a while.
 */
#include "ring/ring_impl.h"
#include "base/inject.h"
#include "base/sys.h"

#include <liburing.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#define NR_EVENTS	32
#define EVENT		UINT64_MAX	/* epoll's data for the eventfd */
#define LEFT		(UINT64_MAX - 1) /* for left_fd */
#define LATER_NS	(1000 * 1000)
#define NR_EAGAIN_MAX	8	/* events in a row after which it got EAGAIN */

/* A request in none of these lists waits for events. */

static struct pl__ring_poll *poll_of(struct pl__ring *r)
{
	return container_of(r, struct pl__ring_poll, ring);
}

static struct pl__ring_req *first_of(struct pl__list *queue)
{
	return list_entry(queue->next, struct pl__ring_req, queue);
}

static void move_to(struct pl__list *queue, struct pl__ring_req *req)
{
	list_del_init(&req->queue);
	list_add_tail(&req->queue, queue);
}

static void move_all(struct pl__list *from, struct pl__list *to)
{
	while (!list_empty(from))
		move_to(to, first_of(from));
}

static void poll_end(struct pl__ring_poll *p, struct pl__ring_req *req, int res)
{
	req->res = res;
	req->is_over = true;
	pl__ring_unlist_req(req);
	move_to(&p->complete, req);
}

void pl__ring_poll_end(struct pl__ring_poll *p, struct pl__ring_req *req,
		       int res)
{
	poll_end(p, req, res);
}

void pl__ring_poll_finish(struct pl__ring_poll *p, struct pl__ring_req *req)
{
	if (req->is_over && list_empty(&req->queue))
		move_to(&p->complete, req);
	else
		pl__ring_finish(&p->ring, req);
}

/* ---- trying ---- */

/*
 * The events that requests on @fd wait for.  Adds to *@armed the events for
 * which @fd was armed in this round, since no event can have disarmed it.
 */
static uint32_t wanted(struct pl__ring_poll *p, int fd, uint32_t *armed)
{
	struct pl__list *all = &pl__ring_bucket(&p->ring, fd)->reqs, *pos, *n;
	struct pl__ring_req *req;
	uint32_t events = 0;

	list_for_each_safe(pos, n, all) {
		req = list_entry(pos, struct pl__ring_req, by_fd);
		if (req->sqe->fd != fd || !list_empty(&req->queue))
			continue;
		events |= req->sync_op.events;
		if (req->round == p->round)
			*armed |= req->armed;
	}
	return events;
}

static int poll_arm(struct pl__ring_poll *p, int fd, uint32_t events)
{
	struct epoll_event ev = {
		.events = events | EPOLLONESHOT,
		.data.u64 = (uint32_t)fd,
	};
	long ret = pl__syscall(SYS_epoll_ctl, p->epfd, EPOLL_CTL_MOD, fd, &ev);

	if (ret == -ENOENT)
		ret = PL_FAULTY(-ENOMEM, pl__syscall(SYS_epoll_ctl, p->epfd,
						     EPOLL_CTL_ADD, fd, &ev));
	return ret == -ENOSPC ? -ENOMEM : (int)ret;
}

static void wait_for_events(struct pl__ring_poll *p, struct pl__ring_req *req)
{
	uint32_t events, armed = 0;
	int ret = 0;

	list_del_init(&req->queue);
	events = wanted(p, req->sqe->fd, &armed);
	if (!armed || events & ~armed)
		ret = poll_arm(p, req->sqe->fd, events);
	req->round = p->round;
	req->armed = events;
	if (ret)
		poll_end(p, req, ret);
}

/*
 * No event tells when to try again: a datagram socket is writable though its
 * peer may take no more, and no event says that a backlog has room again.
 */
static bool is_without_event(struct pl__ring_poll *p,
			     struct pl__ring_req *req)
{
	if (!req->sync_op.events || p->epfd < 0)
		return true;
	if (req->sync_op.events != EPOLLOUT || ++req->nr_eagain < NR_EAGAIN_MAX)
		return false;
	req->nr_eagain = 0;
	return true;
}

static void poll_wait_for(struct pl__ring_poll *p, struct pl__ring_req *req)
{
	if (is_without_event(p, req))
		move_to(&p->later, req);
	else
		wait_for_events(p, req);
}

/* The task itself makes a call on a file, so sysmon can see that it blocks. */
static int poll_add(struct pl__ring *r, struct pl__ring_req *req)
{
	struct pl__ring_poll *p = poll_of(r);
	int res;

	pl__sync_op_init(&req->sync_op, req->sqe);
	req->nr_eagain = 0;
	req->round = p->round - 1;
	if (req->got_eagain) {
		poll_wait_for(p, req);
		return 0;
	}
	if (req->sync_op.kind != PL__SYNC_OP_FILE) {
		list_add_tail(&req->queue, &p->fresh);
		return 0;
	}
	/* Thieves may poll for the other requests meanwhile. */
	list_add_tail(&req->queue, &p->calling);
	pl__unlock(&r->lock);
	pl__sync_op_would_block(&req->sync_op, &res);
	pl__lock(&r->lock);
	poll_end(p, req, res);
	return 0;
}

/* ---- messages ---- */

/*
 * A request that was not tried yet is tried once: a deadline in the past polls.
 */
static void poll_cancel(struct pl__ring_poll *p, struct pl__ring_req *req)
{
	int res = -EAGAIN;

	if (req->is_left) {
		pl__ring_finish(&p->ring, req);
		return;
	}
	if (!req->is_over && !list_empty(&req->queue) &&
	    !pl__sync_op_would_block(&req->sync_op, &res))
		poll_end(p, req, res);
	if (!req->is_over)
		poll_end(p, req,
			 req->sync_op.done ? req->sync_op.done : -ECANCELED);
	/* The cancel counts as a completion, too. */
	pl__ring_finish(&p->ring, req);
}

static void take_cancels(struct pl__ring_poll *p, struct pl__link *l)
{
	struct pl__link *next;

	for (; l; l = next) {
		next = l->next;
		poll_cancel(p, container_of(l, struct pl__ring_req, link));
	}
}

/*
 * Ends the requests of a closed descriptor; a call that is being made ends
 * itself, and a request that is left has its verdict.
 */
static void end_closed(struct pl__ring_poll *p, struct pl__ring_req *req)
{
	if (!req->is_left && req->sync_op.kind != PL__SYNC_OP_FILE)
		poll_end(p, req,
			 req->sync_op.done ? req->sync_op.done : req->verdict);
}

static void poll_take_closes(struct pl__ring_poll *p)
{
	struct pl__link *l = pl__inbox_take(&p->ring.closes), *next;
	struct pl__ring_closed *m;
	struct pl__ring_req *req;

	for (; l; l = next) {
		next = l->next;
		m = container_of(l, struct pl__ring_closed, link);
		while ((req = pl__ring_next_closed(m)))
			end_closed(p, req);
		pl__free(m);
	}
}

/*
 * A request that is cancelled may be tried, so what was closed before counts
 * first.
 */
static void poll_take_messages(struct pl__ring_poll *p)
{
	struct pl__link *cancels = NULL;

	if (!pl__inbox_empty(&p->ring.cancels))
		cancels = pl__inbox_take(&p->ring.cancels);
	if (!pl__inbox_empty(&p->ring.closes))
		poll_take_closes(p);
	take_cancels(p, cancels);
}

/*
 * Messages first: of a descriptor that was closed, the number may be another
 * file's.
 */
static void try_fresh(struct pl__ring_poll *p)
{
	struct pl__ring_req *req;
	int res;

	poll_take_messages(p);
	p->round++;
	while (!list_empty(&p->fresh)) {
		req = first_of(&p->fresh);
		if (pl__sync_op_would_block(&req->sync_op, &res))
			poll_wait_for(p, req);
		else
			poll_end(p, req, res);
	}
}

/* Lowers *@deadline_ns to when to look again. */
static void look_at_left(struct pl__ring_poll *p, uint64_t *deadline_ns)
{
	if (unlikely(p->left_ops))
		p->left_ops->look(&p->ring, deadline_ns);
}

/* ---- events ---- */

static void take_event(struct pl__ring_poll *p, int fd)
{
	struct pl__list *all = &pl__ring_bucket(&p->ring, fd)->reqs, *pos, *n;
	struct pl__ring_req *req;

	list_for_each_safe(pos, n, all) {
		req = list_entry(pos, struct pl__ring_req, by_fd);
		if (req->sqe->fd == fd && list_empty(&req->queue))
			move_to(&p->fresh, req);
	}
}

/* Sleeps in ppoll(), as epoll's own timeout counts milliseconds. */
static void poll_sleep_until(struct pl__ring_poll *p, uint64_t deadline_ns)
{
	uint64_t now = deadline_ns ? pl__now_ns() : 0;
	uint64_t ns = deadline_ns > now ? deadline_ns - now : 0;
	struct timespec ts = {
		.tv_sec = (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};
	struct pollfd pfd = { .fd = p->epfd, .events = POLLIN };

	if (ns)
		pl__syscall(SYS_ppoll, &pfd, 1, &ts, NULL);
}

static void take_events(struct pl__ring_poll *p, uint64_t deadline_ns)
{
	struct epoll_event ev[NR_EVENTS];
	int timeout = deadline_ns == UINT64_MAX ? -1 : 0;
	long i, nr;

	if (!timeout)
		poll_sleep_until(p, deadline_ns);
	counter_inc(&p->ring.nr_enters);
	nr = pl__syscall(SYS_epoll_pwait, p->epfd, ev, NR_EVENTS, timeout);
	for (i = 0; i < nr; i++)
		if (ev[i].data.u64 == EVENT)
			p->ring.has_rung = true;
		else if (ev[i].data.u64 == LEFT)
			look_at_left(p, &deadline_ns);
		else
			take_event(p, (int)ev[i].data.u64);
	PL_INJECT("heard");
	move_all(&p->later, &p->fresh);
	try_fresh(p);
}

/* ---- descriptors ---- */

static bool is_blind(const struct pl__ring_poll *p)
{
	return p->epfd < 0 || !p->has_bell;
}

/* Edge-triggered: the descriptor need not be read. */
static int watch(struct pl__ring_poll *p, int fd, uint64_t data)
{
	struct epoll_event ev = {
		.events = EPOLLIN | EPOLLET,
		.data.u64 = data,
	};

	return (int)pl__syscall(SYS_epoll_ctl, p->epfd, EPOLL_CTL_ADD, fd, &ev);
}

static int open_epoll(struct pl__ring_poll *p)
{
	int fd = pl__epoll(), ret;

	if (fd < 0)
		return fd;
	p->epfd = fd;
	ret = p->left_fd < 0 ? 0 : watch(p, p->left_fd, LEFT);
	if (ret) {
		pl__close(fd);
		p->epfd = -1;
		return ret;
	}
	store_relaxed(&p->ring.fd, fd);
	return 0;
}

/* Wakers see it from now on; what they did before, the owner checks now. */
static int open_eventfd(struct pl__ring_poll *p)
{
	int fd = pl__eventfd();

	if (fd < 0)
		return fd;
	/* [failure-a] pairs with [failure-b] in pl__bell_ring(). */
	atomic_store(&p->ring.bell.eventfd, fd);
	pl__full_barrier();
	PL_INJECT("failure-a");
	p->ring.has_rung = true;
	return 0;
}

/* Opens what is not open yet. */
static int poll_open(struct pl__ring_poll *p)
{
	int ret = p->epfd < 0 ? open_epoll(p) : 0;

	if (!ret && load_relaxed(&p->ring.bell.eventfd) < 0)
		ret = open_eventfd(p);
	if (!ret && !p->has_bell) {
		ret = watch(p, load_relaxed(&p->ring.bell.eventfd), EVENT);
		p->has_bell = !ret;
	}
	return ret;
}

/* ---- the owner ---- */

static uint32_t poll_complete_all(struct pl__ring_poll *p)
{
	struct pl__ring_req *req;
	uint32_t nr = 0;

	while (!list_empty(&p->complete)) {
		req = first_of(&p->complete);
		list_del_init(&req->queue);
		nr += pl__ring_finish(&p->ring, req);
	}
	return nr;
}

static uint32_t poll_reap(struct pl__ring *r)
{
	struct pl__ring_poll *p = poll_of(r);

	uint64_t unused = UINT64_MAX;

	look_at_left(p, &unused);
	try_fresh(p);
	return poll_complete_all(p);
}

static uint32_t poll_poll(struct pl__ring *r)
{
	struct pl__ring_poll *p = poll_of(r);
	uint64_t unused = UINT64_MAX;

	if (pl__ring_is_busy(r)) {
		look_at_left(p, &unused);
		take_events(p, 0);
	}
	return poll_complete_all(p);
}

/* False: a request is complete, or the bell has rung. */
static bool may_sleep(struct pl__ring_poll *p, uint64_t *deadline_ns)
{
	uint64_t soon;

	if (unlikely(is_blind(p)))
		poll_open(p);
	look_at_left(p, deadline_ns);
	try_fresh(p);
	if (!list_empty(&p->complete) || p->ring.has_rung)
		return false;
	if (!list_empty(&p->later) || unlikely(is_blind(p))) {
		soon = pl__now_ns() + LATER_NS;
		*deadline_ns = *deadline_ns < soon ? *deadline_ns : soon;
	}
	return true;
}

static void poll_wait(struct pl__ring *r, uint64_t deadline_ns)
{
	struct pl__ring_poll *p = poll_of(r);

	if (may_sleep(p, &deadline_ns))
		take_events(p, deadline_ns);
}

static int poll_pollfd(struct pl__ring *r, uint64_t *deadline_ns)
{
	struct pl__ring_poll *p = poll_of(r);

	if (!may_sleep(p, deadline_ns))
		return -1;
	if (unlikely(p->epfd < 0))
		pl__sleep_ns(LATER_NS);
	return p->epfd;
}

static void poll_polled(struct pl__ring *r, bool is_ready)
{
	if (is_ready)
		take_events(poll_of(r), 0);
}

/* ---- the whole ---- */

static void poll_close(struct pl__ring *r)
{
	struct pl__ring_poll *p = poll_of(r);

	if (p->epfd >= 0)
		pl__close(p->epfd);
	if (p->left_ops)
		p->left_ops->close(r);
	else
		pl__free(p);
}

static const struct pl__ring_ops poll_ops = {
	.close	= poll_close,
	.add	= poll_add,
	.poll	= poll_poll,
	.reap	= poll_reap,
	.poll_for_owner = poll_poll,
	.wait	= poll_wait,
	.pollfd	= poll_pollfd,
	.polled	= poll_polled,
};

static void poll_init(struct pl__ring_poll *p, enum pl_wait way)
{
	p->ring.ops = &poll_ops;
	store_relaxed(&p->ring.kind, PL_IO_POLL);
	store_relaxed(&p->ring.way, way);
	list_init(&p->fresh);
	list_init(&p->later);
	list_init(&p->complete);
	list_init(&p->calling);
	list_init(&p->left);
	p->epfd = -1;
}

int pl__ring_poll_open(struct pl__ring **out, enum pl_wait way)
{
	struct pl__ring_poll *p;
	int ret;

	if (way == PL_WAIT_FUTEX)
		return -EOPNOTSUPP;
	p = pl__alloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	poll_init(p, way ? way : PL_WAIT_EVENTFD);
	p->left_fd = -1;
	store_relaxed(&p->ring.bell.eventfd, -1);
	ret = poll_open(p);
	if (ret) {
		if (load_relaxed(&p->ring.bell.eventfd) >= 0)
			pl__close(load_relaxed(&p->ring.bell.eventfd));
		poll_close(&p->ring);
		return ret;
	}
	p->ring.has_rung = false;
	*out = &p->ring;
	return 0;
}

void pl__ring_poll_become(struct pl__ring_poll *p,
			  const struct pl__ring_left_ops *left_ops, int left_fd)
{
	enum pl_wait way = pl__ring_way(&p->ring);

	poll_init(p, way == PL_WAIT_FUTEX ? PL_WAIT_EVENTFD : way);
	p->left_ops = left_ops;
	p->left_fd = left_fd;
	poll_open(p);
}
