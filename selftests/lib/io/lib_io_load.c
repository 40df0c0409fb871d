/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I/O in a crowd: more requests than a ring has entries, and completions on
 * several workers.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "io.h"

#include <poll.h>

RT_IO_FIXTURE(crowd)
FIXTURE_VARIANT_ADD(crowd, park) { .wait = "park" };

/* More than a ring has entries, submitted in one go. */
#define NR_LOOKERS	(RT_TSAN ? 600 : 3000)

static void look(void *arg)
{
	int i;

	for (i = 0; i < 3; i++)
		EXPECT_EQ(POLLOUT, pl_poll(*(int *)arg, POLLOUT, PL_FOREVER));
}

static void spawn_lookers(void *arg)
{
	static pl_task_t t[3000];
	static void *args[3000];
	int i;

	for (i = 0; i < NR_LOOKERS; i++)
		args[i] = arg;
	EXPECT_EQ(NR_LOOKERS, pl_spawn_many(t, NR_LOOKERS, look, args, NULL));
	for (i = 0; i < NR_LOOKERS; i++)
		join(t[i]);
}

TEST_F(crowd, more_requests_than_ring_entries_complete)
{
	uint64_t nr = rt_stat().io_completed;
	int fd[2];

	start_with(1, 1);
	make_pair(fd);
	run_in_task(spawn_lookers, &fd[0]);
	EXPECT_EQ(nr + 3 * NR_LOOKERS, rt_stat().io_completed);
	close(fd[0]);
	close(fd[1]);
}

/* ---- several at once ---- */

struct meeting {
	int		fd[2];
	atomic_bool	is_held, may_go;
	atomic_int	nr_there;
};

/* The first task keeps its worker until the second is there, too. */
static void meet(void *arg)
{
	struct meeting *m = arg;

	EXPECT_EQ(POLLIN, pl_poll(m->fd[0], POLLIN, PL_FOREVER));
	atomic_fetch_add(&m->nr_there, 1);
	EXPECT_TRUE(UNTIL_BUSY(m->nr_there == 2));
}

static void hold(void *arg)
{
	struct meeting *m = arg;

	m->is_held = true;
	EXPECT_TRUE(UNTIL_BUSY(m->may_go));
}

/*
 * The one worker that there was has two to run at once when it looks.  One that
 * got no processor for long may have been taken for blocked, so that there are
 * two, one of them surplus.
 */
TEST_F(crowd, immediate_completions_run_on_all_workers)
{
	struct meeting m = { 0 };
	pl_task_t t[3];

	make_pair(m.fd);
	start_with(1, 0);
	t[0] = spawn(meet, &m);
	t[1] = spawn(meet, &m);
	ASSERT_TRUE(UNTIL(rt_stat().io_in_flight == 2 && is_all_parked()));
	t[2] = spawn(hold, &m);
	ASSERT_TRUE(UNTIL(m.is_held));
	ASSERT_EQ(1, write(m.fd[1], "", 1));
	EXPECT_EQ(0, pl_runtime_set_workers(2));
	m.may_go = true;
	join(t[0]);
	join(t[1]);
	join(t[2]);
	close(m.fd[0]);
	close(m.fd[1]);
}

TEST_HARNESS_MAIN
