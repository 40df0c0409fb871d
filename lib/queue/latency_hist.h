/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * latency_hist: how long tasks waited to run, measured for a sample
 *
 * The hot paths must not read the clock.  So the sample is taken of what begins
 * with the kernel: one of PL__LATENCY_EVERY completions, from when the worker
 * saw it; and one of as many expired deadlines, from the deadline itself.  Of
 * spawns it is taken as spawn_sample.h says.  All measures end when the task
 * runs.
 */
#ifndef PL_LATENCY_HIST_H
#define PL_LATENCY_HIST_H

#include "base/sys.h"

#define PL__LATENCY_EVERY	16	/* a power of 2 */
#define PL__LATENCY_BINS	24

/*
 * Bin i counts less than 2^(i + PL__LATENCY_SHIFT) ns; the last counts the
 * rest.
 */
#define PL__LATENCY_SHIFT	7

/* Written by one worker, read by other threads. */
struct pl__latency_hist {
	_Atomic uint32_t	bin[PL__LATENCY_BINS];
};

/* Counts the time from @since_ns of the monotonic clock until now. */
static inline void pl__latency_hist_add(struct pl__latency_hist *d,
					uint64_t since_ns)
{
	uint64_t now = pl__now_ns();
	uint64_t rest = now > since_ns ? (now - since_ns) >> PL__LATENCY_SHIFT :
					 0;
	uint32_t i = rest ? 64 - (uint32_t)__builtin_clzll(rest) : 0;

	counter_inc(&d->bin[i < PL__LATENCY_BINS ? i : PL__LATENCY_BINS - 1]);
}

#endif /* PL_LATENCY_HIST_H */
