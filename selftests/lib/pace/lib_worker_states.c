/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The three states of a worker: in its loop, in a task with a stack of its own,
 * in a task on the worker's stack; and each change between them.
 *
 * With one worker the order of things is known, and the kind of stack that a
 * task runs on is read off its addresses.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "pace/pace.h"

#include <sys/syscall.h>

RT_FIXTURE(state)

static struct pl_word word;
static atomic_int nr_ran, nr_begun;

static pid_t __attribute__((noinline)) thread_id(void)
{
	__asm__ volatile("" ::: "memory");
	return (pid_t)syscall(SYS_gettid);
}

/* Whether we are on the stack that the thread was born with. */
static bool __attribute__((noinline)) is_on_thread_stack(void)
{
	char *here = __builtin_frame_address(0), *base;
	pthread_attr_t attr;
	size_t size;
	void *p;

	__asm__ volatile("" ::: "memory");
	ASSERT_EQ(0, pthread_getattr_np(pthread_self(), &attr));
	pthread_attr_getstack(&attr, &p, &size);
	pthread_attr_destroy(&attr);
	base = p;
	return here >= base && here < base + size;
}

static void own(void *arg)
{
	EXPECT_FALSE(is_on_thread_stack());
	atomic_fetch_add(&nr_ran, 1);
}

static void workers(void *arg)
{
	EXPECT_TRUE(is_on_thread_stack());
	atomic_fetch_add(&nr_ran, 1);
}

/* ---- the changes ---- */

/* Parked again: the worker came back to its loop. */
static void parked_after(uint64_t nr_parks)
{
	EXPECT_TRUE(UNTIL(rt_stat().parks > nr_parks &&
			  rt_stat().workers_parked == 1));
}

TEST_F(state, loop_switches_to_a_task_of_each_kind_and_back)
{
	uint64_t nr;
	int i;

	start_with(1, 1);
	for (i = 0; i < 200; i++) {
		nr = rt_stat().parks;
		run_as(i % 4, i % 4 == PL_STACK_WORKER ? workers : own, NULL);
		parked_after(nr);
	}
	EXPECT_EQ(200, nr_ran);
}

/* A task that ends, blocks or yields lets one of the next kind run. */
struct next {
	uint32_t	cls;
	void		(*fn)(void *arg);
	pl_task_t	task;
};

static void end_before(void *arg)
{
	struct next *n = arg;

	n->task = spawn_as(n->cls, n->fn, NULL);
}

static void block_before(void *arg)
{
	struct next *n = arg;
	bool is_on_thread = is_on_thread_stack();
	int nr = nr_ran;

	n->task = spawn_as(n->cls, n->fn, NULL);
	join(n->task);
	EXPECT_EQ(nr + 1, nr_ran);
	EXPECT_EQ(is_on_thread, is_on_thread_stack());
}

static void yield_before(void *arg)
{
	struct next *n = arg;
	pid_t thread = thread_id();
	int nr = nr_ran;

	n->task = spawn_as(n->cls, n->fn, NULL);
	pl_yield();
	EXPECT_EQ(nr + 1, nr_ran);
	EXPECT_EQ(thread, thread_id());
	EXPECT_FALSE(is_on_thread_stack());
}

static void change(uint32_t from, void (*how)(void *arg), uint32_t to)
{
	struct next n = { to, to == PL_STACK_WORKER ? workers : own, 0 };
	int i;

	nr_ran = 0;
	for (i = 0; i < 100; i++) {
		run_as(from, how, &n);
		join(n.task);
	}
	EXPECT_EQ(100, nr_ran);
}

static void spawn_urgent(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	struct next *n = arg;
	int nr = nr_ran;

	opts.flags = PL_SPAWN_URGENT;
	opts.stack = n->cls;
	ASSERT_EQ(0, pl_spawn(&n->task, n->fn, NULL, &opts));
	EXPECT_EQ(nr + 1, nr_ran);
}

static void spawn_urgent_and_end(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	struct next *n = arg;

	opts.flags = PL_SPAWN_URGENT;
	opts.stack = n->cls;
	ASSERT_EQ(0, pl_spawn(&n->task, n->fn, NULL, &opts));
	EXPECT_TRUE(is_on_thread_stack());
}

static void __attribute__((noinline)) exit_nested(int depth)
{
	volatile char frame[64];

	frame[0] = 0;
	if (!depth)
		pl_exit();
	else
		exit_nested(depth - 1);
	frame[1] = frame[0];
}

static void spawn_and_exit(void *arg)
{
	struct next *n = arg;

	n->task = spawn_as(n->cls, n->fn, NULL);
	exit_nested(100);
}

/* ---- each change ---- */

static const struct {
	uint32_t	from;
	void		(*how)(void *arg);
	uint32_t	to;
} changes[] = {
	{ PL_STACK_NORMAL, end_before, PL_STACK_NORMAL },
	{ PL_STACK_NORMAL, end_before, PL_STACK_WORKER },
	{ PL_STACK_WORKER, end_before, PL_STACK_NORMAL },
	{ PL_STACK_WORKER, end_before, PL_STACK_SMALL },
	{ PL_STACK_WORKER, end_before, PL_STACK_WORKER },
	{ PL_STACK_NORMAL, block_before, PL_STACK_SMALL },
	{ PL_STACK_SMALL, block_before, PL_STACK_WORKER },
	{ PL_STACK_SMALL, yield_before, PL_STACK_LARGE },
	{ PL_STACK_LARGE, yield_before, PL_STACK_WORKER },
	{ PL_STACK_NORMAL, spawn_urgent, PL_STACK_SMALL },
	{ PL_STACK_NORMAL, spawn_urgent, PL_STACK_WORKER },
	{ PL_STACK_WORKER, spawn_urgent_and_end, PL_STACK_NORMAL },
	{ PL_STACK_WORKER, spawn_urgent_and_end, PL_STACK_WORKER },
	{ PL_STACK_WORKER, spawn_and_exit, PL_STACK_WORKER },
	{ PL_STACK_WORKER, spawn_and_exit, PL_STACK_NORMAL },
	{ PL_STACK_NORMAL, spawn_and_exit, PL_STACK_WORKER },
};

TEST_F(state, task_of_each_kind_switches_to_one_of_each)
{
	size_t i;

	start_with(1, 1);
	for (i = 0; i < ARRAY_SIZE(changes); i++)
		change(changes[i].from, changes[i].how, changes[i].to);
}

/* ---- on the worker's stack: yield ---- */

static void yield_there(void *arg)
{
	pl_task_t t;
	int i;

	t = spawn(own, NULL);
	for (i = 0; i < 100; i++)
		pl_yield();
	EXPECT_EQ(0, nr_ran);
	EXPECT_NE(t, pl_self());
}

TEST_F(state, yield_on_the_worker_stack_stays_there)
{
	start_with(1, 1);
	run_as(PL_STACK_WORKER, yield_there, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == 1));
}

/* ---- on the worker's stack: blocking ---- */

static void block_there(void *arg)
{
	pid_t thread = thread_id();

	atomic_fetch_add(&nr_begun, 1);
	EXPECT_EQ(0, pl_word_wait(&word, 0, PL_FOREVER));
	EXPECT_TRUE(is_on_thread_stack());
	EXPECT_EQ(thread, thread_id());
	atomic_fetch_add(&nr_ran, 1);
}

TEST_F(state, blocked_workers_are_replaced_up_to_max_workers)
{
	pl_task_t t[8];
	int i;

	start_with(1, 5);
	for (i = 0; i < 8; i++)
		t[i] = spawn_as(PL_STACK_WORKER, block_there, NULL);
	ASSERT_TRUE(UNTIL(rt_stat().workers_blocked == 5 && nr_begun >= 5));
	EXPECT_EQ(5, nr_begun);
	EXPECT_EQ(5, rt_stat().workers);
	for (i = 0; i < 8; i++)
		ASSERT_TRUE(UNTIL(pl_word_wake(&word, 1) == 1));
	for (i = 0; i < 8; i++)
		join(t[i]);
	EXPECT_EQ(8, nr_ran);
	EXPECT_EQ(5, rt_stat().workers);
	EXPECT_TRUE(UNTIL(rt_stat().workers_blocked == 0));
}

/* What it waits for is queued at its own worker. */
static void block_for_own(void *arg)
{
	struct next n = { PL_STACK_NORMAL, own, 0 };

	block_before(&n);
	n.cls = PL_STACK_WORKER;
	n.fn = workers;
	block_before(&n);
}

TEST_F(state, task_that_unblocks_a_worker_runs_on_another)
{
	int i;

	start_with(1, 3);
	for (i = 0; i < 20; i++)
		run_as(PL_STACK_WORKER, block_for_own, NULL);
	EXPECT_EQ(40, nr_ran);
}

static void sleep_there(void *arg)
{
	pid_t thread = thread_id();

	EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	EXPECT_EQ(thread, thread_id());
	atomic_fetch_add(&nr_ran, 1);
}

TEST_F(state, single_worker_returns_from_a_block)
{
	int i;

	start_with(1, 1);
	for (i = 0; i < 10; i++) {
		spawn_as(PL_STACK_WORKER, sleep_there, NULL);
		spawn(own, NULL);
	}
	EXPECT_TRUE(UNTIL(nr_ran == 20));
	EXPECT_EQ(1, rt_stat().workers);
}

/* ---- as others see it, and count it ---- */

/* A walk on which each change is made once at least. */
static const struct {
	uint8_t	event, duty;
} steps[] = {
	{ PL__STARTS, PL__RUNS }, { PL__SEEN_ASLEEP, PL__BLOCKED },
	{ PL__IS_BACK, PL__RUNS }, { PL__SEEN_LONG, PL__STALLED },
	{ PL__IS_BACK, PL__RUNS }, { PL__ENTERS_HOOK, PL__IN_START_HOOK },
	{ PL__RUNS_AGAIN, PL__RUNS }, { PL__GOES_TO_SLEEP, PL__SLEEPS },
	{ PL__RUNS_AGAIN, PL__RUNS }, { PL__PARKS, PL__IDLE },
	{ PL__RUNS_AGAIN, PL__RUNS }, { PL__STANDS_IN, PL__SPARE_BLOCKED },
	{ PL__IS_BACK, PL__SPARE }, { PL__SEEN_ASLEEP, PL__SPARE_BLOCKED },
	{ PL__COMPUTES, PL__SPARE_STALLED }, { PL__IS_BACK, PL__SPARE },
	{ PL__SEEN_LONG, PL__SPARE_STALLED },
	{ PL__COMPUTES, PL__SPARE_STALLED },
	{ PL__LETS_COMPUTE, PL__SPARE_BLOCKED }, { PL__IS_BACK, PL__SPARE },
	{ PL__COMPUTES, PL__SPARE_STALLED }, { PL__IS_THROUGH, PL__RUNS },
	{ PL__STANDS_IN, PL__SPARE_BLOCKED }, { PL__IS_BACK, PL__SPARE },
	{ PL__GOES_TO_SLEEP, PL__SLEEPS }, { PL__RUNS_AS_SPARE, PL__SPARE },
	{ PL__IS_THROUGH, PL__RUNS }, { PL__SEEN_ASLEEP, PL__BLOCKED },
	{ PL__STANDS_IN, PL__SPARE_BLOCKED }, { PL__IS_THROUGH, PL__RUNS },
	{ PL__SEEN_LONG, PL__STALLED }, { PL__STANDS_IN, PL__SPARE_BLOCKED },
	{ PL__GOES_TO_SLEEP, PL__SLEEPS }, { PL__RUNS_AGAIN, PL__RUNS },
	{ PL__SEEN_ASLEEP, PL__BLOCKED }, { PL__PARKS, PL__IDLE },
	{ PL__RUNS_AS_SPARE, PL__SPARE_BLOCKED }, { PL__PARKS, PL__IDLE },
	{ PL__ENDS, PL__GONE }, { PL__STARTS_AS_SPARE, PL__SPARE_BLOCKED },
	{ PL__ENTERS_HOOK, PL__IN_START_HOOK },
	{ PL__RUNS_AS_SPARE, PL__SPARE_BLOCKED },
	{ PL__COMPUTES, PL__SPARE_STALLED }, { PL__PARKS, PL__IDLE },
	{ PL__RUNS_AGAIN, PL__RUNS }, { PL__SEEN_LONG, PL__STALLED },
	{ PL__PARKS, PL__IDLE }, { PL__ENDS, PL__GONE },
	/* A thread that could not be started, after so long a time. */
	{ PL__STARTS, PL__RUNS }, { PL__SEEN_LONG, PL__STALLED },
	{ PL__ENDS, PL__GONE },
};

static void expect_counted(uint32_t duty)
{
	bool is_seen = duty == PL__BLOCKED || duty == PL__SPARE_BLOCKED;
	bool is_blocked = is_seen || duty == PL__SLEEPS ||
			  duty == PL__IN_START_HOOK;

	EXPECT_EQ(duty == PL__IDLE, pl__rt.main.nr_idle);
	EXPECT_EQ(is_blocked, pl__rt.main.nr_blocked);
	EXPECT_EQ(is_seen, pl__rt.main.nr_seen);
	EXPECT_EQ(duty == PL__IN_START_HOOK, pl__rt.main.nr_in_hook);
	EXPECT_EQ(duty == PL__STALLED || duty == PL__SPARE_STALLED,
		  pl__rt.main.nr_stalled);
}

TEST_F(state, worker_is_counted_by_what_it_does)
{
	static struct pl__worker w = { .group = &pl__rt.main };
	uint32_t before;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		before = w.duty;
		/* Who takes what is set aside counts it, under a lock. */
		pl__rt.main.nr_stalled += steps[i].event == PL__COMPUTES;
		EXPECT_EQ(before, pl__duty(&w, steps[i].event));
		EXPECT_EQ(steps[i].duty, w.duty);
		expect_counted(w.duty);
	}
}

/* Sysmon's view is older than what the worker does. */
TEST_F(state, late_look_changes_nothing)
{
	static const uint8_t seen[] = {
		PL__IS_BACK, PL__SEEN_ASLEEP, PL__SEEN_LONG
	};
	static struct pl__worker w = { .group = &pl__rt.main };
	size_t i;

	EXPECT_EQ(PL__GONE, pl__duty(&w, PL__STARTS));
	EXPECT_EQ(PL__RUNS, pl__duty(&w, PL__PARKS));
	for (i = 0; i < ARRAY_SIZE(seen); i++) {
		EXPECT_EQ(PL__NR_DUTIES, pl__duty(&w, seen[i]));
		expect_counted(PL__IDLE);
	}
	EXPECT_EQ(PL__IDLE, pl__duty(&w, PL__ENDS));
	EXPECT_EQ(PL__NR_DUTIES, pl__duty(&w, PL__SEEN_LONG));
	expect_counted(PL__GONE);
}

TEST_HARNESS_MAIN
