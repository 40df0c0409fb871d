/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "io/refused.h"
#include "ring/sync_op.h"

#include "parklot.h"

#include <liburing.h>

struct refused_call {
	struct pl__sync_op	op;
	int			res;
};

static void refused_make(void *arg)
{
	struct refused_call *c = arg;

	pl__sync_op_would_block(&c->op, &c->res);
}

bool pl__refused_is(const struct io_uring_sqe *sqe)
{
	struct pl__sync_op op;

	switch (sqe->opcode) {
	case IORING_OP_READ:
	case IORING_OP_READV:
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
		pl__sync_op_init(&op, sqe);
		return op.kind == PL__SYNC_OP_FILE;
	case IORING_OP_OPENAT:
		return true;
	}
	return false;
}

int pl__refused_call(const struct io_uring_sqe *sqe)
{
	struct refused_call c;

	if (sqe->opcode == IORING_OP_OPENAT)
		return -EOPNOTSUPP;
	pl__sync_op_init(&c.op, sqe);
	pl_blocking(refused_make, &c);
	return c.res;
}
