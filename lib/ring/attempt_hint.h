/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * attempt_hint: whether it pays to ask, by how it went before
 *
 * Each time in vain lets more times pass before the next one, up to 16.  Once
 * of use, it is asked again each time.  So who never gets anything asks 1 time
 * in 17, and who mostly does is hardly slowed by one time in vain.  As what
 * passes is even, who gets something each second time is found out.
 */
#ifndef PL_ATTEMPT_HINT_H
#define PL_ATTEMPT_HINT_H

#include "base/base.h"

#define PL__ATTEMPT_SKIP_MAX	16	/* 2^n */

/* Of one thread.  Zero-filled it is to be asked. */
struct pl__attempt_hint {
	uint8_t			nr_pass;	/* after the last in vain */
	uint8_t			nr_left;	/* of these */
};

/* False: this time passes. */
static inline bool pl__attempt_hint_allows(struct pl__attempt_hint *g)
{
	if (!g->nr_left)
		return true;
	g->nr_left--;
	return false;
}

/* It was asked. */
static inline void pl__attempt_hint_learn(struct pl__attempt_hint *g,
					  bool got_eagain)
{
	if (!got_eagain)
		g->nr_pass = 0;
	else if (g->nr_pass < PL__ATTEMPT_SKIP_MAX)
		g->nr_pass = g->nr_pass ? (uint8_t)(2 * g->nr_pass) : 2;
	g->nr_left = g->nr_pass;
}

/* There is a reason to ask the next time. */
static inline void pl__attempt_hint_reset(struct pl__attempt_hint *g)
{
	g->nr_left = 0;
}

#endif /* PL_ATTEMPT_HINT_H */
