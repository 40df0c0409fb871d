/* SPDX-License-Identifier: GPL-2.0-only */
/* Groups a and b, and tasks in them; included after rt.h. */
#ifndef SELFTESTS_GROUP_H
#define SELFTESTS_GROUP_H

static pl_group_t __attribute__((unused)) a, b;

static inline pl_group_t create(const char *name, uint32_t nr, uint32_t max)
{
	struct pl_group_config cfg = PL_GROUP_CONFIG_INIT;
	pl_group_t group = 0;

	cfg.name = name;
	cfg.nr_workers = nr;
	cfg.max_workers = max;
	EXPECT_EQ(0, pl_group_create(&group, &cfg));
	return group;
}

/* One worker each, and no more, so that nobody else runs what they leave. */
static inline void start_alone(void)
{
	start_with(1, 1);
	a = create("a", 1, 1);
	b = create("b", 1, 1);
}

static inline struct pl_group_stat stat_of(pl_group_t group)
{
	struct pl_group_stat st = PL_GROUP_STAT_INIT;

	EXPECT_EQ(0, pl_group_stat(group, &st));
	return st;
}

static inline pl_task_t spawn_flagged(pl_group_t group, uint32_t flags,
			       void (*fn)(void *arg), void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t = 0;

	opts.group = group;
	opts.flags = flags;
	opts.name = "of a group";
	EXPECT_EQ(0, pl_spawn(&t, fn, arg, &opts));
	return t;
}

static inline pl_task_t spawn_in(pl_group_t group, void (*fn)(void *arg),
				 void *arg)
{
	return spawn_flagged(group, 0, fn, arg);
}

static inline void run_in(pl_group_t group, void (*fn)(void *arg), void *arg)
{
	EXPECT_EQ(0, pl_join(spawn_in(group, fn, arg)));
}

static inline void note_group(void *arg)
{
	*(pl_group_t *)arg = pl_group_self();
}

#endif /* SELFTESTS_GROUP_H */
