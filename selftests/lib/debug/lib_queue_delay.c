/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The delay from ready to run, as pl_queue_delay() has it: of a backlog that is
 * known, and of none.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "queue/latency.h"

RT_FIXTURE(queue_delay)

#define NR_TASKS	(10 * PL__SAMPLE_OUTSIDE)
#define EACH_NS		(200 * NSEC_PER_USEC)
#define BACKLOG_NS	(NR_TASKS * EACH_NS)

static atomic_int nr_held;
static struct pl_word gate;

static void hold(void *arg)
{
	atomic_fetch_add(&nr_held, 1);
	while (!atomic_load(&gate.value))
		sched_yield();
}

static void spend(void *arg)
{
	spin_ns(EACH_NS);
	atomic_fetch_add(&nr_ran, 1);
}

static void expect_none(struct pl_queue_delay *qd)
{
	qd->nr = qd->p50_ns = qd->p99_ns = 77;
	EXPECT_EQ(-ENODATA, pl_queue_delay(qd));
	EXPECT_EQ(0, qd->nr);
	EXPECT_EQ(0, qd->p50_ns);
	EXPECT_EQ(0, qd->p99_ns);
}

static void expect_idle(struct pl_queue_delay *qd)
{
	qd->waiting_ns = 77;
	expect_none(qd);
	EXPECT_EQ(0, qd->waiting_ns);
}

/* How long the last of the backlog waited is @longest_ns at most. */
static void expect_backlog(struct pl_queue_delay *qd, uint64_t longest_ns)
{
	ASSERT_EQ(0, pl_queue_delay(qd));
	EXPECT_LE(BACKLOG_NS / 4, qd->p50_ns);
	EXPECT_LE(BACKLOG_NS * 3 / 4, qd->p99_ns);
	EXPECT_GE(2 * longest_ns, qd->p99_ns);
	EXPECT_LE(qd->p50_ns, qd->p99_ns);
	expect_idle(qd);
}

/* ---- what waits ---- */

static void *spawn_one(void *arg)
{
	spawn(count, NULL);
	return arg;
}

static void spawn_beside_thread(void *arg)
{
	pthread_t thread;

	(void)arg;
	pl__self()->spawns_to_sample = 0;
	spawn(hold, NULL);
	ASSERT_EQ(0, pthread_create(&thread, NULL, spawn_one, NULL));
	ASSERT_EQ(0, pthread_join(thread, NULL));
}

/* Of two, one runs, and keeps the only worker. */
TEST_F(queue_delay, waiting_task_is_seen_beside_one_that_runs)
{
	struct pl_queue_delay qd = PL_QUEUE_DELAY_INIT;

	start_with(1, 1);
	run_in_task(spawn_beside_thread, NULL);
	ASSERT_TRUE(UNTIL(nr_held));
	EXPECT_EQ(0, nr_ran);
	pl_queue_delay(&qd);
	EXPECT_LT(0, qd.waiting_ns);
	atomic_store(&gate.value, 1);
	ASSERT_TRUE(UNTIL(nr_ran));
	pl_queue_delay(&qd);
	EXPECT_EQ(0, qd.waiting_ns);
}

/* ---- the interface ---- */

TEST_F(queue_delay, none_is_told_before_the_start_and_when_idle)
{
	struct pl_queue_delay qd = PL_QUEUE_DELAY_INIT;

	expect_idle(&qd);
	start_with(1, 1);
	expect_idle(&qd);
	run_in_task(count, NULL);
	EXPECT_EQ(0, pl_queue_delay(&qd));
	EXPECT_EQ(1, qd.nr);
	EXPECT_LT(0, qd.p50_ns);
	EXPECT_EQ(qd.p50_ns, qd.p99_ns);
	expect_idle(&qd);
	expect_idle(&qd);
}

TEST_F(queue_delay, next_runtime_counts_anew)
{
	struct pl_queue_delay qd = PL_QUEUE_DELAY_INIT;
	int i;

	start_with(1, 1);
	for (i = 0; i < 5 * PL__SAMPLE_OUTSIDE; i++)
		run_in_task(count, NULL);
	EXPECT_EQ(0, pl_queue_delay(&qd));
	EXPECT_EQ(5, qd.nr);
	EXPECT_EQ(0, pl_runtime_stop());
	expect_idle(&qd);
	start_with(1, 1);
	for (i = 0; i < PL__SAMPLE_OUTSIDE; i++)
		run_in_task(count, NULL);
	EXPECT_EQ(0, pl_queue_delay(&qd));
	EXPECT_EQ(1, qd.nr);
}

TEST_F(queue_delay, each_struct_has_its_own_interval)
{
	struct pl_queue_delay a = PL_QUEUE_DELAY_INIT;
	struct pl_queue_delay b = PL_QUEUE_DELAY_INIT;
	int i;

	start_with(1, 1);
	run_in_task(count, NULL);
	EXPECT_EQ(0, pl_queue_delay(&a));
	for (i = 0; i < PL__SAMPLE_OUTSIDE; i++)
		run_in_task(count, NULL);
	EXPECT_EQ(0, pl_queue_delay(&a));
	EXPECT_EQ(0, pl_queue_delay(&b));
	EXPECT_EQ(1, a.nr);
	EXPECT_EQ(2, b.nr);
}

/* ---- a known backlog ---- */

TEST_TIMED(backlog_by_a_thread_is_told, "time that passed")
TEST_F(queue_delay, backlog_by_a_thread_is_told)
{
	struct pl_queue_delay qd = PL_QUEUE_DELAY_INIT;
	uint64_t before;
	int i;

	start_with(1, 1);
	spawn(hold, NULL);
	ASSERT_TRUE(UNTIL(nr_held));
	EXPECT_EQ(0, pl_queue_delay(&qd));
	EXPECT_EQ(0, qd.waiting_ns);
	before = pl_now();
	for (i = 0; i < NR_TASKS; i++)
		spawn(spend, NULL);
	/* What waits has not been measured, but is seen to wait. */
	spin_ns(EACH_NS);
	expect_none(&qd);
	EXPECT_LE(EACH_NS, qd.waiting_ns);
	EXPECT_GE(pl_now() - before, qd.waiting_ns);
	atomic_store(&gate.value, 1);
	ASSERT_TRUE(UNTIL(nr_ran == NR_TASKS));
	expect_backlog(&qd, pl_now() - before);
}

static uint64_t spawned_ns;

static void spawn_backlog(void *arg)
{
	int i;

	spawned_ns = pl_now();
	for (i = 0; i < NR_TASKS; i++) {
		spawn(arg ? spend : count, NULL);
		/* As few are spawned as are sampled, all of them. */
		pl__self()->spawns_to_sample = 0;
	}
}

TEST_TIMED(backlog_by_a_task_is_told, "time that passed")
TEST_F(queue_delay, backlog_by_a_task_is_told)
{
	struct pl_queue_delay qd = PL_QUEUE_DELAY_INIT;

	start_with(1, 1);
	run_in_task(spawn_backlog, &qd);
	ASSERT_TRUE(UNTIL(nr_ran == NR_TASKS));
	expect_backlog(&qd, pl_now() - spawned_ns);
}

static void spawn_and_join(void *arg)
{
	struct pl_queue_delay *qd = arg;
	pl_task_t t;
	int i;

	for (i = 0; i < 1000; i++) {
		t = spawn(count, NULL);
		pl__self()->spawns_to_sample = 0;
		join(t);
	}
	EXPECT_EQ(0, pl_queue_delay(qd));
}

/* Each task runs next, but for what else the machine does. */
TEST_TIMED(tasks_that_do_not_wait_are_told_as_such, "time that passed")
TEST_F(queue_delay, tasks_that_do_not_wait_are_told_as_such)
{
	struct pl_queue_delay qd = PL_QUEUE_DELAY_INIT;

	start_with(1, 1);
	run_in_task(spawn_and_join, &qd);
	EXPECT_LE(1000, qd.nr);
	EXPECT_GE(BACKLOG_NS / 4, qd.p50_ns);
}

/* ---- the sample ---- */

#define NR_FAST	20000

static int32_t most_unsampled;

/* A worker that gets no processor for a while samples the next, as if slow. */
static void spawn_fast(void *arg)
{
	int32_t nr;
	int i;

	for (i = 0; i < NR_FAST; i++) {
		spawn(count, NULL);
		nr = pl__self()->spawns_unsampled;
		most_unsampled = nr > most_unsampled ? nr : most_unsampled;
	}
}

TEST_TIMED(fast_spawns_are_sampled_seldom_and_slow_ones_each,
	   "counts what the scheduler did meanwhile; both ends of a race must be seen")
TEST_F(queue_delay, fast_spawns_are_sampled_seldom_and_slow_ones_each)
{
	struct pl_queue_delay qd = PL_QUEUE_DELAY_INIT;
	uint64_t nr;

	start_with(1, 1);
	run_in_task(spawn_fast, NULL);
	ASSERT_TRUE(UNTIL(nr_ran == NR_FAST));
	ASSERT_EQ(0, pl_queue_delay(&qd));
	nr = qd.nr;
	EXPECT_LE(NR_FAST / PL__SAMPLE_MOST, nr);
	EXPECT_GE(NR_FAST / 2, nr);
	EXPECT_LT(0, most_unsampled);
}

static void *seen_fn;
static int seen_key = 1;

static void see_itself(void *arg)
{
	static pl_key_t key;

	EXPECT_EQ((void *)&seen_key, arg);
	seen_fn = (void *)pl__task_fn(pl__current());
	EXPECT_EQ((void *)see_itself, (void *)pl__current()->fn);
	/* Nothing is left where its values by key are. */
	EXPECT_EQ(0, pl_key_create(&key, NULL));
	EXPECT_EQ(NULL, pl_key_get(key));
	EXPECT_EQ(0, pl_key_set(key, arg));
	EXPECT_EQ(arg, pl_key_get(key));
	EXPECT_EQ(0, pl_key_delete(key));
	EXPECT_EQ(-EINTR, pl_sleep(PL_FOREVER));
}

static void spawn_seen(void *arg)
{
	pl_task_t t;

	pl__self()->spawns_to_sample = 0;
	t = spawn_as(*(enum pl_stack *)arg, see_itself, &seen_key);
	/* Before it runs it is known by what it was spawned with, too. */
	EXPECT_NE((void *)see_itself, (void *)pl__task_slot(t)->fn);
	EXPECT_EQ((void *)see_itself, (void *)pl__task_fn(pl__task_slot(t)));
	EXPECT_EQ(0, pl_interrupt(t));
	join(t);
	EXPECT_EQ((void *)see_itself, seen_fn);
}

TEST_F(queue_delay, task_that_is_sampled_is_as_any_other)
{
	enum pl_stack cls;

	start_with(1, 1);
	for (cls = PL_STACK_NORMAL; cls <= PL_STACK_WORKER; cls++)
		run_in_task(spawn_seen, &cls);
}

TEST_HARNESS_MAIN
