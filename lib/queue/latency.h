/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * latency: how long tasks waited to run, measured for a sample
 *
 * The hot paths must not read the clock.  So the sample is taken of what begins
 * with the kernel: one of PL__LATENCY_EVERY completions, from when the worker
 * saw it; and one of as many expired deadlines, from the deadline itself.  All
 * measures end when the task runs.
 *
 * For spawns a worker counts down to the next one that it samples; that task
 * gets the time, and a start routine of ours before its own: so one that was
 * not sampled pays nothing when it runs.  The distance between samples adapts
 * to the time between them: from each spawn, of a worker that spawns some 1000
 * tasks in a second, to one of 256.
 */
#ifndef PL_LATENCY_H
#define PL_LATENCY_H

#include "base/sys.h"

struct pl__task;
struct pl__worker;

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

#define PL__SAMPLE_MOST		256	/* spawns for a sample; a power of 2 */
#define PL__SAMPLE_OUTSIDE	16	/* by threads that are no workers */

/* @t, which @w is about to queue, is sampled; sets when the next one is. */
void pl__spawn_sample_by(struct pl__worker *w, struct pl__task *t);

/* @t, which the caller is about to queue, is sampled. */
void pl__spawn_sample(struct pl__task *t);

#endif /* PL_LATENCY_H */
