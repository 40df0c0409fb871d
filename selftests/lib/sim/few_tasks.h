/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by tests of few tasks, each short enough for thousands of seeds. The
 * harness and rt.h are included before this.
 */
#ifndef SELFTESTS_FEW_TASKS_H
#define SELFTESTS_FEW_TASKS_H

#include "ring/ring.h"

#define MAX_TASKS	64

static pl_task_t tasks[MAX_TASKS];
static int nr_tasks;
static atomic_int nr_done;

/* The task may do so, too, before this returns. */
static pl_task_t go(void (*fn)(void *arg), uintptr_t arg)
{
	int nth = nr_tasks++;

	ASSERT_EQ(0, pl_spawn(&tasks[nth], fn, (void *)arg, NULL));
	return tasks[nth];
}

static void join_all(void)
{
	while (nr_tasks)
		join(tasks[--nr_tasks]);
}

static uint32_t nr_workers_of_seed(void)
{
	return 2 + (uint32_t)(__test_seed % 3);
}

/*
 * Two to four workers, of which some seeds run all and others few, and which
 * some seeds wake by a futex that their rings wait for; and no sysmon, which
 * makes up for a wakeup that was lost, where @is_unwatched.
 */
static void __attribute__((unused))
start_by_seed(struct __test_metadata *test, bool is_unwatched)
{
	rt_begin(test);
	if (is_unwatched)
		set_env("PARKLOT_WATCH", 0);
	if (__test_seed % 3 == 0 && pl__ring_uring_has_futex())
		setenv("PARKLOT_WAIT", "futex", 1);
	if (__test_seed % 2)
		start_fixed(nr_workers_of_seed(), 0);
	else
		start_with(nr_workers_of_seed(), 0);
}

/* Those that run at a time meet: each needs a worker of its own. */
static void __attribute__((unused)) meet(void *arg)
{
	uint64_t until = pl_now() + 2 * NSEC_PER_SEC;
	int nr = (int)(uintptr_t)arg;

	atomic_fetch_add(&nr_done, 1);
	while (nr_done < nr && pl_now() < until)
		pl__cpu_relax();
	EXPECT_LE(nr, nr_done);
}

static void __attribute__((unused)) block_and_count(void *arg)
{
	struct timespec ts = { .tv_nsec = (long)(uintptr_t)arg };

	nanosleep(&ts, NULL);
	atomic_fetch_add(&nr_done, 1);
}

#endif /* SELFTESTS_FEW_TASKS_H */
