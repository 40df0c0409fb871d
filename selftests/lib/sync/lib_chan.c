/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Channels: what is sent is received once, in order, by tasks and threads.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "sync/chan.h"

RT_FIXTURE(chan)

static struct pl_chan *chan;
static atomic_int nr_waiting, nr_back;

static void open_chan(size_t capacity)
{
	chan = NULL;
	ASSERT_EQ(0, pl_chan_create(&chan, capacity));
}

/* No waiter was forgotten in it. */
static void destroy_chan(void)
{
	EXPECT_EQ(0, pl_chan_destroy(chan));
	chan = NULL;
}

static void *nth(uintptr_t n)
{
	return (void *)n;
}

/* How many are listed to do @op. */
static int nr_listed(enum pl_chan_op op)
{
	struct pl_chan_case *c;
	int nr = 0;

	pl__lock(&chan->lock);
	for (c = chan->waiting[op].first; c; c = pl__chan_waiting(c)->next)
		nr++;
	pl__unlock(&chan->lock);
	return nr;
}

/* ---- what each call says ---- */

TEST_F(chan, bad_arguments_are_refused)
{
	void *item = &item;

	EXPECT_EQ(-EINVAL, pl_chan_create(NULL, 1));
	EXPECT_EQ(-EINVAL, pl_chan_create(&chan, SIZE_MAX / 8));
	EXPECT_EQ(-EINVAL, pl_chan_send(NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_chan_trysend(NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_chan_recv(NULL, &item));
	EXPECT_EQ(-EINVAL, pl_chan_tryrecv(NULL, &item));
	EXPECT_EQ(-EINVAL, pl_chan_close(NULL));
	EXPECT_EQ(-EINVAL, pl_chan_destroy(NULL));
	EXPECT_EQ(&item, item);
	EXPECT_NULL(chan);
}

static void try_it(void *arg)
{
	uintptr_t cap = *(uintptr_t *)arg, i;
	void *item = &item;

	for (i = 0; i < 3 * cap; i++) {
		EXPECT_EQ(0, pl_chan_trysend(chan, nth(i)));
		EXPECT_EQ(0, pl_chan_tryrecv(chan, &item));
		EXPECT_EQ(nth(i), item);
	}
	for (i = 0; i < cap; i++)
		EXPECT_EQ(0, pl_chan_send(chan, nth(i)));
	EXPECT_EQ(-EAGAIN, pl_chan_trysend(chan, nth(i)));
	EXPECT_EQ(-ETIMEDOUT, pl_chan_send_until(chan, nth(i), 0));
	for (i = 0; i < cap; i++) {
		EXPECT_EQ(0, pl_chan_recv_until(chan, &item, 0));
		EXPECT_EQ(nth(i), item);
	}
	item = &item;
	EXPECT_EQ(-EAGAIN, pl_chan_tryrecv(chan, &item));
	EXPECT_EQ(-ETIMEDOUT, pl_chan_recv_until(chan, &item, 0));
	EXPECT_EQ(&item, item);
	if (cap) {
		EXPECT_EQ(0, pl_chan_send(chan, NULL));
		EXPECT_EQ(0, pl_chan_recv(chan, NULL));
	}
}

static const uintptr_t capacities[] = { 0, 1, 2, 7 };

TEST_F(chan, channel_holds_its_capacity_in_order)
{
	uintptr_t cap;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(capacities); i++) {
		cap = capacities[i];
		open_chan(cap);
		try_it(&cap);
		run_in_task(try_it, &cap);
		run_as(PL_STACK_WORKER, try_it, &cap);
		destroy_chan();
	}
}

static void use_closed(void *arg)
{
	void *item = &item;

	(void)arg;
	EXPECT_EQ(-EPIPE, pl_chan_send(chan, &item));
	EXPECT_EQ(-EPIPE, pl_chan_trysend(chan, &item));
	EXPECT_EQ(-EPIPE, pl_chan_recv(chan, &item));
	EXPECT_NULL(item);
	item = &item;
	EXPECT_EQ(-EPIPE, pl_chan_tryrecv(chan, &item));
	EXPECT_NULL(item);
	EXPECT_EQ(-EPIPE, pl_chan_recv_until(chan, NULL, 0));
	EXPECT_EQ(-EPIPE, pl_chan_close(chan));
}

TEST_F(chan, closed_channel_drains)
{
	void *item;
	uintptr_t i;

	open_chan(5);
	for (i = 0; i < 5; i++)
		EXPECT_EQ(0, pl_chan_send(chan, nth(i)));
	EXPECT_EQ(0, pl_chan_close(chan));
	EXPECT_EQ(-EPIPE, pl_chan_trysend(chan, nth(i)));
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(0, pl_chan_recv(chan, &item));
		EXPECT_EQ(nth(i), item);
	}
	use_closed(NULL);
	run_in_task(use_closed, NULL);
	destroy_chan();
	open_chan(0);
	EXPECT_EQ(0, pl_chan_close(chan));
	use_closed(NULL);
	destroy_chan();
}

static void send_to_closing(void *arg)
{
	EXPECT_EQ(-EPIPE, pl_chan_send(chan, arg));
	atomic_fetch_add(&nr_back, 1);
}

static void recv_from_closing(void *arg)
{
	void *item = &item;

	(void)arg;
	EXPECT_EQ(-EPIPE, pl_chan_recv(chan, &item));
	EXPECT_NULL(item);
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(chan, close_releases_all_waiters)
{
	static struct mixed m;
	int op;

	for (op = 0; op < 2; op++) {
		nr_back = 0;
		open_chan(0);
		mixed_start(&m, 20, 4, op == PL_CHAN_SEND ? send_to_closing :
				       recv_from_closing, &m);
		ASSERT_TRUE(UNTIL(nr_listed(op) == 24));
		EXPECT_EQ(-EBUSY, pl_chan_destroy(chan));
		EXPECT_EQ(0, pl_chan_close(chan));
		mixed_join(&m);
		EXPECT_EQ(24, nr_back);
		destroy_chan();
	}
}

static void send_one(void *arg)
{
	atomic_fetch_add(&nr_waiting, 1);
	EXPECT_EQ(0, pl_chan_send(chan, arg));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(chan, rendezvous_holds_the_sender_until_a_receive)
{
	void *item;
	pl_task_t t;

	open_chan(0);
	t = spawn(send_one, &nr_back);
	ASSERT_TRUE(UNTIL(nr_listed(PL_CHAN_SEND) == 1));
	EXPECT_EQ(-EAGAIN, pl_chan_trysend(chan, NULL));
	EXPECT_EQ(-ETIMEDOUT, pl_join_until(t, in_ms(2)));
	EXPECT_EQ(0, nr_back);
	EXPECT_EQ(0, pl_chan_tryrecv(chan, &item));
	EXPECT_EQ(&nr_back, item);
	join(t);
	destroy_chan();
}

static void *item_of[64];

static void recv_one(void *arg)
{
	EXPECT_EQ(0, pl_chan_recv(chan, arg));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(chan, waiters_are_served_in_order_of_arrival)
{
	void *item;
	int i;

	open_chan(2);
	for (i = 0; i < 64; i++) {
		spawn_as(i % 8 == 7 ? PL_STACK_WORKER : PL_STACK_SMALL,
			 recv_one, &item_of[i]);
		ASSERT_TRUE(UNTIL(nr_listed(PL_CHAN_RECV) == i + 1));
	}
	for (i = 0; i < 64; i++)
		EXPECT_EQ(0, pl_chan_trysend(chan, &item_of[i]));
	ASSERT_TRUE(UNTIL(nr_back == 64));
	for (i = 0; i < 64; i++)
		EXPECT_EQ(&item_of[i], item_of[i]);
	nr_back = 0;
	for (i = 0; i < 64; i++) {
		spawn(send_one, &item_of[i]);
		ASSERT_TRUE(UNTIL(i < 2 ? nr_back == i + 1 :
				  nr_listed(PL_CHAN_SEND) == i - 1));
	}
	for (i = 0; i < 64; i++) {
		EXPECT_EQ(0, pl_chan_tryrecv(chan, &item));
		EXPECT_EQ(&item_of[i], item);
		/* The room is given to the sender that waits for it. */
		if (i < 62)
			EXPECT_EQ(-EAGAIN, pl_chan_trysend(chan, item));
	}
	ASSERT_TRUE(UNTIL(nr_back == 64));
	destroy_chan();
}

/* ---- ends of waiting ---- */

static void wait_until_ended(void *arg)
{
	uint64_t deadline = in_ms(2);
	void *item = &item;

	atomic_fetch_add(&nr_waiting, 1);
	EXPECT_EQ(-ETIMEDOUT, arg ? pl_chan_send_until(chan, arg, deadline) :
				    pl_chan_recv_until(chan, &item, deadline));
	EXPECT_LE(deadline, pl_now());
	atomic_fetch_add(&nr_waiting, 1);
	EXPECT_EQ(-EINTR, arg ? pl_chan_send(chan, arg) :
				pl_chan_recv(chan, &item));
	atomic_fetch_add(&nr_waiting, 1);
	EXPECT_EQ(-ECANCELED, arg ? pl_chan_send(chan, arg) :
				    pl_chan_recv(chan, &item));
	EXPECT_EQ(-ECANCELED, pl_chan_send_until(chan, &item, 0));
	EXPECT_EQ(-ECANCELED, pl_chan_recv_until(chan, &item, 0));
	EXPECT_EQ(&item, item);
}

TEST_F(chan, wait_ends_by_deadline_interrupt_and_cancel)
{
	int cls, op;
	pl_task_t t;

	open_chan(0);
	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		for (op = 0; op < 2; op++) {
			nr_waiting = 0;
			t = spawn_as(cls, wait_until_ended, op ? &op : NULL);
			ASSERT_TRUE(UNTIL(nr_waiting == 2));
			ASSERT_TRUE(UNTIL(nr_listed(op) == 1));
			/* Late wakes for what lay there before are no end. */
			wake_late(t);
			wake_late(t);
			EXPECT_EQ(2, nr_waiting);
			EXPECT_EQ(0, pl_interrupt(t));
			ASSERT_TRUE(UNTIL(nr_waiting == 3));
			EXPECT_EQ(0, pl_cancel(t));
			join(t);
			EXPECT_EQ(-EAGAIN, pl_chan_trysend(chan, NULL));
			EXPECT_EQ(-EAGAIN, pl_chan_tryrecv(chan, NULL));
		}
	}
	destroy_chan();
}

static void wait_for_stop(void *arg)
{
	atomic_fetch_add(&nr_waiting, 1);
	EXPECT_EQ(-ECANCELED, arg ? pl_chan_send(chan, arg) :
				    pl_chan_recv(chan, NULL));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(chan, stop_ends_all_waits)
{
	struct hold hold = { &nr_back, 12 };
	static struct mixed m;
	int op;

	for (op = 0; op < 2; op++) {
		nr_back = 0;
		open_chan(0);
		hold_stop_until(&hold);
		mixed_start(&m, 10, 2, wait_for_stop, op ? &m : NULL);
		ASSERT_TRUE(UNTIL(nr_listed(op) == 12));
		EXPECT_EQ(0, pl_runtime_stop());
		mixed_join(&m);
		EXPECT_EQ(12, nr_back);
		destroy_chan();
	}
}

/* ---- nothing is lost or doubled ---- */

#define NR_ITEMS_MAX	100000

static atomic_uchar nr_seen[NR_ITEMS_MAX];
static atomic_int next_item, nr_sent, nr_received;

struct load {
	int		nr_items;
	uint64_t	patience_ns;	/* 0: for ever */
};

static int next_of(struct load *l)
{
	int i = atomic_fetch_add(&next_item, 1);

	return i < l->nr_items ? i : -1;
}

static uint64_t patience(struct load *l, uint64_t *seed)
{
	return l->patience_ns ? pl_now() + next_random(seed) % l->patience_ns :
				PL_FOREVER;
}

static void send_some(void *arg)
{
	uint64_t seed = (uintptr_t)&arg | 1;
	struct load *l = arg;
	int i, ret;

	while ((i = next_of(l)) >= 0) {
		do {
			ret = pl_chan_send_until(chan, &nr_seen[i],
						 patience(l, &seed));
		} while (ret == -ETIMEDOUT || ret == -EINTR);
		EXPECT_EQ(0, ret);
		atomic_fetch_add(&nr_sent, 1);
	}
	atomic_fetch_add(&nr_back, 1);
}

static void recv_some(void *arg)
{
	uint64_t seed = (uintptr_t)&arg | 1;
	struct load *l = arg;
	void *item;
	int ret;

	for (;;) {
		item = NULL;
		ret = pl_chan_recv_until(chan, &item, patience(l, &seed));
		if (ret == -EPIPE)
			break;
		if (ret == -ETIMEDOUT || ret == -EINTR) {
			EXPECT_NULL(item);
			continue;
		}
		ASSERT_EQ(0, ret);
		EXPECT_EQ(0, atomic_fetch_add((atomic_uchar *)item, 1));
		atomic_fetch_add(&nr_received, 1);
	}
}

static void send_and_receive(struct load *l, int nr_tasks, int nr_threads,
			     void (*meanwhile)(struct mixed *, struct mixed *))
{
	static struct mixed senders, receivers;
	int i;

	next_item = nr_sent = nr_received = nr_back = 0;
	memset((void *)nr_seen, 0, sizeof(nr_seen));
	mixed_start(&senders, nr_tasks, nr_threads, send_some, l);
	mixed_start(&receivers, nr_tasks, nr_threads, recv_some, l);
	if (meanwhile)
		meanwhile(&senders, &receivers);
	mixed_join(&senders);
	EXPECT_EQ(0, pl_chan_close(chan));
	mixed_join(&receivers);
	EXPECT_EQ(l->nr_items, nr_sent);
	EXPECT_EQ(l->nr_items, nr_received);
	for (i = 0; i < l->nr_items; i++)
		EXPECT_EQ(1, nr_seen[i]);
}

TEST_F(chan, items_arrive_once)
{
	struct load l = { .nr_items = scaled(10000) };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(capacities); i++) {
		open_chan(capacities[i]);
		send_and_receive(&l, 8, 2, NULL);
		destroy_chan();
	}
}

TEST_F(chan, items_arrive_once_though_many_waits_time_out)
{
	struct load l = { .nr_items = scaled(3000), .patience_ns = 30000 };
	size_t i;

	for (i = 0; i < 3; i++) {
		open_chan(capacities[i]);
		send_and_receive(&l, 6, 2, NULL);
		destroy_chan();
	}
}

/* Each interrupt is reported once, or left for the next call. */
static void interrupt_all(struct mixed *a, struct mixed *b)
{
	int i;

	while (nr_back < a->nr_tasks + a->nr_threads) {
		for (i = 0; i < a->nr_tasks; i++) {
			pl_interrupt(a->task[i]);
			pl_interrupt(b->task[i]);
		}
		breathe();
	}
}

TEST_F(chan, items_arrive_once_though_many_waits_are_interrupted)
{
	struct load l = { .nr_items = scaled(5000) };
	size_t i;

	for (i = 0; i < 3; i++) {
		open_chan(capacities[i]);
		send_and_receive(&l, 6, 1, interrupt_all);
		destroy_chan();
	}
}

static atomic_int nr_lost;

static void send_while_open(void *arg)
{
	int ret;

	(void)arg;
	for (;;) {
		ret = pl_chan_send(chan, &nr_seen[0]);
		if (ret)
			break;
		atomic_fetch_add(&nr_sent, 1);
	}
	EXPECT_EQ(-EPIPE, ret);
}

static void recv_while_open(void *arg)
{
	(void)arg;
	while (!pl_chan_recv(chan, NULL))
		atomic_fetch_add(&nr_received, 1);
}

TEST_F(chan, item_sent_before_the_close_is_received)
{
	static struct mixed senders, receivers;
	int i, nr = scaled(200);

	for (i = 0; i < nr; i++) {
		nr_sent = nr_received = 0;
		open_chan(capacities[i % ARRAY_SIZE(capacities)]);
		mixed_start(&senders, 3, i % 2, send_while_open, NULL);
		mixed_start(&receivers, 3, i % 3 == 0, recv_while_open, NULL);
		ASSERT_TRUE(UNTIL(nr_received > 20));
		EXPECT_EQ(0, pl_chan_close(chan));
		mixed_join(&senders);
		mixed_join(&receivers);
		EXPECT_EQ(nr_sent, nr_received);
		destroy_chan();
	}
}

/* An interrupt that came when the item had gone is not lost with it. */
static void send_then_sleep(void *arg)
{
	int ret = pl_chan_send(chan, arg);

	if (!ret)
		EXPECT_EQ(-EINTR, pl_sleep_until(PL_FOREVER));
	else
		EXPECT_EQ(-EINTR, ret);
	if (ret)
		atomic_fetch_add(&nr_lost, 1);
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(chan, interrupt_is_reported_once)
{
	int i, nr = scaled(2000), received = 0;
	pl_task_t t;

	open_chan(0);
	for (i = 0; i < nr; i++) {
		t = spawn_as(i % 4, send_then_sleep, &i);
		if (i % 2)
			ASSERT_TRUE(UNTIL(nr_listed(PL_CHAN_SEND) == 1));
		if (i % 4 < 2)
			EXPECT_EQ(0, pl_interrupt(t));
		received += !pl_chan_recv_until(chan, NULL, pl_now() + 20000);
		if (i % 4 >= 2)
			EXPECT_EQ(0, pl_interrupt(t));
		join(t);
	}
	EXPECT_EQ(nr, received + nr_lost);
	EXPECT_EQ(nr, nr_back);
	destroy_chan();
}

/* ---- lifetime ---- */

struct parcel {
	struct pl_chan	*ch;
};

/* The item is the channel's last: its receiver frees the channel. */
static void send_last(void *arg)
{
	struct parcel *p = arg;
	struct pl_chan *ch = p->ch;

	EXPECT_EQ(0, pl_chan_send_until(ch, p, pl_now() + stuck_ns()));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(chan, channel_may_be_destroyed_by_its_last_receiver)
{
	int i, nr = scaled(4000);
	static struct mixed m;
	struct parcel p;
	void *item;

	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, pl_chan_create(&p.ch, i % 2));
		mixed_start(&m, i % 32 != 0, i % 32 == 0, send_last, &p);
		ASSERT_EQ(0, pl_chan_recv(p.ch, &item));
		EXPECT_EQ(&p, item);
		EXPECT_EQ(0, pl_chan_destroy(p.ch));
		mixed_join(&m);
	}
	EXPECT_EQ(nr, nr_back);
}

static void recv_last(void *arg)
{
	struct pl_chan *ch = arg;

	EXPECT_EQ(-EPIPE, pl_chan_recv_until(ch, NULL, pl_now() + stuck_ns()));
	/* One of two: the second one to be back. */
	if (atomic_fetch_add(&nr_back, 1) & 1)
		EXPECT_EQ(0, pl_chan_destroy(ch));
}

TEST_F(chan, channel_may_be_destroyed_by_a_released_waiter)
{
	int i, nr = scaled(4000);
	struct pl_chan *ch;
	pl_task_t t[2];

	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, pl_chan_create(&ch, i % 2));
		t[0] = spawn(recv_last, ch);
		t[1] = spawn_as(i % 4, recv_last, ch);
		EXPECT_EQ(0, pl_chan_close(ch));
		join(t[0]);
		join(t[1]);
	}
	EXPECT_EQ(2 * nr, nr_back);
}

TEST_HARNESS_MAIN
