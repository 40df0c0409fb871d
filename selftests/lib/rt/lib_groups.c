/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups of workers: what limits them, what is refused, and the runtime's start
 * and stop.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "dump.h"
#include "group.h"

RT_FIXTURE(groups)

static struct pl_word word;

static void set_word(void *arg)
{
	(void)arg;
	word.value = 1;
	pl_word_wake(&word, 1);
}

/* ---- limits ---- */

static void wait_for_word(void *arg)
{
	(void)arg;
	while (!word.value && pl_word_wait(&word, 0, PL_FOREVER) != -ECANCELED)
		;
}

TEST_F(groups, spawn_beyond_its_max_tasks_is_eagain)
{
	struct pl_group_config cfg = PL_GROUP_CONFIG_INIT;
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t[3];

	start_with(1, 1);
	b = create("b", 1, 1);
	cfg.max_tasks = 2;
	ASSERT_EQ(0, pl_group_create(&a, &cfg));
	opts.group = a;
	EXPECT_EQ(2, pl_spawn_many(t, 3, wait_for_word, NULL, &opts));
	EXPECT_EQ(-EAGAIN, pl_spawn(NULL, count, NULL, &opts));
	EXPECT_LE(1, stat_of(a).spawns_refused);
	/* Others have room. */
	run_in(0, count, NULL);
	run_in(b, count, NULL);
	opts.flags = PL_SPAWN_WAIT;
	opts.deadline_ns = pl_now() + NSEC_PER_MSEC;
	EXPECT_EQ(-ETIMEDOUT, pl_spawn(NULL, count, NULL, &opts));
	EXPECT_EQ(1, (int)stat_of(a).spawns_waited);
	set_word(NULL);
	pl_word_wake(&word, 2);
	opts.deadline_ns = 0;
	EXPECT_EQ(0, pl_spawn(&t[2], count, NULL, &opts));
	EXPECT_EQ(0, pl_join(t[2]));
}

/* What waits for room has to see to it that those before it run. */
TEST_F(groups, thread_that_spawns_more_than_max_tasks_waits)
{
	struct pl_group_config cfg = PL_GROUP_CONFIG_INIT;
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	struct pl_config all = PL_CONFIG_INIT;
	pl_task_t t[10];
	int i, round;

	for (round = 0; round < 2; round++) {
		all.max_tasks = round ? 2 : 0;
		ASSERT_EQ(0, pl_runtime_start(&all));
		cfg.max_tasks = round ? 0 : 2;
		ASSERT_EQ(0, pl_group_create(&opts.group, &cfg));
		opts.flags = PL_SPAWN_WAIT;
		EXPECT_EQ(10, pl_spawn_many(t, 10, count, NULL, &opts));
		for (i = 0; i < 10; i++)
			EXPECT_EQ(0, pl_join(t[i]));
		EXPECT_EQ(0, pl_runtime_stop());
	}
	EXPECT_EQ(20, nr_ran);
}

TEST_F(groups, number_of_workers_may_change)
{
	start_with(1, 1);
	a = create("a", 1, 3);
	EXPECT_EQ(1, (int)stat_of(a).target);
	EXPECT_EQ(0, pl_group_set_workers(a, 3));
	EXPECT_EQ(3, (int)stat_of(a).target);
	EXPECT_EQ(-EINVAL, pl_group_set_workers(a, 4));
	EXPECT_EQ(-EINVAL, pl_group_set_workers(a + 1, 1));
	EXPECT_EQ(1, (int)stat_of(PL_GROUP_DEFAULT).target);
	EXPECT_EQ(0, pl_group_set_workers(PL_GROUP_DEFAULT, 1));
	EXPECT_EQ(-EINVAL, pl_group_set_workers(0, 2));
}

/* ---- bad input ---- */

TEST_F(groups, group_that_does_not_exist_is_einval)
{
	struct pl_group_stat st = PL_GROUP_STAT_INIT;
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	EXPECT_EQ(-ENOENT, pl_group_stat(PL_GROUP_DEFAULT, &st));
	start_with(1, 1);
	opts.group = 2;
	EXPECT_EQ(-EINVAL, pl_spawn(NULL, count, NULL, &opts));
	opts.group = UINT32_MAX;
	EXPECT_EQ(-EINVAL, pl_spawn(NULL, count, NULL, &opts));
	opts.group = 0;
	opts.reserved = 1;
	EXPECT_EQ(-EINVAL, pl_spawn(NULL, count, NULL, &opts));
	EXPECT_EQ(-ENOENT, pl_group_stat(2, &st));
	EXPECT_EQ(0, pl_group_stat(0, &st));
	EXPECT_EQ(-EINVAL, pl_group_stat(1, NULL));
	st.size = 1;
	EXPECT_EQ(-EINVAL, pl_group_stat(1, &st));
	EXPECT_EQ(0, nr_ran);
}

TEST_F(groups, configuration_is_checked)
{
	struct pl_group_config cfg = PL_GROUP_CONFIG_INIT;
	pl_group_t group = 7;
	int i;

	start_with(1, 1);
	EXPECT_EQ(-EINVAL, pl_group_create(NULL, &cfg));
	cfg.nr_workers = 3;
	cfg.max_workers = 2;
	EXPECT_EQ(-EINVAL, pl_group_create(&group, &cfg));
	cfg.nr_workers = 0;
	cfg.max_workers = PL_WORKERS_MAX;
	EXPECT_EQ(-EINVAL, pl_group_create(&group, &cfg));
	cfg.max_workers = 1;
	cfg.reserved = 1;
	EXPECT_EQ(-EINVAL, pl_group_create(&group, &cfg));
	cfg.reserved = 0;
	cfg.size = 3;
	EXPECT_EQ(-EINVAL, pl_group_create(&group, &cfg));
	EXPECT_EQ(7, (int)group);
	cfg.size = sizeof(cfg);
	cfg.nr_workers = PL_WORKERS_MAX;
	cfg.max_workers = 0;
	EXPECT_EQ(-EINVAL, pl_group_create(&group, &cfg));
	cfg.nr_workers = 0;
	cfg.max_workers = 1;
	for (i = 2; i <= (int)PL_GROUPS_MAX; i++) {
		ASSERT_EQ(0, pl_group_create(&group, i % 2 ? NULL : &cfg));
		EXPECT_EQ(i, (int)group);
	}
	EXPECT_EQ(-ENOSPC, pl_group_create(&group, &cfg));
	run_in(group, note_group, &a);
	EXPECT_EQ(PL_GROUPS_MAX, a);
}

/* ---- the runtime ---- */

TEST_F(groups, dump_names_the_group)
{
	pl_task_t t[2];

	NEEDS_DUMP();
	a = create("a \033", 1, 1);
	b = create(NULL, 1, 1);
	t[0] = spawn_flagged(a, PL_SPAWN_BACKGROUND, sleep_long, NULL);
	t[1] = spawn_in(b, sleep_long, NULL);
	EXPECT_NE(NULL, dumped());
	EXPECT_SAYS("of a group", "group 2 a ?, background");
	EXPECT_SAYS("of a group", "group 3");
	cancel_and_join(t, 2);
}

static atomic_int nr_hooks, nr_hooks_in_others;

static void note_hook(void *arg)
{
	(void)arg;
	nr_hooks++;
	nr_hooks_in_others += pl_group_self() == PL_GROUP_DEFAULT + 1;
}

TEST_F(groups, start_hook_knows_its_group)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.worker_start = note_hook;
	cfg.nr_workers = cfg.max_workers = 1;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	a = create("a", 1, 1);
	run_in(0, count, NULL);
	EXPECT_LE(1, nr_hooks);
	EXPECT_EQ(0, nr_hooks_in_others);
	run_in(a, count, NULL);
	EXPECT_EQ(1, nr_hooks_in_others);
}

static void sleep_until_cancelled(void *arg)
{
	(void)arg;
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
}

TEST_F(groups, stop_ends_tasks_of_all_groups_and_the_groups)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	int i;

	for (i = 0; i < 2; i++) {
		start_alone();
		spawn_in(a, sleep_until_cancelled, NULL);
		spawn_in(b, sleep_until_cancelled, NULL);
		spawn_in(0, sleep_until_cancelled, NULL);
		EXPECT_EQ(0, pl_runtime_stop());
	}
	start_with(1, 1);
	opts.group = a;
	EXPECT_EQ(-EINVAL, pl_spawn(NULL, count, NULL, &opts));
}

TEST_HARNESS_MAIN
