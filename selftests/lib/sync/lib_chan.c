/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Channels: what is sent is received once, in order, by tasks and threads.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "sync/chan.h"

RT_FIXTURE(chan)

static struct pl_chan *chan;
static atomic_int nr_back;

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

/* ---- nothing is lost or doubled ---- */

static atomic_int nr_sent, nr_received;

static void send_while_open(void *arg)
{
	int ret;

	for (;;) {
		ret = pl_chan_send(chan, &nr_sent);
		if (ret)
			break;
		atomic_fetch_add(&nr_sent, 1);
	}
	EXPECT_EQ(-EPIPE, ret);
}

static void recv_while_open(void *arg)
{
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
