// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A few that compute and never pause; a "call" is a unit of that.  And a pool
 * of tasks that compute for a 20th of the time each, which is 100 ms, and
 * nothing else: how long they take together, with reliefs beside stalled
 * workers and without
 */
#include "crowd.h"

#define UNIT		100000

#define POOL_TURNS	4	/* with reliefs and without, in turn */
#define TRIAL_UNITS	100

static void compute_unit(uint64_t v)
{
	int i;

	for (i = 0; i < UNIT; i++)
		v = mix(v);
	__asm__ volatile("" : : "r" (v));
}

static void compute(uint32_t member)
{
	while (!atomic_load(&crowd.is_over)) {
		compute_unit(member);
		atomic_fetch_add(&crowd.nr_calls, 1);
	}
}

/* How many units take one of a pool its time, on a processor of its own. */
static uint64_t units_of_pool(void)
{
	uint64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID), i;

	for (i = 0; i < TRIAL_UNITS; i++)
		compute_unit(i);
	return crowd_ns() / 20 * TRIAL_UNITS /
	       (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun);
}

static void compute_units(void *arg)
{
	uint64_t nr = (uintptr_t)arg, i;

	for (i = 0; i < nr; i++)
		compute_unit(i);
}

/* ns that @nr tasks take, each of so many units. */
static uint64_t pool_turn(struct crowd_part *parts, uint32_t nr, uint64_t units)
{
	uint64_t begun;
	uint32_t i;

	crowd_begin(nr);
	begun = now_ns();
	for (i = 0; i < nr; i++)
		crowd_part_start(&parts[i], compute_units,
				 (void *)(uintptr_t)units);
	for (i = 0; i < nr; i++)
		crowd_part_join(&parts[i]);
	begun = now_ns() - begun;
	crowd_end();
	return begun;
}

static void pool(void)
{
	uint32_t nr = crowd_nr_of_case() / POOL_TURNS, turn;
	struct crowd_part *parts = zalloc(nr, sizeof(*parts));
	uint64_t units = units_of_pool(), ns[2] = { 0 };

	for (turn = 0; turn < POOL_TURNS; turn++) {
		crowd_stall_ns = turn % 2 ? PL_FOREVER : 0;
		ns[turn % 2] += pool_turn(parts, nr, units);
	}
	crowd_put("worst", "us", (double)ns[0] / 1000);
	crowd_put("without", "us", (double)ns[1] / 1000);
	free(parts);
}

static void among_hogs(void)
{
	crowd_run(compute);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "compute:2", among_hogs },
		{ "compute:8", among_hogs },
		{ "compute:64", among_hogs },
		{ "pool:200", pool },
		{ NULL, NULL },
	};

	return crowd_main(argc, argv, cases);
}
