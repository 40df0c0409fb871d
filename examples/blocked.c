// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Two workers, four tasks that block them in read(), and bursts of a thousand
 * other tasks, for which that is nothing: a row each time, of how many workers
 * run (>), are blocked (#), and are parked (.).
 *
 * Usage: blocked [--seconds S] [--blocking N] [--tiny N]
 *
 * Ends with a line "blocked: ok ..." and 0, or "blocked: FAILED ..." and 1.
 */
#include <getopt.h>
#include <parklot.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NR_WORKERS	2
#define MAX_BLOCKING	64
#define NSEC_PER_MSEC	1000000ULL
#define ROW_NS		(100 * NSEC_PER_MSEC)
#define HANGS_NS	(30 * 1000 * NSEC_PER_MSEC)

static uint32_t nr_blocking = 4, nr_tiny = 1000, seconds = 2;

static int fds[MAX_BLOCKING][2];
static pl_task_t readers[MAX_BLOCKING];
static struct pl_latch begun, tiny;

static void __attribute__((format(printf, 1, 2), noreturn))
failed(const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "blocked: FAILED ");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void must(const char *what, int ret)
{
	if (ret < 0)
		failed("%s: %s", what, strerror(-ret));
}

/* ---- the tasks ---- */

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
	uint32_t i;

	pl_latch_init(&begun, nr_blocking);
	for (i = 0; i < nr_blocking; i++) {
		if (pipe(fds[i]))
			failed("no pipe");
		must("pl_spawn", pl_spawn(&readers[i], block, fds[i], NULL));
	}
	must("blocking tasks", pl_latch_wait_until(&begun,
						   pl_now() + HANGS_NS));
}

static void end_blocking(void)
{
	uint32_t i;

	for (i = 0; i < nr_blocking; i++) {
		if (write(fds[i][1], "", 1) != 1)
			failed("a pipe is full");
		pl_join(readers[i]);
	}
}

/* How long a burst of tiny tasks takes. */
static double burst_ms(void)
{
	uint64_t since = pl_now();
	uint32_t i;

	pl_latch_init(&tiny, nr_tiny);
	for (i = 0; i < nr_tiny; i++)
		must("pl_spawn", pl_spawn(NULL, do_nothing, NULL, NULL));
	must("tiny tasks", pl_latch_wait_until(&tiny, pl_now() + HANGS_NS));
	return (double)(pl_now() - since) / (double)NSEC_PER_MSEC;
}

/* ---- the table ---- */

static void draw(char c, uint32_t nr)
{
	while (nr--)
		putchar(c);
}

static void row(uint64_t since, double ms)
{
	struct pl_stat st = PL_STAT_INIT;
	uint32_t spare;

	must("pl_stat_read", pl_stat_read(&st));
	spare = st.workers - st.workers_blocked;
	spare = spare > NR_WORKERS ? spare - NR_WORKERS : 0;
	printf("%6.1f s %8u %8u %8u %8u %15.2f  ",
	       (double)(pl_now() - since) / 1e9, st.workers_running,
	       st.workers_blocked, st.workers_parked, spare, ms);
	draw('>', st.workers_running);
	draw('#', st.workers_blocked);
	draw('.', st.workers_parked);
	putchar('\n');
	fflush(stdout);
}

static void rows_until(uint64_t end, uint64_t since)
{
	uint64_t next = pl_now();

	for (; next < end; next += ROW_NS) {
		pl_sleep_until(next);
		row(since, burst_ms());
	}
}

static double show(void)
{
	uint64_t since = pl_now(), ns = seconds * 1000 * NSEC_PER_MSEC;
	double ms;

	printf("%8s %8s %8s %8s %8s %15s\n", "", "running", "blocked",
	       "parked", "spare", "tiny tasks, ms");
	row(since, burst_ms());
	start_blocking();
	ms = burst_ms();
	row(since, ms);
	rows_until(since + ns, since);
	end_blocking();
	rows_until(pl_now() + ROW_NS * 2, since);
	return ms;
}

/* ---- the program ---- */

static uint32_t number(const char *text, uint32_t max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || *text < '0' || *text > '9' || n > max)
		failed("%s: not a number up to %u", text, max);
	return (uint32_t)n;
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "blocking", required_argument, NULL, 'b' },
		{ "tiny", required_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 's')
			seconds = number(optarg, 3600);
		else if (c == 'b')
			nr_blocking = number(optarg, MAX_BLOCKING);
		else if (c == 't')
			nr_tiny = number(optarg, 1000000);
		else
			failed("usage: blocked [--seconds S] [--blocking N] [--tiny N]");
	}
	if (optind < argc)
		failed("what is '%s'?", argv[optind]);
}

int main(int argc, char **argv)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	const char *backend;
	double ms;

	parse(argc, argv);
	cfg.nr_workers = NR_WORKERS;
	must("pl_runtime_start", pl_runtime_start(&cfg));
	backend = pl_runtime_backend() == PL_BACKEND_MODULE ? "module" :
							      "futex";
	ms = show();
	must("pl_runtime_stop", pl_runtime_stop());
	printf("blocked: ok workers=%d blocking=%u tiny=%u done_ms=%.2f backend=%s\n",
	       NR_WORKERS, nr_blocking, nr_tiny, ms, backend);
	return 0;
}
