/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As many workers run as the load needs.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"
#include "pace/pace.h"
#include "run/run.h"
#include "watch/watch.h"

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
				    st.raised_trial + st.raised_back);
	EXPECT_EQ(st.active_lowered, st.lowered_trial + st.lowered_back);
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

/* As if a trial had won. */
static void let_one_run(void)
{
	atomic_store(&pl__rt.main.active, 1);
}

TEST_F(elastic, as_many_run_as_compute)
{
	uint32_t nr;

	start_with(NR_WORKERS, 0);
	let_one_run();
	for (nr = 2; nr <= NR_WORKERS; nr++)
		let_meet(nr);
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
	let_one_run();
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
	return pl__elastic_look(&pl__rt.main, *now += LOOK_NS, has_work);
}

static void look_at_bursts(void *arg)
{
	uint64_t now = pl_now();

	pl__elastic_start(&pl__rt.main, true);
	EXPECT_EQ(0, pl_runtime_set_workers(2));
	look_at_burst(&now, true);
	let_one_run();
	/* Many wait when a look comes, and are gone at the next. */
	EXPECT_FALSE(look_at_burst(&now, true));
	EXPECT_FALSE(look_at_burst(&now, false));
	EXPECT_FALSE(look_at_burst(&now, true));
	EXPECT_EQ(1, nr_active());
	EXPECT_TRUE(look_at_burst(&now, true));
	EXPECT_EQ(2, nr_active());
	EXPECT_EQ(1, changes().raised_waits);
	EXPECT_EQ(1, changes().active_raised);
}

/* At first, by another target, and after a pause. */
static void look_at_all(void *arg)
{
	uint64_t now = pl_now();

	pl__elastic_start(&pl__rt.main, true);
	EXPECT_EQ(0, pl_runtime_set_workers(4));
	EXPECT_EQ(4, nr_active());
	EXPECT_EQ(0, pl_runtime_set_workers(2));
	EXPECT_EQ(2, nr_active());
	EXPECT_EQ(0, changes().active_raised);
	EXPECT_EQ(0, changes().active_lowered);
	pl__elastic_look(&pl__rt.main, now, false);
	let_one_run();
	pl__elastic_look(&pl__rt.main, now += 90 * NSEC_PER_MSEC, false);
	EXPECT_EQ(1, nr_active());
	pl__elastic_look(&pl__rt.main, now + 110 * NSEC_PER_MSEC, false);
	EXPECT_EQ(2, nr_active());
	EXPECT_EQ(1, changes().raised_back);
}

/* Without sysmon, so that there are no other looks, and without a quota. */
static void run_unwatched(void (*fn)(void *arg), const void *arg)
{
	setenv("PARKLOT_WATCH", "0", 1);
	start_with(1, 4);
	unsetenv("PARKLOT_WATCH");
	pl__rt.quota_period_ns = 0;
	run_in_task(fn, (void *)arg);
}

TEST_F(elastic, tasks_that_wait_at_one_look_need_no_worker)
{
	run_unwatched(look_at_bursts, NULL);
}

TEST_F(elastic, all_are_to_run_at_first_and_after_a_pause)
{
	run_unwatched(look_at_all, NULL);
}

/* ---- behind a task that computes ---- */

static void compute_us(uint64_t us)
{
	uint64_t end_ns = pl__thread_cpu_ns(pthread_self()) + us * 1000;

	while (pl__thread_cpu_ns(pthread_self()) < end_ns)
		;
}

/* As if so many more had been taken. */
static void take(uint64_t nr)
{
	counter_add(&pl__self()->stat.untaken, -nr);
}

static void look_behind(void *arg)
{
	uint64_t now = pl_now();
	struct pl__task *t;

	pl__elastic_start(&pl__rt.main, true);
	EXPECT_EQ(0, pl_runtime_set_workers(2));
	pl__elastic_look(&pl__rt.main, now, false);
	let_one_run();
	spawn(count, NULL);
	EXPECT_FALSE(pl__elastic_look(&pl__rt.main, now += NSEC_PER_MSEC,
				  true));
	/* Another takes that, and many more. */
	t = pl__deque_steal(&pl__self()->deque);
	take(1000);
	EXPECT_FALSE(pl__elastic_look(&pl__rt.main, now += NSEC_PER_MSEC,
				  true));
	/* Nothing waits meanwhile. */
	compute_us(10000);
	pl__queue_own(pl__self(), &pl__self()->deque, t);
	EXPECT_FALSE(pl__elastic_look(&pl__rt.main, now += 5 * NSEC_PER_MSEC,
				  true));
	EXPECT_EQ(1, nr_active());
	compute_us(5000);
	EXPECT_TRUE(pl__elastic_look(&pl__rt.main, now + 5 * NSEC_PER_MSEC,
				 true));
	EXPECT_EQ(1, changes().raised_stuck);
}

TEST_F(elastic, tasks_wait_behind_one_that_computes_beside_them)
{
	run_unwatched(look_behind, NULL);
}

/* ---- trials ---- */

#define LOAD_NS		(2 * NSEC_PER_MSEC)

struct trial {
	int	taken, waiting;		/* at each look, with as many as may */
	int	fewer_taken, fewer_waiting;	/* with half of these */
	bool	are_fewer_kept;
	uint64_t us, fewer_us;	/* of processor time, from look to look */
};

static const struct trial trials[] = {
	/* As many tasks, which wait no longer. */
	{ .taken = 400, .fewer_taken = 400, .are_fewer_kept = true },
	{ .taken = 400, .fewer_taken = 600, .are_fewer_kept = true },
	{ .taken = 400, .fewer_taken = 300, .are_fewer_kept = false },
	/* A few more, by no chance as looks agree, though each waits longer. */
	{ .taken = 400, .waiting = 1, .fewer_taken = 410, .fewer_waiting = 9,
	  .are_fewer_kept = true },
	{ .taken = 400, .waiting = 1, .fewer_taken = 400, .fewer_waiting = 9,
	  .are_fewer_kept = false },
	{ .taken = 400, .waiting = 9, .fewer_taken = 400, .fewer_waiting = 9,
	  .are_fewer_kept = true },
	{ },
};

/* As many, each for less processor time. */
static const struct trial dear_trials[] = {
	{ .taken = 400, .waiting = 1, .fewer_taken = 400, .fewer_waiting = 9,
	  .are_fewer_kept = true, .us = 1000, .fewer_us = 300 },
	{ .taken = 400, .waiting = 1, .fewer_taken = 400, .fewer_waiting = 9,
	  .are_fewer_kept = false, .us = 300, .fewer_us = 1000 },
	{ },
};

/*
 * Four may run, and seem to; but the caller's worker is alone, so that what it
 * queues waits.  What it uses for real does not count.
 */
static __attribute__((noinline, no_sanitize_thread))
void begin_alone(void)
{
	pl__rt.main.max_workers = 4;
	pl__elastic_start(&pl__rt.main, true);
	EXPECT_EQ(0, pl_runtime_set_workers(4));
	pl__rt.main.max_workers = 1;
	store_relaxed(&pl__rt.main.nr_alive, 4);
	store_relaxed(&pl__self()->tid, 0);
}

static void end_alone(void)
{
	store_relaxed(&pl__rt.main.nr_alive, 1);
}

/*
 * So many wait while the number is looked at, and have been taken since the
 * last look, with those that waited then.
 */
static void look_at_load(uint64_t *now, int taken, int waiting)
{
	static uint32_t before;
	int i;

	for (i = 0; i < waiting; i++)
		spawn(count, NULL);
	take((uint64_t)taken - (pl__nr_taken(&pl__rt.main) - before));
	pl__elastic_look(&pl__rt.main, *now += LOAD_NS, waiting);
	before = pl__nr_taken(&pl__rt.main);
	while (pl__deque_len(&pl__self()->deque))
		pl_yield();
}

/* Until the trial is over that begins soon. */
static void look_at_trial(const struct trial *t)
{
	uint64_t now = pl_now();
	uint32_t nr;
	int i;

	begin_alone();
	if (t->us)
		store_relaxed(&pl__self()->tid, pl__thread_id());
	for (i = 0; i < 1000 && nr_active() == 4; i++) {
		compute_us(t->us);
		look_at_load(&now, t->taken, t->waiting);
	}
	EXPECT_EQ(2, nr_active());
	EXPECT_EQ(1, changes().lowered_trial);
	for (nr = 2; nr == 2; nr = nr_active()) {
		compute_us(t->fewer_us);
		look_at_load(&now, t->fewer_taken, t->fewer_waiting);
	}
	EXPECT_EQ(t->are_fewer_kept ? 1 : 4, nr);
	EXPECT_EQ(1 + t->are_fewer_kept, changes().lowered_trial);
	EXPECT_EQ(!t->are_fewer_kept, changes().raised_back);
	end_alone();
}

static void look_at_trials(void *arg)
{
	const struct trial *t;

	for (t = arg; t->taken; t++)
		look_at_trial(t);
}

TEST_F(elastic, fewer_are_kept_that_do_as_well)
{
	run_unwatched(look_at_trials, trials);
}

TEST_TIMED(fewer_are_kept_that_use_less_of_a_processor, "processor time")
TEST_F(elastic, fewer_are_kept_that_use_less_of_a_processor)
{
	run_unwatched(look_at_trials, dear_trials);
}

/* Each time the verdict against fewer holds for longer. */
static void look_at_refusals(void *arg)
{
	uint64_t now = pl_now(), since[4];
	int i;

	begin_alone();
	for (i = 0; i < 4; i++) {
		since[i] = now;
		while (nr_active() == 4)
			look_at_load(&now, 400, 0);
		since[i] = now - since[i];
		while (nr_active() < 4)
			look_at_load(&now, 100, 0);
	}
	EXPECT_EQ(4, changes().raised_back);
	EXPECT_LE(2 * since[1], since[2]);
	EXPECT_LE(2 * since[2], since[3]);
	end_alone();
}

TEST_F(elastic, fewer_are_tried_less_often_that_do_worse)
{
	run_unwatched(look_at_refusals, NULL);
}

/* It is over as soon as tasks wait for 1 ms. */
static void look_at_failure(void *arg)
{
	uint64_t now = pl_now(), begin;

	begin_alone();
	while (nr_active() == 4)
		look_at_load(&now, 400, 0);
	begin = now;
	while (nr_active() < 4)
		look_at_load(&now, 10, 100);
	EXPECT_GE(2 * LOAD_NS, now - begin);
	EXPECT_EQ(1, changes().raised_back);
	end_alone();
}

TEST_F(elastic, trial_ends_early_where_tasks_wait)
{
	run_unwatched(look_at_failure, NULL);
}

/* More are tried where tasks wait, and stay if these take more of them. */
static void look_at_more(void *arg)
{
	uint64_t now = pl_now();

	begin_alone();
	/* One is content with tasks that wait for long. */
	while (nr_active() > 1)
		look_at_load(&now, 600 / (int)nr_active(), 50);
	while (!changes().raised_trial)
		look_at_load(&now, 600, 50);
	EXPECT_EQ(2, nr_active());
	EXPECT_EQ(0, changes().raised_waits);
	while (nr_active() == 2)
		look_at_load(&now, 300, 50);
	EXPECT_EQ(1, nr_active());
	EXPECT_EQ(1, changes().lowered_back);
	while (changes().raised_trial == 1)
		look_at_load(&now, 600, 50);
	while (nr_active() == 2)
		look_at_load(&now, 900, 50);
	EXPECT_EQ(4, nr_active());
	EXPECT_EQ(1, changes().lowered_back);
	end_alone();
}

TEST_F(elastic, more_are_kept_that_do_better)
{
	run_unwatched(look_at_more, NULL);
}

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
			EXPECT_GE(pl__rt.main.target, nr_active());
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
	/* Or a relief meets the one that computes. */
	for (; !changes().active_raised; let_meet(2))
		let_one_run();
	EXPECT_EQ(0, pl_runtime_stop());
	set_env("PARKLOT_ELASTIC", 2);
	EXPECT_EQ(-EINVAL, pl_runtime_start(&cfg));
}

/* ---- what a surplus worker leaves ---- */

#define NR_LEFT		1000

static _Atomic(struct pl__worker *) surplus;
/* One that a spare runs, as it is expected to compute, yields to no other. */
static void yield_until_left_ran(void *arg)
{
	while (nr_ran < NR_LEFT) {
		if (!pl__is_spare(pl__self()))
			atomic_fetch_add(&nr_yields, 1);
		pl_yield();
	}
}

/* The second worker, which will be surplus, fills its queue. */
static void fill_queue_or_yield(void *arg)
{
	struct pl__worker *w = pl__self();
	int i;

	atomic_fetch_add(&nr_begun, 1);
	EXPECT_TRUE(UNTIL_BUSY(nr_begun == 2));
	for (i = 0; w->index && i < NR_LEFT; i++)
		EXPECT_EQ(0, pl_spawn(NULL, count, NULL, NULL));
	if (w->index)
		surplus = w;
	EXPECT_TRUE(UNTIL_BUSY(may_go && surplus));
	if (w->index)
		return;
	/* It is about to park: what it had is in an inbox. */
	EXPECT_TRUE(UNTIL_BUSY(load_relaxed(&surplus->duty) == PL__IDLE));
	spawn(yield_until_left_ran, arg);
	yield_until_left_ran(arg);
}

/*
 * The worker that stays is never idle: it has two tasks that yield.  One of 8
 * that it takes is an event at least.
 */
TEST_F(elastic, tasks_of_a_surplus_worker_run_soon)
{
	start_fixed(2, 2);
	spawn(fill_queue_or_yield, NULL);
	spawn(fill_queue_or_yield, NULL);
	ASSERT_TRUE(UNTIL(nr_begun == 2));
	EXPECT_EQ(0, pl_runtime_set_workers(1));
	may_go = 1;
	EXPECT_TRUE(UNTIL_NO_MORE(nr_ran == NR_LEFT, (uint64_t)nr_yields));
	/* The other ran them as the relief of this one. */
	if (!rt_stat().stalls)
		EXPECT_GE(20 * NR_LEFT, nr_yields);
}

/* Fewer run than may: the look after this one comes soon, if that is cheap. */
TEST_F(elastic, looks_take_an_eighth_of_the_time_at_most)
{
	/* Without a crew, which would have to be told. */
	setenv("PARKLOT_BACKEND", "futex", 1);
	start_with(2, 2);
	ASSERT_EQ(0, pl_runtime_stop());
	store_relaxed(&pl__rt.main.target, 2);
	pl__elastic_start(&pl__rt.main, true);
	pl__elastic_look(&pl__rt.main, pl__now_ns(), true);
	let_one_run();
	pl__pace_start();
	EXPECT_GE(200 * NSEC_PER_USEC, pl__pace_next(NSEC_PER_USEC));
	EXPECT_LE(8 * 60 * NSEC_PER_USEC,
		  pl__pace_next(60 * NSEC_PER_USEC));
	EXPECT_GE(5 * NSEC_PER_MSEC, pl__pace_next(NSEC_PER_SEC));
}

TEST_HARNESS_MAIN
