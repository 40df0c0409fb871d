// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Two workers, four tasks that block them in read(), and bursts of a thousand
 * other tasks, for which that is nothing: a row each time, of how many workers
 * run (>), are blocked (#), and are parked (.).
 */
#include "usage.h"

#include <parklot.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NR_WORKERS	2
#define NR_BLOCKING	4
#define NR_TINY		1000
#define ROW_NS		100000000ULL
#define HANGS_NS	(300 * ROW_NS)

static int fds[NR_BLOCKING][2];
static pl_task_t readers[NR_BLOCKING];
static struct pl_latch begun, tiny;

static void failed(const char *what)
{
	fprintf(stderr, "blocked: FAILED %s\n", what);
	exit(1);
}

static void block(void *arg)
{
	int *fd = arg;
	char c;

	pl_latch_done(&begun);
	if (read(fd[0], &c, 1) != 1)
		failed("a pipe ended");
}

static void do_nothing(void *arg)
{
	(void)arg;
	pl_latch_done(&tiny);
}

/* All are about to read when this returns. */
static void start_blocking(void)
{
	int i;

	pl_latch_init(&begun, NR_BLOCKING);
	for (i = 0; i < NR_BLOCKING; i++) {
		if (pipe(fds[i]))
			failed("no pipe");
		if (pl_spawn(&readers[i], block, fds[i], NULL))
			failed("no task");
	}
	if (pl_latch_wait_until(&begun, pl_now() + HANGS_NS))
		failed("blocking tasks do not begin");
}

static void end_blocking(void)
{
	int i;

	for (i = 0; i < NR_BLOCKING; i++) {
		if (write(fds[i][1], "", 1) != 1)
			failed("a pipe is full");
		pl_join(readers[i]);
	}
}

/* How long a burst of tiny tasks takes. */
static double burst_ms(void)
{
	uint64_t since = pl_now();
	int i;

	pl_latch_init(&tiny, NR_TINY);
	for (i = 0; i < NR_TINY; i++)
		if (pl_spawn(NULL, do_nothing, NULL, NULL))
			failed("no task");
	if (pl_latch_wait_until(&tiny, pl_now() + HANGS_NS))
		failed("tiny tasks do not end");
	return (double)(pl_now() - since) / 1e6;
}

static void row(uint64_t since, double ms)
{
	struct pl_stat st = PL_STAT_INIT;
	uint32_t spare;

	pl_stat_read(&st);
	spare = st.workers - st.workers_blocked;
	spare = spare > NR_WORKERS ? spare - NR_WORKERS : 0;
	printf("%6.1f s %8u %8u %8u %8u %15.2f  %.*s%.*s%.*s\n",
	       (double)(pl_now() - since) / 1e9, st.workers_running,
	       st.workers_blocked, st.workers_parked, spare, ms,
	       (int)st.workers_running, ">>>>>>>>", (int)st.workers_blocked,
	       "########", (int)st.workers_parked, "........");
	fflush(stdout);
}

static void rows(uint64_t since, uint64_t ns)
{
	uint64_t end = pl_now() + ns;

	while (pl_now() < end) {
		row(since, burst_ms());
		pl_sleep(ROW_NS);
	}
}

static double show(uint64_t ns)
{
	uint64_t since = pl_now();
	double ms;

	printf("%8s %8s %8s %8s %8s %15s\n", "", "running", "blocked",
	       "parked", "spare", "tiny tasks, ms");
	row(since, burst_ms());
	start_blocking();
	ms = burst_ms();
	row(since, ms);
	rows(since, ns);
	end_blocking();
	rows(since, ROW_NS * 2);
	return ms;
}

int main(int argc, char **argv)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	char *arg = *usage_arguments(argc, argv, 1, "blocked [SECONDS]");
	uint64_t seconds = arg ? usage_number("SECONDS", arg, 1, 10000) : 2;
	bool is_module;
	double ms;

	cfg.nr_workers = NR_WORKERS;
	if (pl_runtime_start(&cfg))
		failed("no runtime");
	is_module = pl_runtime_backend() == PL_BACKEND_MODULE;
	ms = show(seconds * 10 * ROW_NS);
	pl_runtime_stop();
	printf("blocked: ok workers=%d blocking=%d tiny=%d done_ms=%.2f backend=%s\n",
	       NR_WORKERS, NR_BLOCKING, NR_TINY, ms,
	       is_module ? "module" : "futex");
	return 0;
}
