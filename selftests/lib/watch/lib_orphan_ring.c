/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I/O that a worker has in flight when a task of its holds it up.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"
#include "run/run.h"

#include <sys/socket.h>

FIXTURE(orphan_ring) { char unused; };
RT_IO_VARIANTS(orphan_ring)

FIXTURE_SETUP(orphan_ring)
{
	rt_begin_io(_metadata, variant->io, variant->wait);
	if (!rt_has_sysmon())
		SKIP(return, "PARKLOT_WATCH=0");
}

FIXTURE_TEARDOWN(orphan_ring)
{
	rt_end();
}

/* ---- tasks that wait for a byte, as tasks should ---- */

#define NR_PAIRS	16

struct pair {
	int		fd[2];
	pl_task_t	t;
	uint64_t	deadline_ns;
	ssize_t		ret;
};

static struct pair pairs[NR_PAIRS];
static atomic_int nr_waiting, nr_read;

static void wait_for_byte(void *arg)
{
	struct pair *p = arg;
	char c = 0;

	atomic_fetch_add(&nr_waiting, 1);
	p->ret = pl_read_until(p->fd[0], &c, 1, p->deadline_ns);
	if (p->ret == 1)
		EXPECT_EQ('x', c);
	atomic_fetch_add(&nr_read, 1);
}

static void open_pair(struct pair *p, uint64_t deadline_ns)
{
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, p->fd));
	p->deadline_ns = deadline_ns;
}

static void spawn_waiting(int nr, uint64_t deadline_ns)
{
	int i;

	for (i = 0; i < nr; i++) {
		open_pair(&pairs[i], deadline_ns);
		pairs[i].t = spawn(wait_for_byte, &pairs[i]);
	}
}

static void start_waiting(int nr, uint64_t deadline_ns)
{
	spawn_waiting(nr, deadline_ns);
	ASSERT_TRUE(UNTIL(nr_waiting == nr));
}

static void write_to(int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		EXPECT_EQ(1, write(pairs[i].fd[1], "x", 1));
}

/* One at a time: each makes the ring ready again. */
static void write_in_turn(void)
{
	int i;

	for (i = 0; i < NR_PAIRS; i++) {
		EXPECT_EQ(1, write(pairs[i].fd[1], "x", 1));
		ASSERT_TRUE(UNTIL(nr_read == i + 1));
	}
}

static void join_waiting(int nr, ssize_t ret)
{
	int i;

	for (i = 0; i < nr; i++) {
		join(pairs[i].t);
		EXPECT_EQ(ret, pairs[i].ret);
	}
}

/* ---- what holds the worker up ---- */

/* The requests were submitted when this returns, as their worker sleeps. */
static void park_worker(void)
{
	ASSERT_TRUE(UNTIL(is_all_parked()));
}

static void hold_up_in_read(void)
{
	block_in_read(1);
	ASSERT_TRUE(UNTIL(nr_begun == 1));
}

static void hold_up_with_io(void)
{
	start_with(1, 0);
	start_waiting(NR_PAIRS, PL_FOREVER);
	park_worker();
	hold_up_in_read();
}

TEST_F(orphan_ring, io_completes_at_any_moment_of_the_block)
{
	hold_up_with_io();
	write_in_turn();
	join_waiting(NR_PAIRS, 1);
	let_reader_go(0);
}

/* Without one sysmon looks every few milliseconds. */
TEST_F(orphan_ring, io_completes_without_a_free_descriptor)
{
	struct rlimit old, none;

	start_with(1, 0);
	ASSERT_EQ(0, pipe2(pipes[0], O_CLOEXEC));
	start_waiting(NR_PAIRS, PL_FOREVER);
	park_worker();
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &old));
	none = old;
	none.rlim_cur = 0;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	hold_up_in_read();
	write_in_turn();
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &old));
	join_waiting(NR_PAIRS, 1);
	let_reader_go(0);
}

static void wait_and_block(void *arg)
{
	spawn_waiting(NR_PAIRS, PL_FOREVER);
	pl_yield();
	/* On a slow machine another worker may have taken some. */
	EXPECT_TRUE(UNTIL_BUSY(nr_waiting == NR_PAIRS));
	read_byte(pipes[0]);
}

/* Their requests are not submitted to the kernel yet. */
TEST_F(orphan_ring, io_is_submitted_though_its_worker_is_in_read)
{
	start_with(1, 0);
	ASSERT_EQ(0, pipe2(pipes[0], O_CLOEXEC));
	readers[0] = spawn(wait_and_block, NULL);
	ASSERT_TRUE(UNTIL(nr_begun == 1));
	write_to(NR_PAIRS);
	join_waiting(NR_PAIRS, 1);
	let_reader_go(0);
}

static void wait_and_read(void *arg)
{
	wait_for_byte(arg);
	read_byte(pipes[0]);
}

/* The worker's own ring wakes it: no thread has queued a task. */
TEST_F(orphan_ring, io_completes_though_sysmon_slept_when_its_worker_went_on)
{
	start_with(1, 0);
	ASSERT_EQ(0, pipe2(pipes[0], O_CLOEXEC));
	start_waiting(1, PL_FOREVER);
	open_pair(&pairs[1], PL_FOREVER);
	readers[0] = spawn(wait_and_read, &pairs[1]);
	ASSERT_TRUE(UNTIL(nr_waiting == 2));
	park_worker();
	ASSERT_TRUE(UNTIL(is_sysmon_asleep()));
	EXPECT_EQ(1, write(pairs[1].fd[1], "x", 1));
	ASSERT_TRUE(UNTIL(nr_begun == 1));
	EXPECT_EQ(1, write(pairs[0].fd[1], "x", 1));
	join_waiting(1, 1);
	let_reader_go(0);
}

static struct pl_sem sem;

static void sleep_and_read(void *arg)
{
	atomic_fetch_add(&nr_waiting, 1);
	pl_sem_wait(&sem);
	read_byte(arg);
}

/* Its worker is a spare meanwhile, and sleeps on its own stack. */
static void sleep_as_spare(void *arg)
{
	pl_blocking(sleep_and_read, arg);
}

TEST_F(orphan_ring, io_completes_though_its_worker_slept_as_a_spare)
{
	start_with(1, 0);
	ASSERT_EQ(0, pipe2(pipes[0], O_CLOEXEC));
	start_waiting(1, PL_FOREVER);
	park_worker();
	readers[0] = spawn_as(PL_STACK_WORKER, sleep_as_spare, pipes[0]);
	ASSERT_TRUE(UNTIL(nr_waiting == 2));
	ASSERT_TRUE(UNTIL(is_sysmon_asleep()));
	pl_sem_post(&sem, 1);
	ASSERT_TRUE(UNTIL(nr_begun == 1));
	write_to(1);
	join_waiting(1, 1);
	let_reader_go(0);
}

TEST_F(orphan_ring, io_of_a_stalled_worker_is_completed_by_another)
{
	pl_task_t t;

	start_with(1, 2);
	start_waiting(NR_PAIRS, PL_FOREVER);
	park_worker();
	t = spawn(compute_until_may_go, NULL);
	ASSERT_TRUE(UNTIL(nr_begun == 1));
	EXPECT_EQ(0, pl_runtime_set_workers(2));
	write_to(NR_PAIRS);
	join_waiting(NR_PAIRS, 1);
	may_go = 1;
	join(t);
}

/* Without sysmon, which would take the ring for owned at its next look. */
TEST_F(orphan_ring, worker_with_a_ready_ring_parks)
{
	uint64_t nr_parks;
	pl_task_t t;

	setenv("PARKLOT_WATCH", "0", 1);
	start_with(1, 0);
	start_waiting(1, PL_FOREVER);
	park_worker();
	t = spawn(compute_until_may_go, NULL);
	ASSERT_TRUE(UNTIL(nr_begun == 1));
	nr_parks = rt_stat().parks;
	atomic_store(&pl__rt.main.workers[0]->ring_state, PL__ORPHAN_READY);
	may_go = 1;
	join(t);
	EXPECT_TRUE(UNTIL(rt_stat().parks > nr_parks));
	write_to(1);
	join_waiting(1, 1);
}

/* Sysmon writes it meanwhile. */
__attribute__((noinline, no_sanitize_thread))
static uint64_t ring_ready_ns(struct pl__worker *w)
{
	return *(volatile uint64_t *)&w->sysmon.ready_ns;
}

/* As one that gets no processor while it polls its ring. */
static void hold_ring(void *arg)
{
	struct pl__worker *w = pl__self();
	uint64_t last = ring_ready_ns(w), ns = last;
	int i;

	/* The owner may have been stalled, so that a relief has come to it. */
	if (!w->ring || !pl__ring_is_busy(w->ring))
		return;
	pl__lock(&w->ring->lock);
	for (i = 0; i < 5; i++) {
		EXPECT_TRUE(UNTIL_BUSY((ns = ring_ready_ns(w)) != last));
		EXPECT_LE(last + PL__STALLED_NS, ns);
		last = ns;
	}
	pl__unlock(&w->ring->lock);
}

/* A thief finds it locked, and sysmon makes it ready again, not at once. */
TEST_F(orphan_ring, ring_of_an_owner_that_holds_its_lock_is_seldom_ready)
{
	start_with(1, 3);
	start_waiting(1, PL_FOREVER);
	run_in_task(hold_ring, NULL);
	write_to(1);
	join_waiting(1, 1);
}

/* ---- an idle worker that becomes a spare ---- */

#define NR_IDLE		3
#define NR_STARTED	2	/* more of them, at most */

/* Of the workers with I/O, and of the one that blocks. */
static atomic_uint index_of_io[NR_IDLE], index_of_block;
static atomic_int nr_met;
static bool is_written[NR_IDLE];

/* A task may go on in another thread. */
static __attribute__((noinline)) uint32_t own_index(void)
{
	return pl__self()->index;
}

/* Each on a worker of its own. */
static void meet(void)
{
	atomic_fetch_add(&nr_met, 1);
	EXPECT_TRUE(UNTIL_BUSY(nr_met == NR_IDLE + 1));
}

static void meet_and_wait(void *arg)
{
	struct pair *p = arg;

	index_of_io[p - pairs] = own_index();
	meet();
	wait_for_byte(arg);
}

static void note_and_block(void *arg)
{
	index_of_block = own_index();
	read_byte(arg);
}

/* To the task with I/O on that worker; false: there is none any more. */
static bool write_to_worker(uint32_t index)
{
	int i;

	for (i = 0; i < NR_IDLE; i++)
		if (index_of_io[i] == index && !is_written[i]) {
			EXPECT_EQ(1, write(pairs[i].fd[1], "x", 1));
			is_written[i] = true;
			return true;
		}
	return false;
}

/* Reader @i blocks a worker; true: one with I/O, which gets a byte then. */
static bool block_idle_worker(int i)
{
	EXPECT_TRUE(UNTIL_BUSY(is_sysmon_asleep()));
	ASSERT_EQ(0, pipe2(pipes[i], O_CLOEXEC));
	readers[i] = spawn_flags(PL_SPAWN_BLOCKING, note_and_block, pipes[i]);
	EXPECT_TRUE(UNTIL_BUSY(nr_begun == i + 1));
	return write_to_worker(index_of_block);
}

/*
 * Its worker, which has no I/O, computes while another one finds the byte.  At
 * most two that block before have none: so many workers may be started.
 */
static void compute_beside_spares(void *arg)
{
	bool is_valid = false;
	int *nr = arg;

	meet();
	EXPECT_TRUE(UNTIL_BUSY(rt_stat().workers_parked == NR_IDLE));
	EXPECT_EQ(0, pl_runtime_set_workers(1));
	for (*nr = 0; !is_valid && *nr < NR_STARTED + 1; ++*nr)
		is_valid = block_idle_worker(*nr);
	EXPECT_TRUE(is_valid);
	EXPECT_TRUE(UNTIL_BUSY(nr_read == 1));
}

TEST_F(orphan_ring, io_completes_though_its_idle_worker_became_a_spare)
{
	int i, nr = 0;

	start_fixed(NR_IDLE + 1, NR_IDLE + 1 + NR_STARTED);
	for (i = 0; i < NR_IDLE; i++) {
		open_pair(&pairs[i], PL_FOREVER);
		pairs[i].t = spawn(meet_and_wait, &pairs[i]);
	}
	run_in_task(compute_beside_spares, &nr);
	while (nr)
		let_reader_go(--nr);
	for (i = 0; i < NR_IDLE; i++)
		write_to_worker(index_of_io[i]);
	join_waiting(NR_IDLE, 1);
}

/* ---- what ends it otherwise ---- */

TEST_F(orphan_ring, deadlines_of_io_hold_while_its_worker_is_in_read)
{
	start_with(1, 0);
	start_waiting(NR_PAIRS, in_ms(20));
	hold_up_in_read();
	join_waiting(NR_PAIRS, -ETIMEDOUT);
	let_reader_go(0);
}

TEST_F(orphan_ring, io_is_cancelled_while_its_worker_is_in_read)
{
	int i;

	hold_up_with_io();
	for (i = 0; i < NR_PAIRS; i++) {
		EXPECT_EQ(0, pl_cancel(pairs[i].t));
		ASSERT_TRUE(UNTIL(nr_read == i + 1));
	}
	join_waiting(NR_PAIRS, -ECANCELED);
	let_reader_go(0);
}

TEST_F(orphan_ring, close_ends_io_of_a_worker_in_read)
{
	int i;

	hold_up_with_io();
	for (i = 0; i < NR_PAIRS; i++) {
		EXPECT_EQ(0, pl_close(pairs[i].fd[0]));
		ASSERT_TRUE(UNTIL(nr_read == i + 1));
	}
	join_waiting(NR_PAIRS, -EBADF);
	let_reader_go(0);
}

/* ---- races ---- */

#define NR_ECHOES	8

static atomic_int is_over;

/* Sends what it has received back, until the other end closes. */
static void echo(void *arg)
{
	struct pair *p = arg;
	uint32_t n;

	while (pl_read(p->fd[0], &n, sizeof(n)) == sizeof(n))
		EXPECT_EQ((ssize_t)sizeof(n),
			  pl_write(p->fd[0], &n, sizeof(n)));
}

static void ask(void *arg)
{
	struct pair *p = &pairs[atomic_fetch_add(&nr_waiting, 1)];
	uint32_t i, nr = (uint32_t)scaled(RT_INJECT ? 200 : 400), n;

	for (i = 0; i < nr; i++) {
		n = i;
		EXPECT_EQ((ssize_t)sizeof(n),
			  pl_write(p->fd[1], &n, sizeof(n)));
		n = 0;
		EXPECT_EQ((ssize_t)sizeof(n), pl_read(p->fd[1], &n, sizeof(n)));
		ASSERT_EQ(i, n);
		atomic_fetch_add(&nr_read, 1);
	}
	shutdown(p->fd[1], SHUT_RDWR);
}

/* Around the time that it takes to be seen. */
static void hold_up_shortly(void *arg)
{
	uint64_t seed = 1 + (uintptr_t)arg;
	struct timespec ts = { 0 };

	while (!is_over) {
		ts.tv_nsec = (long)(next_random(&seed) % (3 * NSEC_PER_MSEC));
		nanosleep(&ts, NULL);
		pl_yield();
		EXPECT_EQ(0, pl_sleep(next_random(&seed) % NSEC_PER_MSEC));
	}
}

TEST_F(orphan_ring, owner_and_reaper_lose_no_completion)
{
	static struct mixed asking, holding;
	pl_task_t t[NR_ECHOES];
	int i;

	start_with(2, 8);
	for (i = 0; i < NR_ECHOES; i++) {
		open_pair(&pairs[i], PL_FOREVER);
		t[i] = spawn_as(i % 4, echo, &pairs[i]);
	}
	mixed_start(&holding, 3, 0, hold_up_shortly, NULL);
	mixed_start(&asking, NR_ECHOES - 1, 1, ask, NULL);
	EXPECT_TRUE(UNTIL_NO_MORE(nr_read == NR_ECHOES * scaled(RT_INJECT ?
								200 : 400),
				  (uint64_t)nr_read));
	mixed_join(&asking);
	is_over = 1;
	mixed_join(&holding);
	for (i = 0; i < NR_ECHOES; i++)
		join(t[i]);
}

TEST_HARNESS_MAIN
