/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "ring/ring_impl.h"
#include "base/sys.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* The number of operations that are asked for. */
#define NR_OPS	(PL__OP_FUTEX_WAIT + 1)

int pl__uring_setup(struct io_uring *uring)
{
	/*
	 * The best first: with it no completion interrupts a task that
	 * computes.
	 */
	static const unsigned int flags[] = {
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
		0,
	};
	size_t i;
	int ret = -EINVAL;

	for (i = 0; i < ARRAY_SIZE(flags) && ret == -EINVAL; i++)
		ret = PL_FAULTY(-ENOMEM,
				io_uring_queue_init(PL__URING_ENTRIES, uring,
						    flags[i]));
	return ret;
}

bool pl__uring_knows_futex(struct io_uring *uring)
{
	union {
		struct io_uring_probe	probe;
		char			room[sizeof(struct io_uring_probe) +
			NR_OPS * sizeof(struct io_uring_probe_op)];
	} u;

	memset(&u, 0, sizeof(u));
	return !io_uring_register_probe(uring, &u.probe, NR_OPS) &&
	       io_uring_opcode_supported(&u.probe, PL__OP_FUTEX_WAIT);
}

bool pl__ring_uring_has_futex(void)
{
	struct io_uring uring;
	bool has;

	if (io_uring_queue_init(1, &uring, 0))
		return false;
	has = pl__uring_knows_futex(&uring);
	io_uring_queue_exit(&uring);
	return has;
}

/*
 * uring_failure: an io_uring that can be entered no more becomes a ring of
 * epoll
 *
 * A filter may forbid io_uring_enter() at any moment, to all threads at once.
 * Whatever a call returns, the ring has failed if a call that has nothing to
 * do fails as well.  It then takes no requests, nor do all others from their
 * next submission on.
 *
 *	request			becomes
 *	not submitted		made again, by epoll
 *	complete		what its completion says
 *	in the kernel		cancelled by io_uring_register(), then as its
 *				completion says: cancelled: made again
 *
 * "Made again": it ends with -ERESTART, and its task makes it once more, with
 * the same deadline; so no buffer is used by the kernel and by epoll at a time.
 * A request without its completion stays in the kernel's hands: its end
 * makes the descriptor of the io_uring readable, for which epoll waits, and it
 * is cancelled again, after pauses that double.
 *
 * Completions that the queue has no room for come into it only by a call that
 * is forbidden.  The kernel lists them in /proc, each once, oldest first; from
 * the first one on all completions go there.
 */

/* Linux 6.0; headers may be older. */
#define REGISTER_SYNC_CANCEL	24

#define PAUSE_NS_MIN	(1000 * 1000)
#define PAUSE_NS_MAX	(64 * 1000 * 1000)

/* As struct io_uring_sync_cancel_reg. */
struct sync_cancel {
	uint64_t		addr;
	int32_t			fd;
	uint32_t		flags;
	struct __kernel_timespec timeout;	/* 0: do not wait */
	uint64_t		pad[4];
};

_Atomic bool pl__uring_failed;
static _Atomic bool has_printed;

static void tell(int err)
{
	char text[128];
	int len;

	if (atomic_exchange(&has_printed, true))
		return;
	len = snprintf(text, sizeof(text),
		       "parklot: io_uring_enter: error "
		       "%d: I/O goes on by epoll\n", -err);
	if (pl__fd_try_write(2, text, (size_t)len) == -EAGAIN)
		store_relaxed(&has_printed, false);
}

/* A filter of system calls may permit a ring, and not its use. */
int pl__uring_try_to_enter(const struct pl__uring *u)
{
	return (int)pl__syscall(SYS_io_uring_enter, u->uring.ring_fd);
}

void pl__uring_note_error(struct pl__uring *u, int err)
{
	if (!pl__uring_has_failed()) {
		err = pl__uring_try_to_enter(u);
		if (!err)
			return;
		store_relaxed(&pl__uring_failed, true);
	}
	tell(err);
	u->poll.ring.has_failed = true;
}

/* ---- completions ---- */

static void end_left(struct pl__uring *u, struct pl__ring_req *req, int res)
{
	if (req->has_first)
		res = req->res;
	if (res == -ECANCELED || res == -EINTR)
		res = req->verdict ? req->verdict : -ERESTART;
	req->is_left = false;
	if (req->submitter)
		atomic_fetch_sub(req->submitter, 1);
	pl__ring_poll_end(&u->poll, req, res);
}

static void take_left(void *arg, uint64_t data, int res, uint32_t flags)
{
	struct pl__uring *u = arg;

	if (!pl__uring_is_last(flags, data, res))
		return;
	switch (data & PL__URING_MASK) {
	case PL__URING_EVENT:
		/* The read may have taken what epoll was to see. */
		u->poll.ring.has_rung = true;
		break;
	case PL__URING_CANCEL:
		pl__ring_poll_finish(&u->poll, pl__uring_req_of(data));
		break;
	case PL__URING_REQ:
		end_left(u, pl__uring_req_of(data), res);
		break;
	}
}

static void take_all_left(struct pl__uring *u)
{
	struct io_uring_cqe *cqe;
	uint32_t flags;
	uint64_t data;
	int res;

	while (io_uring_cq_ready(&u->uring)) {
		if (io_uring_peek_cqe(&u->uring, &cqe))
			break;
		data = cqe->user_data;
		res = cqe->res;
		flags = cqe->flags;
		io_uring_cqe_seen(&u->uring, cqe);
		take_left(u, data, res, flags);
	}
	if (IO_URING_READ_ONCE(*u->uring.sq.kflags) & IORING_SQ_CQ_OVERFLOW)
		u->nr_overflown += pl__uring_overflow(u->uring.ring_fd,
						      u->nr_overflown,
						      take_left, u);
}

/* ---- cancels ---- */

/* False: there is no such call. */
static bool cancel_now(struct pl__uring *u, uint64_t data)
{
	struct sync_cancel c = { .addr = data, .fd = -1 };
	long ret = pl__syscall(SYS_io_uring_register, u->uring.ring_fd,
			       REGISTER_SYNC_CANCEL, &c, 1);

	return !ret || ret == -ENOENT || ret == -EALREADY || ret == -ETIME ||
	       ret == -EINTR;
}

/* One after the other, so that the queue has room for their completions. */
static void cancel_all_left(struct pl__uring *u)
{
	struct pl__list *left = &u->poll.left, *pos, *n;
	struct pl__ring_req *req;
	uint32_t nr = 0;

	list_for_each_safe(pos, n, left)
		nr++;
	while (nr-- && !list_empty(left)) {
		req = list_entry(left->next, struct pl__ring_req, queue);
		list_del_init(&req->queue);
		list_add_tail(&req->queue, left);
		if (!cancel_now(u, (uint64_t)(uintptr_t)req))
			break;
		if (io_uring_cq_ready(&u->uring))
			take_all_left(u);
	}
}

static void uring_look_at_left(struct pl__ring *r, uint64_t *deadline_ns)
{
	struct pl__uring *u = pl__uring_of(r);
	uint64_t now;

	take_all_left(u);
	if (list_empty(&u->poll.left))
		return;
	now = pl__now_ns();
	if (now >= u->left_ns) {
		cancel_all_left(u);
		take_all_left(u);
		u->left_ns = now + u->left_pause_ns;
		if (u->left_pause_ns < PAUSE_NS_MAX)
			u->left_pause_ns *= 2;
	}
	if (!list_empty(&u->poll.left) && *deadline_ns > u->left_ns)
		*deadline_ns = u->left_ns;
}

/* ---- the change ---- */

/* All requests that have not ended are left, and no cancel waits any more. */
static void list_left(struct pl__uring *u)
{
	struct pl__ring *r = &u->poll.ring;
	struct pl__list *pos, *n;
	struct pl__ring_req *req;
	uint32_t i;

	for (i = 0; i < PL__RING_BUCKETS; i++) {
		if (!r->by_fd[i].reqs.next)
			continue;
		list_for_each_safe(pos, n, &r->by_fd[i].reqs) {
			req = list_entry(pos, struct pl__ring_req, by_fd);
			req->is_left = true;
			if (!list_empty(&req->queue)) {
				list_del_init(&req->queue);
				pl__ring_finish(r, req);
			}
			list_add_tail(&req->queue, &u->poll.left);
		}
	}
}

/* What the kernel has not taken, it never will. */
static void end_unsubmitted(struct pl__uring *u)
{
	unsigned int at = IO_URING_READ_ONCE(*u->uring.sq.khead);
	uint64_t data;

	for (; at != u->uring.sq.sqe_tail; at++) {
		data = u->uring.sq.sqes[at % PL__URING_ENTRIES].user_data;
		take_left(u, data, -ECANCELED, 0);
	}
}

static void uring_close_failed(struct pl__ring *r)
{
	struct pl__uring *u = pl__uring_of(r);

	/* A wait for the futex may be left in the kernel. */
	atomic_fetch_add(&r->bell.nr_rung, 1);
	pl__futex_wake(&r->bell.nr_rung, INT_MAX);
	io_uring_queue_exit(&u->uring);
	pl__free(u);
}

static const struct pl__ring_left_ops left_ops = {
	.look	= uring_look_at_left,
	.close	= uring_close_failed,
};

void pl__uring_fail(struct pl__ring *r)
{
	struct pl__uring *u = pl__uring_of(r);

	r->has_failed = false;
	pl__ring_poll_become(&u->poll, &left_ops, u->uring.ring_fd);
	list_left(u);
	end_unsubmitted(u);
	take_all_left(u);
	if (u->is_event_armed)
		cancel_now(u, u->event_data);
	u->left_pause_ns = PAUSE_NS_MIN;
	r->has_rung = true;
}

#define HEADING		"CqOverflowList:"

/* A file that is read line by line. */
struct lines {
	int			fd;
	size_t			at, end;	/* of what was read */
	char			bytes[1024];
};

static int next_byte(struct lines *l)
{
	ssize_t n;

	if (l->at == l->end) {
		n = pl__fd_read(l->fd, l->bytes, sizeof(l->bytes));
		if (n <= 0)
			return -1;
		l->at = 0;
		l->end = (size_t)n;
	}
	return l->bytes[l->at++];
}

/* The next line, cut off at @size - 1 bytes; false: there is none. */
static bool next_line(struct lines *l, char *line, size_t size)
{
	size_t n = 0;
	int c;

	while ((c = next_byte(l)) >= 0 && c != '\n')
		if (n < size - 1)
			line[n++] = (char)c;
	line[n] = '\0';
	return c >= 0;
}

uint64_t pl__uring_overflow(int ring_fd, uint64_t nr_taken,
			    void (*take)(void *arg, uint64_t data, int res,
					 uint32_t flags),
			    void *arg)
{
	struct lines l = { .at = 0 };
	unsigned long long data;
	char line[96];
	uint64_t nr = 0;
	unsigned int flags;
	int res;

	snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", ring_fd);
	l.fd = pl__open(line, O_RDONLY | O_CLOEXEC);
	if (l.fd < 0)
		return 0;
	while (next_line(&l, line, sizeof(line)))
		if (!strcmp(line, HEADING))
			break;
	while (next_line(&l, line, sizeof(line))) {
		if (sscanf(line, " user_data=%llu, res=%d, flags=%x", &data,
			   &res, &flags) != 3)
			break;
		if (nr++ >= nr_taken)
			take(arg, data, res, flags);
	}
	pl__close(l.fd);
	return nr > nr_taken ? nr - nr_taken : 0;
}
