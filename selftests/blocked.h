/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that block their workers in read(), and tasks of nothing.  rt.h is
 * included before this.
 */
#ifndef SELFTESTS_BLOCKED_H
#define SELFTESTS_BLOCKED_H

#include <fcntl.h>

#define BLOCKED_FIXTURE(name) \
	FIXTURE(name) { char unused; }; \
	FIXTURE_SETUP(name) \
	{ \
		rt_begin(_metadata); \
		if (!rt_is_watched()) \
			SKIP(return, "PARKLOT_WATCH=0"); \
	} \
	FIXTURE_TEARDOWN(name) { rt_end(); }

static atomic_int nr_ran, nr_begun;

static inline void count(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nr_ran, 1);
}

static inline void spawn_tiny(int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, pl_spawn(NULL, count, NULL, NULL));
}

static inline pl_task_t spawn_named(const char *name, void (*fn)(void *arg),
				    void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t = 0;

	opts.name = name;
	ASSERT_EQ(0, pl_spawn(&t, fn, arg, &opts));
	return t;
}

/* ---- tasks that wait for a byte ---- */

#define NR_PIPES	4

static int pipes[NR_PIPES][2];
static pl_task_t readers[NR_PIPES];

static inline void read_byte(void *arg)
{
	const int *fd = arg;
	char c;

	atomic_fetch_add(&nr_begun, 1);
	EXPECT_EQ(1, read(fd[0], &c, 1));
}

static inline void let_reader_go(int i)
{
	EXPECT_EQ(1, write(pipes[i][1], "x", 1));
	join(readers[i]);
}

static inline void block_in_read(int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		if (!pipes[i][1])
			ASSERT_EQ(0, pipe2(pipes[i], O_CLOEXEC));
		readers[i] = spawn_named("reader", read_byte, pipes[i]);
	}
}

#endif /* SELFTESTS_BLOCKED_H */
