/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pl_blocking() and PL_SPAWN_BLOCKING: the caller says that a function or a
 * task will block its worker.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"

#include <errno.h>

RT_FIXTURE(blocking)

static void call_read_gate(void *arg)
{
	EXPECT_EQ(0, pl_blocking(read_gate, arg));
}

/* ---- hands over ---- */

static void spawn_and_call(void *arg)
{
	spawn_tiny(1000);
	call_read_gate(arg);
}

/* Without sysmon, which would see it too. */
TEST_F(blocking, queue_of_the_caller_is_run_by_another_worker)
{
	pl_task_t t;

	setenv("PARKLOT_WATCH", "0", 1);
	make_gate();
	start_with(1, 3);
	t = spawn(spawn_and_call, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == 1000));
	EXPECT_TRUE(UNTIL(nr_begun == 1));
	EXPECT_EQ(1, rt_stat().workers_blocked);
	open_gate();
	join(t);
	EXPECT_TRUE(UNTIL(!rt_stat().workers_blocked));
}

TEST_F(blocking, tasks_spawned_meanwhile_are_run_by_another_worker)
{
	pl_task_t t[8];
	int i;

	setenv("PARKLOT_WATCH", "0", 1);
	make_gate();
	start_with(2, 20);
	for (i = 0; i < 8; i++)
		t[i] = spawn(call_read_gate, NULL);
	EXPECT_TRUE(UNTIL(nr_begun == 8));
	spawn_tiny(100);
	EXPECT_TRUE(UNTIL(nr_ran == 100));
	open_gate();
	for (i = 0; i < 8; i++)
		join(t[i]);
}

static pl_task_t spawn_blocking(void (*fn)(void *arg), void *arg)
{
	return spawn_flags(PL_SPAWN_BLOCKING, fn, arg);
}

static void spawn_crowd_and_tiny(void *arg)
{
	pl_task_t *t = arg;
	int i;

	for (i = 0; i < 50; i++)
		t[i] = spawn_blocking(read_gate, NULL);
	spawn_tiny(100);
}

TEST_F(blocking, tasks_that_are_spawned_to_block_delay_no_others)
{
	static pl_task_t t[100];
	int i;

	setenv("PARKLOT_WATCH", "0", 1);
	make_gate();
	start_with(2, 110);
	for (i = 50; i < 100; i++)
		t[i] = spawn_blocking(read_gate, NULL);
	join(spawn(spawn_crowd_and_tiny, t));
	EXPECT_TRUE(UNTIL(nr_ran == 100));
	EXPECT_TRUE(UNTIL(nr_begun == 100));
	EXPECT_EQ(100, rt_stat().set_aside);
	open_gate();
	for (i = 0; i < 100; i++)
		join(t[i]);
}

#define NR_LEFT		1000

static struct pl__worker *_Atomic spare;
static atomic_bool is_asleep;

static void read_and_spawn(void *arg)
{
	spare = pl__self();
	read_gate(arg);
	spawn_tiny(NR_LEFT);
}

/* Another worker takes it if the spare does not come to it in 10 ms. */
static void sleep_long(void *arg)
{
	is_asleep = pl__self() == spare;
	usleep(200 * 1000);
}

/* The spare is through with what spawned them, and parked or took the next. */
static bool has_left(void)
{
	return is_asleep || load_relaxed(&spare->duty) == PL__IDLE;
}

/* Counts those since the spare has left its tasks. */
static void yield_until_left_ran(void *arg)
{
	atomic_fetch_add(&nr_begun, 1);
	while (nr_ran < NR_LEFT) {
		nr_yields += has_left();
		pl_yield();
	}
}

/*
 * The worker that is to run looks for what is left before every 64th task, and
 * then the next task that yields lets all of them run first.  @next, or NULL:
 * waits for the only spare, too.
 */
static void check_left_tasks(void (*next)(void *arg))
{
	pl_task_t t[2] = { 0 };

	setenv("PARKLOT_WATCH", "0", 1);
	make_gate();
	start_with(1, 2);
	t[0] = spawn_blocking(read_and_spawn, NULL);
	EXPECT_TRUE(UNTIL(nr_begun == 1));
	spawn(yield_until_left_ran, NULL);
	spawn(yield_until_left_ran, NULL);
	EXPECT_TRUE(UNTIL(nr_begun == 3));
	if (next)
		t[1] = spawn_blocking(next, NULL);
	open_gate();
	EXPECT_TRUE(UNTIL_NO_MORE(nr_ran == NR_LEFT, (uint64_t)nr_ran));
	EXPECT_GE(64 + 2, nr_yields);
	join(t[0]);
	if (next)
		join(t[1]);
}

TEST_F(blocking, tasks_that_a_spare_leaves_run_soon)
{
	check_left_tasks(NULL);
}

TEST_F(blocking, tasks_of_a_spare_that_blocks_again_run_soon)
{
	check_left_tasks(sleep_long);
}

static int byte[2];

static void write_byte(void *arg)
{
	EXPECT_EQ(1, write(byte[1], "x", 1));
	count(arg);
}

static void read_what_is_written(void *arg)
{
	char c;

	EXPECT_EQ(1, read(byte[0], &c, 1));
}

static void spawn_quietly_and_call(void *arg)
{
	spawn_flags(PL_SPAWN_NOSIGNAL, write_byte, arg);
	EXPECT_EQ(0, pl_blocking(read_what_is_written, arg));
}

/* It does not know that it was expected to block. */
TEST_F(blocking, unsignalled_tasks_of_a_spare_are_run_by_another_worker)
{
	pl_task_t t;

	setenv("PARKLOT_WATCH", "0", 1);
	ASSERT_EQ(0, pipe2(byte, O_CLOEXEC));
	start_with(1, 3);
	t = spawn_blocking(spawn_quietly_and_call, NULL);
	ASSERT_TRUE(UNTIL(nr_ran == 1));
	join(t);
}

#define NR_QUIET	4

static uint64_t nr_woken;
static int nr_to_run;

static void meet(void *arg)
{
	count(arg);
	EXPECT_TRUE(UNTIL_BUSY(nr_ran >= nr_to_run));
}

static void read_until_met(void *arg)
{
	nr_woken = atomic_load(&pl__self()->stat.wakes) - nr_woken;
	EXPECT_TRUE(UNTIL_BUSY(nr_ran == nr_to_run));
}

/* All workers but the caller's are parked, if not asleep yet. */
static void spawn_several_quietly_and_call(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	int i;

	opts.flags = PL_SPAWN_NOSIGNAL;
	EXPECT_TRUE(UNTIL_BUSY(rt_stat().workers_parked == NR_QUIET));
	spin_ns(200 * NSEC_PER_USEC);
	nr_to_run += NR_QUIET;
	for (i = 0; i < NR_QUIET; i++)
		EXPECT_EQ(0, pl_spawn(NULL, meet, arg, &opts));
	nr_woken = atomic_load(&pl__self()->stat.wakes);
	EXPECT_EQ(0, pl_blocking(read_until_met, arg));
}

/* Some call out of several finds all of them asleep. */
TEST_F(blocking, unsignalled_tasks_of_the_caller_wake_as_many_workers_at_once)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	uint64_t most = 0;
	int i;

	setenv("PARKLOT_WATCH", "0", 1);
	unsetenv("PARKLOT_WORKERS");
	unsetenv("PARKLOT_MAX_WORKERS");
	cfg.nr_workers = NR_QUIET;
	cfg.min_workers = NR_QUIET + 1;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	for (i = 0; i < 20 && most < NR_QUIET; i++) {
		run_in_task(spawn_several_quietly_and_call, NULL);
		most = nr_woken > most ? nr_woken : most;
	}
	EXPECT_LE(NR_QUIET, most);
}

/* The first worker may look for it once it counts as idle: the only one. */
TEST_F(blocking, first_task_of_a_runtime_may_block)
{
	int i, nr = scaled(300);

	for (i = 1; i <= nr; i++) {
		join(spawn_blocking(count, NULL));
		EXPECT_EQ(i, nr_ran);
		EXPECT_EQ(0, pl_runtime_stop());
	}
}

/* ---- in turn ---- */

#define NR_UNSTARTED	200
#define NR_RESUMED	8

static struct pl_sem resume;
static atomic_int nr_placed, nr_early, first_late = NR_UNSTARTED / 2;

/* A call that blocks comes first, or it were not set aside again. */
static void wait_and_take_place(void *arg)
{
	usleep(1000);
	EXPECT_EQ(0, pl_sem_wait(&resume));
	if (atomic_fetch_add(&nr_placed, 1) < first_late)
		atomic_fetch_add(&nr_early, 1);
}

static void take_place(void *arg)
{
	atomic_fetch_add(&nr_placed, 1);
}

static void yield_until_over(void *arg)
{
	while (!may_go)
		pl_yield();
}

/* The only spare is blocked until all are set aside; the other is busy. */
TEST_TIMED(task_that_resumes_overtakes_those_that_have_not_started,
	   "counts what the scheduler did meanwhile")
TEST_F(blocking, task_that_resumes_overtakes_those_that_have_not_started)
{
	static pl_task_t t[NR_UNSTARTED];
	pl_task_t busy[2], resumed[NR_RESUMED], blocked;
	int i;

	EXPECT_EQ(0, pl_sem_init(&resume, 0));
	make_gate();
	start_with(1, 2);
	for (i = 0; i < NR_RESUMED; i++)
		resumed[i] = spawn_blocking(wait_and_take_place, NULL);
	for (i = 0; i < NR_RESUMED; i++)
		EXPECT_TRUE(UNTIL(is_waiting(resumed[i])));
	EXPECT_TRUE(UNTIL(is_all_parked()));
	EXPECT_EQ(NR_RESUMED, rt_stat().set_aside);
	blocked = spawn_blocking(read_gate, NULL);
	EXPECT_TRUE(UNTIL(nr_begun == 1));
	for (i = 0; i < 2; i++)
		busy[i] = spawn(yield_until_over, NULL);
	for (i = 0; i < NR_UNSTARTED; i++)
		t[i] = spawn_blocking(take_place, NULL);
	EXPECT_EQ(0, pl_sem_post(&resume, NR_RESUMED));
	EXPECT_TRUE(UNTIL(rt_stat().set_aside ==
			  NR_UNSTARTED + 2 * NR_RESUMED + 1));
	/* The busy worker has taken one of them every 10 ms. */
	first_late += nr_placed / 2;
	open_gate();
	EXPECT_TRUE(UNTIL(nr_placed == NR_UNSTARTED + NR_RESUMED));
	/* The busy worker takes one that is overdue, and may be late. */
	EXPECT_LE(NR_RESUMED - 1, nr_early);
	may_go = 1;
	for (i = 0; i < NR_RESUMED; i++)
		join(resumed[i]);
	join(blocked);
	for (i = 0; i < 2; i++)
		join(busy[i]);
	for (i = 0; i < NR_UNSTARTED; i++)
		join(t[i]);
}

/* All workers there may be are to run: there are no spares. */
TEST_F(blocking, task_that_is_spawned_to_block_runs_without_spares)
{
	start_with(2, 2);
	join(spawn_blocking(count, NULL));
	EXPECT_EQ(1, nr_ran);
	EXPECT_EQ(0, rt_stat().set_aside);
}

/* ---- the same task ---- */

static pl_key_t key;
static int value, nr_destroyed;

static void destroy(void *arg)
{
	EXPECT_EQ(&value, arg);
	nr_destroyed++;
}

static void look_at_oneself(void *arg)
{
	EXPECT_EQ(*(pl_task_t *)arg, pl_self());
	EXPECT_EQ(&value, pl_key_get(key));
	errno = ENOTTY;
}

static void call_with_key(void *arg)
{
	pl_task_t self = pl_self();

	EXPECT_EQ(0, pl_key_set(key, &value));
	EXPECT_EQ(0, pl_blocking(look_at_oneself, &self));
	EXPECT_EQ(ENOTTY, errno);
	EXPECT_EQ(&value, pl_key_get(key));
}

TEST_F(blocking, handle_keys_and_errno_are_the_callers)
{
	ASSERT_EQ(0, pl_key_create(&key, destroy));
	join(spawn(call_with_key, NULL));
	EXPECT_EQ(1, nr_destroyed);
	EXPECT_EQ(0, pl_key_delete(key));
}

static void sleep_until_cancelled(void *arg)
{
	atomic_fetch_add(&nr_begun, 1);
	EXPECT_EQ(-ECANCELED, pl_sleep(3600 * NSEC_PER_SEC));
	EXPECT_TRUE(pl_cancelled());
	atomic_fetch_add(&nr_ran, 1);
}

static void call_sleep(void *arg)
{
	EXPECT_EQ(0, pl_blocking(sleep_until_cancelled, arg));
	EXPECT_TRUE(pl_cancelled());
}

TEST_F(blocking, cancel_ends_a_wait_in_the_function)
{
	pl_task_t t = spawn(call_sleep, NULL);

	EXPECT_TRUE(UNTIL(nr_begun == 1));
	EXPECT_TRUE(UNTIL(!rt_stat().workers_blocked));
	EXPECT_EQ(0, pl_cancel(t));
	join(t);
	EXPECT_EQ(1, nr_ran);
}

static void wait_and_count(void *arg)
{
	EXPECT_EQ(0, pl_sleep(NSEC_PER_USEC));
	pl_yield();
	count(arg);
}

static void call_nested(void *arg)
{
	EXPECT_EQ(0, pl_blocking(wait_and_count, arg));
	EXPECT_EQ(0, pl_blocking(count, arg));
}

static void call_twice(void *arg)
{
	int i;

	for (i = 0; i < 100; i++) {
		EXPECT_EQ(0, pl_blocking(call_nested, arg));
		pl_yield();
	}
}

TEST_F(blocking, nested_calls_leave_no_worker_counted_as_blocked)
{
	pl_task_t t[10];
	int i;

	start_with(2, 20);
	for (i = 0; i < 10; i++)
		t[i] = i % 2 ? spawn(call_twice, NULL) :
			       spawn_blocking(call_twice, NULL);
	for (i = 0; i < 10; i++)
		join(t[i]);
	EXPECT_EQ(2000, nr_ran);
	EXPECT_TRUE(UNTIL(!rt_stat().workers_blocked));
	EXPECT_TRUE(UNTIL(!rt_stat().workers_running));
}

static void exit_inside(void *arg)
{
	count(arg);
	pl_exit();
}

static void call_exit(void *arg)
{
	pl_blocking(exit_inside, arg);
	atomic_fetch_add(&nr_begun, 1);
}

TEST_F(blocking, exit_in_the_function_ends_the_task)
{
	int i;

	start_with(2, 20);
	for (i = 0; i < 100; i++)
		join(spawn(call_exit, NULL));
	EXPECT_EQ(100, nr_ran);
	EXPECT_EQ(0, nr_begun);
	EXPECT_TRUE(UNTIL(!rt_stat().workers_blocked));
}

TEST_F(blocking, task_on_the_worker_stack_may_call)
{
	make_gate();
	open_gate();
	start_with(2, 20);
	join(spawn_as(PL_STACK_WORKER, call_read_gate, NULL));
	EXPECT_EQ(1, nr_begun);
	EXPECT_TRUE(UNTIL(!rt_stat().workers_blocked));
}

/* ---- outside ---- */

TEST_F(blocking, thread_that_is_no_worker_only_calls)
{
	EXPECT_EQ(0, pl_blocking(count, NULL));
	EXPECT_EQ(1, nr_ran);
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
}

TEST_HARNESS_MAIN
