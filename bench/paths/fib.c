// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * fib(27), a task for each call: 635621 tasks
 */
#include "../lib/task.h"

#define N	27
#define ANSWER	196418

struct call {
	uint32_t n;
	uint32_t result;
};

static const struct pl_spawn_opts *opts;

static void fib(void *arg)
{
	struct call *c = arg, less[2] = { { c->n - 1, 0 }, { c->n - 2, 0 } };
	pl_task_t tasks[2];
	int i;

	if (c->n < 2) {
		c->result = c->n;
		return;
	}
	for (i = 0; i < 2; i++)
		must("spawn", pl_spawn(&tasks[i], fib, &less[i], opts));
	for (i = 0; i < 2; i++)
		pl_join(tasks[i]);
	c->result = less[0].result + less[1].result;
}

static void all(void)
{
	struct pl_spawn_opts small = spawn_opts(PL_STACK_SMALL, 0);
	struct call c = { N, 0 };

	opts = &small;
	start_workers(2);
	bench_begin();
	must("join", pl_join(spawn(fib, &c)));
	bench_put_time("27", "ms", (double)NSEC_PER_MSEC);
	must("stop", pl_runtime_stop());
	if (c.result != ANSWER)
		die("fib(%d) is not %u", N, c.result);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "27", all },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "fib", cases);
}
