/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mod_fuzz: operations on rings: submit, reap, register, cancel at once,
 * overwrite, and end. A kernel without the device's commands refuses them all.
 */
#ifndef SELFTESTS_FUZZ_URING_H
#define SELFTESTS_FUZZ_URING_H

#include "sqe.h"

#define NR_DASHES	8

/* The dice decide which files are registered, and whether any are. */
static inline void ring_register_files(struct player *p, struct dice *d,
				       int ring)
{
	int fd[NR_FIXED];
	uint32_t i, nr = 2 + pick(d, NR_FIXED - 1);

	(void)p;
	for (i = 0; i < NR_FIXED; i++)
		fd[i] = once_in(d, 8) ? -1 : fdno_fd(pick_fdno(d));
	fd[0] = fdno_fd(0);
	ring_register(ring, IORING_REGISTER_FILES, fd, nr);
}

/*
 * Before the ring is enabled: only our commands are allowed, or not even those.
 */
static inline void ring_restrict(struct player *p, struct dice *d, int ring)
{
	struct io_uring_restriction all[] = {
		{ .opcode = IORING_RESTRICTION_SQE_OP,
		  .sqe_op = IORING_OP_URING_CMD },
		{ .opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED,
		  .sqe_flags = roll(d) },
		{ .opcode = IORING_RESTRICTION_REGISTER_OP,
		  .register_op = IORING_REGISTER_ENABLE_RINGS },
	};
	bool is_to_be = once_in(d, 4);

	p->ring.is_restricted = !p->ring.is_enabled && is_to_be &&
		!ring_register(ring, IORING_REGISTER_RESTRICTIONS, all,
			       ARRAY_SIZE(all));
}

static inline void ring_enable(struct player *p)
{
	ring_register(ring_fd(p->team, p->nr), IORING_REGISTER_ENABLE_RINGS,
		      NULL, 0);
	p->ring.is_enabled = true;
}

static inline void ring_begin(struct player *p, struct dice *d)
{
	bool has_files = !once_in(d, 8), waits = once_in(d, 4);
	uint32_t few = pick(d, 8);
	int fd = ring_fd(p->team, p->nr);

	requests_begin(p);
	p->ring.is_async = once_in(d, 3);
	p->ring.is_plain = once_in(d, 4) || (p->team->is_solo && few);
	ring_open(p, d);
	if (!p->ring.is_open)
		return;
	if (has_files)
		ring_register_files(p, d, fd);
	ring_restrict(p, d, fd);
	if (!p->ring.is_enabled && !waits)
		ring_enable(p);
}

/* ---- what comes back ---- */

/* The possible results of a request. */
static inline bool result_is_fair(struct player *p, const struct request *e,
				  int res)
{
	if (is_documented(res) || res == -ECANCELED)
		return true;
	if (res == -EACCES && p->ring.is_restricted)
		return true;
	/* A child has submitted it. */
	if (res == -EIO && p->team->is_loose)
		return true;
	if (e->kind == PARK_REQUEST)
		return is_reason(res);
	/* A late command may have written to the struct of any request. */
	if (p->team->is_loose)
		return res > 0;
	return (uint32_t)res == e->wake.woken && e->wake.woken <= e->wake.limit;
}

static inline void check_request(struct player *p, struct request *e,
				 const struct io_uring_cqe *cqe)
{
	int res = cqe->res;

	if (e->is_late)
		e->park.deadline_ns = 0;
	if (e->kind == CLOSE_REQUEST)
		close_ends(p->team);
	if (e->kind != PARK_REQUEST && e->kind != WAKE_REQUEST)
		return;
	if (!result_is_fair(p, e, res))
		foul(p, "command %#llx, kind %d, came to %d, says %u",
		     (unsigned long long)cqe->user_data, e->kind, res,
		     e->wake.woken);
	if (res <= 0)
		return;
	if (e->kind == WAKE_REQUEST)
		atomic_fetch_add(&p->team->said, res);
	else
		check_reason(p, res, &e->park);
}

static inline void request_back(struct player *p,
				const struct io_uring_cqe *cqe)
{
	uint64_t nr = cqe->user_data - user_data_of(p, 0);
	struct request *e = &p->request[nr % NR_REQUESTS];

	if (cqe->user_data & FOREIGN || p->team->is_torn)
		return;
	if (nr >= NR_REQUESTS || !e->is_pending) {
		foul(p, "command %#llx came back twice",
		     (unsigned long long)cqe->user_data);
		return;
	}
	if (cqe->flags & IORING_CQE_F_MORE)
		return;
	check_request(p, e, cqe);
	e->is_pending = false;
}

/* Takes the completions so far, unless other threads write to the ring. */
static inline void requests_reap(struct player *p)
{
	struct io_uring_cqe cqe;
	uint32_t i;

	for (i = 0; i < 4 * NR_REQUESTS && ring_cqe(&p->ring, &cqe); i++)
		request_back(p, &cqe);
}

/* Ends the ring, in any way. */
static inline void ring_leave(struct player *p, uint32_t how)
{
	requests_reap(p);
	ring_end(p, how);
	requests_abandon(p);
}

/* Submits and reaps; returns false if the ring is gone. */
static inline bool ring_go(struct player *p, uint32_t nr, uint32_t ns)
{
	int ret = ring_enter(p, nr, ns);

	requests_reap(p);
	switch (ret) {
	case -EBADF:			/* closed by another player */
	case -EEXIST:			/* enabled by another player */
	case -EOPNOTSUPP:		/* another kind of file by now */
	case -EOWNERDEAD:		/* the kernel's thread is gone */
		if (!p->team->is_loose)
			foul(p, "ring: error %d", -ret);
		ring_leave(p, 0);
		return false;
	}
	p->ring.is_linked = p->ring.ends_in_link;
	return true;
}

/* ---- operations ---- */

static void do_end(struct player *p, struct dice *d)
{
	uint32_t how = pick(d, 4);
	struct dice own = dice_of(d->state, 0);
	bool comes_back = !once_in(&own, 4);

	if (!p->team->is_loose)
		return;
	if (p->ring.is_open)
		ring_leave(p, how);
	if (comes_back)
		ring_begin(p, &own);
}

static inline void send_some(struct player *p, struct dice *d, uint32_t nr)
{
	struct request *e;
	uint32_t i;

	for (i = 0; i < nr && p->ring.is_open; i++) {
		struct dice own = dice_of(d->state, i);

		e = request_find(p);
		if (!e)
			break;
		request_fill(p, &own, e);
		if (!request_send(p, &own, e))
			break;
	}
}

static void do_submit(struct player *p, struct dice *d)
{
	uint32_t nr = 1 + pick(d, 6);
	bool goes_in = !once_in(d, 24);

	send_some(p, d, nr);
	if (goes_in && p->ring.is_open)
		ring_go(p, 0, 0);
}

static void *sender_main(void *arg)
{
	ring_go(arg, 0, 0);
	return NULL;
}

/* The kernel cancels commands of a sender when the sender exits. */
static inline void ring_go_and_exit(struct player *p)
{
	pthread_t sender;

	if (!pthread_create(&sender, NULL, sender_main, p))
		pthread_join(sender, NULL);
}

/* A ring that ends as soon as all is submitted, or with its submitter. */
static inline void dash(struct player *p, struct dice *d)
{
	uint32_t nr = 1 + pick(d, 20), how = pick(d, 8), way = pick(d, 8);
	uint32_t nr_yields = pick(d, 8);

	if (!p->ring.is_open)
		ring_begin(p, d);
	send_some(p, d, p->ring.is_plain ? NR_PLAIN : nr);
	if (!way && p->ring.is_open)
		ring_go_and_exit(p);
	else if (way < 7 && p->ring.is_open)
		ring_go(p, 0, 0);
	while (nr_yields--)
		sched_yield();
	if (p->ring.is_open)
		ring_leave(p, how);
}

/* One ring after the other. */
static void do_dash(struct player *p, struct dice *d)
{
	uint32_t i, nr = pick(d, NR_DASHES);

	for (i = 0; i < nr && p->team->is_loose; i++) {
		struct dice own = dice_of(d->state, i);

		dash(p, &own);
	}
}

static void do_reap(struct player *p, struct dice *d)
{
	uint32_t nr = 1 + pick(d, 2), ns = 1 + pick(d, 200000);

	if (p->ring.is_open)
		ring_go(p, nr, ns);
}

/* The kernel may wait here without a limit, so this call does not. */
static inline void ring_cancel(struct player *p, struct dice *d, int fd)
{
	uint32_t flags = cancel_flags_of(d), ns = pick(d, 200000);
	struct io_uring_sync_cancel_reg reg = {
		.addr = user_data_of(p, pick(d, NR_REQUESTS)),
		.fd = cancel_fd_of(d, flags), .flags = flags,
		.timeout.tv_nsec = ns,
	};

	ring_register(fd, IORING_REGISTER_SYNC_CANCEL, &reg, 1);
}

static inline void ring_update(struct dice *d, int ring)
{
	int fd = once_in(d, 4) ? -1 : fdno_fd(pick_fdno(d));
	struct io_uring_files_update update = {
		.offset = 1 + pick(d, NR_FIXED), .fds = (uintptr_t)&fd,
	};

	ring_register(ring, IORING_REGISTER_FILES_UPDATE, &update, 1);
}

/* Any opcode, also those that this kernel does not know. */
static inline void ring_register_any(struct player *p, struct dice *d, int fd)
{
	uint32_t op = pick(d, 48), nr = pick(d, 4);

	memset(p->paper, 0, 512);
	/* Restrictions apply only to a ring that registered them. */
	if (op != IORING_REGISTER_RESTRICTIONS)
		ring_register(fd, op, once_in(d, 2) ? p->paper : NULL, nr);
}

/* The ring of this player, or of another one, which is not told. */
static void do_register(struct player *p, struct dice *d)
{
	uint32_t how = pick(d, 12), other = pick(d, 4 * NR_PLAYERS);
	bool is_other = p->team->is_loose && other < NR_PLAYERS;
	int fd = ring_fd(p->team, is_other ? other : p->nr);
	uint32_t few[2] = { pick(d, 3), pick(d, 3) };

	switch (how) {
	case 0 ... 2:
		ring_update(d, fd);
		break;
	case 3:
		ring_register(fd, IORING_UNREGISTER_FILES, NULL, 0);
		break;
	case 4:
		ring_register_files(p, d, fd);
		break;
	case 5 ... 7:
		ring_cancel(p, d, fd);
		break;
	case 8:
		ring_register(fd, IORING_REGISTER_IOWQ_MAX_WORKERS, few, 2);
		break;
	case 9:
		ring_register(fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
		break;
	case 10:
		ring_register(fd, few[0] ? IORING_REGISTER_EVENTFD :
			      IORING_UNREGISTER_EVENTFD, &p->team->bell, 1);
		break;
	case 11:
		ring_register_any(p, d, fd);
		break;
	}
	if (how == 9 && !is_other)
		p->ring.is_enabled = true;
}

/* Another player's ring: this player submits its entries, or closes it. */
static void do_meddle(struct player *p, struct dice *d)
{
	uint32_t other = pick(d, NR_PLAYERS), nr = pick(d, 8);
	bool closes = once_in(d, 4);
	int fd = ring_fd(p->team, other);

	if (!p->team->is_loose)
		return;
	if (closes)
		close(fd);
	else
		syscall(SYS_io_uring_enter, fd, nr, 0, IORING_ENTER_GETEVENTS,
			NULL, 0);
}

static inline struct io_uring_sqe *sqe_at(struct ring *r, uint32_t nr)
{
	size_t size = sizeof(struct io_uring_sqe);

	if (r->params.flags & IORING_SETUP_SQE128)
		size *= 2;
	return (void *)(r->sqes + nr % r->params.sq_entries * size);
}

/* Writes while the kernel reads an entry, for the second time perhaps. */
static inline void tear_sqe(struct io_uring_sqe *sqe, struct dice *d,
			    const char *paper)
{
	uint32_t odd = odd32(d), what = pick(d, 6);
	struct parklot_uring *area = (void *)sqe->cmd;

	switch (what) {
	case 0:
		sqe->flags = odd;
		break;
	case 1:
		sqe->flags ^= IOSQE_FIXED_FILE;
		break;
	case 2:
		sqe->cmd_op ^= PARKLOT_IOC_PARK ^ PARKLOT_IOC_WAKE;
		break;
	case 3:
		area->arg = (uintptr_t)paper;
		break;
	case 4:
		area->reserved = odd;
		break;
	case 5:
		sqe->rw_flags = odd;
		break;
	}
}

/*
 * Any player's ring, which may be unmapped meanwhile: only in teams that may
 * die of it, and with results that do not count.
 */
static void do_tear(struct player *p, struct dice *d)
{
	struct player *other = &p->team->player[pick(d, NR_PLAYERS)];
	struct ring *r = &other->ring;
	uint32_t how = pick(d, 8), odd = odd32(d), nr = pick(d, 64);
	struct io_uring_sqe *sqe;

	if (!p->team->is_torn || !r->is_open)
		return;
	sqe = sqe_at(r, nr);
	if (how > 2 && sqe->opcode == IORING_OP_URING_CMD)
		tear_sqe(sqe, d, p->paper);
	if (how == 0)
		*ring_word(r, r->params.sq_off.tail) += odd;
	if (how == 1)
		*ring_word(r, r->params.cq_off.head) = odd;
	if (how == 2 && r->params.sq_off.array)
		*ring_word(r, r->params.sq_off.array) = odd;
}

/* No request that must return is pending, and all entries are submitted. */
static inline bool requests_are_done(struct player *p)
{
	struct ring *r = &p->ring;
	uint32_t i;

	if (!r->is_open)
		return true;
	if (!r->is_enabled)
		ring_enable(p);
	if (!ring_go(p, 0, 0))
		return true;
	if (word_read(ring_word(r, r->params.sq_off.head)) != r->tail)
		return false;
	for (i = 0; i < NR_REQUESTS; i++)
		if (p->request[i].is_pending && p->request[i].must_return)
			return false;
	return true;
}

/* The books of a strict team are closed: it has counted no later wake. */
static inline void ring_close(struct player *p)
{
	if (!p->ring.is_open)
		return;
	requests_reap(p);
	if (p->team->is_loose)
		ring_leave(p, 0);
	else
		ring_end(p, 0);
}

#endif /* SELFTESTS_FUZZ_URING_H */
