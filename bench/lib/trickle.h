/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The trickle: every 500 us 10 tasks of 1 us each, so that a processor has
 * something to do for 2 % of the time
 *
 * What it costs is CPU time, and voluntary context switches, a round.
 */
#ifndef BENCH_TRICKLE_H
#define BENCH_TRICKLE_H

#include "bench.h"

#define TRICKLE_ROUNDS	2000
#define TRICKLE_TASKS	10
#define TRICKLE_NS	(500 * UINT64_C(1000))
#define TRICKLE_TASK_NS	1000

static long trickle_switches;

static inline void trickle_task(void)
{
	const uint64_t end_ns = now_ns() + TRICKLE_TASK_NS;

	while (now_ns() < end_ns)
		;
}

static inline long trickle_nr_switches(void)
{
	struct rusage ru;

	return getrusage(RUSAGE_SELF, &ru) ? 0 : ru.ru_nvcsw;
}

static inline void trickle_begin(void)
{
	bench_begin();
	trickle_switches = trickle_nr_switches();
}

static inline void trickle_end(void)
{
	const uint64_t ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - bench_cpu_ns;
	const long nr = trickle_nr_switches() - trickle_switches;

	bench_put("round_cpu", "us", (double)ns / 1000 / TRICKLE_ROUNDS);
	bench_put("round_switches", "switches", (double)nr / TRICKLE_ROUNDS);
}

#endif /* BENCH_TRICKLE_H */
