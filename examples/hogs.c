// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Two workers, tasks that compute without a pause, and a ticker that is to run
 * each millisecond beside them: how late it is.
 */
#include "usage.h"

#include <parklot.h>
#include <stdio.h>
#include <stdlib.h>

#define NR_WORKERS	2
#define TICK_NS		1000000ULL
#define NR_TICKS_MAX	1000000

static struct pl_latch hogs;
static uint64_t hog_ns;
static uint32_t nr_ticks;
static uint32_t late_us[NR_TICKS_MAX];
static uint64_t stop_ns;

static void failed(const char *what)
{
	fprintf(stderr, "hogs: FAILED %s\n", what);
	exit(1);
}

static void compute(void *arg)
{
	uint64_t end = pl_now() + hog_ns;

	(void)arg;
	while (pl_now() < end)
		;
	pl_latch_done(&hogs);
}

/* A tick that is due while another is late counts as well. */
static void tick(void *arg)
{
	uint64_t due = pl_now(), now;

	(void)arg;
	do {
		due += TICK_NS;
		pl_sleep_until(due);
		now = pl_now();
		late_us[nr_ticks++] = (uint32_t)((now - due) / 1000);
	} while (now < stop_ns && nr_ticks < NR_TICKS_MAX);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	char **args = usage_arguments(argc, argv, 2,
				      "hogs [HOGS [SECONDS]]");
	const int nr = args[0] ? (int)usage_number("HOGS", args[0], 1, 10000) :
				 NR_WORKERS;
	const unsigned long seconds = args[0] && args[1] ?
		usage_number("SECONDS", args[1], 1, 10000) : 1;
	struct pl_config cfg = PL_CONFIG_INIT;
	struct pl_stat st = PL_STAT_INIT;
	pl_task_t ticker;
	int i;

	cfg.nr_workers = NR_WORKERS;
	if (pl_runtime_start(&cfg))
		failed("no runtime");
	hog_ns = seconds * 1000000000ULL;
	stop_ns = pl_now() + hog_ns;
	pl_latch_init(&hogs, (uint32_t)nr);
	if (pl_spawn(&ticker, tick, NULL, NULL))
		failed("no task");
	pl_sleep(10 * TICK_NS);
	for (i = 0; i < nr; i++)
		if (pl_spawn(NULL, compute, NULL, NULL))
			failed("no task");
	pl_latch_wait(&hogs);
	pl_join(ticker);
	pl_stat_read(&st);
	pl_runtime_stop();
	qsort(late_us, nr_ticks, sizeof(late_us[0]), compare);
	printf("hogs: ticks=%u p50_ms=%.2f max_ms=%.2f stalls=%llu more=%llu\n",
	       nr_ticks, late_us[nr_ticks / 2] / 1e3,
	       late_us[nr_ticks - 1] / 1e3, (unsigned long long)st.stalls,
	       (unsigned long long)st.stalls_over);
	printf("hogs: ok workers=%d hogs=%d tick_p99_ms=%.2f\n", NR_WORKERS,
	       nr, late_us[nr_ticks * 99ULL / 100] / 1e3);
	return 0;
}
