/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of kept buckets share: timers that note where they are called.
 * The harness is included before this header.
 */
#ifndef SELFTESTS_TIMERS_KEPT_H
#define SELFTESTS_TIMERS_KEPT_H

#include "timers.h"

#define KEPT		3	/* the bucket */
#define OTHER		1		/* the thread looks there first */

struct alarm {
	uint64_t		due_ns;
	struct gate		*gate;		/* where it stays, or NULL */
	_Atomic uint64_t	id;
	_Atomic uint32_t	by_thread, by_keeper, deleted;
	_Atomic uint32_t	nth;		/* of all that were called */
	uint32_t		nr_written;	/* plainly, by the function */
};

static _Atomic uint32_t nr_called, nr_early, nr_ends;

static inline void note_call(struct alarm *a)
{
	a->nth = ++nr_called;
	nr_early += pl__now_ns() < a->due_ns;
	if (a->gate)
		stand_in_gate(a->gate);
	a->nr_written++;
}

static inline void by_thread(void *arg)
{
	struct alarm *a = arg;

	note_call(a);
	a->by_thread++;
}

static inline void by_keeper(void *arg)
{
	struct alarm *a = arg;

	note_call(a);
	a->by_keeper++;
}

static inline void end_batch(void)
{
	nr_ends++;
}

/* A function that only the thread may call. */
static inline void loud(void *arg)
{
	by_thread(arg);
}

static inline bool list_kept(struct pl__timers *t, struct pl__slab_cache *c,
			     uint32_t bucket, struct alarm *a)
{
	struct pl__timer *r = pl__timer_reserve(t, c);

	if (!r)
		abort();
	pl__timers_make_room(t, bucket);
	a->id = pl__timer_set(t, r, bucket, a->due_ns, by_thread, a);
	pl__timer_list_kept(t, c, r);
	return pl__timers_kept_until(t, bucket) != PL_FOREVER;
}

static struct pl__slab_cache cache;

static inline void allow_keeping(struct pl__timers *t)
{
	pl__timers_batch(t, by_thread, end_batch);
	pl__timers_keep(t, by_keeper);
}

#endif /* SELFTESTS_TIMERS_KEPT_H */
