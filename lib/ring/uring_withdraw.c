/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * uring_withdraw: a request on a closed descriptor, still queued, is given up
 *
 * The kernel looks the descriptor up when it takes the request.  By then the
 * number may be that of another file, from which a read would take what is not
 * its own.  So the request gets the descriptor of none, and fails with -EBADF;
 * those that are linked behind it end as they do after any failure.
 */
#include "ring/ring_uring.h"

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
