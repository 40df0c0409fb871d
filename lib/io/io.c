/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * io: a task waits for one completion
 *
 * The request is on the caller's stack until its done() was called; the kernel
 * decides when.  A caller that gives up earlier, for whatever reason, cancels
 * the request and waits for its end, so that the kernel does not use the buffer
 * after the return.  If data was transferred by then, the call reports that,
 * and the interrupt stays pending for the next call.
 *
 * Socket calls are first tried non-blocking: that is cheaper than a request,
 * its completion and two switches.  Where the attempts get EAGAIN, as for a
 * server that answers and then waits for the next question, they are mostly
 * skipped.  A task of which all attempts succeed yields now and then.
 *
 * An ordinary thread has no ring: where its call would block, it spawns a task
 * that makes a proxy request.
 */
#include "io/io.h"
#include "ring/ring.h"
#include "rt/runtime.h"
#include "queue/aside.h"
#include "pace/notify.h"
#include "base/sys.h"

#include <liburing.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

/*
 * After so many calls of which none had to wait, such as a request and its
 * answer, a task goes behind the events that are there.
 */
#define TURN		2U
/* It yields after so many if there was no other task. */
#define YIELD_EVERY	16U

/* It accepts a connection for each so many events, without a wait. */
#define ACCEPT_EVENTS	4

/* Linux 6.4 and 6.7; headers may be older. */
#define TIMEOUT_MULTISHOT	(1U << 6)
#define OP_READ_MULTISHOT	49

void pl__io_request_done(struct pl__ring_req *req, int res)
{
	struct pl__request *r = container_of(req, struct pl__request, req);
	struct pl__worker *w = pl__self();
	struct pl__task *t = r->waiter;

	r->res = res;
	r->done_ns = req->nr % PL__LATENCY_EVERY ? 0 : pl__now_ns();
	if (unlikely(!t)) {
		store_release(&r->done, 1);
		pl__wake_by_event(&r->done, w && w->is_reaping);
	} else if (pl__wait_lone_done(t)) {
		if (pl__ready_event(w, t) && !(w && w->is_reaping))
			pl__notify_one(pl__own_group(w));
	}
}

struct pl__ring *pl__io_ring_open(struct pl__worker *w)
{
	w->ring_error = pl__ring_open(&w->ring, pl__rt.io, pl__rt.wait);
	if (!w->ring_error)
		store_release(&w->ring_seen, w->ring);
	/* Without memory or descriptors now, the ring may be opened later. */
	if (w->ring_error != -ENOSYS && w->ring_error != -EPERM)
		w->ring_error = 0;
	return w->ring;
}

/* An operation to wait for. */
struct io_op {
	const struct io_uring_sqe *sqe;
	uint64_t		deadline_ns;
	/* the caller's own SQE: io_uring only */
	bool			is_callers;
	/* a wait on behalf of another descriptor, or NULL */
	const struct io_poll_set *set;
};

/* An epoll set that is to have one descriptor, and waits on its behalf. */
struct io_poll_set {
	int			fd;
	uint32_t		events;
};

static int io_submit(struct pl__request *r, const struct io_op *a)
{
	struct pl__worker *w = pl__self();
	struct pl__ring *ring = pl__io_ring(w);
	int ret;

	if (!ring)
		return w->ring_error ? -EOPNOTSUPP : -ENOMEM;
	if (a->is_callers && pl__ring_kind(ring) != PL_IO_URING)
		return -EOPNOTSUPP;
	/* One of epoll looks for the request under its own descriptor. */
	if (unlikely(a->set) && pl__ring_kind(ring) != PL_IO_URING)
		return -ERESTART;
	r->req.done = pl__io_request_done;
	store_relaxed(&r->done, 0);
	r->waiter = pl__wait_lone_begin(&r->done);
	ret = pl__ring_add_for(ring, &r->req, a->sqe,
			       unlikely(a->set) ? a->set->fd : a->sqe->fd);
	if (!ret)
		pl__sysmon_notify_io();
	else if (r->waiter)
		pl__wait_lone_end(r->waiter);
	return ret;
}

static bool is_of_sockets(const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_RECV:
	case IORING_OP_SEND:
	case IORING_OP_RECVMSG:
	case IORING_OP_SENDMSG:
		return true;
	}
	return false;
}

static bool is_send(const struct io_uring_sqe *sqe)
{
	return sqe->opcode == IORING_OP_SEND ||
	       sqe->opcode == IORING_OP_SENDMSG;
}

/*
 * Another descriptor may share the hint, and another file may get the
 * descriptor.
 */
static struct pl__attempt_hint *attempt_hint_of(struct pl__worker *w,
						const struct io_uring_sqe *sqe)
{
	return &w->attempt_hints[((uint32_t)sqe->fd * 2 + is_send(sqe)) %
				 PL__NR_ATTEMPT_HINTS];
}

/*
 * How many calls did not wait, with this one, since the worker took its last
 * task.
 */
static inline uint32_t count_attempt(struct pl__worker *w)
{
	uint32_t tick = load_relaxed(&w->tick);

	if (w->attempts_tick != tick)
		w->nr_attempts = 0;
	w->attempts_tick = tick;
	return ++w->nr_attempts;
}

/* The requests of all tasks are made, and some end. */
static void io_reap(struct pl__worker *w)
{
	uint32_t nr = 0;

	if (w->ring && pl__ring_is_busy(w->ring)) {
		w->is_reaping = true;
		nr = pl__ring_poll(w->ring);
		w->is_reaping = false;
	}
	if (nr)
		pl__notify_one(w->group);
}

/* Those tasks run, too, and a turn begins. */
static void io_yield(struct pl__worker *w)
{
	w->nr_attempts = 0;
	io_reap(w);
	pl_yield();
}

static __pl_noinline void end_turn(struct pl__worker *w)
{
	if (w->nr_attempts < YIELD_EVERY)
		pl__go_behind_events(w);
	else
		io_yield(w);
}

static inline void take_turn(struct pl__worker *w)
{
	uint32_t nr = count_attempt(w);

	if (unlikely(nr % TURN == 0 &&
		     (nr >= YIELD_EVERY || pl__has_queued(w))))
		end_turn(w);
}

void pl__io_take_turn(void)
{
	if (pl__current())
		take_turn(pl__self());
}

/*
 * A connection that waits to be accepted is older than most that is ready, and
 * the one behind it would have to wait for all of that once more.  So one is
 * accepted at once for each ACCEPT_EVENTS events that there are.  Not more of
 * them, as what is spawned for them runs newest first.
 */
static bool io_accepts_at_once(struct pl__request *r, const struct io_op *a)
{
	if (a->sqe->opcode != IORING_OP_ACCEPT || a->is_callers)
		return false;
	io_reap(pl__self());
	return pl__io_is_done(r);
}

static void accept_take_turn(void)
{
	struct pl__worker *w = pl__self();

	if (count_attempt(w) < pl__deque_len(&w->events) / ACCEPT_EVENTS)
		return;
	io_yield(w);
}

/* A transfer of MSG_WAITALL goes to the ring, which completes it. */
static bool may_try(const struct io_op *a)
{
	return !a->is_callers && is_of_sockets(a->sqe) &&
	       !(a->sqe->msg_flags & MSG_WAITALL);
}

/* True: the attempt succeeded or failed with *@res; false: use the ring. */
static bool try_nonblock(const struct io_op *a, struct pl__request *r, int *res)
{
	struct pl__worker *w = pl__self();
	struct pl__attempt_hint *hint;
	struct pl__sync_op op;
	int ret;

	r->req.got_eagain = false;
	if (!may_try(a))
		return false;
	hint = attempt_hint_of(w, a->sqe);
	if (!pl__attempt_hint_allows(hint))
		return false;
	pl__sync_op_init(&op, a->sqe);
	r->req.got_eagain = pl__sync_op_would_block(&op, &ret);
	pl__attempt_hint_learn(hint, r->req.got_eagain);
	if (r->req.got_eagain)
		return false;
	*res = ret;
	take_turn(w);
	return true;
}

/* The transfer has filled the buffer: most likely there is more. */
static void learn_from(const struct io_op *a, int res)
{
	if (a->sqe->opcode == IORING_OP_RECV && !a->is_callers &&
	    res == (int)a->sqe->len)
		pl__attempt_hint_reset(attempt_hint_of(pl__self(), a->sqe));
}

/*
 * A request ended with -ECANCELED before the library asked for that, and its
 * wait with @ret: if that is to end the call, a refused one is not made.
 */
static __pl_noinline int io_end_canceled(const struct io_op *a, int ret)
{
	if (a->is_callers || !pl__refused_is(a->sqe)) {
		pl__interrupt_restore(ret);
		return -ECANCELED;
	}
	return ret && ret != -EAGAIN ? ret : pl__refused_call(a->sqe);
}

/*
 * The descriptor is put into the set once its close would end the request: one
 * that was closed before has no file, or another one.
 */
static __pl_noinline int fill_set(const struct io_op *a)
{
	struct epoll_event ev = { .events = (uint16_t)a->set->events };
	long ret;

	PL_INJECT("filling");
	ret = pl__syscall(SYS_epoll_ctl, a->sqe->fd, EPOLL_CTL_ADD, a->set->fd,
			  &ev);
	return ret == -ENOSPC ? -ENOMEM : (int)ret;
}

static int io_wait_once(const struct io_op *a)
{
	struct pl__request r;
	int ret = pl__wait_pending();
	bool is_at_once;

	if (!ret && try_nonblock(a, &r, &ret))
		return ret;
	if (!ret)
		ret = io_submit(&r, a);
	if (ret)
		return ret;

	is_at_once = io_accepts_at_once(&r, a);
	if (unlikely(a->set))
		ret = fill_set(a);
	/*
	 * A wake may be late, for a request that was at this address before, or
	 * a timer old: then done() was not called, and the deadline holds.
	 */
	if (!ret)
		do {
			ret = pl__io_wait_for(&r, a->deadline_ns, 0);
		} while (!pl__io_is_done(&r) && (!ret || ret == -EAGAIN));
	if (pl__io_is_done(&r)) {
		if (r.done_ns && !pl__is_background(pl__self()->current))
			pl__latency_hist_add(&pl__self()->io_latency,
					     r.done_ns);
		learn_from(a, r.res);
		if (unlikely(r.res == -ECANCELED))
			return io_end_canceled(a, ret);
		pl__interrupt_restore(ret);
		if (is_at_once)
			accept_take_turn();
		return r.res;
	}
	pl__ring_cancel(&r.req);
	pl__io_wait_uninterruptible(&r);
	if (pl__io_was_ended(r.res))
		return ret;
	pl__interrupt_restore(ret);
	return r.res;
}

static bool only_reads(const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_READ:
	case IORING_OP_READV:
	case IORING_OP_RECV:
	case IORING_OP_RECVMSG:
	case IORING_OP_ACCEPT:
	case IORING_OP_POLL_ADD:
		return true;
	}
	return false;
}

static bool only_writes(const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
	case IORING_OP_SEND:
	case IORING_OP_SENDMSG:
	case IORING_OP_CONNECT:
		return true;
	}
	return false;
}

/* A proxy request, made by a task for an ordinary thread. */
struct io_proxy {
	int			(*call)(const void *arg);
	const void		*arg;
	_Atomic uint32_t	done;
	int			res;
};

static int no_stack(void)
{
	int ret = pl__wait_pending();

	return ret ? ret : -ENOMEM;
}

static void run_proxy(void *arg)
{
	struct pl__task *t = pl__current();
	struct io_proxy *e = arg;

	t->may_lack_stack = false;
	e->res = t->cls == PL_STACK_WORKER ? no_stack() : e->call(e->arg);
	store_release(&e->done, 1);
	pl__wake(&e->done, 1);
}

static int wait_for_proxy(struct io_proxy *e, uint32_t flags)
{
	int ret = 0;

	while (!load_acquire(&e->done) && ret != -ECANCELED) {
		ret = pl__wait(&e->done, 0, PL_FOREVER, flags | PL__FOR_IO);
		if (ret == -ENOMEM)
			pl_yield();
	}
	return ret;
}

int pl__io_by_proxy(int (*call)(const void *arg), const void *arg)
{
	struct io_proxy e = { .call = call, .arg = arg };
	struct pl__task *proxy;
	pl_task_t t;
	int ret;

	/* No limit of tasks refuses it: the thread asked for no task. */
	ret = pl__spawn_reserve(&proxy, &pl__rt.main, run_proxy, &e, "pl-io");
	if (ret)
		return ret;
	t = pl__task_handle(proxy);
	/* The thread's deadline holds nowhere but in the task. */
	proxy->may_lack_stack = true;
	pl__spawn_commit(proxy);
	/* The thread's scope was cancelled, or the runtime stops. */
	if (wait_for_proxy(&e, 0) == -ECANCELED)
		pl_cancel(t);
	wait_for_proxy(&e, PL__WAIT_UNINTERRUPTIBLE);
	return e.res;
}

/* True: a thread's call needs no task, as it succeeded or failed with *@res. */
static bool try_in_thread(const struct io_op *a, int *res)
{
	struct pl__sync_op op;

	if (!may_try(a) || atomic_load(&pl__rt.state) != PL__RT_RUNNING)
		return false;
	*res = pl__wait_pending();
	if (*res)
		return true;
	pl__sync_op_init(&op, a->sqe);
	return !pl__sync_op_would_block(&op, res);
}

static int io_wait(const struct io_op *a);

static int io_wait_in_task(const void *arg)
{
	return io_wait(arg);
}

static int io_wait(const struct io_op *a)
{
	int ret;

	if (!only_reads(a->sqe))
		pl__io_order_release();
	if (unlikely(!pl__current())) {
		if (!try_in_thread(a, &ret))
			return pl__io_by_proxy(io_wait_in_task, a);
	} else {
		do {
			ret = io_wait_once(a);
		} while (ret == -ERESTART && likely(!a->set));
	}
	if (ret >= 0 && !only_writes(a->sqe))
		pl__io_order_acquire();
	return ret;
}

static int io_poll_once(int fd, const struct io_poll_set *set, uint32_t events,
			uint64_t deadline_ns)
{
	struct io_uring_sqe poll = { 0 };
	struct io_op a = { &poll, deadline_ns, .set = set };
	int ret;

	io_uring_prep_poll_add(&poll, fd, events);
	ret = io_wait(&a);
	return ret < 0 ? ret : ret & (int)(events | POLLERR | POLLHUP);
}

/*
 * The peer has shut down its side, which ends a request of io_uring's whatever
 * it waits for.  That of an epoll set has only the events that are asked for.
 * Returns 0 or -errno; then the descriptor may have events, or another file.
 */
static int io_poll_half_closed(int fd, uint32_t events, uint64_t deadline_ns)
{
	struct io_poll_set set = { fd, events };
	int ret, epfd = pl__epoll();

	if (epfd < 0)
		return epfd;
	ret = io_poll_once(epfd, &set, POLLIN, deadline_ns);
	pl__close(epfd);
	return ret < 0 && ret != -ERESTART ? ret : 0;
}

int pl__io_poll(int fd, uint32_t events, uint64_t deadline_ns)
{
	int ret;

	do {
		ret = io_poll_once(fd, NULL, events, deadline_ns);
		if (ret)
			return ret;
		ret = io_poll_half_closed(fd, events, deadline_ns);
	} while (!ret);
	return ret;
}

int pl__io(const struct io_uring_sqe *sqe, uint32_t events,
	   uint64_t deadline_ns)
{
	struct io_op a = { sqe, deadline_ns, .is_callers = false };
	int ret;

	do {
		ret = io_wait(&a);
		if (ret != -EAGAIN || !events)
			return ret;
		ret = pl__io_poll(sqe->fd, events, deadline_ns);
	} while (ret > 0);
	return ret;
}

void pl_io_sqe_init(struct io_uring_sqe *sqe)
{
	memset(sqe, 0, sizeof(*sqe));
}

/* It has results until it is cancelled, and the caller wants one. */
static bool is_multishot(const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_POLL_ADD:
		return sqe->len & IORING_POLL_ADD_MULTI;
	case IORING_OP_ACCEPT:
		return sqe->ioprio & IORING_ACCEPT_MULTISHOT;
	case IORING_OP_RECV:
	case IORING_OP_RECVMSG:
		return sqe->ioprio & IORING_RECV_MULTISHOT;
	case IORING_OP_TIMEOUT:
		return sqe->timeout_flags & TIMEOUT_MULTISHOT;
	case OP_READ_MULTISHOT:
		return true;
	}
	return false;
}

bool pl__io_has_one_result(const struct io_uring_sqe *sqe, uint8_t links)
{
	return !(sqe->flags & ~(IOSQE_ASYNC | links)) && !is_multishot(sqe);
}

int pl_io_wait(struct io_uring_sqe *sqe, uint64_t deadline_ns)
{
	struct io_op a = { sqe, deadline_ns, .is_callers = true };

	return sqe && pl__io_has_one_result(sqe, 0) ? io_wait(&a) : -EINVAL;
}

ssize_t pl_read_until(int fd, void *buf, size_t n, uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };

	io_uring_prep_read(&sqe, fd, buf, pl__io_clamp(n), (uint64_t)-1);
	return pl__io(&sqe, POLLIN, deadline_ns);
}

ssize_t pl_write_until(int fd, const void *buf, size_t n, uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };

	io_uring_prep_write(&sqe, fd, buf, pl__io_clamp(n),
			    (uint64_t)-1);
	return pl__io(&sqe, POLLOUT, deadline_ns);
}

ssize_t pl_read(int fd, void *buf, size_t n)
{
	return pl_read_until(fd, buf, n, PL_FOREVER);
}

ssize_t pl_write(int fd, const void *buf, size_t n)
{
	return pl_write_until(fd, buf, n, PL_FOREVER);
}
