/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The runtime's timers, as programs use them.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "time/timer_impl.h"

#include <sched.h>

RT_FIXTURE(timer)

#define FAR_NS	(3600 * NSEC_PER_SEC)

static atomic_int nr_fired;

static void fire(void *arg)
{
	EXPECT_EQ(0, pl_self());
	atomic_fetch_add(&nr_fired, 1);
}

static void add_a_few(void *arg)
{
	pl_timer_t t = 0;
	int i;

	for (i = 0; i < 10; i++)
		EXPECT_EQ(0, pl_timer_add(i % 2 ? &t : NULL, in_ms(1), fire,
					  NULL));
	EXPECT_NE(0, t);
	EXPECT_EQ(0, pl_timer_add(NULL, 0, fire, NULL));
	EXPECT_EQ(0, pl_timer_add(NULL, 1, fire, NULL));
	EXPECT_EQ(0, pl_timer_add(NULL, pl_now(), fire, NULL));
}

TEST_F(timer, timer_of_a_thread_starts_the_runtime_and_fires)
{
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
	add_a_few(NULL);
	EXPECT_NE(PL_BACKEND_AUTO, pl_runtime_backend());
	EXPECT_TRUE(UNTIL(nr_fired == 13));
	EXPECT_EQ(13, rt_stat().timers_added);
	EXPECT_TRUE(UNTIL(rt_stat().timers_fired == 13));
	EXPECT_EQ(0, rt_stat().timers_alive);
}

TEST_F(timer, timer_of_a_task_fires)
{
	mixed_run(20, 2, add_a_few, NULL);
	run_as(PL_STACK_WORKER, add_a_few, NULL);
	EXPECT_TRUE(UNTIL(nr_fired == 23 * 13));
}

static void add_beside_others(void *arg)
{
	atomic_int *nr_left = arg;

	/* Each on a worker of its own. */
	atomic_fetch_sub(nr_left, 1);
	while (*nr_left > 0)
		sched_yield();
	EXPECT_EQ(0, pl_timer_add(NULL, pl_now() + FAR_NS, fire, NULL));
}

TEST_F(timer, many_workers_add_to_a_bucket_each)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	atomic_int nr_left = 32;
	uint64_t added;
	uint32_t i;

	cfg.nr_workers = cfg.min_workers = (uint32_t)nr_left;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	for (i = 0; i < cfg.nr_workers; i++)
		ASSERT_EQ(0, pl_spawn(NULL, add_beside_others, &nr_left, NULL));
	EXPECT_TRUE(UNTIL(rt_stat().timers_added == cfg.nr_workers));
	for (i = 0; i < pl__rt.timers->nr_buckets; i++) {
		added = load_relaxed(&pl__rt.timers->buckets[i].added);
		EXPECT_LE(added, 1) {
			TH_LOG("%u workers share bucket %u", (unsigned)added,
			       i);
		}
	}
}

TEST_F(timer, handle_of_no_timer_is_enoent)
{
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
	EXPECT_EQ(-ENOENT, pl_timer_del(77));
	EXPECT_EQ(0, pl_runtime_start(NULL));
	EXPECT_EQ(-ENOENT, pl_timer_del(77));
	EXPECT_EQ(-ENOENT, pl_timer_del(UINT64_MAX));
}

/* ---- when ---- */

static atomic_int is_running, may_end;

static void run_for_long(void *arg)
{
	is_running = 1;
	while (!may_end)
		sched_yield();
	atomic_fetch_add(&nr_fired, 1);
}

TEST_F(timer, timer_without_a_deadline_does_not_fire)
{
	pl_timer_t t;

	ASSERT_EQ(0, pl_timer_add(&t, PL_FOREVER, fire, NULL));
	ASSERT_EQ(0, pl_timer_add(NULL, PL_FOREVER, fire, NULL));
	ASSERT_EQ(0, pl_timer_add(NULL, PL_FOREVER - 1, fire, NULL));
	EXPECT_EQ(0, pl_sleep(2 * NSEC_PER_MSEC));
	EXPECT_EQ(0, pl_timer_del(t));
	EXPECT_EQ(-ENOENT, pl_timer_del(t));
	EXPECT_EQ(1, rt_stat().timers_deleted);
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(0, nr_fired);
}

/* ---- del ---- */

static void del_running(void *arg)
{
	pl_timer_t t = *(pl_timer_t *)arg;

	EXPECT_EQ(-EBUSY, pl_timer_del(t));
}

TEST_F(timer, delete_during_its_callback_is_ebusy)
{
	pl_timer_t t;

	ASSERT_EQ(0, pl_timer_add(&t, 0, run_for_long, NULL));
	ASSERT_TRUE(UNTIL(is_running));
	del_running(&t);
	run_in_task(del_running, &t);
	may_end = 1;
	EXPECT_TRUE(UNTIL(pl_timer_del(t) == -ENOENT));
	EXPECT_EQ(1, nr_fired);
}

TEST_F(timer, timer_that_never_fires_counts_as_alive)
{
	pl_timer_t t;

	ASSERT_EQ(0, pl_timer_add(&t, PL_FOREVER, fire, NULL));
	EXPECT_EQ(1, rt_stat().timers_alive);
	EXPECT_EQ(1, rt_stat().timers_added);
	EXPECT_EQ(0, pl_timer_del(t));
	EXPECT_EQ(0, rt_stat().timers_alive);
	EXPECT_EQ(0, nr_fired);
}

/* ---- the end ---- */

TEST_F(timer, timer_of_an_ended_runtime_is_stale)
{
	pl_timer_t t[50], u;
	int i;

	for (i = 0; i < 50; i++)
		ASSERT_EQ(0, pl_timer_add(&t[i], pl_now() + FAR_NS, fire,
					  NULL));
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(-ENOENT, pl_timer_del(t[0]));
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, pl_timer_add(&u, pl_now() + FAR_NS, fire, NULL));
		EXPECT_EQ(-ENOENT, pl_timer_del(t[i]));
	}
	EXPECT_EQ(50, rt_stat().timers_alive);
	EXPECT_EQ(0, nr_fired);
}

/* ---- its own handle ---- */

static pl_timer_t own_timer;
static atomic_int nr_own;

/* Plain: TSan looks on. */
static void check_own(void *arg)
{
	EXPECT_NE(0, own_timer);
	atomic_fetch_add(&nr_own, 1);
}

static void add_at_once(void *arg)
{
	int i, before;

	for (i = 0; i < scaled(2000); i++) {
		before = nr_own;
		own_timer = 0;
		EXPECT_EQ(0, pl_timer_add(&own_timer, 1, check_own, NULL));
		ASSERT_TRUE(UNTIL_BUSY(nr_own == before + 1));
	}
}

TEST_F(timer, handle_is_stored_before_the_callback_runs)
{
	start_with(1, 1);
	run_in_task(add_at_once, NULL);
	add_at_once(NULL);
}

/* ---- while the runtime stops ---- */

static void run_until_told(void *arg)
{
	is_running = 1;
	EXPECT_TRUE(UNTIL(may_end));
	is_running = 0;
}

static void stop_runtime(void *arg)
{
	EXPECT_EQ(0, pl_runtime_stop());
}

TEST_F(timer, delete_during_a_callback_of_the_stop_is_ebusy)
{
	static struct mixed m;
	uint64_t end;
	pl_timer_t t;

	ASSERT_EQ(0, pl_timer_add(&t, 0, run_until_told, NULL));
	ASSERT_TRUE(UNTIL(is_running));
	mixed_start(&m, 0, 1, stop_runtime, NULL);
	ASSERT_TRUE(UNTIL(pl_timer_add(NULL, PL_FOREVER, fire, NULL) ==
			  -ECANCELED));
	for (end = pl_now() + 20 * NSEC_PER_MSEC; pl_now() < end; breathe())
		EXPECT_EQ(-EBUSY, pl_timer_del(t));
	may_end = 1;
	mixed_join(&m);
	EXPECT_EQ(0, is_running);
	EXPECT_EQ(-ENOENT, pl_timer_del(t));
}

TEST_HARNESS_MAIN
