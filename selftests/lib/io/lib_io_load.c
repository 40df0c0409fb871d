/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I/O in a crowd: many connections at a time, more requests than a ring has
 * entries, and completions on busy workers and on several.
 */
#define SIM_SHORT_READS
#include "kselftest_harness.h"

#include "rt.h"
#include "io.h"

#include <poll.h>
#include <sys/resource.h>

FIXTURE(crowd) { char unused; };
RT_IO_VARIANTS(crowd)
FIXTURE_VARIANT_ADD(crowd, park) { .wait = "park" };

FIXTURE_SETUP(crowd)
{
	struct rlimit limit = { 4096, 4096 };

	rt_begin_io(_metadata, variant->io, variant->wait);
	setrlimit(RLIMIT_NOFILE, &limit);
}

FIXTURE_TEARDOWN(crowd)
{
	rt_end();
}

/* ---- echo ---- */

#define MESSAGE		64

struct echo {
	int		fd[2];
	int		nr_rounds;
	uint64_t	seed;
};

static bool move_all(int fd, char *buf, size_t size, bool is_read)
{
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = is_read ? pl_read(fd, buf + done, size - done) :
			      pl_write(fd, buf + done, size - done);
		if (n <= 0) {
			EXPECT_EQ(0, n);
			return false;
		}
		done += (size_t)n;
	}
	return true;
}

static void serve(void *arg)
{
	struct echo *e = arg;
	char buf[256];
	ssize_t n;

	while ((n = pl_recv(e->fd[0], buf, sizeof(buf), 0)) > 0)
		ASSERT_TRUE(move_all(e->fd[0], buf, (size_t)n, false));
	EXPECT_EQ(0, n);
	EXPECT_EQ(0, pl_close(e->fd[0]));
}

static void ask(void *arg)
{
	struct echo *e = arg;
	char out[MESSAGE], in[MESSAGE];
	int i, k;

	for (i = 0; i < e->nr_rounds; i++) {
		for (k = 0; k < MESSAGE; k++)
			out[k] = (char)next_random(&e->seed);
		ASSERT_TRUE(move_all(e->fd[1], out, MESSAGE, false));
		ASSERT_TRUE(move_all(e->fd[1], in, MESSAGE, true));
		ASSERT_EQ(0, memcmp(in, out, MESSAGE));
	}
	EXPECT_EQ(0, pl_close(e->fd[1]));
}

static void *ask_in_thread(void *arg)
{
	ask(arg);
	return NULL;
}

TEST_F(crowd, threads_and_worker_stack_tasks_get_their_own_data)
{
	static struct echo e[12];
	pthread_t thread[4];
	pl_task_t t[24];
	int i;

	for (i = 0; i < 12; i++) {
		make_pair(e[i].fd);
		e[i].seed = i + 1;
		e[i].nr_rounds = scaled(50);
		t[i] = spawn_as(i % 4, serve, &e[i]);
		if (i < 4)
			ASSERT_EQ(0, pthread_create(&thread[i], NULL,
						    ask_in_thread, &e[i]));
		else
			t[12 + i] = spawn_as((i + 1) % 4, ask, &e[i]);
	}
	for (i = 0; i < 12; i++) {
		if (i < 4)
			pthread_join(thread[i], NULL);
		else
			join(t[12 + i]);
		join(t[i]);
	}
}

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

/* ---- on a busy worker ---- */

static atomic_int nr_begun;

static void read_one(void *arg)
{
	char c;

	atomic_fetch_add(&nr_begun, 1);
	EXPECT_EQ(1, pl_read(*(int *)arg, &c, 1));
}

/* A task that computes leaves what its worker's ring completed to come. */
static atomic_int is_over;

static void yield_on(void *arg)
{
	(void)arg;
	while (!is_over)
		pl_yield();
}

TEST_F(crowd, completions_come_while_tasks_keep_the_worker_busy)
{
	pl_task_t t, busy[2];
	int i, fd[2];

	start_with(1, 1);
	make_pair(fd);
	busy[0] = spawn(yield_on, NULL);
	busy[1] = spawn(yield_on, NULL);
	for (i = 0; i < 100; i++) {
		t = spawn(read_one, &fd[0]);
		ASSERT_TRUE(UNTIL(nr_begun == i + 1));
		EXPECT_EQ(1, write(fd[1], "x", 1));
		ASSERT_EQ(0, pl_join_until(t, pl_now() + stuck_ns()));
	}
	is_over = 1;
	join(busy[0]);
	join(busy[1]);
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
