/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keys: what a task or thread keeps is its own, and destroyed when it ends.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(key)

static pl_key_t key, other;
static atomic_int nr_destroyed;

static pl_key_t key_new(void (*dtor)(void *value))
{
	pl_key_t k = 0;

	EXPECT_EQ(0, pl_key_create(&k, dtor));
	EXPECT_NE(0, k);
	return k;
}

static void count(void *value)
{
	EXPECT_NE(NULL, value);
	atomic_fetch_add(&nr_destroyed, 1);
}

/* ---- values ---- */

static void keep_own(void *arg)
{
	uintptr_t own = (uintptr_t)&arg;
	uint64_t end = in_ms(5 * 1000);
	int i, nr = *(int *)arg;

	EXPECT_NULL(pl_key_get(key));
	EXPECT_NULL(pl_key_get(other));
	/* Where processors are short a yield of a thread takes milliseconds. */
	for (i = 0; i < nr && pl_now() < end; i++) {
		EXPECT_EQ(0, pl_key_set(key, (void *)(own + i)));
		EXPECT_EQ(0, pl_key_set(other, (void *)(own - i)));
		pl_yield();
		EXPECT_EQ((void *)(own + i), pl_key_get(key));
		EXPECT_EQ((void *)(own - i), pl_key_get(other));
	}
	EXPECT_EQ(0, pl_key_set(other, NULL));
	EXPECT_NULL(pl_key_get(other));
}

TEST_F(key, values_are_private_to_tasks_and_threads)
{
	int nr = scaled(1000), cls;

	key = key_new(count);
	other = key_new(count);
	mixed_run(20, 4, keep_own, &nr);
	EXPECT_TRUE(UNTIL(nr_destroyed == 24));
	for (cls = 0; cls <= PL_STACK_WORKER; cls++)
		run_as(cls, keep_own, &nr);
	EXPECT_EQ(28, nr_destroyed);
}

TEST_F(key, keys_work_before_the_runtime_starts)
{
	int nr = 10;

	key = key_new(count);
	other = key_new(NULL);
	mixed_run(0, 4, keep_own, &nr);
	EXPECT_EQ(4, nr_destroyed);
	keep_own(&nr);
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
}

/* ---- keys ---- */

static void refuse(void *arg)
{
	const pl_key_t bad[] = { 0, *(pl_key_t *)arg, PL_KEYS_MAX | 1ULL << 32,
				 UINT64_MAX, other + (2ULL << 32) };
	size_t i;

	EXPECT_EQ(0, pl_key_set(other, &i));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, pl_key_set(bad[i], &i));
		EXPECT_EQ(-EINVAL, pl_key_set(bad[i], NULL));
		EXPECT_NULL(pl_key_get(bad[i]));
		EXPECT_EQ(-EINVAL, pl_key_delete(bad[i]));
	}
	EXPECT_EQ(&i, pl_key_get(other));
}

TEST_F(key, stale_and_invented_keys_are_refused)
{
	EXPECT_EQ(-EINVAL, pl_key_create(NULL, NULL));
	key = key_new(NULL);
	other = key_new(NULL);
	EXPECT_EQ(0, pl_key_delete(key));
	refuse(&key);
	run_in_task(refuse, &key);
	/* Nor once another has its place. */
	EXPECT_NE(key, key_new(NULL));
	refuse(&key);
	run_in_task(refuse, &key);
}

static void outlive_key(void *arg)
{
	EXPECT_EQ(0, pl_key_set(key, &key));
	EXPECT_EQ(0, pl_key_delete(key));
	EXPECT_NULL(pl_key_get(key));
	key = key_new(count);
	EXPECT_NULL(pl_key_get(key));
}

TEST_F(key, value_of_a_deleted_key_is_not_seen_again)
{
	key = key_new(count);
	run_in_task(outlive_key, NULL);
	run_as(PL_STACK_WORKER, outlive_key, NULL);
	mixed_run(0, 1, outlive_key, NULL);
	EXPECT_EQ(0, nr_destroyed);
}

static void set_all(void *arg)
{
	pl_key_t *keys = arg;
	int i;

	for (i = PL_KEYS_MAX - 1; i >= 0; i -= 5)
		EXPECT_EQ(0, pl_key_set(keys[i], &keys[i]));
	for (i = 0; i < PL_KEYS_MAX; i++)
		if (!pl_key_get(keys[i]))
			EXPECT_EQ(0, pl_key_set(keys[i], &keys[i]));
	for (i = 0; i < PL_KEYS_MAX; i++)
		EXPECT_EQ(&keys[i], pl_key_get(keys[i]));
}

TEST_F(key, keys_beyond_the_maximum_are_refused)
{
	static pl_key_t keys[PL_KEYS_MAX];
	pl_key_t more = 0;
	int i;

	for (i = 0; i < PL_KEYS_MAX; i++)
		keys[i] = key_new(count);
	EXPECT_EQ(-EAGAIN, pl_key_create(&more, NULL));
	EXPECT_EQ(0, more);
	run_as(PL_STACK_SMALL, set_all, keys);
	EXPECT_EQ(PL_KEYS_MAX, nr_destroyed);
	mixed_run(0, 1, set_all, keys);
	EXPECT_EQ(2 * PL_KEYS_MAX, nr_destroyed);
	EXPECT_EQ(0, pl_key_delete(keys[500]));
	EXPECT_EQ(0, pl_key_create(&more, NULL));
	EXPECT_NE(keys[500], more);
}

TEST_F(key, value_without_memory_is_enomem)
{
	key = key_new(count);
	/* A slot it has; what is left to be had is the array. */
	ASSERT_NE(NULL, pl__thread_task());
	if (!take_all_memory())
		SKIP(return, "memory cannot be limited here");
	EXPECT_EQ(-ENOMEM, pl_key_set(key, &key));
	EXPECT_NULL(pl_key_get(key));
	EXPECT_EQ(0, pl_key_set(key, NULL));
	give_memory_back();
	EXPECT_EQ(0, pl_key_set(key, &key));
	EXPECT_EQ(&key, pl_key_get(key));
}

/* ---- destructors ---- */

static pl_task_t its_task;

static void look_around(void *value)
{
	EXPECT_EQ(&its_task, value);
	EXPECT_EQ(its_task, pl_self());
	EXPECT_NULL(pl_key_get(key));
	atomic_fetch_add(&nr_destroyed, 1);
}

static void set_and_end(void *arg)
{
	its_task = pl_self();
	EXPECT_EQ(0, pl_key_set(key, &its_task));
	if (arg)
		pl_exit();
}

TEST_F(key, destructors_run_in_the_task_at_each_kind_of_end)
{
	int cls, how, nr = 0;

	key = key_new(look_around);
	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		for (how = 0; how < 2; how++) {
			run_as(cls, set_and_end, how ? &how : NULL);
			/* Joined: it is done. */
			EXPECT_EQ(++nr, nr_destroyed);
		}
	}
}

static void set_null_again(void *arg)
{
	EXPECT_EQ(0, pl_key_set(key, &key));
	EXPECT_EQ(0, pl_key_set(other, &other));
	EXPECT_EQ(0, pl_key_set(key, NULL));
}

TEST_F(key, null_and_plain_values_are_not_destroyed)
{
	key = key_new(count);
	other = key_new(NULL);
	run_in_task(set_null_again, NULL);
	mixed_run(0, 1, set_null_again, NULL);
	EXPECT_EQ(0, nr_destroyed);
}

static void set_each_other(void *value)
{
	count(value);
	EXPECT_EQ(0, pl_key_set(key, value));
	EXPECT_EQ(0, pl_key_set(other, value));
}

static void set_key(void *arg)
{
	EXPECT_EQ(0, pl_key_set(key, arg ? arg : &key));
}

static void set_once_more(void *value)
{
	count(value);
	if (value == &key)
		EXPECT_EQ(0, pl_key_set(key, &other));
}

TEST_F(key, values_set_by_destructors_are_destroyed_in_rounds)
{
	int cls;

	key = key_new(set_once_more);
	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		nr_destroyed = 0;
		run_as(cls, set_key, NULL);
		EXPECT_EQ(2, nr_destroyed);
	}
	pl_key_delete(key);
	key = key_new(set_each_other);
	other = key_new(set_each_other);
	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		nr_destroyed = 0;
		run_as(cls, set_key, NULL);
		EXPECT_EQ(2 * PL_KEY_ROUNDS, nr_destroyed);
	}
	nr_destroyed = 0;
	mixed_run(0, 1, set_key, NULL);
	EXPECT_EQ(2 * PL_KEY_ROUNDS, nr_destroyed);
}

static void set_more(void *value)
{
	static pl_key_t keys[200];
	int i;

	for (i = 0; i < 200; i++) {
		keys[i] = key_new(count);
		EXPECT_EQ(0, pl_key_set(keys[i], value));
	}
}

TEST_F(key, destructor_may_create_keys_and_set_values)
{
	key = key_new(set_more);
	run_as(PL_STACK_SMALL, set_key, NULL);
	EXPECT_EQ(200, nr_destroyed);
}

static void exit_within(void *value)
{
	if (nr_destroyed < 3 && value)
		set_each_other(value);
	else
		count(value);
	pl_exit();
	EXPECT_EQ(0, pl_self());
}

TEST_F(key, exit_ends_one_destructor_only)
{
	int cls;

	key = key_new(exit_within);
	other = key_new(exit_within);
	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		nr_destroyed = 0;
		run_as(cls, set_key, NULL);
		EXPECT_EQ(5, nr_destroyed);
	}
	nr_destroyed = 0;
	mixed_run(0, 1, set_key, NULL);
	EXPECT_EQ(5, nr_destroyed);
}

/* ---- races ---- */

static _Atomic pl_key_t current;
static atomic_bool is_over;

static void destroy_even(void *value)
{
	EXPECT_EQ(0, (uintptr_t)value & 1);
	atomic_fetch_add(&nr_destroyed, 1);
}

static void destroy_odd(void *value)
{
	EXPECT_EQ(1, (uintptr_t)value & 1);
	atomic_fetch_add(&nr_destroyed, 1);
}

/* Each key of the one index has another destructor than the one before. */
static void change_keys(void *arg)
{
	int nr = *(int *)arg, i;
	pl_key_t k;

	for (i = 0; i < nr || nr_destroyed < nr; i++) {
		k = key_new(i & 1 ? destroy_odd : destroy_even);
		current = k;
		if (i % 4 == 0)
			sched_yield();
		/* Until a task has it, and ends. */
		if (i > nr)
			breathe();
		EXPECT_EQ(0, pl_key_delete(k));
	}
	is_over = true;
}

/* Versions of one index count up by two. */
static void set_current(void *arg)
{
	pl_key_t k = current;
	int ret = k ? pl_key_set(k, (void *)(2 + (k >> 33 & 1))) : 0;

	if (ret)
		EXPECT_EQ(-EINVAL, ret);
}

static void spawn_until_over(void *arg)
{
	while (!is_over)
		run_in_task(set_current, arg);
}

TEST_F(key, keys_come_and_go_while_tasks_end)
{
	static struct mixed m;
	int nr = scaled(2000);

	mixed_start(&m, 3, 1, spawn_until_over, NULL);
	change_keys(&nr);
	mixed_join(&m);
}

TEST_HARNESS_MAIN
