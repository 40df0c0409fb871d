/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scopes: children end before their scope does, with results; failures,
 * deadlines and cancels reach all that is in the scope, and nothing else.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(scope)

/* As the owner: a task of each class of stack, and a thread. */
static void by_each_owner(void (*fn)(void *arg), void *arg)
{
	uint32_t cls;

	for (cls = 0; cls <= PL_STACK_WORKER; cls++)
		run_as(cls, fn, arg);
	fn(arg);
}

/* ---- results ---- */

static intptr_t twice(void *arg)
{
	pl_yield();
	return (intptr_t)arg * 2;
}

static void fetch_results(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct pl_child c[10];
	intptr_t i;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	for (i = 0; i < 10; i++)
		EXPECT_EQ(0, pl_scope_spawn(&s, &c[i], twice, (void *)i,
					    NULL));
	EXPECT_EQ(0, pl_join(c[3].task));
	EXPECT_EQ(6, c[3].result);
	EXPECT_EQ(0, pl_scope_leave(&s));
	for (i = 0; i < 10; i++)
		EXPECT_EQ(2 * i, c[i].result);
}

TEST_F(scope, results_are_there_after_join_or_leave)
{
	by_each_owner(fetch_results, NULL);
}

static intptr_t lowest(void *arg)
{
	return (intptr_t)arg;
}

static void return_no_error(void *arg)
{
	static const intptr_t value[] = { PL_ERROR_MIN - 1, INTPTR_MIN, 0,
					  INTPTR_MAX };
	struct pl_scope s = PL_SCOPE_INIT;
	struct pl_child c[ARRAY_SIZE(value)];
	size_t i;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	for (i = 0; i < ARRAY_SIZE(value); i++)
		EXPECT_EQ(0, pl_scope_spawn(&s, &c[i], lowest,
					    (void *)value[i], NULL));
	EXPECT_EQ(0, pl_scope_leave(&s));
	for (i = 0; i < ARRAY_SIZE(value); i++)
		EXPECT_EQ(value[i], c[i].result);
	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&s, NULL, lowest, (void *)PL_ERROR_MIN,
				    NULL));
	EXPECT_EQ(PL_ERROR_MIN, pl_scope_leave(&s));
}

TEST_F(scope, value_that_is_no_error_is_no_failure)
{
	by_each_owner(return_no_error, NULL);
}

static intptr_t add_and_exit(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
	pl_exit();
	return -EIO;
}

static void exit_in_child(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct pl_child c;
	atomic_int nr = 0;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&s, &c, add_and_exit, &nr, NULL));
	EXPECT_EQ(0, pl_scope_spawn(&s, NULL, add_and_exit, &nr, NULL));
	EXPECT_EQ(0, pl_scope_leave(&s));
	EXPECT_EQ(2, nr);
	EXPECT_EQ(0, c.result);
}

TEST_F(scope, child_that_exits_has_result_0)
{
	by_each_owner(exit_in_child, NULL);
}

static atomic_int nr_destroyed;

static void destroy_late(void *value)
{
	EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	atomic_fetch_add((atomic_int *)value, 1);
}

static intptr_t set_key(void *arg)
{
	pl_key_set(*(pl_key_t *)arg, &nr_destroyed);
	return 0;
}

TEST_F(scope, leave_waits_for_destructors)
{
	struct pl_scope s = PL_SCOPE_INIT;
	pl_key_t key;

	EXPECT_EQ(0, pl_key_create(&key, destroy_late));
	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&s, NULL, set_key, &key, NULL));
	EXPECT_EQ(0, pl_scope_leave(&s));
	EXPECT_EQ(1, nr_destroyed);
	EXPECT_EQ(0, pl_key_delete(key));
}

/* ---- failures ---- */

static intptr_t fail(void *arg)
{
	pl_yield();
	return (intptr_t)arg;
}

static intptr_t sleep_on(void *arg)
{
	int ret = pl_sleep_until(PL_FOREVER);

	EXPECT_EQ(-ECANCELED, ret);
	EXPECT_TRUE(pl_cancelled());
	return ret;
}

static void fail_among_many(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct pl_child c[10];
	int i;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_error(&s));
	for (i = 0; i < 9; i++)
		EXPECT_EQ(0, pl_scope_spawn(&s, &c[i], sleep_on, NULL, NULL));
	EXPECT_FALSE(pl_cancelled());
	EXPECT_EQ(0, pl_scope_spawn(&s, &c[9], fail, (void *)-EIO, NULL));
	/* The owner's blocking calls are in the scope as well. */
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	EXPECT_TRUE(pl_cancelled());
	EXPECT_EQ(-EIO, pl_scope_error(&s));
	EXPECT_EQ(-ECANCELED, pl_scope_spawn(&s, NULL, fail, NULL, NULL));
	EXPECT_EQ(-EIO, pl_scope_leave(&s));
	for (i = 0; i < 9; i++)
		EXPECT_EQ(-ECANCELED, c[i].result);
	EXPECT_EQ(-EIO, c[9].result);
	/* Outside of it they are not. */
	EXPECT_FALSE(pl_cancelled());
	EXPECT_EQ(0, pl_sleep(1));
}

TEST_F(scope, first_failure_cancels_the_rest)
{
	by_each_owner(fail_among_many, NULL);
}

/* ---- deadlines ---- */

static void time_out(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;
	uint64_t deadline = in_ms(5);
	struct pl_child c = { .result = -ECANCELED };
	int ret;

	EXPECT_EQ(0, pl_scope_enter(&s, deadline, 0));
	ret = pl_scope_spawn(&s, &c, sleep_on, NULL, NULL);
	EXPECT_TRUE(!ret || (ret == -ECANCELED && pl_now() >= deadline));
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	EXPECT_LE(deadline, pl_now());
	EXPECT_EQ(-ETIMEDOUT, pl_scope_error(&s));
	EXPECT_EQ(-ETIMEDOUT, pl_scope_leave(&s));
	EXPECT_EQ(-ECANCELED, c.result);
	EXPECT_EQ(0, pl_sleep(1));
}

TEST_F(scope, deadline_bounds_all_calls_in_it)
{
	by_each_owner(time_out, NULL);
}

static void enter_late(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct pl_sem sem = PL_SEM_INIT(1);

	EXPECT_EQ(0, pl_scope_enter(&s, 1, 0));
	EXPECT_EQ(-ECANCELED, pl_scope_spawn(&s, NULL, fail, NULL, NULL));
	EXPECT_EQ(0, pl_sem_trywait(&sem));
	EXPECT_EQ(-ECANCELED, pl_sem_wait(&sem));
	EXPECT_EQ(-ETIMEDOUT, pl_scope_leave(&s));
}

TEST_F(scope, deadline_in_the_past_cancels_at_once)
{
	by_each_owner(enter_late, NULL);
}

/* The timer fires just as the scope is left, and its frame reused. */
static void leave_at_the_deadline(void *arg)
{
	struct pl_scope s;
	int ret, i, nr = scaled(4000);

	for (i = 0; i < nr; i++) {
		memset(&s, 0, sizeof(s));
		EXPECT_EQ(0, pl_scope_enter(&s, pl_now() + i % 200 * 1000, 0));
		pl_scope_spawn(&s, NULL, twice, NULL, NULL);
		if (i % 3)
			spin_ns((uint64_t)(i % 150 * 1000));
		ret = pl_scope_leave(&s);
		EXPECT_TRUE(!ret || ret == -ETIMEDOUT);
		memset(&s, 0xff, sizeof(s));
	}
}

TEST_F(scope, leave_races_with_the_deadline)
{
	mixed_run(2, 1, leave_at_the_deadline, NULL);
}

/*
 * ---- children of children ----
 *
 * In a tree each node is a task with a scope of its own, each leaf one that
 * sleeps until it is cancelled.
 */

struct tree {
	int		depth, width;
	bool		is_stopped;	/* by the runtime, not by a cancel */
	atomic_int	nr, nr_asleep, nr_inside;
};

struct node {
	struct tree	*tree;
	int		depth;
};

static intptr_t tree_leaf(struct tree *t)
{
	int ret;

	atomic_fetch_add(&t->nr_asleep, 1);
	ret = pl_sleep_until(PL_FOREVER);
	EXPECT_EQ(-ECANCELED, ret);
	return ret;
}

static intptr_t tree_grow(void *arg);

static void tree_branch(struct tree *t, int depth)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct node n = { t, depth - 1 };
	int i, ret;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	for (i = 0; i < t->width; i++) {
		ret = pl_scope_spawn(&s, NULL, tree_grow, &n, NULL);
		EXPECT_EQ(0, ret);
	}
	ret = pl_scope_leave(&s);
	EXPECT_TRUE(ret == -ECANCELED || (t->is_stopped && !ret));
}

static intptr_t tree_grow(void *arg)
{
	struct node *n = arg;
	struct tree *t = n->tree;
	int ret = 0;

	atomic_fetch_add(&t->nr_inside, 1);
	atomic_fetch_add(&t->nr, 1);
	if (n->depth)
		tree_branch(t, n->depth);
	else
		ret = (int)tree_leaf(t);
	atomic_fetch_sub(&t->nr_inside, 1);
	return ret;
}

/* The root; @arg is the tree. */
static intptr_t tree_node(void *arg)
{
	struct tree *t = arg;
	struct node n = { t, t->depth };

	return tree_grow(&n);
}

struct siblings {
	struct pl_scope	*scope;
	atomic_int	nr;
};

static intptr_t spawn_siblings(void *arg)
{
	struct siblings *all = arg;
	intptr_t n = atomic_fetch_add(&all->nr, 1);
	int i;

	for (i = 0; n < 100 && i < 2; i++)
		EXPECT_EQ(0, pl_scope_spawn(all->scope, NULL, spawn_siblings,
					    all, NULL));
	return n;
}

static void spawn_within(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct siblings all = { &s, 0 };

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&s, NULL, spawn_siblings, &all, NULL));
	EXPECT_EQ(0, pl_scope_leave(&s));
	EXPECT_EQ(201, all.nr);
}

TEST_F(scope, child_spawns_into_its_scope)
{
	by_each_owner(spawn_within, NULL);
}

static void nest(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct tree t = { .depth = 4, .width = 3 };

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&s, NULL, tree_node, &t, NULL));
	/* 1 + 3 + 9 + 27 nodes with scopes, and 81 leaves. */
	/* With one worker they run while this waits as a task. */
	EXPECT_TRUE(UNTIL(!pl_sleep(1000) && t.nr_asleep == 81));
	EXPECT_EQ(0, pl_scope_cancel(&s, -EPIPE));
	EXPECT_EQ(-EPIPE, pl_scope_leave(&s));
	EXPECT_EQ(0, t.nr_inside);
	EXPECT_EQ(121, t.nr);
}

TEST_F(scope, cancel_reaches_all_below)
{
	by_each_owner(nest, NULL);
}

static void nest_in_one(void *arg)
{
	struct pl_scope outer = PL_SCOPE_INIT, inner = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&outer, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_enter(&inner, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&inner, NULL, sleep_on, NULL, NULL));
	EXPECT_EQ(0, pl_scope_spawn(&outer, NULL, fail, (void *)-EIO, NULL));
	EXPECT_EQ(-ECANCELED, pl_scope_leave(&inner));
	/* Still in the one that failed. */
	EXPECT_TRUE(pl_cancelled());
	EXPECT_EQ(0, pl_scope_enter(&inner, PL_FOREVER, 0));
	EXPECT_EQ(-ECANCELED, pl_scope_error(&inner));
	EXPECT_EQ(-ECANCELED, pl_scope_leave(&inner));
	EXPECT_EQ(-EIO, pl_scope_leave(&outer));
	EXPECT_FALSE(pl_cancelled());
}

TEST_F(scope, failure_in_the_outer_one_cancels_the_inner)
{
	by_each_owner(nest_in_one, NULL);
}

static void fail_inside(void *arg)
{
	struct pl_scope outer = PL_SCOPE_INIT, inner = PL_SCOPE_INIT;
	struct pl_child c;

	EXPECT_EQ(0, pl_scope_enter(&outer, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&outer, &c, twice, (void *)4, NULL));
	EXPECT_EQ(0, pl_scope_enter(&inner, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&inner, NULL, fail, (void *)-EIO, NULL));
	EXPECT_EQ(-EIO, pl_scope_leave(&inner));
	EXPECT_FALSE(pl_cancelled());
	EXPECT_EQ(0, pl_sleep(1));
	EXPECT_EQ(0, pl_scope_leave(&outer));
	EXPECT_EQ(8, c.result);
}

TEST_F(scope, failure_in_the_inner_one_stays_there)
{
	by_each_owner(fail_inside, NULL);
}

/* ---- cancelled from outside ---- */

static atomic_int left_with;

static void own_tree(void *arg)
{
	struct tree *t = arg;
	struct pl_scope s = PL_SCOPE_INIT;
	int ret;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	ret = pl_scope_spawn(&s, NULL, tree_node, t, NULL);
	EXPECT_EQ(0, ret);
	left_with = pl_scope_leave(&s);
	EXPECT_TRUE(pl_cancelled());
	EXPECT_EQ(-ECANCELED, pl_sleep(1));
}

TEST_F(scope, cancel_of_the_owner_reaches_all_below)
{
	struct tree t = { .depth = 3, .width = 3 };
	pl_task_t owner = spawn(own_tree, &t);

	EXPECT_TRUE(UNTIL(t.nr_asleep == 27));
	EXPECT_EQ(0, pl_cancel(owner));
	join(owner);
	EXPECT_EQ(-ECANCELED, left_with);
	EXPECT_EQ(0, t.nr_inside);
}

TEST_F(scope, stop_of_the_runtime_ends_scopes)
{
	struct tree t = { .depth = 3, .width = 3, .is_stopped = true };

	spawn(own_tree, &t);
	EXPECT_TRUE(UNTIL(t.nr_asleep == 27));
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(0, t.nr_inside);
}

static void interrupted_leave(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&s, NULL, twice, NULL, NULL));
	EXPECT_EQ(0, pl_interrupt(pl_self()));
	EXPECT_EQ(0, pl_scope_leave(&s));
	EXPECT_EQ(-EINTR, pl_sleep(1));
}

TEST_F(scope, interrupt_stays_for_the_call_after)
{
	run_in_task(interrupted_leave, NULL);
}

TEST_HARNESS_MAIN
