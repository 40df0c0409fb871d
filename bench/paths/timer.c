// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Threads add timers of a minute and delete them at once, as deadlines of
 * requests are: time for a pair, all threads together, and memory it leaves
 */
#include <pthread.h>

#include "../lib/memory.h"
#include "../lib/task.h"

#define NR_PAIRS	2000000		/* by all together */
#define NR_WARM		10000
#define AHEAD_NS	(60 * NSEC_PER_SEC)

static pthread_barrier_t begin;
static unsigned int nr_threads;

static void pairs(unsigned int nr)
{
	const uint64_t ns = pl_now() + AHEAD_NS;
	pl_timer_t t;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		must("add", pl_timer_add(&t, ns + i, nothing, NULL));
		must("del", pl_timer_del(t));
	}
}

static void *add_and_delete(void *arg)
{
	pairs(NR_WARM);
	pthread_barrier_wait(&begin);
	pairs(NR_PAIRS / nr_threads);
	return arg;
}

static void threads(const char *name, unsigned int nr)
{
	pthread_t thread[8];
	uint64_t before;
	unsigned int i;

	nr_threads = nr;
	start_workers(2);
	if (pthread_barrier_init(&begin, NULL, nr + 1))
		die("no barrier");
	for (i = 0; i < nr; i++) {
		if (pthread_create(&thread[i], NULL, add_and_delete, NULL))
			die("cannot start a thread");
	}
	before = memory_used();
	bench_begin();
	pthread_barrier_wait(&begin);
	for (i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	bench_put_time(name, "ns", NR_PAIRS);
	if (nr == 1)
		bench_put("memory", "B", memory_since(before, NR_PAIRS));
	must("stop", pl_runtime_stop());
}

static void one(void)
{
	threads("1_thread", 1);
}

static void four(void)
{
	threads("4_threads", 4);
}

static void eight(void)
{
	threads("8_threads", 8);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "1_thread", one },
		{ "4_threads", four },
		{ "8_threads", eight },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "timer", cases);
}
