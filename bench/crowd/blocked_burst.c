// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Four tasks on two workers block in read() for 100 ms; how long then until a
 * thousand others, of nothing, have run
 */
#include <pthread.h>
#include <unistd.h>

#include "../lib/task.h"

#define NR_READERS	4
#define NR_TINY		1000
#define BLOCK_MS	100
#define BEGUN_MS	5		/* the workers have blocked by then */

static int pipes[NR_READERS][2];
static struct count count;

static void block(void *arg)
{
	const int *fds = arg;
	char c;

	if (read(fds[0], &c, 1) != 1)
		die("read: %s", strerror(errno));
}

static void tiny(void *arg)
{
	(void)arg;
	count_done(&count);
}

static void *end_reads(void *arg)
{
	int i;

	sleep_until(now_ns() + BLOCK_MS * NSEC_PER_MSEC);
	for (i = 0; i < NR_READERS; i++) {
		if (write(pipes[i][1], "", 1) != 1)
			die("write: %s", strerror(errno));
	}
	return arg;
}

static void stalled(void)
{
	pl_task_t readers[NR_READERS];
	pthread_t thread;
	int i;

	start_workers(2);
	for (i = 0; i < NR_READERS; i++) {
		if (pipe(pipes[i]))
			die("pipe: %s", strerror(errno));
		readers[i] = spawn(block, pipes[i]);
	}
	if (pthread_create(&thread, NULL, end_reads, NULL))
		die("cannot start a thread");
	sleep_until(now_ns() + BEGUN_MS * NSEC_PER_MSEC);

	bench_begin();
	count_init(&count, NR_TINY);
	for (i = 0; i < NR_TINY; i++)
		must("spawn", pl_spawn(NULL, tiny, NULL, NULL));
	count_wait(&count);
	bench_put_time("1000_tiny", "ms", (double)NSEC_PER_MSEC);

	for (i = 0; i < NR_READERS; i++)
		pl_join(readers[i]);
	pthread_join(thread, NULL);
	must("stop", pl_runtime_stop());
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "1000_tiny", stalled },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "blocked_burst", cases);
}
