/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As many workers run as the load needs.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"
#include "sched/elastic.h"
#include "sched/rt.h"
#include "sched/sysmon_pace.h"

#define NR_WORKERS	8

BLOCKED_FIXTURE(elastic)

static uint32_t nr_active(void)
{
	return rt_stat().workers_active;
}

/* Each change has one reason. */
static struct pl_stat changes(void)
{
	struct pl_stat st = rt_stat();

	EXPECT_EQ(st.active_raised, st.raised_waits + st.raised_stuck +
				    st.raised_batch + st.raised_back);
	EXPECT_EQ(st.active_lowered, st.lowered_unused + st.lowered_trial);
	return st;
}

/* ---- more, and fewer again ---- */

/* Keeps its worker until as many as @arg have begun, each on another. */
static void meet(void *arg)
{
	int nr = (int)(uintptr_t)arg;

	atomic_fetch_add(&nr_begun, 1);
	EXPECT_TRUE(UNTIL_BUSY(nr_begun >= nr));
	atomic_fetch_add(&nr_ran, 1);
}

static void let_meet(uint32_t nr)
{
	uint32_t i;

	nr_begun = nr_ran = 0;
	for (i = 0; i < nr; i++)
		spawn(meet, (void *)(uintptr_t)nr);
	EXPECT_TRUE(UNTIL(nr_ran == (int)nr));
}

TEST_F(elastic, single_worker_is_to_run_at_first)
{
	start_with(NR_WORKERS, 0);
	EXPECT_EQ(1, nr_active());
	EXPECT_EQ(0, rt_stat().active_raised);
}

TEST_F(elastic, as_many_run_as_compute)
{
	uint32_t nr;

	start_with(NR_WORKERS, 0);
	for (nr = 2; nr <= NR_WORKERS; nr++)
		let_meet(nr);
	EXPECT_LE(1, changes().raised_stuck);
}

TEST_F(elastic, single_worker_is_to_run_after_the_load)
{
	struct pl_stat st;
	int i;

	start_with(NR_WORKERS, 0);
	for (i = 0; i < 3; i++) {
		let_meet(NR_WORKERS);
		EXPECT_TRUE(UNTIL(nr_active() == 1));
	}
	st = changes();
	EXPECT_LE(3, st.active_raised);
	EXPECT_LE(3, st.active_lowered);
	EXPECT_LE(1, st.lowered_unused);
}

/* Tasks that end at once, but more of them than one worker takes in time. */
static void spawn_on(void *arg)
{
	atomic_fetch_add(&nr_begun, 1);
	if (!may_go)
		EXPECT_EQ(0, pl_spawn(NULL, spawn_on, arg, NULL));
	else
		atomic_fetch_add(&nr_ran, 1);
}

TEST_F(elastic, more_run_while_tasks_wait)
{
	int i;

	start_with(2, 0);
	for (i = 0; i < 10000; i++)
		spawn(spawn_on, NULL);
	EXPECT_TRUE(UNTIL_NO_MORE(nr_active() == 2, (uint64_t)nr_begun));
	may_go = 1;
	EXPECT_TRUE(UNTIL_NO_MORE(nr_ran == 10000, (uint64_t)nr_ran));
}

#define LOOK_NS		(200 * NSEC_PER_USEC)

/* Takes as many tasks as will wait at a look, 0.2 ms after the last one. */
static bool look_at_burst(uint64_t *now, bool has_work)
{
	int i;

	pl_yield();
	for (i = 0; has_work && i < 20; i++)
		spawn(count, NULL);
	return pl__elastic_look(*now += LOOK_NS, has_work);
}

static void look_at_bursts(void *arg)
{
	uint64_t now = pl_now();

	(void)arg;
	pl__elastic_start(true);
	EXPECT_EQ(0, pl_runtime_set_workers(2));
	look_at_burst(&now, true);
	/* Many wait when a look comes, and are gone at the next. */
	EXPECT_FALSE(look_at_burst(&now, true));
	EXPECT_FALSE(look_at_burst(&now, false));
	EXPECT_FALSE(look_at_burst(&now, true));
	EXPECT_EQ(1, nr_active());
	EXPECT_TRUE(look_at_burst(&now, true));
	EXPECT_EQ(2, nr_active());
	EXPECT_EQ(1, changes().raised_waits);
	EXPECT_EQ(1, changes().active_raised);
	/* In that time one worker could have had as much of a processor. */
	EXPECT_FALSE(pl__elastic_look(now + 50 * NSEC_PER_MSEC, true));
	EXPECT_EQ(1, nr_active());
	EXPECT_EQ(1, changes().lowered_trial);
	EXPECT_EQ(1, changes().active_lowered);
}

/* Without sysmon, so that there are no other looks. */
TEST_F(elastic, tasks_that_wait_at_one_look_need_no_worker)
{
	setenv("PARKLOT_WATCH", "0", 1);
	start_with(1, 2);
	unsetenv("PARKLOT_WATCH");
	run_in_task(look_at_bursts, NULL);
}

/* ---- the target is the most ---- */

static void set_target(uint32_t nr)
{
	EXPECT_EQ(0, pl_runtime_set_workers(nr));
	EXPECT_GE(nr, nr_active());
}

TEST_F(elastic, number_is_within_a_target_that_changes)
{
	uint64_t seed = 11;
	int i, k;

	start_with(NR_WORKERS, 0);
	for (i = 0; i < 2000; i++)
		spawn(spawn_on, NULL);
	for (i = 0; i < scaled(RT_INJECT ? 100 : 1000); i++) {
		set_target((uint32_t)next_random(&seed) % NR_WORKERS + 1);
		for (k = 0; k < 20; k++)
			EXPECT_GE(pl__rt.target, nr_active());
		breathe();
	}
	may_go = 1;
	EXPECT_TRUE(UNTIL_NO_MORE(nr_ran == 2000, (uint64_t)nr_ran));
	set_target(NR_WORKERS);
	let_meet(NR_WORKERS);
}

TEST_F(elastic, fixed_number_is_the_target)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	unsetenv("PARKLOT_WORKERS");
	cfg.nr_workers = NR_WORKERS;
	cfg.fixed_workers = 1;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	EXPECT_EQ(NR_WORKERS, nr_active());
	let_meet(NR_WORKERS);
	EXPECT_EQ(0, pl_runtime_set_workers(3));
	EXPECT_EQ(3, nr_active());
	EXPECT_EQ(0, changes().active_raised);
	EXPECT_EQ(0, changes().active_lowered);
}

TEST_F(elastic, environment_overrides_the_configuration)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	unsetenv("PARKLOT_WORKERS");
	cfg.nr_workers = NR_WORKERS;
	set_env("PARKLOT_ELASTIC", 0);
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	EXPECT_EQ(NR_WORKERS, nr_active());
	EXPECT_EQ(0, pl_runtime_stop());
	cfg.fixed_workers = 1;
	set_env("PARKLOT_ELASTIC", 1);
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	EXPECT_EQ(1, nr_active());
	EXPECT_EQ(0, pl_runtime_stop());
	set_env("PARKLOT_ELASTIC", 2);
	EXPECT_EQ(-EINVAL, pl_runtime_start(&cfg));
}

/* ---- what a surplus worker leaves ---- */

#define NR_LEFT		1000

/* The other worker parks, or this one is found stalled: then it runs them. */
static void yield_beside_another(void *arg)
{
	EXPECT_TRUE(UNTIL_BUSY(may_go && rt_stat().workers_parked));
	spawn(yield_until_ran, arg);
	yield_until_ran(arg);
}

static void fill_queue(void)
{
	int i;

	for (i = 0; i < NR_LEFT; i++)
		EXPECT_EQ(0, pl_spawn(NULL, count, NULL, NULL));
	EXPECT_TRUE(UNTIL_BUSY(may_go));
}

/* The second worker will be surplus. */
static void fill_queue_or_yield(void *arg)
{
	uint32_t index = pl__self()->index;

	atomic_fetch_add(&nr_begun, 1);
	EXPECT_TRUE(UNTIL_BUSY(nr_begun == 2));
	if (index)
		fill_queue();
	else
		yield_beside_another(arg);
}

/*
 * The worker that stays is never idle: it has two tasks that yield.  One of 8
 * that it takes is an event at least.
 */
TEST_F(elastic, tasks_of_a_surplus_worker_run_soon)
{
	start_fixed(2, 2);
	spawn(fill_queue_or_yield, (void *)NR_LEFT);
	spawn(fill_queue_or_yield, (void *)NR_LEFT);
	ASSERT_TRUE(UNTIL(nr_begun == 2));
	EXPECT_EQ(0, pl_runtime_set_workers(1));
	may_go = 1;
	EXPECT_TRUE(UNTIL_NO_MORE(nr_ran == NR_LEFT, (uint64_t)nr_yields));
	EXPECT_GE(20 * NR_LEFT, nr_yields);
}

/* ---- behind a task that computes, while others take tasks ---- */

#define NR_WAITS	20
#define TICK_NS		NSEC_PER_MSEC

static atomic_int nr_ticks;

static void tick_on(void *arg)
{
	uint64_t end_ns;

	(void)arg;
	while (!may_go) {
		for (end_ns = pl_now() + TICK_NS; pl_now() < end_ns;)
			;
		atomic_fetch_add(&nr_ticks, 1);
		pl_yield();
	}
}

/* Ticks until a task runs that is queued behind its spawner. */
static void wait_behind(void *arg)
{
	int *out = arg, from = nr_ticks;

	nr_ran = 0;
	EXPECT_EQ(0, pl_spawn(NULL, count, NULL, NULL));
	EXPECT_TRUE(UNTIL_BUSY(nr_ran));
	*out = nr_ticks - from;
}

static int by_size(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/*
 * The others are never idle, and would come by only after some 100 ticks.  No
 * relief comes.
 */
TEST_F_TIMEOUT(elastic, task_behind_one_that_computes_runs_beside_others, 120)
{
	int waits[NR_WAITS], i;

	set_env("PARKLOT_STALL_US", 0);
	start_with(4, 0);
	spawn(tick_on, NULL);
	spawn(tick_on, NULL);
	for (i = 0; i < NR_WAITS; i++) {
		usleep(50 * 1000);
		join(spawn(wait_behind, &waits[i]));
	}
	may_go = 1;
	qsort(waits, NR_WAITS, sizeof(waits[0]), by_size);
	TH_LOG("ticks: median %d, most %d", waits[NR_WAITS / 2],
	       waits[NR_WAITS - 1]);
	EXPECT_GE(30, waits[NR_WAITS / 2]);
	unsetenv("PARKLOT_STALL_US");
}

/* ---- batches ---- */

static void meet_all(void *arg)
{
	(void)arg;
	meet((void *)(uintptr_t)NR_WORKERS);
}

/* True: as many were to run when the call returned. */
static bool is_raised_at_once(void (*fn)(void *arg))
{
	bool is_raised;

	EXPECT_TRUE(UNTIL(nr_active() == 1));
	nr_begun = nr_ran = 0;
	EXPECT_EQ(NR_WORKERS,
		  pl_spawn_many(NULL, NR_WORKERS, fn, NULL, NULL));
	is_raised = pl__rt.active == NR_WORKERS;
	EXPECT_TRUE(UNTIL(nr_ran == NR_WORKERS));
	return is_raised;
}

TEST_F(elastic, batch_gets_the_workers_that_earlier_ones_needed)
{
	start_with(NR_WORKERS, 0);
	EXPECT_TRUE(UNTIL(is_raised_at_once(meet_all)));
	EXPECT_TRUE(UNTIL(is_raised_at_once(meet_all)));
	EXPECT_TRUE(UNTIL((is_raised_at_once(meet_all),
			   changes().raised_batch)));
	EXPECT_TRUE(UNTIL(!is_raised_at_once(count)));
}

/* Fewer run than may: the look after this one comes soon, if that is cheap. */
TEST_F(elastic, looks_take_an_eighth_of_the_time_at_most)
{
	/* Without a crew, which would have to be told. */
	setenv("PARKLOT_BACKEND", "futex", 1);
	start_with(2, 2);
	ASSERT_EQ(0, pl_runtime_stop());
	store_relaxed(&pl__rt.target, 2);
	pl__elastic_start(true);
	pl__pace_start();
	EXPECT_GE(200 * NSEC_PER_USEC, pl__pace_next(NSEC_PER_USEC, true));
	EXPECT_LE(8 * 60 * NSEC_PER_USEC,
		  pl__pace_next(60 * NSEC_PER_USEC, true));
	EXPECT_GE(5 * NSEC_PER_MSEC, pl__pace_next(NSEC_PER_SEC, true));
}

TEST_HARNESS_MAIN
