/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * bthread's points in time, of the wall clock, as deadlines of parklot
 */
#ifndef PARKLOT_BTHREAD_DEADLINE_H
#define PARKLOT_BTHREAD_DEADLINE_H

#include <parklot.h>

#include <time.h>

namespace bthread {

/*
 * ns of CLOCK_MONOTONIC; PL_FOREVER for NULL; 0 once it has passed.  A jump of
 * the wall clock after this call does not move it.
 */
static inline uint64_t to_deadline(const timespec *at)
{
	const __int128 forever = PL_FOREVER - 1;
	timespec now;
	__int128 left;

	if (!at)
		return PL_FOREVER;
	clock_gettime(CLOCK_REALTIME, &now);
	left = (__int128)(at->tv_sec - now.tv_sec) * 1000000000 +
	       at->tv_nsec - now.tv_nsec;
	if (left <= 0)
		return 0;
	left += pl_now();
	return left < forever ? (uint64_t)left : (uint64_t)forever;
}

}  // namespace bthread

#endif  // PARKLOT_BTHREAD_DEADLINE_H
