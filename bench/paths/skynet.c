// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * skynet: a tree of tasks, ten children each, a million leaves; the leaves'
 * numbers are added up on the way back
 */
#include "../lib/task.h"

#define NR_CHILDREN	10
#define NR_LEAVES	1000000U
#define ANSWER		UINT64_C(499999500000)

struct node {
	uint32_t first;
	uint32_t size;
	uint64_t sum;
};

static const struct pl_spawn_opts *opts;

static void grow(void *arg)
{
	struct node *n = arg, child[NR_CHILDREN];
	pl_task_t tasks[NR_CHILDREN];
	uint32_t i;

	if (n->size == 1) {
		n->sum = n->first;
		return;
	}
	for (i = 0; i < NR_CHILDREN; i++) {
		child[i].size = n->size / NR_CHILDREN;
		child[i].first = n->first + i * child[i].size;
		must("spawn", pl_spawn(&tasks[i], grow, &child[i], opts));
	}
	n->sum = 0;
	for (i = 0; i < NR_CHILDREN; i++) {
		pl_join(tasks[i]);
		n->sum += child[i].sum;
	}
}

static void all(void)
{
	struct pl_spawn_opts small = spawn_opts(PL_STACK_SMALL, 0);
	struct node root = { 0, NR_LEAVES, 0 };

	opts = &small;
	start_workers(2);
	bench_begin();
	must("join", pl_join(spawn(grow, &root)));
	bench_put_time("1m", "ms", (double)NSEC_PER_MSEC);
	must("stop", pl_runtime_stop());
	if (root.sum != ANSWER)
		die("the sum is wrong");
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "1m", all },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "skynet", cases);
}
