/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * queue_delay: percentiles of the time from ready to run
 *
 * The caller's struct keeps what was counted at its last call, so that each
 * caller has an interval of its own, and no call writes what workers use.
 */
#include "queue/rt.h"
#include "ctx/self.h"
#include "base/grown.h"
#include "base/sys.h"

#define BINS	PL__LATENCY_BINS

#define SIZE_FIRST	PL__GROWN_FIRST(struct pl_queue_delay, seen)

_Static_assert(ARRAY_SIZE(((struct pl_queue_delay *)0)->seen) == BINS,
	       "one for each bin");

static void queue_delay_add(uint64_t *bin, const struct pl__latency_hist *d)
{
	uint32_t i;

	for (i = 0; i < BINS; i++)
		bin[i] += load_relaxed(&d->bin[i]);
}

static void queue_delay_sum(uint64_t *bin)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;

	for (i = 0; i < nr; i++) {
		queue_delay_add(bin, &pl__rt.workers[i]->io_latency);
		queue_delay_add(bin, &pl__rt.workers[i]->spawn_latency);
	}
}

/* The end of the bin below which @percent of all @nr are. */
static uint64_t queue_delay_below(const uint64_t *bin, uint64_t nr,
				  uint32_t percent)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < BINS - 1; i++) {
		sum += bin[i];
		if (sum * 100 >= nr * percent)
			break;
	}
	return 1ULL << (i + PL__LATENCY_SHIFT);
}

/* A runtime that was started anew counts from 0. */
static uint64_t queue_delay_since(uint64_t *bin, uint64_t *seen)
{
	uint64_t nr = 0, now;
	bool is_anew = false;
	uint32_t i;

	for (i = 0; i < BINS; i++)
		is_anew = is_anew || bin[i] < seen[i];
	for (i = 0; i < BINS; i++) {
		now = bin[i];
		bin[i] -= is_anew ? 0 : seen[i];
		seen[i] = now;
		nr += bin[i];
	}
	return nr;
}

static void queue_delay_take(struct pl_queue_delay *qd, uint64_t *bin)
{
	uint64_t since = load_relaxed(&pl__rt.sampled_ns);
	uint64_t now = since ? pl__now_ns() : 0;

	qd->waiting_ns = now > since ? now - since : 0;
	qd->nr = queue_delay_since(bin, qd->seen);
	qd->p50_ns = qd->nr ? queue_delay_below(bin, qd->nr, 50) : 0;
	qd->p99_ns = qd->nr ? queue_delay_below(bin, qd->nr, 99) : 0;
}

int pl_queue_delay(struct pl_queue_delay *qd)
{
	bool outside = !pl__self();
	uint64_t bin[BINS] = { 0 };
	struct pl_queue_delay own;

	if (!pl__grown_is_valid(qd, SIZE_FIRST))
		return -EINVAL;
	if (!outside || pl__rt_enter()) {
		queue_delay_sum(bin);
		if (outside)
			pl__rt_exit();
	}
	pl__grown_read(&own, sizeof(own), qd);
	queue_delay_take(&own, bin);
	pl__grown_write(qd, &own, sizeof(own));
	return own.nr ? 0 : -ENODATA;
}
