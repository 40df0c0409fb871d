/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * mutex: what condition variables need of it
 */
#ifndef PL_MUTEX_H
#define PL_MUTEX_H

#include "wait/wait.h"

/*
 * Locks as a thread that has slept, so that the next unlock wakes another.  0,
 * or what pl__wait() returns except -EAGAIN.
 */
int pl__mutex_lock_contended(struct pl_mutex *m, uint64_t deadline_ns,
			     uint32_t flags);

#endif /* PL_MUTEX_H */
