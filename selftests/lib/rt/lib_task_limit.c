/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * max_tasks: never more tasks than that, no spawn refused below it, and no
 * spawner asleep while there is room.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include <sys/socket.h>

RT_FIXTURE(limit)

/* ---- what the tasks do ---- */

static atomic_int nr_alive, nr_most, nr_ran;
static struct pl_word gate;

static void come(void)
{
	int now = atomic_fetch_add(&nr_alive, 1) + 1;
	int most = atomic_load(&nr_most);

	while (now > most &&
	       !atomic_compare_exchange_weak(&nr_most, &most, now))
		;
	atomic_fetch_add(&nr_ran, 1);
}

static void leave(void)
{
	atomic_fetch_sub(&nr_alive, 1);
}

static void come_and_leave(void *arg)
{
	come();
	leave();
}

static void come_yield_and_leave(void *arg)
{
	come();
	pl_yield();
	leave();
}

static void stay_until_open(void *arg)
{
	come();
	while (!atomic_load(&gate.value) &&
	       pl_word_wait(&gate, 0, PL_FOREVER) != -ECANCELED)
		;
	leave();
}

static void open_gate(void)
{
	atomic_store(&gate.value, 1);
	pl_word_wake(&gate, UINT32_MAX);
}

static void start_limited(uint32_t nr_workers, uint32_t max_tasks)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	set_env("PARKLOT_WORKERS", nr_workers);
	cfg.max_tasks = max_tasks;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
}

static int spawn_waiting_until(void (*fn)(void *arg), uint64_t deadline_ns)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.flags = PL_SPAWN_WAIT;
	opts.deadline_ns = deadline_ns;
	return pl_spawn(NULL, fn, NULL, &opts);
}

static int spawn_waiting(void (*fn)(void *arg))
{
	return spawn_waiting_until(fn, 0);
}

/* ---- configuration ---- */

TEST_F(limit, environment_overrides_the_configuration)
{
	setenv("PARKLOT_MAX_TASKS", "3", 1);
	start_limited(1, 7);
	EXPECT_EQ(3, rt_stat().max_tasks);
	EXPECT_EQ(0, pl_runtime_stop());
	setenv("PARKLOT_MAX_TASKS", "0", 1);
	start_limited(1, 7);
	EXPECT_EQ(0, rt_stat().max_tasks);
	EXPECT_EQ(0, pl_runtime_stop());
	setenv("PARKLOT_MAX_TASKS", "-1", 1);
	EXPECT_EQ(-EINVAL, pl_runtime_start(NULL));
}

/* ---- refused ---- */

static void fill_up(void *arg)
{
	struct pl_stat st;
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, pl_spawn(NULL, stay_until_open, NULL, NULL));
	for (i = 0; i < 5; i++)
		EXPECT_EQ(-EAGAIN, pl_spawn(NULL, come_and_leave, NULL,
						NULL));
	EXPECT_EQ(-EAGAIN, pl_spawn_many(NULL, 3, come_and_leave, NULL, NULL));
	st = rt_stat();
	EXPECT_EQ(6, st.spawns_refused);
	EXPECT_EQ(0, st.spawns_waited);
}

TEST_F(limit, spawn_by_a_thread_beyond_it_is_eagain)
{
	int nr = 10;

	start_limited(2, 10);
	fill_up(&nr);
	EXPECT_EQ(10, rt_stat().tasks_alive);
	open_gate();
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(0, pl_spawn(NULL, come_and_leave, NULL, NULL));
}

TEST_F(limit, spawn_by_a_task_beyond_it_is_eagain)
{
	int nr = 9;

	start_limited(2, 10);
	run_in_task(fill_up, &nr);
	open_gate();
}

TEST_F(limit, counters_outlive_the_runtime_and_the_count_does_not)
{
	int nr = 3, i;

	start_limited(1, 3);
	fill_up(&nr);
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(6, rt_stat().spawns_refused);
	start_limited(1, 3);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, pl_spawn(NULL, stay_until_open, NULL, NULL));
	EXPECT_EQ(-EAGAIN, pl_spawn(NULL, stay_until_open, NULL, NULL));
	EXPECT_EQ(7, rt_stat().spawns_refused);
	EXPECT_EQ(0, pl_runtime_stop());
	/* Without one the next runtime refuses none. */
	start_limited(1, 0);
	for (i = 0; i < 100; i++)
		EXPECT_EQ(0, pl_spawn(NULL, come_and_leave, NULL, NULL));
}

static void batch(void *arg)
{
	pl_task_t t[10] = { 0 };

	EXPECT_EQ(*(int *)arg, pl_spawn_many(t, 10, stay_until_open, NULL,
					     NULL));
	EXPECT_NE(0, t[*(int *)arg - 1]);
	EXPECT_EQ(0, t[*(int *)arg]);
}

TEST_F(limit, batch_ends_at_it)
{
	int nr = 7;

	start_limited(2, 7);
	batch(&nr);
	open_gate();
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
	atomic_store(&gate.value, 0);
	nr = 6;
	run_in_task(batch, &nr);
	open_gate();
}

static void join_and_spawn(void *arg)
{
	int i, nr = scaled(2000);
	pl_task_t t;

	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, pl_spawn(&t, come_and_leave, NULL, NULL));
		ASSERT_EQ(0, pl_join(t));
	}
}

/* The end of a task that a joiner has seen is an end for the limit, too. */
TEST_F(limit, spawn_after_a_join_has_room)
{
	start_limited(2, 2);
	run_in_task(join_and_spawn, NULL);
	join_and_spawn(NULL);
	EXPECT_EQ(0, rt_stat().spawns_refused);
}

/* ---- the library's own tasks ---- */

static void take_items(void **batch, size_t nr, void *arg)
{
	(void)batch;
	atomic_fetch_add((atomic_int *)arg, (int)nr);
}

TEST_F(limit, queue_beyond_it_executes)
{
	struct pl_queue *q;
	atomic_int nr = 0;

	start_limited(1, 1);
	ASSERT_EQ(0, pl_queue_create(&q, take_items, &nr));
	EXPECT_EQ(0, pl_spawn(NULL, stay_until_open, NULL, NULL));
	EXPECT_EQ(0, pl_queue_push(q, &nr));
	EXPECT_TRUE(UNTIL(nr == 1));
	open_gate();
	EXPECT_EQ(0, pl_queue_close(q));
	EXPECT_EQ(0, pl_queue_join(q));
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(0, spawn_waiting(come_and_leave));
}

static void *write_later(void *arg)
{
	usleep(20000);
	EXPECT_EQ(1, write(*(int *)arg, "x", 1));
	return NULL;
}

TEST_F(limit, thread_beyond_it_reads)
{
	pthread_t thread;
	int sv[2];
	char c;

	start_limited(1, 1);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	EXPECT_EQ(0, pl_spawn(NULL, stay_until_open, NULL, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, write_later, &sv[1]));
	EXPECT_EQ(1, pl_recv(sv[0], &c, 1, 0));
	pthread_join(thread, NULL);
	open_gate();
	close(sv[0]);
	close(sv[1]);
}

/* ---- waiting ---- */

static atomic_int nr_done;

static void spawn_one_waiting(void *arg)
{
	*(int *)arg = spawn_waiting(come_and_leave);
	atomic_fetch_add(&nr_done, 1);
}

static void *spawn_one_waiting_thread(void *arg)
{
	spawn_one_waiting(arg);
	return NULL;
}

/* One task, which the limit leaves room for, waits to spawn another. */
TEST_F(limit, waiting_task_leaves_its_worker_to_others)
{
	int ret = 1;

	start_limited(1, 2);
	EXPECT_EQ(0, pl_spawn(NULL, stay_until_open, NULL, NULL));
	EXPECT_EQ(0, pl_spawn(NULL, spawn_one_waiting, &ret, NULL));
	ASSERT_TRUE(UNTIL(rt_stat().spawns_waited == 1));
	EXPECT_TRUE(UNTIL(is_all_parked()));
	EXPECT_EQ(0, nr_done);
	open_gate();
	/* Another worker may run the task before the spawner has returned. */
	EXPECT_TRUE(UNTIL(nr_ran == 2 && nr_done == 1));
	EXPECT_EQ(0, ret);
	EXPECT_EQ(0, rt_stat().spawns_refused);
}

/* A thread waits to spawn a task, for the end of the one that stays. */
static void start_waiting_thread(pthread_t *thread, int *ret)
{
	start_limited(1, 1);
	EXPECT_EQ(0, pl_spawn(NULL, stay_until_open, NULL, NULL));
	ASSERT_EQ(0, pthread_create(thread, NULL, spawn_one_waiting_thread,
				    ret));
	ASSERT_TRUE(UNTIL(pl__nr_waiting(&pl__rt.task_limit.nr) == 1));
}

TEST_F(limit, waiting_thread_blocks_until_a_task_ends)
{
	pthread_t thread;
	int ret = 1;

	start_waiting_thread(&thread, &ret);
	EXPECT_EQ(0, nr_done);
	open_gate();
	pthread_join(thread, NULL);
	EXPECT_EQ(0, ret);
	EXPECT_TRUE(UNTIL(nr_ran == 2));
}

static void spawn_many_waiting(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.flags = PL_SPAWN_WAIT | *(uint32_t *)arg;
	EXPECT_EQ(200, pl_spawn_many(NULL, 200, come_yield_and_leave, NULL,
				     &opts));
	pl_flush();
}

static void *spawn_many_waiting_thread(void *arg)
{
	spawn_many_waiting(arg);
	return NULL;
}

static void spawn_many_from_everywhere(uint32_t flags)
{
	pthread_t thread;

	start_limited(2, 3);
	run_in_task(spawn_many_waiting, &flags);
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
	run_as(PL_STACK_WORKER, spawn_many_waiting, &flags);
	ASSERT_TRUE(UNTIL(is_all_parked()));
	ASSERT_EQ(0, pthread_create(&thread, NULL, spawn_many_waiting_thread,
				    &flags));
	pthread_join(thread, NULL);
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(600, nr_ran);
	EXPECT_GE(3, nr_most);
}

/* What it has spawned runs, though none was notified before it waits. */
TEST_F(limit, waiting_batch_runs_through)
{
	spawn_many_from_everywhere(0);
}

TEST_F(limit, waiting_batch_without_a_signal_runs_through)
{
	spawn_many_from_everywhere(PL_SPAWN_NOSIGNAL);
}

/* ---- ends of the wait ---- */

static void wait_10_ms(void *arg)
{
	EXPECT_EQ(-ETIMEDOUT, spawn_waiting_until(come_and_leave, in_ms(10)));
	EXPECT_EQ(-ETIMEDOUT, spawn_waiting_until(come_and_leave, 1));
}

TEST_F(limit, deadline_ends_the_wait)
{
	start_limited(1, 2);
	EXPECT_EQ(0, pl_spawn(NULL, stay_until_open, NULL, NULL));
	EXPECT_EQ(0, pl_spawn(NULL, stay_until_open, NULL, NULL));
	wait_10_ms(NULL);
	open_gate();
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
	atomic_store(&gate.value, 0);
	EXPECT_EQ(0, pl_spawn(NULL, stay_until_open, NULL, NULL));
	run_in_task(wait_10_ms, NULL);
	/* Those that gave up left nothing behind. */
	EXPECT_EQ(0, pl__rt.task_limit.nr_waiting);
	EXPECT_EQ(0, pl_spawn(NULL, stay_until_open, NULL, NULL));
	EXPECT_EQ(-EAGAIN, pl_spawn(NULL, stay_until_open, NULL, NULL));
	open_gate();
}

TEST_F(limit, stop_ends_the_wait_of_a_thread)
{
	pthread_t thread;
	int ret = 1;

	start_waiting_thread(&thread, &ret);
	EXPECT_EQ(0, pl_runtime_stop());
	pthread_join(thread, NULL);
	EXPECT_EQ(-ECANCELED, ret);
}

static int nr_spawned;

static void spawn_five_waiting(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.flags = PL_SPAWN_WAIT;
	nr_spawned = pl_spawn_many(NULL, 5, stay_until_open, NULL, &opts);
	EXPECT_EQ(-EINTR, pl_sleep(PL_FOREVER));
}

TEST_F(limit, interrupt_of_a_started_batch_is_left_for_the_next_call)
{
	pl_task_t t;

	start_limited(1, 4);
	ASSERT_EQ(0, pl_spawn(&t, spawn_five_waiting, NULL, NULL));
	ASSERT_TRUE(UNTIL(pl__nr_waiting(&pl__rt.task_limit.nr) == 1));
	EXPECT_EQ(0, pl_interrupt(t));
	join(t);
	EXPECT_EQ(3, nr_spawned);
	open_gate();
}

/* ---- races ---- */

#define MAX	5

/* Some of them do not wait, so that some of those that do are overtaken. */
static void spawn_in_a_crowd(void *arg)
{
	int i, nr = *(int *)arg, ret;
	uint64_t seed = (uintptr_t)&seed, end = in_ms(8 * 1000);

	for (i = 0; i < nr && pl_now() < end; i++) {
		switch (next_random(&seed) % 4) {
		case 0:
			ret = pl_spawn(NULL, come_and_leave, NULL, NULL);
			EXPECT_TRUE(!ret || ret == -EAGAIN);
			break;
		case 1:
			ret = spawn_waiting_until(come_yield_and_leave,
						  pl_now() + 20000);
			EXPECT_TRUE(!ret || ret == -ETIMEDOUT);
			break;
		default:
			EXPECT_EQ(0, spawn_waiting(come_yield_and_leave));
		}
	}
	atomic_fetch_add(&nr_done, 1);
}

static void *spawn_in_a_crowd_thread(void *arg)
{
	spawn_in_a_crowd(arg);
	return NULL;
}

/*
 * Two tasks and two threads spawn at a limit that leaves room for three more,
 * which end at once: each wait is short, and each lost wake hangs.
 */
TEST_TIMED(crowd_of_spawners_never_passes_it_and_never_hangs,
	   "both ends of a race must be seen")
TEST_F(limit, crowd_of_spawners_never_passes_it_and_never_hangs)
{
	int nr = scaled(20000), i;
	pthread_t thread[2];

	start_limited(3, MAX);
	/* The first may be at the limit before the second is spawned. */
	for (i = 0; i < 2; i++)
		spawn_flags(PL_SPAWN_WAIT, spawn_in_a_crowd, &nr);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL,
					    spawn_in_a_crowd_thread, &nr));
	ASSERT_TRUE(UNTIL_NO_MORE(nr_done == 4, (uint64_t)nr_ran));
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_GE(MAX, nr_most);
	EXPECT_EQ(0, pl__rt.task_limit.nr);
	EXPECT_EQ(0, pl__rt.task_limit.nr_waiting);
	EXPECT_EQ(rt_stat().tasks_spawned, nr_ran + 2);
	EXPECT_LT(0, rt_stat().spawns_waited);
}

/*
 * Room for one: each spawn waits for the end of the one before.  Where
 * processors are short a round takes milliseconds: then fewer are made.
 */
TEST_F(limit, each_end_wakes_the_spawner_that_waits_for_it)
{
	uint64_t end = in_ms(8 * 1000);
	int nr = scaled(20000), i;

	start_limited(2, 1);
	for (i = 0; i < nr && pl_now() < end; i++)
		ASSERT_EQ(0, spawn_waiting(come_and_leave));
	ASSERT_TRUE(UNTIL(nr_ran == i));
	EXPECT_EQ(1, nr_most);
}

TEST_HARNESS_MAIN
