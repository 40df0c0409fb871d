// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Tiny tasks on two workers, spawned by one of them, while 0, 1, 2, 4 ... other
 * tasks block theirs in read(): what one takes, and how many percent are kept
 * of the throughput just before those began; with 0 that says how much chance
 * there is in it
 */
#include "../lib/task.h"

#define NR_WORKERS	2
#define NR_TINY		10000U
#define NR_ROUNDS	100
#define MOST		64U

static uint32_t nr;		/* what the case's name ends in */
static int fds[2];

static void block(void *arg)
{
	char c;

	(void)arg;
	if (read(fds[0], &c, 1) != 1)
		die("read: %s", strerror(errno));
}

static uint32_t nr_blocked(void)
{
	struct pl_stat st = PL_STAT_INIT;

	must("stat", pl_stat_read(&st));
	return st.workers_blocked;
}

/* By the clock; *@cpu_ns: of all processors, which others do not disturb. */
static double ns_each(double *cpu_ns)
{
	uint64_t ns;
	int i;

	bench_begin();
	for (i = 0; i < NR_ROUNDS; i++)
		spawn_and_wait(NR_TINY);
	ns = now_ns() - bench_wall_ns;
	*cpu_ns = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - bench_cpu_ns) /
		  NR_ROUNDS / NR_TINY;
	return (double)ns / NR_ROUNDS / NR_TINY;
}

static void put(const char *series, const char *unit, double value)
{
	char name[32];

	snprintf(name, sizeof(name), "%s:%u", series, nr);
	bench_put(name, unit, value);
}

static void measure(void *arg)
{
	pl_task_t readers[MOST];
	double alone, beside, cpu_alone, cpu_beside;
	uint32_t i;

	(void)arg;
	spawn_and_wait(NR_TINY);
	alone = ns_each(&cpu_alone);
	for (i = 0; i < nr; i++)
		readers[i] = spawn(block, NULL);
	while (nr_blocked() < nr)
		spawn_and_wait(NR_TINY);
	beside = ns_each(&cpu_beside);
	put("tiny", "ns", beside);
	put("tiny_cpu", "ns", cpu_beside);
	put("kept", "%", 100 * alone / beside);
	put("kept_cpu", "%", 100 * cpu_alone / cpu_beside);

	for (i = 0; i < nr; i++)
		if (write(fds[1], "", 1) != 1)
			die("write: %s", strerror(errno));
	for (i = 0; i < nr; i++)
		pl_join(readers[i]);
}

static void run(void)
{
	nr = (uint32_t)strtoul(strchr(bench_name, ':') + 1, NULL, 10);
	if (pipe(fds))
		die("pipe: %s", strerror(errno));
	in_task(NR_WORKERS, measure, NULL);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "tiny:0", run },
		{ "tiny:1", run },
		{ "tiny:2", run },
		{ "tiny:4", run },
		{ "tiny:8", run },
		{ "tiny:16", run },
		{ "tiny:32", run },
		{ "tiny:64", run },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "blocked_workers", cases);
}
