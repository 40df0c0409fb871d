/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sync_op: what an SQE asks for, by the system call of that name
 *
 * For kernels that have no io_uring.  It is tried without blocking, and again
 * once the descriptor is ready, so that several may be after the same.  Only
 * files block, as they are always ready.  The descriptor's mode is let alone
 * as far as there is another way: MSG_DONTWAIT for sockets, RWF_NOWAIT for all
 * else, and where that is not known, a look by poll(2) first.  There is none to
 * accept and to connect; connecting sets it back at once.
 */
#ifndef PL_SYNC_OP_H
#define PL_SYNC_OP_H

#include "base/base.h"

struct io_uring_sqe;

enum pl__sync_op_kind {
	PL__SYNC_OP_FILE,	/* never has to be waited for, but blocks */
	PL__SYNC_OP_SOCKET,
	PL__SYNC_OP_OTHER,	/* pipes, terminals, eventfds ... */
};

struct pl__sync_op {
	const struct io_uring_sqe *sqe;
	enum pl__sync_op_kind	kind;
	uint32_t		events;	/* to be waited for; 0: none tells */
	int			done;	/* bytes, for MSG_WAITALL */
};

/* @sqe stays as long as @c. */
void pl__sync_op_init(struct pl__sync_op *c, const struct io_uring_sqe *sqe);

/* What it says; true: that it has to be tried again, once it has events. */
bool pl__sync_op_would_block(struct pl__sync_op *c, int *res);

#endif /* PL_SYNC_OP_H */
