// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * One producer of tasks of 2 us each, two workers: system calls for each task
 * to let workers sleep and to wake them, as the library counts them
 *
 * It spawns as fast as it can until AHEAD_MAX are alive, and then goes on when
 * half of them have ended.
 */
#include "../lib/task.h"

#define NR_TASKS	100000
#define AHEAD_MAX	1024
#define TASK_NS		2000

static _Atomic uint32_t nr_ended;
static struct pl_word news;		/* moves on when the producer may */
static _Atomic uint32_t wanted;		/* when so many have ended */

static void work(void *arg)
{
	const uint64_t end_ns = now_ns() + TASK_NS;

	(void)arg;
	while (now_ns() < end_ns)
		;
	if (atomic_fetch_add(&nr_ended, 1) + 1 != atomic_load(&wanted))
		return;
	atomic_fetch_add(&news.value, 1);
	pl_word_wake(&news, 1);
}

/* The last of the tasks sees the wish, or this thread sees that it ended. */
static void wait_for(uint32_t nr)
{
	uint32_t seen = atomic_load(&news.value);

	atomic_store(&wanted, nr);
	while (atomic_load(&nr_ended) < nr) {
		pl_word_wait(&news, seen, PL_FOREVER);
		seen = atomic_load(&news.value);
	}
}

static void produce(void *name)
{
	uint64_t before = nr_worker_calls();
	char text[32];
	uint32_t i;

	bench_begin();
	for (i = 1; i <= NR_TASKS; i++) {
		must("spawn", pl_spawn(NULL, work, NULL, NULL));
		if (i - atomic_load(&nr_ended) >= AHEAD_MAX)
			wait_for(i - AHEAD_MAX / 2);
	}
	wait_for(NR_TASKS);
	snprintf(text, sizeof(text), "%s_calls", (const char *)name);
	bench_put(text, "calls", (double)(nr_worker_calls() - before) /
				 NR_TASKS);
	bench_put_time(name, "ns", NR_TASKS);
}

static void task(void)
{
	in_task(2, produce, "task");
}

static void thread(void)
{
	start_workers(2);
	produce("thread");
	must("stop", pl_runtime_stop());
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "task", task },
		{ "thread", thread },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "producer", cases);
}
