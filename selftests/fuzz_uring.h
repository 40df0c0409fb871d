/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mod_fuzz: commands of io_uring. Each submission is an errand, whose structs
 * stay where they are until it has come back, once. One to the home has to;
 * others may be parked in a space that has no descriptor any more, and so no
 * end before the ring's. Where the kernel has no such commands all are refused.
 */
#ifndef SELFTESTS_FUZZ_URING_H
#define SELFTESTS_FUZZ_URING_H

#include "fuzz_calls.h"

#define NR_ERRANDS	32
#define NR_FIXED	2	/* registered files: the home, and any */

struct errand {
	bool				is_pending;
	bool				must_return;
	bool				is_park;
	struct parklot_park		park;
	struct parklot_wake		wake;
	struct parklot_wake_entry	entry[3];
};

static inline void ring_open(struct player *p, struct dice *d)
{
	static const unsigned int flags[] = {
		0, 0, IORING_SETUP_COOP_TASKRUN,
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_SQE128, IORING_SETUP_CQE32,
	};
	int fds[NR_FIXED] = { desk_fd(0), desk_fd(0) };
	uint32_t how = pick(d, ARRAY_SIZE(flags));

	p->errand = calloc(NR_ERRANDS, sizeof(*p->errand));
	if (io_uring_queue_init(2 * NR_ERRANDS, &p->ring, flags[how]))
		return;
	p->has_ring = true;
	io_uring_register_files(&p->ring, fds, NR_FIXED);
}

static inline struct errand *errand_find(struct player *p)
{
	uint32_t i;

	for (i = 0; i < NR_ERRANDS; i++)
		if (!p->errand[i].is_pending)
			return &p->errand[i];
	return NULL;
}

static inline void errand_fill(struct player *p, struct dice *d,
			       struct errand *e)
{
	uint32_t i;

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
}

/* Which file, and when it is done. */
static inline void sqe_aim(struct player *p, struct dice *d,
			   struct io_uring_sqe *sqe, struct errand *e)
{
	uint32_t desk = pick_desk(d), fixed = pick(d, NR_FIXED);
	uint32_t how = pick(d, 8), odd = odd32(d);
	bool is_odd = once_in(d, 32), is_fixed = how < 2;

	e->must_return = !is_fixed && !desk && !p->is_linked;
	sqe->fd = is_fixed ? (int)fixed : desk_fd(desk);
	if (is_fixed)
		sqe->flags |= IOSQE_FIXED_FILE;
	if (how == 2)
		sqe->flags |= IOSQE_ASYNC;
	if (how == 3)
		sqe->flags |= IOSQE_IO_LINK;
	p->is_linked |= how == 3;
	if (is_odd)
		sqe->rw_flags = odd;
}

static inline void errand_send(struct player *p, struct dice *d,
			       struct errand *e)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&p->ring);
	struct parklot_uring *area;
	uint32_t what = pick(d, 16), bad = pick(d, 32), odd = odd32(d);

	if (!sqe)
		return;
	io_uring_prep_nop(sqe);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->user_data = e - p->errand;
	e->is_park = what < 8;
	sqe->cmd_op = e->is_park ? PARKLOT_IOC_PARK : PARKLOT_IOC_WAKE;
	if (what == 15)
		sqe->cmd_op = odd;
	area = (void *)sqe->cmd;
	area->arg = e->is_park ? (uintptr_t)&e->park : (uintptr_t)&e->wake;
	area->reserved = bad == 0 ? odd : 0;
	if (bad == 1)
		area->arg = (uintptr_t)p->glass;
	if (bad == 2)
		area->arg = odd & 1 ? 0 : ~0UL << 12;
	sqe_aim(p, d, sqe, e);
	e->is_pending = true;
	count(COMMANDS);
}

static inline void check_errand(struct player *p, struct errand *e, int res)
{
	bool is_fair = is_documented(res) || res == -ECANCELED;

	if (e->is_park) {
		if (res > 0)
			check_reason(p, res, &e->park);
		is_fair |= res > 0;
	} else if (res > 0) {
		is_fair = (uint32_t)res == e->wake.woken &&
			  e->wake.woken <= e->wake.limit;
		atomic_fetch_add(&p->team->said, res);
	}
	if (!is_fair)
		foul(p, "a command came to %d", res);
}

/* What has come back so far. */
static inline void errands_reap(struct player *p)
{
	struct io_uring_cqe *cqe;
	struct errand *e;

	while (!io_uring_peek_cqe(&p->ring, &cqe)) {
		e = &p->errand[cqe->user_data % NR_ERRANDS];
		if (cqe->user_data >= NR_ERRANDS || !e->is_pending)
			foul(p, "command %llu came back twice",
			     (unsigned long long)cqe->user_data);
		else
			check_errand(p, e, cqe->res);
		e->is_pending = false;
		io_uring_cqe_seen(&p->ring, cqe);
	}
}

static void do_submit(struct player *p, struct dice *d)
{
	uint32_t nr = 1 + pick(d, 4), i;
	struct errand *e;

	for (i = 0; i < nr && p->has_ring; i++) {
		struct dice own = dice_of(d->state, i);

		e = errand_find(p);
		if (!e)
			break;
		errand_fill(p, &own, e);
		errand_send(p, &own, e);
	}
	if (!p->has_ring)
		return;
	io_uring_submit(&p->ring);
	p->is_linked = false;
	errands_reap(p);
}

static void do_reap(struct player *p, struct dice *d)
{
	struct __kernel_timespec ts = { .tv_nsec = 1 + pick(d, 200000) };
	struct io_uring_cqe *cqe;

	if (!p->has_ring)
		return;
	io_uring_wait_cqe_timeout(&p->ring, &cqe, &ts);
	errands_reap(p);
}

/* The registered file becomes another. */
static void do_register(struct player *p, struct dice *d)
{
	int fd = desk_fd(pick_desk(d));

	if (p->has_ring)
		io_uring_register_files_update(&p->ring, NR_FIXED - 1, &fd, 1);
}

/* None is pending that has to come back. */
static inline bool errands_are_done(struct player *p)
{
	uint32_t i;

	if (!p->has_ring)
		return true;
	io_uring_submit(&p->ring);
	io_uring_get_events(&p->ring);
	errands_reap(p);
	for (i = 0; i < NR_ERRANDS; i++)
		if (p->errand[i].is_pending && p->errand[i].must_return)
			return false;
	return true;
}

static inline void ring_close(struct player *p)
{
	if (p->has_ring)
		io_uring_queue_exit(&p->ring);
	p->has_ring = false;
	free(p->errand);
}

#endif /* SELFTESTS_FUZZ_URING_H */
