/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sync_op: carries out an SQE by the system call of the same name
 *
 * For kernels without io_uring.  The call is tried without blocking, and again
 * when the descriptor is ready, so that several requests may wait for one
 * descriptor.  Only calls on files block, as files are always ready.  The mode
 * of the descriptor is left alone as far as possible: MSG_DONTWAIT for sockets,
 * RWF_NOWAIT for everything else, and where the kernel does not know that,
 * poll(2) first.  There is no such flag for accept and connect; connect sets
 * the mode back at once.
 */
#ifndef PL_SYNC_OP_H
#define PL_SYNC_OP_H

#include "base/base.h"

struct io_uring_sqe;

enum pl__sync_op_kind {
	PL__SYNC_OP_FILE,	/* files: always ready, but calls block */
	PL__SYNC_OP_SOCKET,
	PL__SYNC_OP_OTHER,	/* pipes, terminals, eventfds ... */
};

struct pl__sync_op {
	const struct io_uring_sqe *sqe;
	enum pl__sync_op_kind	kind;
	/* poll events to wait for; 0: none tells */
	uint32_t		events;
	int			done;	/* bytes done so far, for MSG_WAITALL */
};

/* @sqe stays as long as @c. */
void pl__sync_op_init(struct pl__sync_op *c, const struct io_uring_sqe *sqe);

/*
 * Tries the call; false: *@res is its result; true: try again after c->events.
 */
bool pl__sync_op_would_block(struct pl__sync_op *c, int *res);

#endif /* PL_SYNC_OP_H */
