/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * spawn_sample: for how long new tasks waited to run, measured for a sample
 *
 * Neither a spawn nor a switch reads the clock.  A worker counts down to the
 * next spawn that it samples; that task gets the time, and a start routine of
 * ours before its own: so one that was not sampled pays nothing when it runs.
 * The distance between samples adapts to the time between them: from each
 * spawn, of a worker that spawns some 1000 tasks in a second, to one of 256.
 */
#ifndef PL_SPAWN_SAMPLE_H
#define PL_SPAWN_SAMPLE_H

#include "queue/worker.h"

#define PL__SAMPLE_MOST		256	/* spawns for a sample; a power of 2 */
#define PL__SAMPLE_OUTSIDE	16	/* by threads that are no workers */

/* @t, which @w is about to queue, is sampled; sets when the next one is. */
void pl__spawn_sample_by(struct pl__worker *w, struct pl__task *t);

/* @t, which the caller is about to queue, is sampled. */
void pl__spawn_sample(struct pl__task *t);

/* @w has spawned a task; @w counts down to the next that is sampled. */
static inline bool pl__spawn_sample_is_due(struct pl__worker *w)
{
	return --w->spawns_to_sample < 0;
}

#endif /* PL_SPAWN_SAMPLE_H */
