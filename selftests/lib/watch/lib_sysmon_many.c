/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Workers that are blocked at the same time: sysmon wakes, or starts, several
 * in their place.  On futexes, as the device's crew has the kernel wake them.
 *
 * The tasks block while sysmon sleeps.  It is woken by the tasks that are
 * queued then, and finds all of the workers blocked at its second look.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"
#include "thread.h"

BLOCKED_FIXTURE(sysmon_many)

#define NR_BLOCKED	4

static uint32_t nr_asleep_in_task(void)
{
	uint32_t nr = 0, i;

	for (i = 0; i < atomic_load(&pl__rt.main.nr_started); i++)
		nr += atomic_load(&pl__rt.workers[i]->duty) == PL__RUNS &&
		      thread_is_asleep(atomic_load(&pl__rt.workers[i]->tid));
	return nr;
}

static uint64_t blocks_before;

static bool has_sysmon_found_any(void)
{
	return rt_stat().blocks != blocks_before;
}

/* One task at a time, which an idle worker takes: no other waits. */
static void block_each(uint32_t nr)
{
	uint32_t i;

	nr_begun = 0;
	make_gate();
	for (i = 1; i <= nr; i++) {
		spawn(read_gate, NULL);
		ASSERT_TRUE(UNTIL(has_sysmon_found_any() ||
				  (nr_begun == (int)i &&
				   nr_asleep_in_task() == i)));
	}
}

static void let_all_through(void)
{
	open_gate();
	EXPECT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(0, close(gate[0]));
}

/*
 * With @nr workers to run, all of which block, and @nr_idle others.  On a busy
 * machine a task may wait for its worker long enough for sysmon to wake and to
 * find the first ones blocked: then all is done anew.
 */
static void start_and_block(uint32_t nr, uint32_t nr_idle,
			    void (*hook)(void *arg))
{
	struct pl_config cfg = PL_CONFIG_INIT;
	int trials;

	setenv("PARKLOT_BACKEND", "futex", 1);
	unsetenv("PARKLOT_WORKERS");
	unsetenv("PARKLOT_MAX_WORKERS");
	cfg.nr_workers = nr;
	cfg.min_workers = nr + nr_idle;
	cfg.max_workers = 4 * nr;
	cfg.fixed_workers = 1;
	cfg.worker_start = hook;
	for (trials = 0; ; trials++) {
		ASSERT_GT(20, trials);
		ASSERT_EQ(0, pl_runtime_start(&cfg));
		ASSERT_TRUE(UNTIL(is_all_parked() && is_sysmon_asleep()));
		blocks_before = rt_stat().blocks;
		block_each(nr);
		ASSERT_TRUE(UNTIL(has_sysmon_found_any() ||
				  rt_stat().workers_parked == nr_idle));
		if (is_sysmon_asleep() && !has_sysmon_found_any())
			break;
		let_all_through();
		ASSERT_EQ(0, pl_runtime_stop());
	}
}

static void queue_at_once(void (*fn)(void *arg), int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		spawn_flags(PL_SPAWN_NOSIGNAL, fn, NULL);
	EXPECT_EQ(nr, pl_flush());
}

/* This thread counts as searching, so workers leave their tasks to it. */
static void search_for_long(void)
{
	ASSERT_TRUE(pl__search_begin(&pl__rt.main));
	atomic_store(&pl__rt.main.search_ns, in_ms(3600 * 1000));
}

static void end_search(void)
{
	pl__search_end(&pl__rt.main, 1);
	pl__full_barrier();
	pl__notify_if_work(&pl__rt.main);
}

/* ---- woken ---- */

static void meet(void *arg)
{
	count(arg);
	EXPECT_TRUE(UNTIL_BUSY(nr_ran >= NR_BLOCKED));
}

/*
 * The number counts wakes by what is no worker: sysmon.  As this thread seems
 * to search, notifications of one worker wake none, and workers wake no others.
 */
TEST_F(sysmon_many, idle_workers_are_woken_at_once)
{
	uint64_t before;

	start_and_block(NR_BLOCKED, NR_BLOCKED, NULL);
	before = atomic_load(&pl__rt.main.wakes_outside);
	search_for_long();
	queue_at_once(meet, 2 * NR_BLOCKED);
	pl__sysmon_kick();
	EXPECT_TRUE(UNTIL(atomic_load(&pl__rt.main.wakes_outside) >=
			  before + 2));
	end_search();
	EXPECT_TRUE(UNTIL(nr_ran == 2 * NR_BLOCKED));
	let_all_through();
}

/* ---- started ---- */

static atomic_int is_holding, nr_held;

static void hold_start(void *arg)
{
	if (!pl__self() || !is_holding)
		return;
	atomic_fetch_add(&nr_held, 1);
	while (is_holding)
		usleep(100);
}

TEST_F(sysmon_many, as_many_workers_as_processors_are_started_at_once)
{
	uint32_t nr_cpus = 3;

	start_and_block(2 * NR_BLOCKED, 0, hold_start);
	pretend_nr_cpus(nr_cpus);
	is_holding = 1;
	search_for_long();
	queue_at_once(count, 4 * NR_BLOCKED);
	pl__sysmon_kick();
	/* In the hook they do not search any more. */
	EXPECT_TRUE(UNTIL(nr_held &&
			  atomic_load(&pl__rt.main.nr_searching) == 1 &&
			  atomic_load(&pl__rt.main.nr_alive) ==
				  2 * NR_BLOCKED + nr_cpus));
	is_holding = 0;
	end_search();
	EXPECT_TRUE(UNTIL(nr_ran == 4 * NR_BLOCKED));
	let_all_through();
}

/*
 * Where sysmon finds blocked workers; in a crew the kernel counts them.  One
 * that gets no processor for long gets no relief, which would run what waits.
 */
static void start_on_futexes(void)
{
	setenv("PARKLOT_BACKEND", "futex", 1);
	set_env("PARKLOT_STALL_US", 0);
	start_with(1, 3);
}

/* What a crowd of tasks does at first: all wait for the kernel's lock. */
static void fetch_a_stack(void *arg)
{
	uint64_t begun = pl_now();

	pl__memory_wait_begin();
	usleep(8000);
	pl__memory_wait_end();
	*(uint64_t *)arg = pl_now() - begun;
}

TEST_F(sysmon_many, worker_that_fetches_a_stack_does_not_count_as_blocked)
{
	uint64_t before, took;
	pl_task_t t;
	int i;

	start_on_futexes();
	for (i = 0; i < 5; i++) {
		before = rt_stat().blocks;
		t = spawn(fetch_a_stack, &took);
		spawn_tiny(1);
		join(t);
		if (took < 15 * NSEC_PER_MSEC)
			EXPECT_EQ(before, rt_stat().blocks);
	}
	EXPECT_FALSE(load_relaxed(&pl__forecast_has_any));
}

static void fetch_until_seen(void *arg)
{
	uint64_t end = pl_now() + stuck_ns();

	pl__memory_wait_begin();
	while (!has_sysmon_found_any() && pl_now() < end)
		usleep(1000);
	pl__memory_wait_end();
}

TEST_F(sysmon_many, worker_that_fetches_a_stack_for_long_counts_as_blocked)
{
	pl_task_t t;

	start_on_futexes();
	blocks_before = rt_stat().blocks;
	t = spawn(fetch_until_seen, NULL);
	spawn_tiny(1);
	join(t);
	EXPECT_TRUE(has_sysmon_found_any());
	EXPECT_FALSE(load_relaxed(&pl__forecast_has_any));
}

/* ---- locks of the library ---- */

static struct pl__lock lock;

static void wait_for_lock(void *arg)
{
	atomic_fetch_add(&nr_begun, 1);
	pl__lock(&lock);
	pl__unlock(&lock);
}

/* On the only worker, as any other might take the task that is to wait. */
static void block_on_lock(void)
{
	pl_task_t t;

	start_on_futexes();
	blocks_before = rt_stat().blocks;
	nr_begun = 0;
	pl__lock(&lock);
	t = spawn(wait_for_lock, NULL);
	EXPECT_TRUE(UNTIL(nr_begun == 1));
	spawn_tiny(1);
	EXPECT_TRUE(UNTIL(has_sysmon_found_any()));
	pl__unlock(&lock);
	join(t);
	EXPECT_FALSE(load_relaxed(&pl__forecast_has_any));
	EXPECT_EQ(0, rt_stat().set_aside);
	EXPECT_EQ(0, pl_runtime_stop());
}

/* As where its owner gets no processor for long. */
TEST_F(sysmon_many, task_that_waits_for_the_library_is_not_learned)
{
	int i;

	for (i = 0; i < 5; i++)
		block_on_lock();
}

TEST_HARNESS_MAIN
