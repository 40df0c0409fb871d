// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A few that compute and never pause; a "call" is a unit of that
 */
#include "crowd.h"

#define UNIT		100000

static void compute(uint32_t member)
{
	uint64_t v = member;
	int i;

	while (!atomic_load(&crowd.is_over)) {
		for (i = 0; i < UNIT; i++)
			v = mix(v);
		__asm__ volatile("" : : "r" (v));
		atomic_fetch_add(&crowd.nr_calls, 1);
	}
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
		{ NULL, NULL },
	};

	return crowd_main(argc, argv, cases);
}
