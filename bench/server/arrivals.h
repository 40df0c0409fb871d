/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * When requests of an open loop are due: at random, independent of each other
 * and of the server, as those of very many clients are
 *
 * The times between two are exponentially distributed (a Poisson process); a
 * seed repeats them.  What was due while the sender was late stays due.
 */
#ifndef BENCH_ARRIVALS_H
#define BENCH_ARRIVALS_H

#include "../lib/util.h"

struct arrivals {
	uint64_t seed;
	double mean_ns;		/* between two; 0: there are none */
	double next_ns;		/* of now_ns(): when the next is due */
};

/* From 0 up to, and not including, 1. */
static inline double arrivals_uniform(struct arrivals *a)
{
	a->seed++;
	return (double)(mix(a->seed) >> 11) * 0x1p-53;
}

/*
 * Exponential, mean 1, without a logarithm, after von Neumann (1951): a run of
 * falling numbers is of odd length with the probability that its first one
 * needs; each run of even length adds 1.
 */
static inline double arrivals_exponential(struct arrivals *a)
{
	double whole = 0, first, last, next;
	unsigned int nr;

	for (;; whole += 1) {
		first = last = arrivals_uniform(a);
		for (nr = 1; (next = arrivals_uniform(a)) < last; nr++)
			last = next;
		if (nr % 2)
			return whole + first;
	}
}

/* Go on to the next one. */
static inline void arrivals_advance(struct arrivals *a)
{
	a->next_ns += a->mean_ns * arrivals_exponential(a);
}

/* @rate a second from @start_ns on. */
static inline void arrivals_init(struct arrivals *a, uint64_t seed, double rate,
				 uint64_t start_ns)
{
	*a = (struct arrivals){ mix(seed), (double)NSEC_PER_SEC / rate,
				(double)start_ns };
	arrivals_advance(a);
}

#endif /* BENCH_ARRIVALS_H */
