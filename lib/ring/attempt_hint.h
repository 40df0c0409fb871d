/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * attempt_hint: whether a nonblocking attempt pays, learnt from earlier ones
 *
 * After each attempt that got EAGAIN more requests skip the attempt before the
 * next one, up to 16.  After an attempt that succeeded none skips it.  So a
 * descriptor that never succeeds costs 1 attempt in 17 requests, and one that
 * mostly does is hardly slowed by a single EAGAIN.  The number of skips is
 * even, so that a descriptor which succeeds every second time is found.
 */
#ifndef PL_ATTEMPT_HINT_H
#define PL_ATTEMPT_HINT_H

#include "base/base.h"

#define PL__ATTEMPT_SKIP_MAX	16	/* a power of 2 */

/* Used by one thread.  Zero-filled it allows the first attempt. */
struct pl__attempt_hint {
	uint8_t			nr_pass; /* skips after the last EAGAIN */
	uint8_t			nr_left; /* skips of nr_pass still to come */
};

/* False: this request skips the attempt. */
static inline bool pl__attempt_hint_allows(struct pl__attempt_hint *g)
{
	if (!g->nr_left)
		return true;
	g->nr_left--;
	return false;
}

/* Records the result of an attempt. */
static inline void pl__attempt_hint_learn(struct pl__attempt_hint *g,
					  bool got_eagain)
{
	if (!got_eagain)
		g->nr_pass = 0;
	else if (g->nr_pass < PL__ATTEMPT_SKIP_MAX)
		g->nr_pass = g->nr_pass ? (uint8_t)(2 * g->nr_pass) : 2;
	g->nr_left = g->nr_pass;
}

/* The next attempt will probably succeed. */
static inline void pl__attempt_hint_reset(struct pl__attempt_hint *g)
{
	g->nr_left = 0;
}

#endif /* PL_ATTEMPT_HINT_H */
