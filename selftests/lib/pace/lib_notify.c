/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many idle workers are woken at once, and by which.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "run/run.h"

RT_FIXTURE(notify)

#define NR_AT_ONCE	8	/* workers */

static atomic_int nr_at_once, nr_through;

static void run_at_once(void *arg)
{
	atomic_fetch_add(&nr_at_once, 1);
	EXPECT_TRUE(UNTIL_BUSY(nr_at_once >= NR_AT_ONCE));
	atomic_fetch_add(&nr_through, 1);
}

static uint64_t nr_wakes_by_caller(void)
{
	struct pl__worker *w = pl__self();

	return w ? atomic_load(&w->stat.wakes) :
		   atomic_load(&pl__rt.main.wakes_outside);
}

/* How many workers the call has woken, and sysmon meanwhile. */
static uint64_t wakes_of_a_batch(int nr)
{
	uint64_t before;

	atomic_store(&nr_at_once, NR_AT_ONCE - nr);
	atomic_store(&nr_through, 0);
	before = nr_wakes_by_caller();
	EXPECT_EQ(nr, pl_spawn_many(NULL, (size_t)nr, run_at_once, NULL, NULL));
	return nr_wakes_by_caller() - before;
}

static bool are_others_parked(void *arg)
{
	struct pl_stat st = rt_stat();

	return st.workers == NR_AT_ONCE &&
	       st.workers_parked == NR_AT_ONCE - (arg != NULL);
}

/*
 * A worker that counts as parked may not sleep yet: some batch out of several
 * finds all asleep.
 */
static void wake_all_at_once(void *arg)
{
	int nr = arg ? NR_AT_ONCE - 1 : NR_AT_ONCE, i;
	uint64_t most = 0, nr_woken;

	for (i = 0; i < 20 && most < (uint64_t)nr; i++) {
		EXPECT_TRUE(UNTIL_BUSY(are_others_parked(arg)));
		spin_ns(200 * NSEC_PER_USEC);
		nr_woken = wakes_of_a_batch(nr);
		most = nr_woken > most ? nr_woken : most;
		EXPECT_TRUE(UNTIL_BUSY(nr_through == nr));
	}
	EXPECT_LE((uint64_t)nr, most);
}

/* All are to run: how many a batch needs is learned from the batches before. */
static void start_at_once(void)
{
	start_fixed(NR_AT_ONCE, NR_AT_ONCE);
	wakes_of_a_batch(NR_AT_ONCE);
	EXPECT_TRUE(UNTIL(nr_through == NR_AT_ONCE));
}

TEST_F(notify, batch_by_a_thread_wakes_a_worker_for_each_task)
{
	start_at_once();
	wake_all_at_once(NULL);
}

TEST_F(notify, batch_by_a_task_wakes_a_worker_for_each_task)
{
	bool by_task = true;

	start_at_once();
	run_in_task(wake_all_at_once, &by_task);
}

/* ---- by a worker that was woken ---- */

#define NR_QUEUED	32	/* the first hold a worker each */

static atomic_int may_go;

static void hold_worker(void *arg)
{
	atomic_fetch_add(&nr_at_once, 1);
	EXPECT_TRUE(UNTIL_BUSY(may_go));
	atomic_fetch_add(&nr_through, 1);
}

static uint64_t nr_wakes(uint32_t i)
{
	return atomic_load(&pl__rt.main.workers[i]->stat.wakes);
}

/* What a worker has woken at most since @before, while it came to one task. */
static uint64_t most_wakes_since(const uint64_t *before)
{
	uint64_t most = 0, nr;
	uint32_t i;

	for (i = 0; i < NR_AT_ONCE; i++) {
		nr = nr_wakes(i) - before[i];
		most = nr > most ? nr : most;
	}
	return most;
}

/* Queues many tasks for which no worker is woken, and then wakes one. */
static void queue_and_wake_one(void *arg)
{
	struct pl_spawn_opts quiet = PL_SPAWN_OPTS_INIT;
	uint64_t before[NR_AT_ONCE], *most = arg;
	uint32_t i;

	quiet.flags = PL_SPAWN_NOSIGNAL;
	EXPECT_TRUE(UNTIL_BUSY(are_others_parked(&quiet)));
	spin_ns(200 * NSEC_PER_USEC);
	atomic_store(&nr_at_once, 1);
	atomic_store(&nr_through, 0);
	atomic_store(&may_go, 0);
	for (i = 0; i < NR_AT_ONCE; i++)
		before[i] = nr_wakes(i);
	for (i = 1; i < NR_QUEUED; i++)
		EXPECT_EQ(0, pl_spawn(NULL, hold_worker, NULL, &quiet));
	EXPECT_EQ(0, pl_spawn(NULL, hold_worker, NULL, NULL));
	EXPECT_TRUE(UNTIL_BUSY(nr_at_once >= NR_AT_ONCE));
	*most = most_wakes_since(before);
	atomic_store(&may_go, 1);
}

/* Of a worker that was late another one has taken the search over. */
static bool has_one_woken_two(void)
{
	uint64_t nr;

	run_in_task(queue_and_wake_one, &nr);
	EXPECT_TRUE(UNTIL(nr_through == NR_QUEUED));
	return nr >= 2;
}

/* No worker changes it, and those that are parked do not read it. */
__attribute__((noinline, no_sanitize_thread))
static void set_nr_cpus(uint32_t nr)
{
	pretend_nr_cpus(nr);
}

/* As on a machine with as many processors, and on one with two. */
TEST_F(notify, worker_that_found_more_wakes_two_for_free_processors)
{
	int nr_tries = 0;

	setenv("PARKLOT_WATCH", "0", 1);
	start_at_once();
	set_nr_cpus(2 * NR_AT_ONCE);
	while (nr_tries++ < 20 && !has_one_woken_two())
		;
	EXPECT_GE(20, nr_tries);
	set_nr_cpus(2);
	nr_tries = 0;
	while (nr_tries++ < 40 && has_one_woken_two())
		;
	EXPECT_GE(40, nr_tries);
}

TEST_HARNESS_MAIN
