/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "wait/bucket.h"
#include "base/atfork.h"
#include "base/sys.h"

#include <string.h>
#include <sys/mman.h>

struct pl__bucket pl__buckets[1U << PL__BUCKET_BITS];

/*
 * Gives whole pages back, so that they read as zeroes; an emulator may return
 * success without doing so.
 */
static void bucket_atfork_child(void)
{
	uintptr_t page = pl__page_size(), end = (uintptr_t)(&pl__buckets + 1);
	uintptr_t first = ((uintptr_t)pl__buckets + page - 1) & ~(page - 1);
	uintptr_t last = end & ~(page - 1);
	struct pl__bucket *probe = (struct pl__bucket *)first;

	memset(pl__buckets, 0, first - (uintptr_t)pl__buckets);
	memset((void *)last, 0, end - last);
	store_relaxed(&probe->lock.state, PL__LOCK_HELD);
	pl__advise((void *)first, last - first, MADV_DONTNEED);
	if (load_relaxed(&probe->lock.state))
		memset((void *)first, 0, last - first);
}

PL_ATFORK_CHILD(bucket_atfork_child);
