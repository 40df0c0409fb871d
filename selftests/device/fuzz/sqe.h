/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mod_fuzz: entries of a ring. Each is a request; its structs stay in place
 * until it has returned, once. A PARK at home by the home's descriptor has to
 * return, and so has a WAKE, unless they are behind a link or a drain. Other
 * requests may be parked in a space that has no descriptor any more, and end
 * with the ring. The other entries cancel and delay these, and close their
 * files.
 *
 * In a link or behind a drain, unless it is asynchronous, Linux 6.12 reads the
 * entry itself only when its turn comes, even of a link's head, if the link is
 * not yet over. By then there may be another entry, with another struct. Only a
 * loose team allows for that.
 */
#ifndef SELFTESTS_FUZZ_SQE_H
#define SELFTESTS_FUZZ_SQE_H

#include "calls.h"
#include "ring.h"

#include <poll.h>

#define NR_REQUESTS	32
#define NR_FIXED	4		/* registered files, the home first */
#define FOREIGN		(1ULL << 63)	/* in user_data from another ring */

#define CANCEL_OP	(1U << 5)	/* later than liburing's header */

/* ---- requests ---- */

enum request_kind { PARK_REQUEST, WAKE_REQUEST, CLOSE_REQUEST, OTHER_REQUEST };

struct request {
	enum request_kind		kind;
	bool				is_pending;
	bool				must_return;
	bool				is_late;	/* any struct */
	struct io_uring_sqe		sqe;		/* as it was sent */
	struct parklot_park		park;
	struct parklot_wake		wake;
	struct parklot_wake_entry	entry[3];
	struct __kernel_timespec	ts;
	int				fd[2];
};

/* Requests of a ring are never freed: its end may complete them later. */
static inline void requests_begin(struct player *p)
{
	p->request = calloc(NR_REQUESTS, sizeof(*p->request));
	p->generation++;
}

static inline uint64_t user_data_of(const struct player *p, uint32_t nr)
{
	return (uint64_t)p->generation << 8 | nr;
}

static inline struct request *request_find(struct player *p)
{
	uint32_t i;

	for (i = 0; i < NR_REQUESTS; i++)
		if (!p->request[i].is_pending)
			return &p->request[i];
	return NULL;
}

static inline void request_fill(struct player *p, struct dice *d,
				struct request *e)
{
	uint32_t i;

	memset(e, 0, sizeof(*e));
	e->park = park_of(p, d);
	if (!once_in(d, 16)) {
		e->park.pollfd = -1;
		e->park.poll_events = 0;
	}
	e->wake = (struct parklot_wake){
		.entries = (uintptr_t)e->entry, .limit = around(d, 4),
		.nr_entries = pick(d, ARRAY_SIZE(e->entry) + 1),
	};
	if (once_in(d, 16))
		e->wake.flags = odd32(d);
	for (i = 0; i < ARRAY_SIZE(e->entry); i++)
		e->entry[i] = (struct parklot_wake_entry){
			.lot = around(d, nr_home_lots(p)), .nr = around(d, 4),
		};
	e->ts.tv_nsec = pick(d, 300000);
	for (i = 0; i < ARRAY_SIZE(e->fd); i++)
		e->fd[i] = once_in(d, 4) ? -1 : fdno_fd(pick_fdno(d));
}

/* The largest number of sleepers that the request wakes. */
static inline uint64_t request_limit(const struct request *e)
{
	uint64_t sum = 0;
	uint32_t i;

	if (e->is_late)
		return UINT32_MAX;
	for (i = 0; i < e->wake.nr_entries && i < ARRAY_SIZE(e->entry); i++)
		sum += e->entry[i].nr;
	return sum < e->wake.limit ? sum : e->wake.limit;
}

/* The ring is gone: a request that has not returned may be done, or not. */
static inline void requests_abandon(struct player *p)
{
	const struct request *e;

	for (e = p->request; e < p->request + NR_REQUESTS; e++) {
		if (!e->is_pending)
			continue;
		if (e->kind == PARK_REQUEST)
			atomic_fetch_add(&p->team->lost, 1);
		if (e->kind == WAKE_REQUEST)
			atomic_fetch_add(&p->team->unsaid, request_limit(e));
	}
	requests_begin(p);
}

/* ---- flags ---- */

/* Flags that hide whether a request was done are for loose teams. */
static inline uint32_t sqe_flags_of(struct player *p, struct dice *d)
{
	static const struct { uint32_t flag, once_in; } flags[] = {
		{ IOSQE_FIXED_FILE, 4 }, { IOSQE_IO_DRAIN, 40 },
		{ IOSQE_IO_LINK, 7 }, { IOSQE_IO_HARDLINK, 24 },
		{ IOSQE_ASYNC, 3 }, { IOSQE_BUFFER_SELECT, 48 },
		{ IOSQE_CQE_SKIP_SUCCESS, 12 },
	};
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++)
		if (once_in(d, flags[i].once_in))
			sum |= flags[i].flag;
	if (!p->team->is_loose)
		sum &= ~(IOSQE_IO_HARDLINK | IOSQE_CQE_SKIP_SUCCESS);
	return sum;
}

static inline bool is_link(uint32_t flags)
{
	return flags & (IOSQE_IO_LINK | IOSQE_IO_HARDLINK);
}

/* Called once the entry is complete: is it done whatever else comes? */
static inline bool sqe_chain(struct ring *r, struct request *e)
{
	uint32_t flags = e->sqe.flags;
	bool is_free;

	r->is_drained |= !!(flags & IOSQE_IO_DRAIN);
	/* A drain in the middle of a link holds back all of it. */
	if (flags & IOSQE_IO_DRAIN && r->link_head)
		r->link_head->must_return = false;
	is_free = !r->is_drained && !r->is_linked &&
		  !(flags & IOSQE_CQE_SKIP_SUCCESS);
	if (!is_link(flags))
		r->link_head = NULL;
	else if (!r->ends_in_link)
		r->link_head = e;
	r->is_linked |= is_link(flags);
	r->ends_in_link = is_link(flags);
	return is_free;
}

/* ---- PARK and WAKE ---- */

static inline uint32_t cmd_op_of(struct request *e, struct dice *d)
{
	uint32_t odd = odd32(d);

	if (once_in(d, 24)) {
		e->kind = OTHER_REQUEST;
		return odd == PARKLOT_IOC_WAKE ? 0 : odd;
	}
	return e->kind == PARK_REQUEST ? PARKLOT_IOC_PARK : PARKLOT_IOC_WAKE;
}

static inline void sqe_command(struct player *p, struct dice *d,
			       struct io_uring_sqe *sqe, struct request *e)
{
	struct parklot_uring *area = (void *)sqe->cmd;
	uint32_t bad = pick(d, 32), odd = odd32(d), more = pick(d, 48);
	uint32_t fdno = pick_fdno(d), fixed = around(d, NR_FIXED);
	bool is_fixed = sqe->flags & IOSQE_FIXED_FILE;
	bool is_wake = e->kind == WAKE_REQUEST;

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = is_fixed ? (int)fixed : fdno_fd(fdno);
	area->arg = is_wake ? (uintptr_t)&e->wake : (uintptr_t)&e->park;
	sqe->cmd_op = cmd_op_of(e, d);
	area->reserved = bad == 0 ? odd : 0;
	if (bad == 1)
		area->arg = (uintptr_t)p->glass;
	if (bad == 2)
		area->arg = odd & 1 ? 0 : ~0UL << 12;
	if (more == 0)
		sqe->rw_flags = odd;
	if (more == 1)
		sqe->ioprio = odd;
	if (more == 2)
		sqe->buf_index = odd;
	if (more == 3)
		sqe->personality = odd;
	e->must_return = is_wake || (!is_fixed && !fdno);
}

/* ---- what befalls them ---- */

/* The requests that a cancel matches. */
static inline uint32_t cancel_flags_of(struct dice *d)
{
	static const uint32_t flags[] = {
		0, 0, IORING_ASYNC_CANCEL_ALL, IORING_ASYNC_CANCEL_FD,
		IORING_ASYNC_CANCEL_FD | IORING_ASYNC_CANCEL_ALL,
		IORING_ASYNC_CANCEL_FD | IORING_ASYNC_CANCEL_FD_FIXED,
		IORING_ASYNC_CANCEL_FD | IORING_ASYNC_CANCEL_FD_FIXED |
			IORING_ASYNC_CANCEL_ALL,
		IORING_ASYNC_CANCEL_ANY, IORING_ASYNC_CANCEL_ANY,
		CANCEL_OP | IORING_ASYNC_CANCEL_ALL,
	};
	uint32_t odd = odd32(d), i = pick(d, ARRAY_SIZE(flags) + 1);

	return i < ARRAY_SIZE(flags) ? flags[i] : odd;
}

static inline int cancel_fd_of(struct dice *d, uint32_t flags)
{
	uint32_t fdno = pick_fdno(d), fixed = pick(d, NR_FIXED);

	return flags & IORING_ASYNC_CANCEL_FD_FIXED ? (int)fixed :
						      fdno_fd(fdno);
}

static inline void sqe_cancel(struct player *p, struct dice *d,
			      struct io_uring_sqe *sqe, struct request *e)
{
	(void)e;
	sqe->opcode = IORING_OP_ASYNC_CANCEL;
	sqe->cancel_flags = cancel_flags_of(d);
	sqe->fd = cancel_fd_of(d, sqe->cancel_flags);
	sqe->addr = user_data_of(p, pick(d, NR_REQUESTS));
	sqe->len = sqe->cancel_flags & CANCEL_OP ? IORING_OP_URING_CMD : 0;
}

static inline void sqe_timeout(struct player *p, struct dice *d,
			       struct io_uring_sqe *sqe, struct request *e)
{
	bool is_removal = once_in(d, 4);
	uint32_t other = pick(d, NR_REQUESTS), nr = pick(d, 3);

	if (is_removal) {
		sqe->opcode = IORING_OP_TIMEOUT_REMOVE;
		sqe->fd = -1;
		sqe->addr = user_data_of(p, other);
		return;
	}
	/* Only behind a link does the timeout apply to the entry before. */
	sqe->opcode = p->ring.ends_in_link ? IORING_OP_LINK_TIMEOUT :
					     IORING_OP_TIMEOUT;
	sqe->fd = -1;
	sqe->addr = (uintptr_t)&e->ts;
	sqe->len = 1;
	sqe->off = sqe->opcode == IORING_OP_TIMEOUT ? nr : 0;
}

static inline void sqe_poll(struct player *p, struct dice *d,
			    struct io_uring_sqe *sqe, struct request *e)
{
	uint32_t how = pick(d, 4), other = pick(d, NR_REQUESTS);

	(void)e;
	sqe->opcode = how ? IORING_OP_POLL_ADD : IORING_OP_POLL_REMOVE;
	if (!how) {
		sqe->fd = -1;
		sqe->addr = user_data_of(p, other);
		return;
	}
	sqe->fd = how == 1 ? fdno_fd(0) : p->team->bell;
	sqe->poll_events = POLLIN;
	sqe->len = how == 2 ? IORING_POLL_ADD_MULTI : 0;
}

/* A registered file, but never the home. */
static inline void sqe_close(struct player *p, struct dice *d,
			     struct io_uring_sqe *sqe, struct request *e)
{
	uint32_t fdno = 1 + pick(d, NR_FDS - 1), fixed = pick(d, NR_FIXED);
	bool is_fixed = once_in(d, 2);

	sqe->opcode = IORING_OP_CLOSE;
	if (is_fixed) {
		sqe->file_index = fixed + 1;
		return;
	}
	sqe->fd = fdno_fd(fdno);
	sqe->flags &= ~IOSQE_CQE_SKIP_SUCCESS;
	e->kind = CLOSE_REQUEST;
	close_begins(p->team);
}

static inline void sqe_open(struct player *p, struct dice *d,
			    struct io_uring_sqe *sqe, struct request *e)
{
	(void)p;
	(void)e;
	sqe->opcode = IORING_OP_OPENAT;
	sqe->fd = AT_FDCWD;
	sqe->addr = (uintptr_t)DEVICE;
	sqe->open_flags = O_RDWR;
	sqe->file_index = 1 + around(d, NR_FIXED);
}

static inline void sqe_update(struct player *p, struct dice *d,
			      struct io_uring_sqe *sqe, struct request *e)
{
	(void)p;
	sqe->opcode = IORING_OP_FILES_UPDATE;
	sqe->fd = -1;
	sqe->addr = (uintptr_t)e->fd;
	sqe->len = 1 + pick(d, ARRAY_SIZE(e->fd));
	sqe->off = around(d, NR_FIXED);
}

/*
 * To a player's ring, maybe the own one: a completion, or a registered file.
 *
 * Linux 6.12 lets a ring keep itself: the entry holds its target while it
 * completes, and with DEFER_TASKRUN only the submitter completes it. If that
 * exits, its io-wq still does the entry, after the exit has looked for entries
 * that hold rings. So nobody completes it, and the ring is never released, nor
 * its files. Hence the submitter of such a ring does the entry itself.
 */
static inline void sqe_message(struct player *p, struct dice *d,
			       struct io_uring_sqe *sqe, struct request *e)
{
	uint32_t other = pick(d, NR_PLAYERS);
	bool is_file = once_in(d, 2);

	(void)e;
	if (p->ring.params.flags & IORING_SETUP_DEFER_TASKRUN)
		sqe->flags &= ~IOSQE_ASYNC;
	sqe->opcode = IORING_OP_MSG_RING;
	sqe->fd = ring_fd(p->team, other);
	sqe->off = FOREIGN;
	sqe->addr = is_file ? IORING_MSG_SEND_FD : IORING_MSG_DATA;
	if (!is_file)
		return;
	sqe->addr3 = pick(d, NR_FIXED);
	sqe->file_index = 1 + pick(d, NR_FIXED);
}

static inline void sqe_other(struct player *p, struct dice *d,
			     struct io_uring_sqe *sqe, struct request *e)
{
	static void (*const fns[])(struct player *p, struct dice *d,
				   struct io_uring_sqe *sqe,
				   struct request *e) = {
		sqe_cancel, sqe_cancel, sqe_cancel, sqe_timeout, sqe_timeout,
		sqe_timeout, sqe_poll, sqe_close, sqe_open, sqe_update,
		sqe_message,
	};
	uint32_t which = pick(d, ARRAY_SIZE(fns) + 1);

	/* The file of most of these is not the device. */
	sqe->flags &= ~IOSQE_FIXED_FILE;
	e->kind = OTHER_REQUEST;
	sqe->opcode = IORING_OP_NOP;
	if (which < ARRAY_SIZE(fns))
		fns[which](p, d, sqe, e);
}

/* ---- one of them ---- */

/*
 * Behind a link or a drain a WAKE may be done at any time, also at the end of
 * its ring; only the books of a loose team allow for that.
 */
static inline enum request_kind kind_of(struct player *p, struct dice *d,
					bool is_behind, bool is_late)
{
	uint32_t what = pick(d, 16);

	if (what > 11 || (is_late && !p->team->is_loose))
		return OTHER_REQUEST;
	if (what > 6 && (p->team->is_loose || !is_behind))
		return WAKE_REQUEST;
	return PARK_REQUEST;
}

/* A request that reaches its lot, unless the lot is signalled. */
static inline void sqe_park(struct player *p, struct dice *d,
			    struct io_uring_sqe *sqe, struct request *e)
{
	struct parklot_uring *area = (void *)sqe->cmd;
	uint32_t lot = pick(d, nr_home_lots(p)), later = once_in(d, 2);
	uint32_t seq = seq_read(&p->team->home, lot);

	e->kind = PARK_REQUEST;
	e->must_return = true;
	e->park = (struct parklot_park){
		.lot = lot, .expected_seq = once_in(d, 4) ? seq + 2 : seq,
		.deadline_ns = later ? now_ns() + 1000 * NSEC_PER_SEC :
			       PARKLOT_FOREVER,
		.pollfd = -1,
	};
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->flags = IOSQE_ASYNC;
	sqe->fd = fdno_fd(0);
	sqe->cmd_op = PARKLOT_IOC_PARK;
	area->arg = (uintptr_t)&e->park;
}

static inline void sqe_any(struct player *p, struct dice *d,
			   struct io_uring_sqe *sqe, struct request *e)
{
	bool is_behind = p->ring.is_linked || p->ring.is_drained;

	sqe->flags = sqe_flags_of(p, d);
	/* It would hold back a WAKE that is the head of the link. */
	if (p->ring.ends_in_link && !p->team->is_loose)
		sqe->flags &= ~IOSQE_IO_DRAIN;
	if (p->ring.is_async)
		sqe->flags |= IOSQE_ASYNC;
	is_behind |= !!(sqe->flags & IOSQE_IO_DRAIN);
	e->is_late = (is_behind || is_link(sqe->flags)) &&
		     !(sqe->flags & IOSQE_ASYNC);
	e->kind = kind_of(p, d, is_behind, e->is_late);
	if (e->kind == OTHER_REQUEST)
		sqe_other(p, d, sqe, e);
	else
		sqe_command(p, d, sqe, e);
}

/* Adds the entry to the ring, if the ring has room. */
static inline bool request_send(struct player *p, struct dice *d,
				struct request *e)
{
	struct io_uring_sqe *sqe = ring_sqe(&p->ring);
	bool is_plain = p->ring.is_plain && !once_in(d, 8);

	if (!sqe)
		return false;
	if (is_plain)
		sqe_park(p, d, sqe, e);
	else
		sqe_any(p, d, sqe, e);
	sqe->user_data = user_data_of(p, e - p->request);
	e->sqe = *sqe;
	e->must_return &= !e->is_late;
	e->must_return &= sqe_chain(&p->ring, e);
	e->is_pending = true;
	count(COMMANDS);
	return true;
}

#endif /* SELFTESTS_FUZZ_SQE_H */
