// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A first program: three tasks sleep, all at the same time, and are joined.
 */
#include "usage.h"

#include <parklot.h>
#include <stdio.h>

static void greet(void *arg)
{
	const char *name = arg;

	if (pl_sleep(10 * 1000 * 1000))
		return;
	printf("hello, %s\n", name);
}

int main(int argc, char **argv)
{
	char *names[] = { "task", "worker", "lot" };
	pl_task_t tasks[3];
	int i, ret;

	usage_arguments(argc, argv, 0, "hello");
	for (i = 0; i < 3; i++) {
		ret = pl_spawn(&tasks[i], greet, names[i], NULL);
		if (ret)
			return 1;
	}
	for (i = 0; i < 3; i++)
		pl_join(tasks[i]);
	return pl_runtime_stop() ? 1 : 0;
}
