// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A program that hangs, to be looked at: two tasks lock two mutexes, each in
 * the other's order, and all others wait for them or for nothing.
 *
 *	PARKLOT_DUMP_SIGNAL=USR2 deadlock & sleep 1
 *	kill -USR2 $!
 *	plstat $!
 *	gdb -p $! -ex 'info pl-tasks' -ex 'pl-task left bt'
 */
#include "usage.h"

#include <parklot.h>
#include <stdio.h>
#include <unistd.h>

static struct pl_mutex first, second;
static struct pl_latch both, all;
static struct pl_cond never;
static pl_task_t left_task;
static int pipes[2];

static void lock_in_order(struct pl_mutex *one, struct pl_mutex *other)
{
	pl_mutex_lock(one);
	pl_latch_done(&both);
	pl_latch_wait(&both);
	pl_latch_done(&all);
	pl_mutex_lock(other);
	pl_mutex_unlock(other);
	pl_mutex_unlock(one);
}

static void left(void *arg)
{
	(void)arg;
	lock_in_order(&first, &second);
}

static void right(void *arg)
{
	(void)arg;
	lock_in_order(&second, &first);
}

static void joiner(void *arg)
{
	(void)arg;
	pl_latch_done(&all);
	pl_join(left_task);
}

static void sleeper(void *arg)
{
	(void)arg;
	pl_latch_done(&all);
	pl_sleep(3600 * 1000000000ULL);
}

static void waiter(void *arg)
{
	struct pl_mutex own = { 0 };

	(void)arg;
	pl_mutex_lock(&own);
	pl_latch_done(&all);
	pl_cond_wait(&never, &own);
}

static void reader(void *arg)
{
	char byte;

	(void)arg;
	pl_latch_done(&all);
	pl_read(pipes[0], &byte, 1);
}

static int start(pl_task_t *t, const char *name, void (*fn)(void *arg))
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.name = name;
	return pl_spawn(t, fn, NULL, &opts);
}

/* All tasks are where they stay once no worker has anything to run. */
static void wait_until_it_hangs(void)
{
	struct pl_stat st = PL_STAT_INIT;

	pl_latch_wait(&all);
	do {
		pl_sleep(1000000);
		pl_stat_read(&st);
	} while (st.workers_parked < st.workers);
}

int main(int argc, char **argv)
{
	pl_task_t t;

	usage_arguments(argc, argv, 0, "deadlock");
	if (pipe(pipes) || pl_latch_init(&both, 2) || pl_latch_init(&all, 6))
		return 1;
	if (start(&left_task, "left", left) || start(&t, "right", right) ||
	    start(&t, "joiner", joiner) || start(&t, "sleeper", sleeper) ||
	    start(&t, "waiter", waiter) || start(&t, "reader", reader))
		return 1;
	wait_until_it_hangs();
	printf("%d\n", getpid());
	fflush(stdout);
	pl_join(left_task);
	return 0;
}
