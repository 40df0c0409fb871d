/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "ring/ring_uring.h"
#include "base/sys.h"

#include <string.h>

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
