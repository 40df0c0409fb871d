// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A crowd in usleep(20 ms); and a quick task between two halves of a crowd that
 * sleeps for a second: how long after it was spawned it runs
 */
#include <unistd.h>

#include "crowd.h"

#define SLEEP_US	20000
#define LONG_US		999999

static uint64_t spawned_ns, ran_ns;

static void sleep_shortly(uint32_t member)
{
	(void)member;
	usleep(SLEEP_US);
}

static void among_sleepers(void)
{
	crowd_run(sleep_shortly);
}

static void sleep_long(void *arg)
{
	(void)arg;
	usleep(LONG_US);
}

static void be_quick(void *arg)
{
	(void)arg;
	ran_ns = now_ns();
}

static void quick_between(void)
{
	uint32_t nr = crowd_nr_of_case(), i;
	struct crowd_part quick, *sleepers = zalloc(nr, sizeof(*sleepers));

	crowd_begin(nr);
	for (i = 0; i < nr / 2; i++)
		crowd_part_start(&sleepers[i], sleep_long, NULL);
	spawned_ns = now_ns();
	crowd_part_start(&quick, be_quick, NULL);
	for (; i < nr; i++)
		crowd_part_start(&sleepers[i], sleep_long, NULL);
	crowd_part_join(&quick);
	crowd_put("worst", "us", (double)(ran_ns - spawned_ns) / 1000);
	for (i = 0; i < nr; i++)
		crowd_part_join(&sleepers[i]);
	crowd_end();
	free(sleepers);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "between:200", quick_between },
		{ "usleep:100", among_sleepers },
		{ "usleep:250", among_sleepers },
		{ "usleep:1000", among_sleepers },
		{ NULL, NULL },
	};

	return crowd_main(argc, argv, cases);
}
