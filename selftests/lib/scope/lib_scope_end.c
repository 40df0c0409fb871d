/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scopes that end in other ways: by pl_exit(), not at all, out of turn, or in
 * the child of a fork(); and arguments that are refused.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "dump.h"
#include "work.h"

RT_FIXTURE(scope_end)

static intptr_t nothing(void *arg)
{
	return 0;
}

static atomic_int nr_ended;

static intptr_t sleep_on(void *arg)
{
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	atomic_fetch_add(&nr_ended, 1);
	return 0;
}

/* ---- arguments ---- */

static void misuse(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT, inner = PL_SCOPE_INIT;

	EXPECT_EQ(-EINVAL, pl_scope_enter(NULL, PL_FOREVER, 0));
	EXPECT_EQ(-EINVAL, pl_scope_enter(&s, PL_FOREVER, ~0U));
	EXPECT_EQ(-EINVAL, pl_scope_spawn(NULL, NULL, nothing, NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_scope_spawn(&s, NULL, nothing, NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_scope_cancel(NULL, -EIO));
	EXPECT_EQ(-EINVAL, pl_scope_cancel(&s, -EIO));
	EXPECT_EQ(-EINVAL, pl_scope_error(NULL));
	EXPECT_EQ(-EINVAL, pl_scope_error(&s));
	EXPECT_EQ(-EINVAL, pl_scope_leave(NULL));
	EXPECT_EQ(-EINVAL, pl_scope_leave(&s));

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(-EINVAL, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(-EINVAL, pl_scope_spawn(&s, NULL, NULL, NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_scope_cancel(&s, 0));
	EXPECT_EQ(-EINVAL, pl_scope_cancel(&s, EIO));
	EXPECT_EQ(-EINVAL, pl_scope_cancel(&s, PL_ERROR_MIN - 1));
	EXPECT_EQ(0, pl_scope_enter(&inner, PL_FOREVER, 0));
	EXPECT_EQ(-EINVAL, pl_scope_leave(&s));
	EXPECT_EQ(0, pl_scope_leave(&inner));
	EXPECT_EQ(-EINVAL, pl_scope_leave(&inner));
	EXPECT_EQ(0, pl_scope_leave(&s));
}

TEST_F(scope_end, bad_arguments_are_refused)
{
	run_in_task(misuse, NULL);
	misuse(NULL);
}

static intptr_t leave_it(void *arg)
{
	return pl_scope_leave(arg) == -EINVAL ? 1 : 0;
}

TEST_F(scope_end, only_the_owner_leaves)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct pl_child c;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&s, &c, leave_it, &s, NULL));
	EXPECT_EQ(0, pl_scope_leave(&s));
	EXPECT_EQ(1, c.result);
}

TEST_F(scope_end, first_reason_counts)
{
	struct pl_scope s = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_cancel(&s, -EPIPE));
	EXPECT_EQ(0, pl_scope_cancel(&s, -EIO));
	EXPECT_EQ(-EPIPE, pl_scope_error(&s));
	EXPECT_EQ(-EPIPE, pl_scope_leave(&s));
}

/* ---- pl_exit() and return ---- */

static void exit_inside(void *arg)
{
	struct pl_scope outer = PL_SCOPE_INIT, inner = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&outer, in_ms(1000000), 0));
	EXPECT_EQ(0, pl_scope_spawn(&outer, NULL, sleep_on, NULL, NULL));
	EXPECT_EQ(0, pl_scope_enter(&inner, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&inner, NULL, sleep_on, NULL, NULL));
	if (arg)
		pl_yield();
	pl_exit();
}

TEST_F(scope_end, exit_cancels_and_leaves)
{
	run_in_task(exit_inside, NULL);
	EXPECT_EQ(2, nr_ended);
	run_as(PL_STACK_WORKER, exit_inside, &nr_ended);
	EXPECT_EQ(4, nr_ended);
}

static intptr_t exit_as_child(void *arg)
{
	exit_inside(arg);
	return -EIO;
}

TEST_F(scope_end, exit_of_a_child_leaves_its_scopes)
{
	struct pl_scope s = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&s, NULL, exit_as_child, NULL, NULL));
	EXPECT_EQ(0, pl_scope_leave(&s));
	EXPECT_EQ(2, nr_ended);
}

static void return_inside(void *arg)
{
	static struct pl_scope s;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
}

static intptr_t child_inside(void *arg)
{
	return_inside(arg);
	return 0;
}

static void child_returns_inside(void *arg)
{
	static struct pl_scope s;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&s, NULL, child_inside, NULL, NULL));
	pl_scope_leave(&s);
}

static void *thread_inside(void *arg)
{
	return_inside(arg);
	return NULL;
}

static int end_of(void (*fn)(void *arg))
{
	pthread_t thread;
	pid_t pid = fork();

	if (!pid) {
		limit_time();
		if (fn)
			pl_join(spawn(fn, NULL));
		else if (!pthread_create(&thread, NULL, thread_inside, NULL))
			pthread_join(thread, NULL);
		_exit(0);
	}
	return reap(pid);
}

/* The scope was in a frame that is gone: a mistake that is said. */
TEST_F(scope_end, return_inside_is_fatal)
{
	int status[3] = { end_of(return_inside), end_of(child_returns_inside),
			  end_of(NULL) };
	int i;

	for (i = 0; i < 3; i++)
		EXPECT_TRUE(WIFSIGNALED(status[i]) &&
			    WTERMSIG(status[i]) == SIGABRT);
}

/* ---- fork ---- */

/* More than the library has lists of scopes by their owner. */
#define NR_OWNERS	4200

static void be_cancelled_inside(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;

	if (pl_scope_enter(&s, PL_FOREVER, 0) ||
	    pl_sleep_until(PL_FOREVER) != -ECANCELED ||
	    pl_scope_leave(&s) != -ECANCELED)
		_exit(3);
}

/* A cancel reads the list that has the scopes of its task. */
static void cancel_many(void)
{
	static pl_task_t t[NR_OWNERS];
	int i;

	for (i = 0; i < NR_OWNERS; i++)
		if (pl_spawn(&t[i], be_cancelled_inside, NULL, NULL))
			_exit(4);
	for (i = 0; i < NR_OWNERS; i++)
		if (pl_cancel(t[i]) || pl_join(t[i]))
			_exit(5);
}

static int fork_inside(struct pl_scope *s)
{
	struct pl_scope anew = PL_SCOPE_INIT;
	pid_t pid = fork();

	if (pid)
		return reap(pid);
	limit_time();
	/* Its children are the parent's tasks. */
	if (pl_scope_leave(s) != -EINVAL)
		_exit(1);
	memset(s, 0x5a, sizeof(*s));
	/* There TSan starts no threads, and ASan's allocator may be locked. */
	if (RT_TSAN || RT_ASAN)
		_exit(0);
	if (pl_scope_enter(&anew, PL_FOREVER, 0) ||
	    pl_scope_spawn(&anew, NULL, nothing, NULL, NULL) ||
	    pl_scope_leave(&anew))
		_exit(2);
	cancel_many();
	_exit(0);
}

TEST_F(scope_end, child_process_is_in_no_scope)
{
	struct pl_scope s = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&s, NULL, sleep_on, NULL, NULL));
	EXPECT_EQ(0, fork_inside(&s));
	EXPECT_EQ(0, pl_scope_cancel(&s, -EPIPE));
	EXPECT_EQ(-EPIPE, pl_scope_leave(&s));
}

/* ---- what it looks like ---- */

static int nr_scope_waits(void)
{
	const char *at;
	int nr = 0;

	for (at = dumped(); at && (at = strstr(at, "waits for scope")); at++)
		nr++;
	return nr;
}

static void leave_late(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&s, NULL, sleep_on, NULL, NULL));
	EXPECT_EQ(-ECANCELED, pl_scope_leave(&s));
}

TEST_F(scope_end, dump_shows_the_wait)
{
	pl_task_t t;

	NEEDS_DUMP();
	t = spawn(leave_late, NULL);
	EXPECT_TRUE(UNTIL(nr_scope_waits() == 1));
	EXPECT_EQ(0, pl_cancel(t));
	join(t);
	EXPECT_EQ(1, nr_ended);
}

TEST_HARNESS_MAIN
