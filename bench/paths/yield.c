// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Yielding to each other, on one worker
 */
#include "../lib/task.h"

#define NR_YIELDS	2000000		/* by all together */

static uintptr_t nr_tasks;

static void yield_on(void *arg)
{
	uintptr_t i;

	(void)arg;
	for (i = 0; i < NR_YIELDS / nr_tasks; i++)
		pl_yield();
}

static void all(void *name)
{
	pl_task_t *tasks = zalloc(nr_tasks, sizeof(*tasks));
	uintptr_t i;

	bench_begin();
	for (i = 0; i < nr_tasks; i++)
		tasks[i] = spawn(yield_on, NULL);
	for (i = 0; i < nr_tasks; i++)
		pl_join(tasks[i]);
	bench_put_busy(name, NR_YIELDS);
	free(tasks);
}

static void two(void)
{
	nr_tasks = 2;
	in_task(1, all, "2_tasks");
}

static void thousand(void)
{
	nr_tasks = 1000;
	in_task(1, all, "1000_tasks");
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "2_tasks", two },
		{ "1000_tasks", thousand },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "yield", cases);
}
