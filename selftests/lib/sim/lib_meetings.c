/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As lib_small.c: few tasks that meet at one thing, and give up, are
 * interrupted, or come too late for it.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "few_tasks.h"

#define NEVER_NS	(1000 * NSEC_PER_SEC)
#define SOON_NS		(100 * NSEC_PER_SEC)

static atomic_int nr_come;
static struct pl_mutex mutex;
static struct pl_cond cond;
static struct pl_sem sem;
static struct pl_rwlock rwlock;
static struct pl_latch latch;
static struct pl_barrier barrier;
static struct pl_once once;
static struct pl_word word;
static struct pl_chan *chan[2];
static struct pl_queue *queue;
static int plain;

FIXTURE(meetings) { uint64_t begin; };

FIXTURE_SETUP(meetings)
{
	start_by_seed(_metadata, __test_seed % 4 == 2);
	self->begin = pl_now();
}

/* What waits until the end of a sleep that none is to see has hung. */
FIXTURE_TEARDOWN(meetings)
{
	join_all();
	EXPECT_GT(self->begin + SOON_NS, pl_now());
	rt_end();
}

static void interrupt_all(int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		pl_sleep(__test_seed % 5 * 300);
		pl_interrupt(tasks[i]);
	}
}

/* ---- joins ---- */

static void sleep_for(void *arg)
{
	pl_sleep((uintptr_t)arg);
}

static void join_it(void *arg)
{
	int ret = (uintptr_t)arg % 3 ? pl_join(tasks[0]) :
		  pl_join_until(tasks[0], pl_now() + NEVER_NS);

	EXPECT_EQ(0, ret);
}

TEST_F(meetings, task_wakes_all_that_join_it)
{
	uintptr_t i;

	go(sleep_for, __test_seed % 8 * 1000);
	for (i = 0; i < 6; i++)
		go(join_it, i);
	join_all();
}

static void join_until_interrupted(void *arg)
{
	EXPECT_EQ(-EINTR, pl_join((pl_task_t)(uintptr_t)arg));
	if (atomic_fetch_add(&nr_done, 1) == 2)
		pl_sem_post(&sem, 1);
}

static void wait_for_unit(void *arg)
{
	EXPECT_EQ(0, pl_sem_wait(&sem));
}

TEST_F(meetings, interrupt_ends_a_join)
{
	pl_task_t end;
	int i;

	ASSERT_EQ(0, pl_spawn(&end, wait_for_unit, NULL, NULL));
	for (i = 0; i < 3; i++)
		go(join_until_interrupted, (uintptr_t)end);
	interrupt_all(3);
	join_all();
	join(end);
}

/* ---- interrupts ---- */

static void wait_until_interrupted(void *arg)
{
	int ret = 0;

	switch ((uintptr_t)arg % 3) {
	case 0:
		ret = pl_word_wait(&word, 0, PL_FOREVER);
		break;
	case 1:
		pl_mutex_lock(&mutex);
		while (!ret)
			ret = pl_cond_wait(&cond, &mutex);
		pl_mutex_unlock(&mutex);
		break;
	case 2:
		ret = pl_sem_wait(&sem);
	}
	EXPECT_EQ(-EINTR, ret);
}

TEST_F(meetings, interrupt_ends_each_wait)
{
	uintptr_t i;

	for (i = 0; i < 6; i++)
		go(wait_until_interrupted, i);
	interrupt_all(6);
	if (__test_seed % 4 == 0)
		pl_cond_broadcast(&cond);
	join_all();
}

/* ---- mutex ---- */

static void hold_for_long(void *arg)
{
	int i, before;

	for (i = 0; i < 3; i++) {
		pl_mutex_lock(&mutex);
		before = plain;
		pl_sleep((uintptr_t)arg * 300 * NSEC_PER_USEC);
		plain = before + 1;
		pl_mutex_unlock(&mutex);
		pl_sleep(__test_seed % 7 * 500);
	}
}

TEST_F(meetings, mutex_goes_to_the_impatient)
{
	uintptr_t i;

	for (i = 0; i < 6; i++)
		go(hold_for_long, i % 4);
	join_all();
	EXPECT_EQ(18, plain);
	EXPECT_EQ(0, pl_mutex_trylock(&mutex));
}

/* Some have deadlines that end at about the same time. */
static void wait_for_turn(void *arg)
{
	uint64_t ns = (uintptr_t)arg * 2000;
	int ret;

	pl_mutex_lock(&mutex);
	atomic_fetch_add(&nr_come, 1);
	while (!plain) {
		ret = pl_cond_wait_until(&cond, &mutex,
					 ns ? pl_now() + ns : PL_FOREVER);
		EXPECT_TRUE(!ret || (ns && ret == -ETIMEDOUT));
	}
	pl_mutex_unlock(&mutex);
}

TEST_F(meetings, broadcast_wakes_all_that_wait)
{
	uintptr_t i;

	for (i = 0; i < 6; i++)
		go(wait_for_turn, i % 2 * i);
	while (nr_come < 4)
		breathe();
	pl_mutex_lock(&mutex);
	plain = 1;
	pl_mutex_unlock(&mutex);
	pl_cond_broadcast(&cond);
	join_all();
}

/* ---- counts ---- */

static void post_some(void *arg)
{
	EXPECT_EQ(0, pl_sem_post(&sem, (uint32_t)(uintptr_t)arg));
}

TEST_F(meetings, units_reach_as_many_takers)
{
	uintptr_t i;

	for (i = 0; i < 9; i++)
		go(wait_for_unit, 0);
	for (i = 0; i < 5; i++)
		go(post_some, 1 + i % 3);
	join_all();
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
}

static void wait_for_latch(void *arg)
{
	EXPECT_EQ(0, pl_latch_wait(&latch));
	EXPECT_EQ(4, nr_done);
}

static void do_a_part(void *arg)
{
	pl_yield();
	atomic_fetch_add(&nr_done, 1);
	EXPECT_EQ(0, pl_latch_done(&latch));
}

TEST_F(meetings, latch_opens_for_all_at_0)
{
	int i;

	ASSERT_EQ(0, pl_latch_init(&latch, 4));
	for (i = 0; i < 8; i++)
		go(i % 2 ? do_a_part : wait_for_latch, 0);
	join_all();
}

static void come_four_times(void *arg)
{
	int i, ret;

	for (i = 0; i < 4; i++) {
		atomic_fetch_add(&nr_come, 1);
		do
			ret = pl_barrier_wait(&barrier);
		while (ret == -EINTR);
		EXPECT_LE(0, ret);
		EXPECT_LE(3 * (i + 1), nr_come);
	}
}

TEST_F(meetings, barrier_ends_a_round_when_all_have_come)
{
	int i;

	ASSERT_EQ(0, pl_barrier_init(&barrier, 3));
	for (i = 0; i < 3; i++)
		go(come_four_times, 0);
	interrupt_all(3);
	join_all();
}

/* The first ones may end within. */
static void set_up(void *arg)
{
	if (__test_seed % 3 == 0)
		pl_yield();
	if (atomic_fetch_add(&nr_come, 1) < (int)(__test_seed / 3 % 4))
		pl_exit();
	plain++;
}

static void need_it(void *arg)
{
	EXPECT_EQ(0, pl_once(&once, set_up, NULL));
	EXPECT_EQ(1, plain);
}

TEST_F(meetings, once_runs_before_all_go_on)
{
	int i;

	for (i = 0; i < 6; i++)
		go(need_it, 0);
	join_all();
}

/* ---- rwlock ---- */

static void own_for_a_while(void *arg)
{
	uint64_t until = pl_now() + (uintptr_t)arg * (__test_seed % 8) * 700;
	bool writes = (uintptr_t)arg % 2;
	int i, ret;

	for (i = 0; i < 3; i++) {
		ret = writes ? pl_rwlock_wrlock_until(&rwlock, until) :
			       pl_rwlock_rdlock_until(&rwlock, until);
		if (ret) {
			EXPECT_EQ(-ETIMEDOUT, ret);
			return;
		}
		EXPECT_EQ(0, plain);
		plain += writes;
		pl_yield();
		plain -= writes;
		if (writes)
			pl_rwlock_wrunlock(&rwlock);
		else
			pl_rwlock_rdunlock(&rwlock);
	}
}

TEST_F(meetings, rwlock_goes_on_after_waiters_timed_out)
{
	uintptr_t i;

	for (i = 0; i < 10; i++)
		go(own_for_a_while, i);
	join_all();
	EXPECT_EQ(0, pl_rwlock_trywrlock(&rwlock));
}

/* ---- channels ---- */

static void send_in_time(void *arg)
{
	uint64_t until = pl_now() + (uintptr_t)arg * 1500;
	int ret = pl_chan_send_until(chan[0], arg, until);

	EXPECT_TRUE(!ret || ret == -ETIMEDOUT);
	atomic_fetch_add(&nr_come, !ret);
}

static void receive_in_time(void *arg)
{
	uint64_t until = pl_now() + (uintptr_t)arg * 1500;
	void *item = NULL;
	int ret = pl_chan_recv_until(chan[0], &item, until);

	EXPECT_TRUE(!ret || ret == -ETIMEDOUT);
	EXPECT_EQ(!ret, !!item);
	atomic_fetch_add(&nr_done, !ret);
}

TEST_F(meetings, calls_that_give_up_move_nothing)
{
	uintptr_t i;

	ASSERT_EQ(0, pl_chan_create(&chan[0], 0));
	for (i = 1; i < 13; i++)
		go(i % 2 ? send_in_time : receive_in_time, i);
	join_all();
	EXPECT_EQ(nr_come, nr_done);
	EXPECT_EQ(0, pl_chan_destroy(chan[0]));
}

static void select_of_two(void *arg)
{
	uintptr_t k = (uintptr_t)arg;
	enum pl_chan_op op = k / 2 % 2 ? PL_CHAN_SEND : PL_CHAN_RECV;
	struct pl_chan_case c[3] = {
		{ .ch = chan[k % 2], .op = op, .item = arg },
		{ .ch = chan[!(k % 2)], .op = op, .item = arg },
		{ .ch = chan[k % 2], .op = op, .item = arg },
	};
	int i;

	for (i = 0; i < 3; i++)
		EXPECT_LE(0, pl_chan_select(c, 3, PL_FOREVER));
	atomic_fetch_add(&nr_done, 1);
}

TEST_F(meetings, selects_of_two_channels_pair_up)
{
	uintptr_t i;

	ASSERT_EQ(0, pl_chan_create(&chan[0], 0));
	ASSERT_EQ(0, pl_chan_create(&chan[1], 0));
	for (i = 0; i < 8; i++)
		go(select_of_two, i);
	join_all();
	EXPECT_EQ(8, nr_done);
	EXPECT_EQ(0, pl_chan_destroy(chan[0]));
	EXPECT_EQ(0, pl_chan_destroy(chan[1]));
}

static void execute(void **batch, size_t nr, void *arg)
{
	(void)batch;
	atomic_fetch_add(&nr_done, (int)nr);
}

static void push_three(void *arg)
{
	int i;

	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, pl_queue_push(queue, arg));
		if (__test_seed % 3)
			pl_yield();
	}
	if (atomic_fetch_add(&nr_come, 1) == 3)
		EXPECT_EQ(0, pl_queue_close(queue));
}

TEST_F(meetings, queue_ends_with_its_last_entry)
{
	int i;

	ASSERT_EQ(0, pl_queue_create(&queue, execute, NULL));
	for (i = 0; i < 4; i++)
		go(push_three, 0);
	EXPECT_EQ(0, pl_queue_join(queue));
	EXPECT_EQ(12, nr_done);
}

/* ---- scopes ---- */

static intptr_t fail_or_wait(void *arg)
{
	return arg ? pl_sleep(NEVER_NS) : -EIO;
}

static void enter_and_wait(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct pl_child c[4] = { 0 };
	uintptr_t i;

	ASSERT_EQ(0, pl_scope_enter(&s, arg ? pl_now() + (uintptr_t)arg :
					      PL_FOREVER, 0));
	for (i = 0; i < 4; i++)
		pl_scope_spawn(&s, &c[i], fail_or_wait,
			       (void *)(__test_seed / 3 % 5 + i + 1 - 4), NULL);
	if (__test_seed % 2)
		pl_sleep(2000);
	EXPECT_GT(0, pl_scope_leave(&s));
}

TEST_F(meetings, scope_that_fails_or_is_late_ends)
{
	uintptr_t i;

	for (i = 0; i < 3; i++)
		go(enter_and_wait, __test_seed % 7 * 2000 + i * 3000 + 1);
	join_all();
}

static void enter_for_ever(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;

	ASSERT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	pl_scope_spawn(&s, NULL, fail_or_wait, (void *)1, NULL);
	EXPECT_EQ(-ECANCELED, pl_scope_leave(&s));
}

TEST_F(meetings, cancel_reaches_a_scope_that_begins)
{
	int i;

	for (i = 0; i < 3; i++)
		go(enter_for_ever, 0);
	for (i = 0; i < 3; i++) {
		pl_sleep(__test_seed % 8 * 200);
		EXPECT_TRUE(pl_cancel(tasks[i]) != -EINVAL);
	}
	join_all();
}

/* ---- descriptors ---- */

static int sockets[2];

static void read_until_closed(void *arg)
{
	ssize_t n;
	char c;

	do {
		n = pl_read(sockets[0], &c, 1);
	} while (n == 1);
	EXPECT_EQ(-EBADF, n);
}

static void begin_reads(int nr)
{
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	sockets[0] = move_up(sockets[0]);
	while (nr--)
		go(read_until_closed, 0);
}

static void end_reads(void)
{
	EXPECT_EQ(0, pl_close(sockets[0]));
	join_all();
	close(sockets[1]);
}

TEST_F(meetings, close_ends_reads_that_began)
{
	begin_reads(4);
	pl_sleep(__test_seed % 8 * 1000);
	end_reads();
}

/* ---- rings ---- */

static struct pl_sem asked;

/* The worker is about to sleep when the answer comes. */
static void ask_four_times(void *arg)
{
	int i;

	for (i = 0; i < 4; i++) {
		EXPECT_EQ(0, pl_sem_post(&asked, 1));
		EXPECT_EQ(0, pl_sem_wait(&sem));
	}
}

static void answer(int nr, ssize_t nr_bytes)
{
	while (nr--) {
		EXPECT_EQ(0, pl_sem_wait(&asked));
		EXPECT_EQ(nr_bytes, write(sockets[1], "x", (size_t)nr_bytes));
		EXPECT_EQ(0, pl_sem_post(&sem, 1));
	}
}

/* Requests are in flight in each, for which a worker sleeps there. */
TEST_F(meetings, wakes_reach_workers_that_sleep_in_their_rings)
{
	int i;

	begin_reads(6);
	for (i = 0; i < 2; i++)
		go(ask_four_times, 0);
	answer(8, 0);
	end_reads();
}

/* Reads of its ring have ended meanwhile, for which others looked there. */
TEST_F(meetings, wakes_reach_a_worker_after_others_polled_its_ring)
{
	int i;

	begin_reads(4);
	for (i = 0; i < 3; i++)
		go(block_and_count, (1 + __test_seed % 9) * 4000000);
	for (i = 0; i < 4; i++)
		go(ask_four_times, 0);
	answer(16, 1);
	end_reads();
}

static void read_or_give_up(void *arg)
{
	ssize_t ret;
	char c;

	ret = pl_read(sockets[0], &c, 1);
	EXPECT_TRUE(ret == -EINTR || ret == 1);
	atomic_fetch_add(&nr_done, ret == 1);
}

TEST_F(meetings, interrupted_read_takes_nothing)
{
	int i, n = 0;
	char c;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	for (i = 0; i < 6; i++)
		go(read_or_give_up, 0);
	pl_sleep(__test_seed % 8 * 1000);
	EXPECT_EQ(3, write(sockets[1], "xyz", 3));
	interrupt_all(6);
	join_all();
	while (recv(sockets[0], &c, 1, MSG_DONTWAIT) == 1)
		n++;
	EXPECT_EQ(3, nr_done + n);
	close(sockets[0]);
	close(sockets[1]);
}

TEST_HARNESS_MAIN
