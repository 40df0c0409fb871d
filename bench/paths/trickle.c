// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A trickle of work: a task sleeps until the next mark, spawns ten short ones,
 * and sleeps again
 */
#include "../lib/task.h"
#include "../lib/trickle.h"

static void run_short(void *arg)
{
	(void)arg;
	trickle_task();
}

static void tick(void *arg)
{
	uint64_t ns = pl_now();
	int i, k;

	(void)arg;
	trickle_begin();
	for (i = 0; i < TRICKLE_ROUNDS; i++) {
		for (k = 0; k < TRICKLE_TASKS; k++)
			must("spawn", pl_spawn(NULL, run_short, NULL, NULL));
		ns += TRICKLE_NS;
		pl_sleep_until(ns);
	}
	trickle_end();
}

static void trickle(void)
{
	in_task(2, tick, NULL);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "trickle", trickle },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "trickle", cases);
}
