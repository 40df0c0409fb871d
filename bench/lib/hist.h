/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A histogram of times, in nanoseconds, with bins that grow with the value
 *
 * Each power of two is divided into 64 equal bins, so that a bin is never
 * wider than 1/64 of what it holds; below 128 ns a bin is one nanosecond wide.
 * What is longer than HIST_LIMIT counts in the last bin; the maximum is kept
 * exactly. One thread writes; histograms of several threads are added up.
 */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS	6
#define HIST_SUB	(1U << HIST_SUB_BITS)
#define HIST_BITS	40
#define HIST_LIMIT	((UINT64_C(1) << HIST_BITS) - 1)	/* 18 minutes */
#define HIST_NR_BINS	((HIST_BITS - HIST_SUB_BITS + 1) * HIST_SUB)

struct hist {
	uint64_t nr;
	uint64_t max;
	uint64_t bin[HIST_NR_BINS];
};

/* The bin of @v; bins are in order of what they hold. */
static inline unsigned int hist_index(uint64_t v)
{
	unsigned int shift;

	if (v < HIST_SUB)
		return (unsigned int)v;
	if (v > HIST_LIMIT)
		v = HIST_LIMIT;
	shift = 63 - HIST_SUB_BITS - (unsigned int)__builtin_clzll(v);
	return shift * HIST_SUB + (unsigned int)(v >> shift);
}

/* The largest value that falls into bin @i. */
static inline uint64_t hist_last(unsigned int i)
{
	unsigned int shift;

	if (i < HIST_SUB)
		return i;
	shift = i / HIST_SUB - 1;
	return ((uint64_t)(i - shift * HIST_SUB + 1) << shift) - 1;
}

static inline void hist_add(struct hist *h, uint64_t v)
{
	h->bin[hist_index(v)]++;
	h->nr++;
	if (v > h->max)
		h->max = v;
}

static inline void hist_merge(struct hist *to, const struct hist *from)
{
	unsigned int i;

	for (i = 0; i < HIST_NR_BINS; i++)
		to->bin[i] += from->bin[i];
	to->nr += from->nr;
	if (from->max > to->max)
		to->max = from->max;
}

/*
 * The value that @per_100k of 100,000 values do not exceed: at most 1/64
 * above the true one, never below it, never above the maximum.
 */
static inline uint64_t hist_quantile(const struct hist *h, uint32_t per_100k)
{
	uint64_t rank = (h->nr * per_100k + 99999) / 100000;
	uint64_t seen = 0;
	unsigned int i;

	for (i = 0; i < HIST_NR_BINS; i++) {
		seen += h->bin[i];
		if (seen && seen >= rank)
			return hist_last(i) < h->max ? hist_last(i) : h->max;
	}
	return 0;
}

#endif /* BENCH_HIST_H */
