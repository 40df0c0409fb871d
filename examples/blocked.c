// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Two workers, a hundred tasks that block them in read(), and bursts of a
 * thousand other tasks, the first right behind those: a row each time, of how
 * many workers run (>), are blocked (#), and are parked (.), a sign for four.
 */
#include "usage.h"

#include <parklot.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NR_WORKERS	2
#define NR_BLOCKING	100
#define NR_TINY		1000
#define ROW_NS		100000000ULL
#define HANGS_NS	(300 * ROW_NS)

static int fds[2];
static pl_task_t readers[NR_BLOCKING];
static struct pl_latch tiny;

static void failed(const char *what)
{
	fprintf(stderr, "blocked: FAILED %s\n", what);
	exit(1);
}

static void block(void *arg)
{
	char c;

	(void)arg;
	if (read(fds[0], &c, 1) != 1)
		failed("the pipe ended");
}

static void do_nothing(void *arg)
{
	(void)arg;
	pl_latch_done(&tiny);
}

/* None has begun for sure when this returns. */
static void start_blocking(void)
{
	int i;

	if (pipe(fds))
		failed("no pipe");
	for (i = 0; i < NR_BLOCKING; i++)
		if (pl_spawn(&readers[i], block, NULL, NULL))
			failed("no task");
}

static void end_blocking(void)
{
	static const char bytes[NR_BLOCKING];
	int i;

	if (write(fds[1], bytes, NR_BLOCKING) != NR_BLOCKING)
		failed("the pipe is full");
	for (i = 0; i < NR_BLOCKING; i++)
		pl_join(readers[i]);
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

static void bar(char sign, uint32_t nr)
{
	for (nr = (nr + 3) / 4; nr; nr--)
		putchar(sign);
}

static void row(uint64_t since, double ms)
{
	struct pl_stat st = PL_STAT_INIT;

	pl_stat_read(&st);
	printf("%6.1f s %8u %8u %8u %15.2f  ", (double)(pl_now() - since) / 1e9,
	       st.workers_running, st.workers_blocked, st.workers_parked, ms);
	bar('>', st.workers_running);
	bar('#', st.workers_blocked);
	bar('.', st.workers_parked);
	putchar('\n');
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

	printf("%8s %8s %8s %8s %15s\n", "", "running", "blocked", "parked",
	       "tiny tasks, ms");
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
	int backend;
	double ms;

	cfg.nr_workers = NR_WORKERS;
	if (pl_runtime_start(&cfg))
		failed("no runtime");
	backend = pl_runtime_backend();
	ms = show(seconds * 10 * ROW_NS);
	pl_runtime_stop();
	printf("blocked: ok workers=%d blocking=%d tiny=%d done_ms=%.2f backend=%s\n",
	       NR_WORKERS, NR_BLOCKING, NR_TINY, ms,
	       backend == PL_BACKEND_MODULE ? "module" : "futex");
	return 0;
}
