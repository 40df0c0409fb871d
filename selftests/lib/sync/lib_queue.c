/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Execution queues: whatever was pushed is executed once, by one at a time.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(queue)

static struct pl_queue *queue;
static atomic_int nr_inside, nr_pushed, nr_back;
static atomic_int gate, nr_at_gate;
static int nr_done, order_of[1000];

static void open_queue(void (*fn)(void **batch, size_t nr, void *arg))
{
	queue = NULL;
	nr_done = 0;
	ASSERT_EQ(0, pl_queue_create(&queue, fn, &queue));
}

static void close_and_join(void)
{
	EXPECT_EQ(0, pl_queue_close(queue));
	EXPECT_EQ(0, pl_queue_join(queue));
	queue = NULL;
}

static void *nth(uintptr_t n)
{
	return (void *)n;
}

/* One call at a time, and each sees the one before: nr_done is plain. */
static void count(void **batch, size_t nr, void *arg)
{
	EXPECT_EQ(0, atomic_fetch_add(&nr_inside, 1));
	EXPECT_EQ(&queue, arg);
	EXPECT_NE(0, pl_self());
	EXPECT_LT(0, nr);
	EXPECT_NE(NULL, batch);
	nr_done += (int)nr;
	if (nr_done % 16 == 0)
		pl_yield();
	atomic_fetch_sub(&nr_inside, 1);
}

/* What comes is noted; the first call waits at the gate. */
static void note(void **batch, size_t nr, void *arg)
{
	size_t i;

	if (!nr_at_gate++)
		EXPECT_TRUE(UNTIL(gate));
	for (i = 0; i < nr; i++)
		order_of[nr_done++] = (int)(uintptr_t)batch[i];
}

/* ---- what each call says ---- */

static void push_in_order(void *arg)
{
	int i;

	for (i = 0; i < 500; i++) {
		EXPECT_EQ(0, pl_queue_push(queue, nth(i)));
		if (i % 50 == 0)
			pl_yield();
	}
}

TEST_F(queue, items_run_in_the_order_of_pushes)
{
	int i, cls;

	gate = 1;
	for (cls = -1; cls <= PL_STACK_WORKER; cls++) {
		open_queue(note);
		if (cls < 0)
			push_in_order(NULL);
		else
			run_as(cls, push_in_order, NULL);
		close_and_join();
		ASSERT_EQ(500, nr_done);
		for (i = 0; i < 500; i++)
			EXPECT_EQ(i, order_of[i]);
	}
}

TEST_F(queue, urgent_items_run_before_others)
{
	int i;

	open_queue(note);
	EXPECT_EQ(0, pl_queue_push(queue, nth(0)));
	ASSERT_TRUE(UNTIL(nr_at_gate == 1));
	for (i = 0; i < 300; i++)
		EXPECT_EQ(0, i % 3 ? pl_queue_push(queue, nth(1000 + i)) :
				     pl_queue_push_urgent(queue, nth(1 + i)));
	gate = 1;
	close_and_join();
	ASSERT_EQ(301, nr_done);
	EXPECT_EQ(0, order_of[0]);
	for (i = 1; i < 300; i++)
		EXPECT_LT(order_of[i], order_of[i + 1]);
	EXPECT_EQ(298, order_of[100]);
	EXPECT_EQ(1001, order_of[101]);
}

/* The first batch of those that waited pushes one that is urgent. */
static void push_urgent_within(void **batch, size_t nr, void *arg)
{
	note(batch, nr, arg);
	if (nr_at_gate == 2)
		EXPECT_EQ(0, pl_queue_push_urgent(queue, nth(7777)));
}

TEST_F(queue, urgent_item_runs_before_earlier_ones_not_taken)
{
	int i;

	open_queue(push_urgent_within);
	EXPECT_EQ(0, pl_queue_push(queue, nth(0)));
	ASSERT_TRUE(UNTIL(nr_at_gate == 1));
	for (i = 1; i <= 500; i++)
		EXPECT_EQ(0, pl_queue_push(queue, nth(i)));
	gate = 1;
	EXPECT_TRUE(UNTIL(!rt_stat().tasks_alive));
	close_and_join();
	ASSERT_EQ(502, nr_done);
	for (i = 0; order_of[i] != 7777; i++)
		EXPECT_EQ(i, order_of[i]);
	EXPECT_GT(300, i);
	for (; i < 501; i++)
		EXPECT_EQ(i, order_of[i + 1]);
}

TEST_F(queue, task_exists_only_while_items_wait)
{
	uint64_t before;

	start_with(2, 0);
	before = rt_stat().tasks_spawned;
	open_queue(count);
	EXPECT_EQ(before, rt_stat().tasks_spawned);
	EXPECT_EQ(0, pl_queue_push(queue, NULL));
	EXPECT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(1, nr_done);
	EXPECT_EQ(before + 1, rt_stat().tasks_spawned);
	EXPECT_EQ(0, pl_queue_push_urgent(queue, NULL));
	EXPECT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(2, nr_done);
	close_and_join();
	EXPECT_EQ(before + 2, rt_stat().tasks_spawned);
}

/* ---- fn ---- */

static void block_and_exit(void **batch, size_t nr, void *arg)
{
	count(batch, nr, arg);
	EXPECT_EQ(0, pl_sleep(1000));
	if (nr_done < 100)
		EXPECT_EQ(0, pl_queue_push(queue, NULL));
	if (nr_done % 3)
		pl_exit();
}

TEST_F(queue, callback_may_block_push_and_exit)
{
	open_queue(block_and_exit);
	EXPECT_EQ(0, pl_queue_push(queue, NULL));
	EXPECT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(100, nr_done);
	close_and_join();
}

static void close_within(void **batch, size_t nr, void *arg)
{
	(void)batch;
	nr_done += (int)nr;
	EXPECT_EQ(-EDEADLK, pl_queue_join(queue));
	EXPECT_EQ(nr_done == 1 ? 0 : -EPIPE, pl_queue_close(queue));
	EXPECT_EQ(-EPIPE, pl_queue_push(queue, NULL));
}

TEST_F(queue, callback_may_close_and_not_join)
{
	open_queue(close_within);
	EXPECT_EQ(0, pl_queue_push(queue, NULL));
	EXPECT_EQ(0, pl_queue_join(queue));
	EXPECT_EQ(1, nr_done);
}

/* ---- close and join ---- */

TEST_F(queue, close_refuses_pushes_and_runs_the_rest)
{
	int i;

	open_queue(note);
	for (i = 0; i < 200; i++)
		EXPECT_EQ(0, pl_queue_push(queue, nth(i)));
	EXPECT_EQ(0, pl_queue_close(queue));
	EXPECT_EQ(-EPIPE, pl_queue_close(queue));
	EXPECT_EQ(-EPIPE, pl_queue_push(queue, NULL));
	EXPECT_EQ(-EPIPE, pl_queue_push_urgent(queue, NULL));
	gate = 1;
	EXPECT_EQ(0, pl_queue_join(queue));
	EXPECT_EQ(200, nr_done);
}

TEST_F(queue, unused_queue_ends)
{
	open_queue(count);
	close_and_join();
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
}

/* ---- many ---- */

#define NR_PUSHERS	24

struct pushed {
	int	pusher, nth;
};

static int last_of[NR_PUSHERS];
static atomic_int nr_pushers;
static uint64_t hurry_ns;	/* time for what makes it slow is over */

static void check_order(void **batch, size_t nr, void *arg)
{
	struct pushed *p;
	size_t i;

	for (i = 0; i < nr; i++) {
		p = batch[i];
		EXPECT_EQ(last_of[p->pusher] + 1, p->nth);
		last_of[p->pusher] = p->nth;
		free(p);
	}
	count(batch, nr, arg);
}

static void push_numbered(void *arg)
{
	int pusher = atomic_fetch_add(&nr_pushers, 1);
	int i, nr = *(int *)arg;
	struct pushed *p;

	for (i = 1; i <= nr; i++) {
		p = malloc(sizeof(*p));
		*p = (struct pushed){ pusher, i };
		EXPECT_EQ(0, pl_queue_push(queue, p));
		/*
		 * Often enough for the queue to be idle in between; but each
		 * breath may cost a time slice of another program.
		 */
		if (i % 4 == 0 && pl_now() < hurry_ns)
			breathe();
	}
}

TEST_F(queue, items_run_once_and_in_order)
{
	int nr = scaled(2000);

	open_queue(check_order);
	hurry_ns = pl_now() + stuck_ns() / 2;
	mixed_run(NR_PUSHERS - 4, 4, push_numbered, &nr);
	close_and_join();
	EXPECT_EQ(NR_PUSHERS * nr, nr_done);
}

static void push_while_open(void *arg)
{
	bool is_urgent = false;
	int ret;

	do {
		ret = is_urgent ? pl_queue_push_urgent(queue, NULL) :
				  pl_queue_push(queue, NULL);
		if (!ret)
			atomic_fetch_add(&nr_pushed, 1);
		if (ret == -EAGAIN || !(nr_pushed & 7))
			breathe();
		is_urgent = !is_urgent;
	} while (!ret || ret == -EAGAIN);
	EXPECT_EQ(-EPIPE, ret);
}

TEST_F(queue, item_pushed_before_the_close_runs)
{
	static struct mixed m;
	int i, nr = scaled(300);

	hurry_ns = pl_now() + stuck_ns() / 2;
	for (i = 0; i < nr && pl_now() < hurry_ns; i++) {
		nr_pushed = 0;
		open_queue(count);
		mixed_start(&m, 3, i % 2, push_while_open, NULL);
		ASSERT_TRUE(UNTIL(nr_pushed > 5));
		EXPECT_EQ(0, pl_queue_close(queue));
		mixed_join(&m);
		EXPECT_EQ(0, pl_queue_join(queue));
		EXPECT_EQ(nr_pushed, nr_done);
	}
}

static void close_queue(void *arg)
{
	EXPECT_EQ(0, pl_queue_close(arg));
}

/* The joiner frees it while the task that woke it still runs. */
TEST_F(queue, queue_may_be_freed_once_it_has_ended)
{
	int i, k, nr = scaled(4000);
	pl_task_t t;

	for (i = 0; i < nr; i++) {
		open_queue(count);
		for (k = 0; k < i % 3; k++)
			EXPECT_EQ(0, pl_queue_push(queue, NULL));
		t = spawn_as(i % 4, close_queue, queue);
		EXPECT_EQ(0, pl_queue_join(queue));
		EXPECT_EQ(i % 3, nr_done);
		join(t);
	}
}

/* ---- when no task can be had ---- */

static void refuse_spawns(bool refuse)
{
	if (refuse)
		atomic_fetch_or(&pl__rt.gates, PL__GATE_STACKLESS);
	else
		atomic_fetch_and(&pl__rt.gates, ~PL__GATE_STACKLESS);
}

TEST_F(queue, push_without_memory_for_a_task_is_refused)
{
	start_with(2, 0);
	open_queue(note);
	refuse_spawns(true);
	EXPECT_EQ(-EAGAIN, pl_queue_push(queue, nth(1)));
	refuse_spawns(false);
	EXPECT_EQ(0, pl_queue_push(queue, nth(2)));
	ASSERT_TRUE(UNTIL(nr_at_gate == 1));
	/* There is one now. */
	refuse_spawns(true);
	EXPECT_EQ(0, pl_queue_push(queue, nth(3)));
	gate = 1;
	EXPECT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(-EAGAIN, pl_queue_push(queue, nth(4)));
	refuse_spawns(false);
	close_and_join();
	EXPECT_EQ(2, nr_done);
	EXPECT_EQ(2, order_of[0]);
	EXPECT_EQ(3, order_of[1]);
}

/* After 0 it is executed, also if the first pusher was refused. */
TEST_F(queue, accepted_push_does_not_depend_on_another_push)
{
	static struct mixed m;
	int i, nr = scaled(2000);

	start_with(3, 0);
	open_queue(count);
	mixed_start(&m, 4, 2, push_while_open, NULL);
	hurry_ns = pl_now() + stuck_ns() / 2;
	for (i = 0; (i < nr || nr_pushed < nr) && pl_now() < hurry_ns; i++) {
		refuse_spawns(true);
		sched_yield();
		refuse_spawns(false);
		breathe();
	}
	EXPECT_EQ(0, pl_queue_close(queue));
	mixed_join(&m);
	EXPECT_EQ(0, pl_queue_join(queue));
	EXPECT_EQ(nr_pushed, nr_done);
}

TEST_F(queue, push_without_memory_is_enomem)
{
	open_queue(count);
	EXPECT_EQ(0, pl_queue_push(queue, NULL));
	EXPECT_TRUE(UNTIL(!rt_stat().tasks_alive));
	if (!take_all_memory()) {
		close_and_join();
		SKIP(return, "memory cannot be limited here");
	}
	EXPECT_EQ(-ENOMEM, pl_queue_push(queue, NULL));
	give_memory_back();
	EXPECT_EQ(0, pl_queue_push(queue, NULL));
	close_and_join();
	EXPECT_EQ(2, nr_done);
}

/* ---- while the runtime stops ---- */

static void push_while_stopping(void *arg)
{
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	EXPECT_EQ(0, pl_queue_push(queue, arg));
	/* Until the thread below has tried, too. */
	EXPECT_TRUE(UNTIL(nr_back));
}

static void *push_from_outside(void *arg)
{
	EXPECT_TRUE(UNTIL(pl__rt_is_stopping()));
	EXPECT_EQ(-ECANCELED, pl_queue_push(queue, arg));
	EXPECT_EQ(-ECANCELED, pl_queue_push_urgent(queue, arg));
	atomic_fetch_add(&nr_back, 1);
	return NULL;
}

TEST_F(queue, stop_waits_for_pushed_items)
{
	pthread_t thread;
	int i;

	start_with(2, 0);
	open_queue(note);
	gate = 1;
	spawn(push_while_stopping, NULL);
	ASSERT_EQ(0, pthread_create(&thread, NULL, push_from_outside, NULL));
	for (i = 0; i < 500; i++)
		EXPECT_EQ(0, pl_queue_push(queue, NULL));
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(501, nr_done);
	EXPECT_EQ(0, pthread_join(thread, NULL));
	/* It is as good in the next runtime. */
	EXPECT_EQ(0, pl_queue_push(queue, NULL));
	close_and_join();
	EXPECT_EQ(502, nr_done);
}

static void *push_through_stops(void *arg)
{
	int ret;

	do {
		ret = pl_queue_push(queue, NULL);
		if (!ret)
			atomic_fetch_add(&nr_pushed, 1);
		else
			breathe();
	} while (!ret || ret == -ECANCELED);
	EXPECT_EQ(-EPIPE, ret);
	return NULL;
}

TEST_F(queue, accepted_item_runs_though_the_runtime_stops)
{
	int i, nr = scaled(60), before;
	pthread_t thread[3];

	start_with(2, 0);
	open_queue(count);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL,
					    push_through_stops, NULL));
	for (i = 0; i < nr; i++) {
		before = nr_pushed;
		EXPECT_TRUE(UNTIL(nr_pushed > before + 10));
		EXPECT_EQ(0, pl_runtime_stop());
	}
	EXPECT_EQ(0, pl_queue_close(queue));
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, pl_queue_join(queue));
	EXPECT_EQ(nr_pushed, nr_done);
}

TEST_HARNESS_MAIN
