// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A ticker of 1 ms on two workers while 2, 8, 64 other tasks compute: how late
 * it is, at the 99th percentile and at worst.  Ticks that are missed count as
 * well, each as late as it is.  The same with threads, just after
 */
#include <pthread.h>
#include <stdatomic.h>

#include "task.h"

#define NR_WORKERS	2
#define NR_TICKS	1000
#define MOST		64U

static uint32_t nr;		/* what the case's name ends in */
static atomic_bool is_over;
static double late_us[NR_TICKS];

static void compute(void *arg)
{
	(void)arg;
	while (!atomic_load_explicit(&is_over, memory_order_relaxed))
		;
}

static void *compute_thread(void *arg)
{
	compute(arg);
	return NULL;
}

static void note(int i, uint64_t due)
{
	uint64_t now = now_ns();

	late_us[i] = now > due ? (double)(now - due) / 1e3 : 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void put(const char *series, const char *unit, double value)
{
	char name[32];

	snprintf(name, sizeof(name), "%s:%u", series, nr);
	bench_put(name, unit, value);
}

static void put_late(const char *p99, const char *worst)
{
	qsort(late_us, NR_TICKS, sizeof(late_us[0]), compare);
	put(p99, "us", late_us[NR_TICKS * 99 / 100]);
	put(worst, "us", late_us[NR_TICKS - 1]);
}

static void tick_as_task(void *arg)
{
	uint64_t due = now_ns();
	pl_task_t hogs[MOST];
	uint32_t i;

	(void)arg;
	for (i = 0; i < nr; i++)
		hogs[i] = spawn(compute, NULL);
	for (i = 0; i < NR_TICKS; i++) {
		due += NSEC_PER_MSEC;
		pl_sleep_until(due);
		note((int)i, due);
	}
	atomic_store(&is_over, true);
	for (i = 0; i < nr; i++)
		pl_join(hogs[i]);
}

static void tick_as_thread(void)
{
	uint64_t due = now_ns();
	pthread_t hogs[MOST];
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (pthread_create(&hogs[i], NULL, compute_thread, NULL))
			die("cannot start a thread");
	for (i = 0; i < NR_TICKS; i++) {
		due += NSEC_PER_MSEC;
		sleep_until(due);
		note((int)i, due);
	}
	atomic_store(&is_over, true);
	for (i = 0; i < nr; i++)
		pthread_join(hogs[i], NULL);
}

static void run(void)
{
	nr = (uint32_t)strtoul(strchr(bench_name, ':') + 1, NULL, 10);
	in_task(NR_WORKERS, tick_as_task, NULL);
	put_late("tick", "tick_worst");
	atomic_store(&is_over, false);
	tick_as_thread();
	put_late("thread_tick", "thread_tick_worst");
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "tick:2", run },
		{ "tick:8", run },
		{ "tick:64", run },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "hogs", cases);
}
