/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * request: I/O that one caller waits for; it lies on that caller's stack
 *
 * Dumps and gdb find it from the word on which the caller waits.
 */
#ifndef PL_REQUEST_H
#define PL_REQUEST_H

#include "ring/ring.h"

struct pl__task;

struct pl__request {
	struct pl__ring_req	req;
	/* waits alone; NULL: the caller waits on the word */
	struct pl__task		*waiter;
	_Atomic uint32_t	done;
	int			res;
	uint64_t		done_ns;	/* ns; 0: not measured */
};

#endif /* PL_REQUEST_H */
