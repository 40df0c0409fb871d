/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * uring_linked: requests that the kernel begins one after the other
 *
 * All SQEs of a chain are in the queue before any is submitted, and all but the
 * last have a flag that links the next to it.
 *
 * A cancel finds no request that the kernel has not begun.  So it waits, in
 * u->later, until the one before is over, and is then made at the next poll.  A
 * deadline cancels all requests of a chain: the one that waits is found, and
 * the kernel ends the rest with it; but after a hard link it begins the next,
 * which is cancelled in turn.
 *
 * The kernel may have no memory for some request of a chain.  Then it takes
 * those before as a chain, and would take the rest as one of its own, in no
 * order with it.  So SQEs that are not at the beginning of a chain, but are the
 * next to be taken, are made ones that do nothing.
 */
#include "ring/ring_impl.h"

#include <string.h>

int pl__uring_add_linked(struct pl__ring *r, struct pl__ring_req *first,
			 uint32_t nr)
{
	struct pl__uring *u = pl__uring_of(r);
	struct pl__ring_req *req = first;
	struct io_uring_sqe *sqe;
	uint32_t i;

	if (!pl__uring_has_room(u, nr))
		return -EAGAIN;
	for (i = 0; i < nr; i++, req = req->next) {
		sqe = io_uring_get_sqe(&u->uring);
		*sqe = *req->sqe;
		if (i < nr - 1 && !(sqe->flags & IOSQE_IO_HARDLINK))
			sqe->flags |= IOSQE_IO_LINK;
		sqe->user_data = (uint64_t)(uintptr_t)req | PL__URING_REQ;
	}
	u->has_chain = true;
	u->chain_end = u->uring.sq.sqe_tail;
	return 0;
}

void pl__uring_cancel_later(struct pl__uring *u, struct pl__ring_req *req)
{
	if (list_empty(&req->queue))
		list_add_tail(&req->queue, &u->later);
	else
		pl__ring_finish(&u->poll.ring, req);
}

void pl__uring_begin_next(struct pl__uring *u, const struct pl__ring_req *req)
{
	struct pl__ring_req *next = req->next;

	if (!(req->linked & PL__LINKED_NEXT))
		return;
	next->linked &= (uint8_t)~PL__LINKED_WAITS;
	if (list_empty(&next->queue))
		return;
	list_del_init(&next->queue);
	list_add_tail(&next->queue, &u->again);
	u->is_again_due = true;
}

static void end_rest(struct pl__uring *u, unsigned int at)
{
	struct io_uring_sqe *sqe;
	struct pl__ring_req *req;
	uint8_t flags;

	do {
		sqe = &u->uring.sq.sqes[at++ % PL__URING_ENTRIES];
		req = pl__uring_req_of(sqe->user_data);
		req->has_first = true;
		req->res = -EAGAIN;
		flags = sqe->flags;
		memset(sqe, 0, sizeof(*sqe));
		sqe->user_data = (uint64_t)(uintptr_t)req | PL__URING_REQ;
	} while (flags & (IOSQE_IO_LINK | IOSQE_IO_HARDLINK));
}

void pl__uring_end_cut_chain(struct pl__uring *u)
{
	unsigned int at = IO_URING_READ_ONCE(*u->uring.sq.khead);
	uint64_t data = u->uring.sq.sqes[at % PL__URING_ENTRIES].user_data;

	if ((int)(at - u->chain_end) >= 0)
		u->has_chain = false;
	else if ((data & PL__URING_MASK) == PL__URING_REQ &&
		 pl__uring_req_of(data)->linked & PL__LINKED_PREV)
		end_rest(u, at);
}

/*
 * uring_withdraw: a request on a closed descriptor, still queued, is given up
 *
 * The kernel looks the descriptor up when it takes the request.  By then the
 * number may be that of another file, from which a read would take what is not
 * its own.  So the request gets the descriptor of none, and fails with -EBADF;
 * those that are linked behind it end as they do after any failure.
 */

bool pl__uring_withdraw(struct pl__uring *u, const struct pl__ring_req *req)
{
	uint64_t data = (uint64_t)(uintptr_t)req | PL__URING_REQ;
	struct io_uring_sq *sq = &u->uring.sq;
	unsigned int i = sq->sqe_tail - io_uring_sq_ready(&u->uring);
	struct io_uring_sqe *sqe;

	for (; i != sq->sqe_tail; i++) {
		sqe = &sq->sqes[i & *sq->kring_mask];
		if (sqe->user_data == data) {
			sqe->fd = -1;
			return true;
		}
	}
	return false;
}
