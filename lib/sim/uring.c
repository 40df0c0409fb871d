/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * io_uring, and its part of the kernel: a request is tried by a call that does
 * not wait, and again where a call of another thread may have changed what it
 * finds.
 *
 * As in the kernel, the thread that submitted a request carries it on: at once
 * if it sleeps, otherwise when it comes to the kernel next.  A request has its
 * file until it ends, though the descriptor is closed, and ends with the
 * thread.  The seed decides which requests take their time, in which order they
 * complete, and which cancels come too late.
 *
 * Not simulated, and refused as by a kernel that does not know it: more than
 * one completion of a request, registered buffers and files.
 */
#include "sim/uring.h"
#include "sim/io.h"
#include "sim/state.h"
#include "sim/uring_op.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct pl__sim_ring *pl__sim_rings;
uint64_t pl__sim_first_due_ns = PL__SIM_FOREVER;

void pl__sim_ops_init(struct pl__sim_ops *ops)
{
	ops->first = NULL;
	ops->end = &ops->first;
}

static void ops_add(struct pl__sim_ops *ops, struct pl__sim_op *op)
{
	op->next = NULL;
	*ops->end = op;
	ops->end = &op->next;
}

static void ops_del(struct pl__sim_ops *ops, struct pl__sim_op *op)
{
	struct pl__sim_op **at = &ops->first;

	while (*at != op)
		at = &(*at)->next;
	*at = op->next;
	if (!op->next)
		ops->end = at;
}

void pl__sim_op_free(struct pl__sim_op *op)
{
	if (op->is_fd_own)
		PL__SIM_REAL(close)(op->fd);
	free(op);
}

void pl__sim_op_set_due(struct pl__sim_op *op, uint64_t ns)
{
	op->due_ns = ns;
	if (ns < pl__sim_first_due_ns)
		pl__sim_first_due_ns = ns;
}

void pl__sim_op_end_at(struct pl__sim_op *op, int res, uint64_t ns)
{
	op->res = res;
	op->is_over = true;
	pl__sim_op_set_due(op, ns);
}

/* ---- completions ---- */

bool pl__sim_has_completions(const struct pl__sim_ring *r)
{
	return r->cq_tail != __atomic_load_n(&r->cq_head, __ATOMIC_ACQUIRE);
}

/* In order: none comes before those for which there was no room. */
static void post(struct pl__sim_ring *r, struct pl__sim_op *op)
{
	unsigned int head = __atomic_load_n(&r->cq_head, __ATOMIC_ACQUIRE);

	if (r->overflown.first || r->cq_tail - head == r->cq_entries) {
		ops_add(&r->overflown, op);
		r->sq_flags |= IORING_SQ_CQ_OVERFLOW;
		return;
	}
	r->uring->cq.cqes[r->cq_tail & r->cq_mask] = (struct io_uring_cqe){
		.user_data = op->sqe.user_data,
		.res = op->res,
	};
	__atomic_store_n(&r->cq_tail, r->cq_tail + 1, __ATOMIC_RELEASE);
	pl__sim_op_free(op);
	pl__sim_io_changed();
}

void pl__sim_post_overflown(struct pl__sim_ring *r)
{
	struct pl__sim_op *op = r->overflown.first, *next;

	pl__sim_ops_init(&r->overflown);
	r->sq_flags &= ~IORING_SQ_CQ_OVERFLOW;
	for (; op; op = next) {
		next = op->next;
		post(r, op);
	}
}

/* A request ends, or its timeout: none of them ends the other any more. */
static void timeout_end(struct pl__sim_op *op)
{
	if (op->timed) {
		op->timed->timeout = NULL;
		pl__sim_op_end_at(op->timed, -ECANCELED, pl__sim.now_ns);
	}
	if (op->timeout) {
		op->timeout->timed = NULL;
		pl__sim_op_end_at(op->timeout, -ECANCELED, pl__sim.now_ns);
	}
}

static void op_begin(struct pl__sim_op *op);

/* @op is in no list. */
static void op_end(struct pl__sim_op *op, int res)
{
	bool goes_on = !pl__sim_op_has_failed(&op->sqe, res) ||
		       op->sqe.flags & IOSQE_IO_HARDLINK;
	struct pl__sim_op *linked = op->linked, *next;

	op->res = res;
	timeout_end(op);
	post(op->ring, op);
	if (linked && goes_on) {
		op_begin(linked);
		return;
	}
	for (; linked; linked = next) {
		next = linked->linked;
		linked->res = -ECANCELED;
		post(linked->ring, linked);
	}
}

void pl__sim_op_try(struct pl__sim_op *op)
{
	int res = op->is_over ? op->res : pl__sim_op_attempt(op);

	op->is_ready = false;
	op->due_ns = PL__SIM_FOREVER;
	if (res == -ECANCELED && op->done)
		res = op->done;
	if (res == -EAGAIN && pl__sim_op_may_wait(op))
		return;
	ops_del(&op->ring->waiting, op);
	op_end(op, res);
}

/* ---- the beginning ---- */

struct pl__sim_op *pl__sim_op_of(const struct pl__sim_ring *r, uint64_t data)
{
	struct pl__sim_op *op = r->waiting.first;

	while (op && op->sqe.user_data != data)
		op = op->next;
	return op;
}

static int cancel(struct pl__sim_op *by)
{
	struct pl__sim_op *op = pl__sim_op_of(by->ring, by->sqe.addr);

	if (by->sqe.cancel_flags)
		return -EINVAL;
	if (!op)
		return -ENOENT;
	if (!pl__sim_is_machine() && pl__sim_one_in(8))
		return pl__sim_one_in(2) ? -ENOENT : -EALREADY;
	pl__sim_op_end_at(op, -ECANCELED, pl__sim.now_ns);
	return 0;
}

static void wait_for_time(struct pl__sim_op *op)
{
	const struct __kernel_timespec *ts = pl__sim_ptr(op->sqe.addr);

	ops_add(&op->ring->waiting, op);
	pl__sim_op_end_at(op, -ETIME, pl__sim.now_ns + pl__sim_kernel_ns(ts));
}

static void wait_for_futex(struct pl__sim_op *op)
{
	const uint32_t *word = pl__sim_ptr(op->sqe.addr);

	if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != (uint32_t)op->sqe.off)
		op_end(op, -EAGAIN);
	else
		ops_add(&op->ring->waiting, op);
}

/* Its timeout, if the next of the chain is one. */
static void timeout_begin(struct pl__sim_op *op)
{
	struct pl__sim_op *next = op->linked;

	if (!next || next->sqe.opcode != IORING_OP_LINK_TIMEOUT)
		return;
	op->linked = next->linked;
	next->linked = NULL;
	op->timeout = next;
	next->timed = op;
	wait_for_time(next);
}

/* Some thread of the kernel's has it, and takes its time. */
static bool takes_time(const struct pl__sim_op *op)
{
	struct stat st;

	return !pl__sim_is_machine() && !fstat(op->fd, &st) &&
	       S_ISREG(st.st_mode) && pl__sim_one_in(2);
}

static void file_begin(struct pl__sim_op *op)
{
	bool has_none = op->sqe.opcode == IORING_OP_OPENAT;

	if (!has_none && !pl__sim_is_open(op->fd)) {
		op_end(op, -EBADF);
		return;
	}
	ops_add(&op->ring->waiting, op);
	timeout_begin(op);
	if (!has_none && takes_time(op))
		pl__sim_op_set_due(op, pl__sim.now_ns +
				       (pl__sim_random() & 0xffff));
	else if (!pl__sim_op_is_of_socket(&op->sqe) ||
		 !(op->sqe.ioprio & IORING_RECVSEND_POLL_FIRST))
		pl__sim_op_try(op);
	else
		pl__sim_io_changed();
}

static void op_begin(struct pl__sim_op *op)
{
	if (!pl__sim_op_is_valid(&op->sqe)) {
		op_end(op, -EINVAL);
		return;
	}
	switch (op->sqe.opcode) {
	case IORING_OP_LINK_TIMEOUT:	/* of nothing */
		op_end(op, -EINVAL);
		break;
	case IORING_OP_NOP:
		op_end(op, 0);
		break;
	case IORING_OP_ASYNC_CANCEL:
		op_end(op, cancel(op));
		break;
	case IORING_OP_TIMEOUT:
		wait_for_time(op);
		break;
	case PL__SIM_FUTEX_WAIT:
		wait_for_futex(op);
		break;
	default:
		file_begin(op);
	}
}

static struct pl__sim_op *op_new(struct pl__sim_ring *r,
				 const struct io_uring_sqe *sqe)
{
	struct pl__sim_op *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->ring = r;
	op->sqe = *sqe;
	op->fd = sqe->fd;
	op->due_ns = PL__SIM_FOREVER;
	op->submitter = pl__sim_me;
	return op;
}

/* Of a chain with a request that is not known none is made. */
static void chain_begin(struct pl__sim_op *first)
{
	struct pl__sim_op *op, *next;
	int res = 0;

	for (op = first; op; op = op->linked)
		if (!pl__sim_op_is_valid(&op->sqe))
			res = -ECANCELED;
	if (!res || !first->linked) {
		op_begin(first);
		return;
	}
	for (op = first; op; op = next) {
		next = op->linked;
		op->linked = NULL;
		op_end(op, pl__sim_op_is_valid(&op->sqe) ? res : -EINVAL);
	}
}

/*
 * A chain begins when it is whole, or when no more is submitted, as where there
 * is no memory for the next.
 */
int pl__sim_submit(struct pl__sim_ring *r, unsigned int most)
{
	struct io_uring *u = r->uring;
	struct pl__sim_op *first = NULL, **at = &first, *op;
	unsigned int nr = 0;

	while (r->sq_head != u->sq.sqe_tail && nr < most) {
		op = op_new(r, &u->sq.sqes[r->sq_head & r->sq_mask]);
		if (!op)
			break;
		r->sq_head++;
		nr++;
		*at = op;
		at = &op->linked;
		if (op->sqe.flags & PL__SIM_LINKED)
			continue;
		chain_begin(first);
		first = NULL;
		at = &first;
	}
	if (first)
		chain_begin(first);
	return !nr && r->sq_head != u->sq.sqe_tail && most ? -EAGAIN : (int)nr;
}
