// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Eight tasks on two workers count under one mutex: time for each count
 */
#include "../lib/task.h"

#define NR_TASKS	8
#define NR_COUNTS	250000		/* of each task */

static struct pl_mutex mutex;
static uint64_t sum;

static void add_up(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < NR_COUNTS; i++) {
		pl_mutex_lock(&mutex);
		sum++;
		pl_mutex_unlock(&mutex);
	}
}

static void eight(void *arg)
{
	pl_task_t tasks[NR_TASKS];
	int i;

	(void)arg;
	bench_begin();
	for (i = 0; i < NR_TASKS; i++)
		tasks[i] = spawn(add_up, NULL);
	for (i = 0; i < NR_TASKS; i++)
		pl_join(tasks[i]);
	bench_put_time("8_tasks", "ns", (double)NR_TASKS * NR_COUNTS);
	if (sum != (uint64_t)NR_TASKS * NR_COUNTS)
		die("the mutex let two in");
}

static void contended(void)
{
	in_task(2, eight, NULL);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "8_tasks", contended },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "mutex", cases);
}
