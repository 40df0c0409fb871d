/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Once: one calls the function, all others wait until it has returned.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(once)

static struct pl_once once, inner;
static atomic_int nr_calls, nr_back, may_go;
static long made;	/* by the function, plain */

static void make(void *arg)
{
	atomic_fetch_add(&nr_calls, 1);
	made = (long)(uintptr_t)arg;
}

static void never(void *arg)
{
	EXPECT_EQ(NULL, "called a second time");
}

TEST_F(once, first_function_only_is_called)
{
	struct pl_once init = PL_ONCE_INIT;

	EXPECT_EQ(0, memcmp(&init, &once, sizeof(once)));
	EXPECT_EQ(0, pl_once(&once, make, (void *)42));
	EXPECT_EQ(42, made);
	EXPECT_EQ(0, pl_once(&once, make, (void *)43));
	EXPECT_EQ(0, pl_once(&once, never, NULL));
	EXPECT_EQ(1, nr_calls);
	EXPECT_EQ(42, made);
}

/* ---- many at a time ---- */

static void make_when_told(void *arg)
{
	EXPECT_TRUE(UNTIL(may_go));
	make(arg);
}

static void make_or_wait(void *arg)
{
	EXPECT_EQ(0, pl_once(&once, make_when_told, arg));
	EXPECT_EQ(7, made);
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(once, return_of_the_function_releases_all)
{
	static struct mixed m;
	pl_task_t t[2];

	mixed_start(&m, 50, 4, make_or_wait, (void *)7);
	t[0] = spawn_as(PL_STACK_WORKER, make_or_wait, (void *)7);
	t[1] = spawn_as(PL_STACK_WORKER, make_or_wait, (void *)7);
	ASSERT_TRUE(UNTIL(nr_waiters(&once.word) == 55));
	EXPECT_EQ(0, nr_back);
	EXPECT_EQ(0, nr_calls);
	may_go = 1;
	mixed_join(&m);
	join(t[0]);
	join(t[1]);
	EXPECT_EQ(56, nr_back);
	EXPECT_EQ(1, nr_calls);
}

/* ---- from within ---- */

static void call_itself(void *arg)
{
	make(arg);
	EXPECT_EQ(-EDEADLK, pl_once(&once, never, NULL));
	pl_yield();
	EXPECT_EQ(-EDEADLK, pl_once(&once, never, NULL));
	/* Another one is another matter. */
	EXPECT_EQ(0, pl_once(&inner, make, arg));
	EXPECT_EQ(0, pl_once(&inner, never, arg));
}

static void begin_recursion(void *arg)
{
	memset(&once, 0, sizeof(once));
	memset(&inner, 0, sizeof(inner));
	EXPECT_EQ(0, pl_once(&once, call_itself, arg));
	EXPECT_EQ(0, pl_once(&once, never, NULL));
}

TEST_F(once, recursive_once_is_edeadlk)
{
	uint32_t cls;

	begin_recursion(NULL);
	for (cls = 0; cls <= PL_STACK_WORKER; cls++)
		run_as(cls, begin_recursion, NULL);
	mixed_run(0, 1, begin_recursion, NULL);
	EXPECT_EQ(2 * 6, nr_calls);
}

/* ---- not done ---- */

static void exit_when_told(void *arg)
{
	atomic_fetch_add(&nr_calls, 1);
	ASSERT_TRUE(UNTIL(may_go));
	pl_exit();
}

static void exit_from_inner(void *arg)
{
	pl_once(&inner, exit_when_told, arg);
	EXPECT_EQ(NULL, "came back from pl_exit()");
}

static void be_first(void *arg)
{
	pl_once(&once, exit_from_inner, NULL);
	EXPECT_EQ(NULL, "came back from pl_exit()");
}

static void be_next(void *arg)
{
	EXPECT_EQ(0, pl_once(&once, make, arg));
	EXPECT_EQ(7, made);
}

/* An inner call that was begun is not done either; its waiters do it. */
TEST_F(once, exit_within_the_function_leaves_it_to_another)
{
	static struct mixed m;
	uint32_t cls;
	pl_task_t t;

	/* One of the tasks keeps its worker until the others wait. */
	start_with(2, 0);
	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		memset(&once, 0, sizeof(once));
		memset(&inner, 0, sizeof(inner));
		nr_calls = may_go = 0;
		t = spawn_as(cls, be_first, NULL);
		ASSERT_TRUE(UNTIL(nr_calls == 1));
		mixed_start(&m, 20, 2, be_next, (void *)7);
		ASSERT_TRUE(UNTIL(nr_waiters(&once.word) == 22));
		may_go = 1;
		join(t);
		mixed_join(&m);
		EXPECT_EQ(2, nr_calls);
		EXPECT_EQ(0, pl_once(&inner, make, (void *)7));
		EXPECT_EQ(3, nr_calls);
		EXPECT_EQ(0, pl_once(&once, never, NULL));
	}
}

static void end_afterwards(void *arg)
{
	EXPECT_EQ(0, pl_once(&once, make, arg));
	pl_exit();
}

TEST_F(once, exit_after_the_function_leaves_it_done)
{
	run_in_task(end_afterwards, (void *)7);
	run_as(PL_STACK_WORKER, end_afterwards, (void *)7);
	EXPECT_EQ(0, pl_once(&once, never, NULL));
	EXPECT_EQ(1, nr_calls);
}

TEST_HARNESS_MAIN
