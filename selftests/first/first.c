// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A program of the first header, which stands beside it: its structs of options
 * are smaller than today's, its objects and constants are as they were.
 */
#include "parklot.h"

#include <stdio.h>
#include <string.h>

static struct pl_mutex mutex = PL_MUTEX_INIT;
static struct pl_cond cond = PL_COND_INIT;
static int nr_run;

static int failed(const char *what)
{
	fprintf(stderr, "first: %s\n", what);
	return 1;
}

static void count(void *arg)
{
	pl_mutex_lock(&mutex);
	nr_run += *(int *)arg;
	pl_cond_signal(&cond);
	pl_mutex_unlock(&mutex);
}

static int start(void)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	struct pl_stat st = PL_STAT_INIT;

	cfg.nr_workers = 2;
	cfg.stack_size[PL_STACK_SMALL] = 64 << 10;
	if (pl_runtime_start(&cfg))
		return failed("the runtime does not start");
	if (pl_stat_read(&st) || !st.workers)
		return failed("counters cannot be read");
	return 0;
}

static int spawn(void)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t, many[3];
	int one = 1;
	void *args[] = { &one, &one, &one };

	opts.stack = PL_STACK_SMALL;
	opts.name = "first";
	if (pl_spawn(&t, count, &one, &opts) || pl_join(t))
		return failed("no task with options");
	if (pl_spawn_many(many, 3, count, args, &opts) != 3)
		return failed("no tasks with options");
	pl_mutex_lock(&mutex);
	while (nr_run < 4)
		pl_cond_wait(&cond, &mutex);
	pl_mutex_unlock(&mutex);
	return 0;
}

static int wait_some(void)
{
	struct pl_word w;

	memset(&w, 0, sizeof(w));
	if (pl_word_wait(&w, 0, pl_now() + 1000000) != -110 ||
	    pl_word_wait(&w, 1, PL_FOREVER) != -11 || pl_sleep(1000))
		return failed("no wait");
	return 0;
}

int main(void)
{
	return start() || spawn() || wait_some() || pl_runtime_stop();
}
