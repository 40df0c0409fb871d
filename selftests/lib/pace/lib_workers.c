/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * More workers and fewer, while they work.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "run_at_once.h"
#include "queue/rt.h"

#include <sys/socket.h>

RT_FIXTURE(workers)

static atomic_int nr_begun;

/* ---- how many run at a time ---- */

static void run_and_spawn(void *arg)
{
	enter_and_leave();
	if (!is_over)
		EXPECT_EQ(0, pl_spawn(NULL, run_and_spawn, arg, NULL));
}

/* So many that it is no luck if there were never more of them at once. */
static int settled(void)
{
	return 1000 + scaled(9000);
}

static void check_numbers(void)
{
	ASSERT_TRUE(UNTIL(most_of(100) == 4));
	EXPECT_EQ(0, pl_runtime_set_workers(1));
	EXPECT_TRUE(UNTIL(most_of(settled()) == 1));
	EXPECT_EQ(0, pl_runtime_set_workers(3));
	EXPECT_TRUE(UNTIL(most_of(100) == 3));
	EXPECT_EQ(0, pl_runtime_set_workers(2));
	EXPECT_TRUE(UNTIL(most_of(settled()) == 2));
	/* One is kept in reserve; the other may have been idle for long. */
	EXPECT_LE(3, rt_stat().workers);
	EXPECT_EQ(0, pl_runtime_set_workers(6));
	EXPECT_TRUE(UNTIL(most_of(100) == 6));
	expect_workers(6);
	is_over = 1;
}

TEST_F_TIMEOUT(workers, running_workers_match_the_target, 120)
{
	static struct mixed m;

	start_fixed(4, 8);
	mixed_start(&m, 20, 0, run_and_yield, NULL);
	check_numbers();
	mixed_join(&m);
}

TEST_F_TIMEOUT(workers, running_workers_match_the_target_without_blocking, 120)
{
	int i;

	start_fixed(4, 8);
	for (i = 0; i < 20; i++)
		spawn(run_and_spawn, NULL);
	check_numbers();
}

static void sleep_on_worker(void *arg)
{
	atomic_fetch_add(&nr_begun, 1);
	while (!is_over)
		EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
}

TEST_F_TIMEOUT(workers, returning_workers_do_not_exceed_the_target, 120)
{
	static struct mixed m;
	int i;

	start_with(1, 0);
	for (i = 0; i < 4; i++)
		spawn_as(PL_STACK_WORKER, sleep_on_worker, NULL);
	ASSERT_TRUE(UNTIL(nr_begun == 4));
	is_over = 1;
	ASSERT_TRUE(UNTIL(rt_stat().tasks_alive == 0));
	EXPECT_LE(4, rt_stat().workers);
	is_over = 0;
	mixed_start(&m, 20, 0, run_and_yield, NULL);
	EXPECT_TRUE(UNTIL(most_of(settled()) == 1));
	is_over = 1;
	mixed_join(&m);
}

/* In a while the first worker takes tasks, and no other does. */
static bool is_first_alone(void)
{
	uint32_t nr = pl__rt.nr_started, i, before[16], first = 0, others = 0;

	for (i = 0; i < nr; i++)
		before[i] = pl__rt.workers[i]->tick;
	most_of(100);
	for (i = 0; i < nr; i++)
		*(i ? &others : &first) += pl__rt.workers[i]->tick - before[i];
	return first && !others;
}

TEST_F_TIMEOUT(workers, last_workers_are_surplus_first, 120)
{
	static struct mixed m;
	int i;

	start_fixed(4, 4);
	mixed_start(&m, 20, 0, run_and_yield, NULL);
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(0, pl_runtime_set_workers(4));
		EXPECT_TRUE(UNTIL(most_of(100) == 4));
		EXPECT_EQ(0, pl_runtime_set_workers(1));
		EXPECT_TRUE(UNTIL(is_first_alone()));
	}
	is_over = 1;
	mixed_join(&m);
}

/* ---- what is left behind ---- */

static int pairs[32][2];

static void read_all(void *arg)
{
	int *fd = arg;
	char c;

	atomic_fetch_add(&nr_begun, 1);
	while (pl_read(fd[0], &c, 1) == 1)
		atomic_fetch_add(&nr_ran, 1);
}

static void write_to_all(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pairs); i++)
		EXPECT_EQ(1, write(pairs[i][1], "x", 1));
}

TEST_F(workers, surplus_worker_completes_its_io)
{
	int i, nr = (int)ARRAY_SIZE(pairs);
	pl_task_t t[ARRAY_SIZE(pairs)];

	start_with(4, 0);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]));
		t[i] = spawn(read_all, pairs[i]);
	}
	ASSERT_TRUE(UNTIL(nr_begun == nr));
	for (i = 0; i < 50; i++) {
		EXPECT_EQ(0, pl_runtime_set_workers(1 + i % 4));
		write_to_all();
		ASSERT_TRUE(UNTIL(nr_ran == (i + 1) * nr));
	}
	for (i = 0; i < nr; i++)
		shutdown(pairs[i][1], SHUT_RDWR);
	for (i = 0; i < nr; i++)
		join(t[i]);
}

/* ---- what is refused ---- */

TEST_F(workers, target_beyond_max_workers_is_refused)
{
	start_with(2, 4);
	EXPECT_EQ(-EINVAL, pl_runtime_set_workers(5));
	EXPECT_EQ(-EINVAL, pl_runtime_set_workers(UINT32_MAX));
	EXPECT_EQ(0, pl_runtime_set_workers(4));
	EXPECT_EQ(0, pl_runtime_set_workers(0));
}

TEST_F(workers, first_target_starts_the_runtime)
{
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
	EXPECT_EQ(0, pl_runtime_set_workers(2));
	EXPECT_NE(PL_BACKEND_AUTO, pl_runtime_backend());
}

static void *stop_thread(void *arg)
{
	EXPECT_EQ(0, pl_runtime_stop());
	return NULL;
}

static void hold_stop(void *arg)
{
	EXPECT_TRUE(UNTIL(is_over));
}

TEST_F(workers, target_by_a_thread_during_stop_is_refused)
{
	pthread_t thread;
	int ret;

	start_with(2, 4);
	spawn(hold_stop, NULL);
	ASSERT_EQ(0, pthread_create(&thread, NULL, stop_thread, NULL));
	EXPECT_TRUE(UNTIL((ret = pl_runtime_set_workers(3))));
	EXPECT_EQ(-ECANCELED, ret);
	is_over = 1;
	pthread_join(thread, NULL);
}

/* ---- lone tasks ---- */

#define NR_LONES	20	/* more than a thief watches at a time */
#define ROUNDS_MAX	1024	/* of a thief, until it takes any lone task */

/* Looks for a task, by all workers. */
static uint32_t nr_looks(void)
{
	uint32_t nr = 0, i;

	for (i = 0; i < atomic_load(&pl__rt.main.nr_started); i++)
		nr += atomic_load(&pl__rt.main.workers[i]->tick);
	return nr;
}

static void hold_with_lone_task(void *arg)
{
	atomic_fetch_add(&nr_begun, 1);
	EXPECT_TRUE(UNTIL_BUSY(nr_begun == NR_LONES));
	EXPECT_EQ(0, pl_spawn(NULL, count, arg, NULL));
	EXPECT_TRUE(UNTIL_BUSY(nr_ran == NR_LONES));
}

TEST_TIMED(lone_tasks_behind_long_ones_are_stolen,
	   "counts what the scheduler did meanwhile")
TEST_F(workers, lone_tasks_behind_long_ones_are_stolen)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	uint32_t before;
	int i;

	cfg.nr_workers = cfg.max_workers = NR_LONES + 1;
	cfg.stall_ns = PL_FOREVER;	/* a stalled worker's are not left */
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	for (i = 0; i < NR_LONES; i++)
		ASSERT_EQ(0, pl_spawn(NULL, hold_with_lone_task, NULL, NULL));
	ASSERT_TRUE(UNTIL(nr_begun == NR_LONES));
	before = nr_looks();
	EXPECT_TRUE(UNTIL(nr_ran == NR_LONES));
	EXPECT_GT(ROUNDS_MAX, nr_looks() - before);
}

TEST_HARNESS_MAIN
