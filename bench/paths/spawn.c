// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Spawning: one and join it; many and wait for all
 *
 * The many are spawned with one signal for each SIGNAL_EVERY of them, as
 * a spawner of many does, or each with a signal of its own.
 */
#include "../lib/task.h"

#define NR_JOINED	200000
#define NR_MANY		100000
#define SIGNAL_EVERY	1000
#define NR_ROUNDS	3		/* the first warms up */

static struct count count;

static void join_each(void *arg)
{
	uint64_t before = nr_worker_calls();
	int i;

	(void)arg;
	bench_begin();
	for (i = 0; i < NR_JOINED; i++)
		pl_join(spawn(nothing, NULL));
	bench_put_time("join", "ns", NR_JOINED);
	bench_put("join_calls", "calls", (double)(nr_worker_calls() - before) /
					 NR_JOINED);
}

static void join(void)
{
	in_task(2, join_each, NULL);
}

static void done(void *arg)
{
	(void)arg;
	count_done(&count);
}

static void spawn_quietly(void)
{
	struct pl_spawn_opts opts = spawn_opts(PL_STACK_NORMAL,
					       PL_SPAWN_NOSIGNAL);
	int i;

	for (i = 1; i <= NR_MANY; i++) {
		must("spawn", pl_spawn(NULL, done, NULL, &opts));
		if (i % SIGNAL_EVERY == 0)
			pl_flush();
	}
}

static void spawn_signalled(void)
{
	int i;

	for (i = 0; i < NR_MANY; i++)
		must("spawn", pl_spawn(NULL, done, NULL, NULL));
}

static void rounds(const char *name, void (*spawn_all)(void))
{
	int i;

	for (i = 0; i < NR_ROUNDS; i++) {
		if (i == 1)
			bench_begin();
		count_init(&count, NR_MANY);
		spawn_all();
		count_wait(&count);
	}
	bench_put_time(name, "ns", (double)(NR_ROUNDS - 1) * NR_MANY);
}

static void quietly_in_task(void *arg)
{
	(void)arg;
	rounds("task_100k", spawn_quietly);
}

static void signalled_in_task(void *arg)
{
	(void)arg;
	rounds("task_100k_signalled", spawn_signalled);
}

static void task_100k(void)
{
	in_task(2, quietly_in_task, NULL);
}

static void task_100k_signalled(void)
{
	in_task(2, signalled_in_task, NULL);
}

static void thread_100k(void)
{
	start_workers(2);
	rounds("thread_100k", spawn_quietly);
	must("stop", pl_runtime_stop());
}

static void thread_100k_signalled(void)
{
	start_workers(2);
	rounds("thread_100k_signalled", spawn_signalled);
	must("stop", pl_runtime_stop());
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "join", join },
		{ "task_100k", task_100k },
		{ "task_100k_signalled", task_100k_signalled },
		{ "thread_100k", thread_100k },
		{ "thread_100k_signalled", thread_100k_signalled },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "spawn", cases);
}
