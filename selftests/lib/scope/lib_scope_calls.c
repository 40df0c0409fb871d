/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The deadline of a scope ends each public call that waits: of the scope's
 * owner, of its children, in a scope within it, and in threads.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "scope_calls.h"

FIXTURE(scope_calls) { char unused; };
RT_IO_VARIANTS(scope_calls)

FIXTURE_SETUP(scope_calls)
{
	set_env("PARKLOT_MAX_TASKS", MAX_TASKS);
	rt_begin_io(_metadata, variant->io, variant->wait);
	start_with(2, 0);
	make_descriptors();
	make_objects();
}

FIXTURE_TEARDOWN(scope_calls)
{
	destroy_objects();
	close_descriptors();
	rt_end();
	EXPECT_EQ(0, nr_inside);
}

/* ---- where they are called ---- */

struct trial {
	const struct kind *kind;
	uint64_t	deadline_ns;
	atomic_bool	is_done;
};

static intptr_t call_it(void *trial)
{
	struct trial *t = trial;
	long ret = t->kind->call();

	if (ret != -ECANCELED)
		TH_LOG("%s: %ld", t->kind->name, ret);
	EXPECT_EQ(-ECANCELED, ret);
	EXPECT_LE(t->deadline_ns, pl_now());
	return 0;
}

static void enter(struct trial *t, struct pl_scope *s)
{
	t->deadline_ns = in_ms(3);
	EXPECT_EQ(0, pl_scope_enter(s, t->deadline_ns, 0));
}

static void leave(struct trial *t, struct pl_scope *s)
{
	EXPECT_EQ(-ETIMEDOUT, pl_scope_leave(s));
	t->is_done = true;
}

static void as_owner(void *trial)
{
	struct pl_scope s = PL_SCOPE_INIT;

	enter(trial, &s);
	call_it(trial);
	leave(trial, &s);
}

/* In a scope of its own, which is cancelled with the child. */
static intptr_t call_as_child(void *trial)
{
	struct pl_scope s = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	call_it(trial);
	EXPECT_EQ(-ECANCELED, pl_scope_leave(&s));
	return 0;
}

/* On a slow machine the deadline comes before the child does. */
static void as_child(void *trial)
{
	struct pl_scope s = PL_SCOPE_INIT;
	int ret;

	enter(trial, &s);
	ret = pl_scope_spawn(&s, NULL, call_as_child, trial, NULL);
	EXPECT_TRUE(!ret || ret == -ECANCELED);
	leave(trial, &s);
}

static void in_inner_scope(void *trial)
{
	struct pl_scope outer = PL_SCOPE_INIT, inner = PL_SCOPE_INIT;

	enter(trial, &outer);
	EXPECT_EQ(0, pl_scope_enter(&inner, PL_FOREVER, 0));
	call_it(trial);
	EXPECT_EQ(-ECANCELED, pl_scope_leave(&inner));
	leave(trial, &outer);
}

static void *in_thread(void *trial)
{
	as_owner(trial);
	return NULL;
}

static void expect_done(struct trial *t, const char *where)
{
	uint64_t late_ns;

	if (!UNTIL(t->is_done)) {
		TH_LOG("%s: stuck %s", t->kind->name, where);
		ASSERT_TRUE(t->is_done);
	}
	late_ns = pl_now() - t->deadline_ns;
	if (late_ns > stuck_ns() / 4)
		TH_LOG("%s: late %s", t->kind->name, where);
	EXPECT_GE(stuck_ns() / 4, late_ns);
	/* The next trial has the room of all of them to fill. */
	if (has_fillers)
		ASSERT_TRUE(UNTIL(rt_stat().tasks_alive == 1));
	has_fillers = false;
}

static void try_in_task(const struct kind *k, void (*place)(void *trial),
			uint32_t stack, const char *where)
{
	struct trial t = { .kind = k };
	pl_task_t task = spawn_as(stack, place, &t);

	expect_done(&t, where);
	/* If it ended in a later trial, there would be room for one more. */
	join(task);
}

static void try_in_thread(const struct kind *k)
{
	struct trial t = { .kind = k };
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, in_thread, &t));
	expect_done(&t, "in a thread");
	pthread_join(thread, NULL);
}

TEST_TIMED(deadline_ends_each_call, "time that passed")
TEST_F(scope_calls, deadline_ends_each_call)
{
	bool has_uring = rt_has_uring();
	const struct kind *k;

	for (k = kinds; k < kinds + ARRAY_SIZE(kinds); k++) {
		if (!has_uring && needs_uring(k))
			continue;
		try_in_task(k, as_owner, PL_STACK_NORMAL, "as the owner");
		try_in_task(k, as_owner, PL_STACK_WORKER, "on a worker");
		try_in_task(k, as_child, PL_STACK_NORMAL, "as a child");
		try_in_task(k, in_inner_scope, PL_STACK_NORMAL, "further in");
		try_in_thread(k);
	}
}

/* ---- calls that are no points of cancellation ---- */

static atomic_bool may_pass, is_in_once;

static void run_once(void *arg)
{
	is_in_once = true;
	while (!atomic_load((atomic_bool *)arg))
		pl_yield();
}

static void pass_once(void *arg)
{
	EXPECT_EQ(0, pl_once(&once, run_once, arg));
}

static void take_locks(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;
	atomic_int *nr = arg;

	EXPECT_EQ(0, pl_scope_enter(&s, in_ms(1), 0));
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	*nr = 1;
	pl_mutex_lock(&locked);
	*nr = 2;
	pl_rwlock_rdlock(&rwlock);
	pl_rwlock_rdunlock(&rwlock);
	pl_rwlock_wrlock(&rwlock);
	*nr = 3;
	pass_once(&may_pass);
	*nr = 4;
	EXPECT_EQ(-ETIMEDOUT, pl_scope_leave(&s));
}

TEST_F(scope_calls, locks_without_a_deadline_are_waited_for)
{
	static atomic_int nr;
	pl_task_t first, t;

	first = spawn(pass_once, &may_pass);
	/* Else the other task may be the first, and wait for nobody. */
	ASSERT_TRUE(UNTIL(is_in_once));
	t = spawn(take_locks, &nr);
	ASSERT_TRUE(UNTIL(nr == 1));
	ASSERT_TRUE(UNTIL(is_waiting(t)));
	pl_mutex_unlock(&locked);
	ASSERT_TRUE(UNTIL(nr == 2));
	ASSERT_TRUE(UNTIL(is_waiting(t)));
	pl_rwlock_wrunlock(&rwlock);
	ASSERT_TRUE(UNTIL(nr == 3));
	ASSERT_TRUE(UNTIL(is_waiting(t)));
	may_pass = true;
	join(t);
	join(first);
	EXPECT_EQ(4, nr);
}

TEST_HARNESS_MAIN
