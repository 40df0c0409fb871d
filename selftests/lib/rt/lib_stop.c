/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The end of the runtime: which waits it ends, which tasks it waits for, and
 * that it may be started anew.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"

#include <malloc.h>

RT_FIXTURE(stop)

static atomic_int nr_begun, nr_ended;

static void begin(void)
{
	atomic_fetch_add(&nr_begun, 1);
}

static void end(void)
{
	atomic_fetch_add(&nr_ended, 1);
}

/* ---- what blocks ---- */

static void block_in_sleep(void *arg)
{
	begin();
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	end();
}

/* ---- which tasks are waited for ---- */

static atomic_int may_end;

static void spawn_again(void *arg)
{
	int depth = (int)(uintptr_t)arg;

	begin();
	pl_yield();
	if (depth)
		EXPECT_EQ(0, pl_spawn(NULL, spawn_again,
				      (void *)(uintptr_t)(depth - 1), NULL));
	end();
}

TEST_F(stop, stop_waits_for_tasks_spawned_meanwhile)
{
	int i;

	for (i = 0; i < 20; i++)
		spawn(spawn_again, (void *)50);
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(20 * 51, nr_ended);
}

static void hold_up_stop(void *arg)
{
	begin();
	EXPECT_TRUE(UNTIL(may_end));
	end();
}

static void *stop_thread(void *arg)
{
	EXPECT_EQ(0, pl_runtime_stop());
	atomic_store((atomic_int *)arg, 1);
	return NULL;
}

/* While a task holds the stop up: what may be done from outside? */
TEST_F(stop, spawn_by_a_thread_during_stop_is_refused)
{
	atomic_int is_stopped = 0;
	pthread_t thread;
	pl_task_t t[2];
	int ret;

	spawn(hold_up_stop, NULL);
	ASSERT_TRUE(UNTIL(nr_begun == 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, stop_thread, &is_stopped));
	ASSERT_TRUE(UNTIL((ret = pl_spawn(NULL, nothing, NULL, NULL))));
	EXPECT_EQ(-ECANCELED, ret);
	EXPECT_EQ(-ECANCELED, pl_spawn_many(t, 2, nothing, NULL, NULL));
	EXPECT_EQ(-ECANCELED, pl_timer_add(NULL, 0, nothing, NULL));
	EXPECT_EQ(-EALREADY, pl_runtime_stop());
	EXPECT_EQ(-EBUSY, pl_runtime_start(NULL));
	EXPECT_NE(PL_BACKEND_AUTO, pl_runtime_backend());
	EXPECT_EQ(-ECANCELED, pl_sleep(1));
	EXPECT_EQ(0, is_stopped);
	may_end = 1;
	pthread_join(thread, NULL);
	EXPECT_EQ(1, is_stopped);
	EXPECT_EQ(0, pl_spawn(NULL, nothing, NULL, NULL));
}

static atomic_int is_over, nr_accepted, nr_run;

static void count_run(void *arg)
{
	atomic_fetch_add(&nr_run, 1);
}

static void spawn_until_over(void *arg)
{
	int ret;

	while (!is_over) {
		ret = pl_spawn(NULL, count_run, NULL, NULL);
		if (!ret)
			atomic_fetch_add(&nr_accepted, 1);
		else
			EXPECT_EQ(-ECANCELED, ret);
	}
}

/* Spawning from outside starts it, again and again: no task is lost. */
TEST_F(stop, stop_racing_spawns_by_threads_loses_none)
{
	static struct mixed m;
	int i, nr = scaled(100), ret;

	mixed_start(&m, 0, 2, spawn_until_over, NULL);
	for (i = 0; i < nr; i++) {
		ret = pl_runtime_stop();
		EXPECT_TRUE(!ret || ret == -EALREADY);
	}
	is_over = 1;
	mixed_join(&m);
	EXPECT_TRUE(UNTIL(nr_accepted == nr_run));
}

/* ---- from where ---- */

static void stop_from_task(void *arg)
{
	EXPECT_EQ(-EDEADLK, pl_runtime_stop());
	end();
}

TEST_F(stop, stop_by_a_task_is_edeadlk)
{
	run_in_task(stop_from_task, NULL);
	run_as(PL_STACK_WORKER, stop_from_task, NULL);
	EXPECT_EQ(2, nr_ended);
	EXPECT_NE(PL_BACKEND_AUTO, pl_runtime_backend());
}

static void stop_from_callback(void *arg)
{
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(-EALREADY, pl_runtime_stop());
	EXPECT_EQ(-EBUSY, pl_runtime_start(NULL));
	end();
}

TEST_F(stop, stop_by_a_timer_callback_does_not_hang)
{
	int i, ret, nr = scaled(20);

	for (i = 1; i <= nr; i++) {
		nr_begun = 0;
		spawn(block_in_sleep, NULL);
		ASSERT_TRUE(UNTIL(nr_begun == 1));
		ASSERT_EQ(0, pl_timer_add(NULL, 0, stop_from_callback, NULL));
		ASSERT_TRUE(UNTIL(nr_ended == 2 * i));
		/* -EBUSY until the library's thread has done it. */
		ASSERT_TRUE(UNTIL((ret = pl_runtime_start(NULL)) != -EBUSY));
		EXPECT_EQ(0, ret);
	}
}

/* ---- and again ---- */

static void sleep_a_bit(void *arg)
{
	EXPECT_EQ(0, pl_sleep(100 * NSEC_PER_USEC));
}

static void start_use_stop(void)
{
	static struct mixed m;

	mixed_start(&m, 20, 1, sleep_a_bit, NULL);
	mixed_join(&m);
	run_as(PL_STACK_WORKER, sleep_a_bit, NULL);
	EXPECT_EQ(0, pl_runtime_stop());
}

/* In bytes.  An emulator's own mappings are not in there. */
static uint64_t nr_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	uint64_t nr = 0;
	char line[512];

	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &from, &to) == 2)
			nr += to - from;
	fclose(f);
	return nr;
}

static void start_both_use_stop_often(int nr)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.nr_workers = cfg.min_workers = cfg.max_workers = 2;
	while (nr--) {
		ASSERT_EQ(0, pl_runtime_start(&cfg));
		start_use_stop();
	}
}

TEST_F(stop, stop_leaves_no_memory)
{
	int nr = scaled(50);
	uint64_t mapped;

	/* As many threads each time: the C library keeps their stacks. */
	unsetenv("PARKLOT_WORKERS");
	unsetenv("PARKLOT_MAX_WORKERS");
	setenv("PARKLOT_WATCH", "0", 1);
	/* Or else it makes one of 64 MiB whenever threads happen to meet. */
	mallopt(M_ARENA_MAX, 1);
	/* The first few fill the caches of the C library. */
	start_both_use_stop_often(10);
	mapped = nr_mapped();
	start_both_use_stop_often(nr);
	/* A stack left behind each time would be 32 KiB and more. */
	if (!RT_TSAN && !RT_ASAN)
		EXPECT_GE(mapped + (uint64_t)nr * 8192, nr_mapped());
}

TEST_F(stop, stop_makes_task_handles_stale)
{
	pl_task_t t[100], u;
	int i;

	for (i = 0; i < 100; i++)
		t[i] = spawn(block_in_sleep, NULL);
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(100, nr_ended);
	for (i = 0; i < 100; i++) {
		EXPECT_EQ(0, pl_join(t[i]));
		EXPECT_EQ(-ESRCH, pl_interrupt(t[i]));
	}
	for (i = 0; i < 100; i++) {
		nr_begun = 0;
		u = spawn(block_in_sleep, NULL);
		EXPECT_EQ(-ESRCH, pl_interrupt(t[i]));
		EXPECT_EQ(-ESRCH, pl_cancel(t[i]));
		EXPECT_EQ(0, pl_join(t[i]));
		EXPECT_NE(t[i], u);
	}
}

TEST_F(stop, stop_keeps_the_counters)
{
	struct pl_stat before, after;

	start_use_stop();
	before = rt_stat();
	EXPECT_EQ(21, before.tasks_spawned);
	EXPECT_EQ(21, before.tasks_ended);
	EXPECT_EQ(0, before.workers);
	start_use_stop();
	after = rt_stat();
	EXPECT_EQ(42, after.tasks_spawned);
	EXPECT_EQ(42, after.tasks_ended);
	EXPECT_LE(before.switches, after.switches);
	EXPECT_LE(before.parks, after.parks);
	EXPECT_LE(before.wakes, after.wakes);
	EXPECT_LE(before.timers_added, after.timers_added);
	EXPECT_LE(before.timers_fired, after.timers_fired);
}

TEST_HARNESS_MAIN
