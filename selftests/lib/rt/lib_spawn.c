/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Spawning many, and spawning quietly; what runs when, and on which thread.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "run/run.h"

RT_FIXTURE(spawn)

/* ---- many ---- */

static void add(void *arg)
{
	atomic_fetch_add(&nr_ran, (int)(uintptr_t)arg);
}

static void check_null(void *arg)
{
	EXPECT_EQ(NULL, arg);
	atomic_fetch_add(&nr_ran, 1);
}

static void spawn_many(void *arg)
{
	pl_task_t t[100];
	void *args[100];
	int i;

	atomic_store(&nr_ran, 0);
	for (i = 0; i < 100; i++)
		args[i] = (void *)(uintptr_t)i;
	EXPECT_EQ(100, pl_spawn_many(t, 100, add, args, NULL));
	for (i = 0; i < 100; i++)
		join(t[i]);
	EXPECT_EQ(4950, nr_ran);

	atomic_store(&nr_ran, 0);
	EXPECT_EQ(50, pl_spawn_many(t, 50, check_null, NULL, NULL));
	for (i = 0; i < 50; i++)
		join(t[i]);
	EXPECT_EQ(50, nr_ran);
	EXPECT_EQ(0, pl_spawn_many(t, 0, count, NULL, NULL));
	EXPECT_EQ(100, pl_spawn_many(NULL, 100, count, NULL, NULL));
	/* Asleep, so that they can run on this worker if it is the only one. */
	EXPECT_TRUE(UNTIL((pl_sleep(20000), nr_ran == 150)));
}

TEST_F(spawn, batch_by_a_task_returns_its_count)
{
	run_in_task(spawn_many, NULL);
}

TEST_F(spawn, batch_by_a_thread_returns_its_count)
{
	spawn_many(NULL);
}

TEST_F(spawn, batch_on_the_worker_stack_returns_its_count)
{
	run_as(PL_STACK_WORKER, spawn_many, NULL);
}

/* ---- signalled or not ---- */

/* Of all workers, since the task may move. */
static uint64_t nr_signals(uint64_t *nosignals)
{
	struct pl_stat_worker st = PL_STAT_WORKER_INIT;
	uint64_t nr = 0, quiet = 0;
	uint32_t i;

	for (i = 0; !pl_stat_worker(i, &st); i++) {
		nr += st.signals;
		quiet += st.nosignals;
	}
	if (nosignals)
		*nosignals = quiet;
	return nr;
}

static void count_signals(void *arg)
{
	uint64_t before = nr_signals(NULL);
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	uint64_t quiet_before, quiet;

	EXPECT_EQ(100, pl_spawn_many(NULL, 100, count, NULL, NULL));
	EXPECT_EQ(before + 1, nr_signals(&quiet_before));

	opts.flags = PL_SPAWN_NOSIGNAL;
	EXPECT_EQ(7, pl_spawn_many(NULL, 7, count, NULL, &opts));
	EXPECT_EQ(0, pl_spawn(NULL, count, NULL, &opts));
	EXPECT_EQ(before + 1, nr_signals(&quiet));
	EXPECT_EQ(quiet_before + 8, quiet);
	EXPECT_EQ(8, pl_flush());
	EXPECT_EQ(before + 2, nr_signals(NULL));
	EXPECT_EQ(0, pl_flush());
	EXPECT_EQ(before + 2, nr_signals(NULL));
}

TEST_F(spawn, batch_signals_once_and_nosignal_at_flush)
{
	start_with(1, 1);
	run_in_task(count_signals, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == 108));
}

/* ---- quietly ---- */

static void spawn_quietly_and_block(void *arg)
{
	pl_task_t t[20];
	int i;

	for (i = 0; i < 20; i++)
		t[i] = spawn_flags(PL_SPAWN_NOSIGNAL, count, NULL);
	/* No flush: to look for other work does it. */
	for (i = 0; i < 20; i++)
		join(t[i]);
}

TEST_F(spawn, blocking_task_flushes_its_spawns)
{
	run_in_task(spawn_quietly_and_block, NULL);
	EXPECT_EQ(20, nr_ran);
}

static bool is_other_parked(void)
{
	struct pl_stat st = rt_stat();

	return st.workers == 2 && st.workers_parked == 1;
}

/* By workers: a thread counts its own when the one that it woke may run. */
static uint64_t nr_wakes(void)
{
	uint32_t nr = load_acquire(&pl__rt.main.nr_started), i;
	uint64_t sum = 0;

	for (i = 0; i < nr; i++)
		sum += load_relaxed(&pl__rt.main.workers[i]->stat.wakes);
	return sum;
}

static uint64_t wakes_before, wakes_within;

static void note_wakes(void *arg)
{
	wakes_within = nr_wakes();
}

static void spawn_urgent_unsignalled(void *arg)
{
	pl_task_t t;

	ASSERT_TRUE(UNTIL_BUSY(is_other_parked()));
	wakes_before = nr_wakes();
	t = spawn_flags(PL_SPAWN_URGENT | PL_SPAWN_NOSIGNAL, note_wakes, NULL);
	/* This task may have been stolen before that one is through. */
	join(t);
}

static void spin_a_while(void *arg)
{
	spin_ns(200 * NSEC_PER_USEC);
}

static bool have_both_started(void)
{
	mixed_run(8, 0, spin_a_while, NULL);
	return rt_stat().workers == 2;
}

/*
 * The caller is the task that becomes ready: no worker wakes to steal it.
 * Sysmon wakes one for it if this worker gets no processor meanwhile, so there
 * is none.
 */
TEST_TIMED(urgent_nosignal_wakes_no_worker_for_the_caller,
	   "counts what the scheduler did meanwhile")
TEST_F(spawn, urgent_nosignal_wakes_no_worker_for_the_caller)
{
	int i, nr_woken = 0;

	setenv("PARKLOT_WATCH", "0", 1);
	start_with(2, 2);
	ASSERT_TRUE(UNTIL(have_both_started()));
	for (i = 0; i < 40; i++) {
		run_in_task(spawn_urgent_unsignalled, NULL);
		nr_woken += wakes_before != wakes_within;
		/* Both park before the next. */
		EXPECT_TRUE(UNTIL(rt_stat().workers_parked == 2));
	}
	EXPECT_GT(4, nr_woken);
}

TEST_F(spawn, nosignal_by_a_thread_runs_nothing_before_flush)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	struct pl_stat st;
	int i;

	/*
	 * A worker counts a park once it has looked for the last time, so that
	 * this one, which never ran anything, is asleep for good.  Sysmon would
	 * wake it if it is not asleep itself yet.
	 */
	setenv("PARKLOT_WATCH", "0", 1);
	start_with(2, 0);
	ASSERT_TRUE(UNTIL(rt_stat().parks));
	opts.flags = PL_SPAWN_NOSIGNAL;
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, pl_spawn(NULL, count, NULL, &opts));
	ASSERT_EQ(5, pl_spawn_many(NULL, 5, count, NULL, &opts));

	st = rt_stat();
	EXPECT_EQ(0, nr_ran);
	EXPECT_EQ(0, st.wakes);
	EXPECT_EQ(1, st.workers);
	EXPECT_EQ(1, st.workers_parked);
	EXPECT_EQ(15, st.tasks_alive);
	EXPECT_EQ(15, pl_flush());
	EXPECT_EQ(0, pl_flush());
	/* Some are signalled for; the worker may have looked by itself. */
	EXPECT_TRUE(UNTIL(nr_ran == 15));
}

static atomic_int nr_spawned;

static void *spawn_17(void *arg)
{
	atomic_int *may_go = arg;
	int i;

	for (i = 0; i < 17; i++) {
		while (i == 1 && !*may_go)
			sched_yield();
		if (!pl_spawn(NULL, count, NULL, NULL))
			nr_spawned++;
	}
	return NULL;
}

TEST_F(spawn, thread_spawns_again_without_the_lock_of_the_slab)
{
	atomic_int may_go = 0;
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, spawn_17, &may_go));
	ASSERT_TRUE(UNTIL(nr_ran == 1));
	pl__lock(&pl__rt.tasks.lock);
	may_go = 1;
	EXPECT_TRUE(UNTIL(nr_spawned == 17));
	pl__unlock(&pl__rt.tasks.lock);
	pthread_join(thread, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == 17));
}

static void *spawn_once(void *arg)
{
	EXPECT_EQ(0, pl_spawn(NULL, count, NULL, NULL));
	return arg;
}

static void spawn_from_threads(struct __test_metadata *_metadata, int nr)
{
	pthread_t thread;
	int i, before = nr_ran;

	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, spawn_once, NULL));
		pthread_join(thread, NULL);
		/* Tasks that pile up would take memory of their own. */
		ASSERT_TRUE(UNTIL(nr_ran == before + i + 1));
	}
}

/* A stripe keeps less than a batch, a worker two. */
TEST_F(spawn, threads_that_spawn_and_end_take_the_memory_of_few)
{
	uint32_t batch, round;

	for (round = 0; round < 3; round++) {
		spawn_from_threads(_metadata, 1000);
		batch = pl__rt.tasks.nr_in_batch;
		EXPECT_LE(pl__slab_nr_slots(&pl__rt.tasks),
			  (PL__NR_STRIPES + rt_stat().workers * 2) * batch);
		EXPECT_EQ(0, pl_runtime_stop());
	}
}

TEST_F(spawn, flush_of_nothing_returns_0)
{
	EXPECT_EQ(0, pl_flush());
	run_in_task(count, NULL);
	EXPECT_EQ(0, pl_flush());
}

/* ---- fairness ---- */

TEST_F(spawn, yield_outside_a_task_returns)
{
	pl_yield();
	run_in_task(count, NULL);
	pl_yield();
	EXPECT_EQ(1, nr_ran);
}

TEST_HARNESS_MAIN
