/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * More operations that are tried: keys, channels, queues, waits for events, and
 * those that take no memory of their own.  nomem_ops.h is included before this.
 */
#ifndef SELFTESTS_NOMEM_NOUNS_H
#define SELFTESTS_NOMEM_NOUNS_H

#include <poll.h>

static int or_timed_out(int ret)
{
	return ret == -ETIMEDOUT ? 0 : ret;
}

/* ---- keys ---- */

static void count_value(void *value)
{
	count(value);
}

static int op_key_set(void)
{
	pl_key_t key;
	int ret;

	EXPECT_EQ(0, pl_key_create(&key, count_value));
	ret = pl_key_set(key, &key);
	EXPECT_EQ(ret ? NULL : &key, pl_key_get(key));
	EXPECT_EQ(0, pl_key_delete(key));
	return ret;
}

static void *key_thread(void *ret)
{
	*(int *)ret = op_key_set();
	return NULL;
}

/* It keeps its values until it ends. */
static int op_key_set_thread(void)
{
	pthread_t thread;
	int ret;

	EXPECT_EQ(0, pthread_create(&thread, NULL, key_thread, &ret));
	pthread_join(thread, NULL);
	return ret;
}

/* ---- channels ---- */

static int use_chan(struct pl_chan *ch)
{
	struct pl_chan_case cases[] = {
		PL_CHAN_CASE_RECV(ch), PL_CHAN_CASE_SEND(ch, NULL),
	};
	void *item = NULL;
	int ret;

	EXPECT_EQ(0, pl_chan_trysend(ch, &item));
	EXPECT_EQ(0, pl_chan_tryrecv(ch, &item));
	EXPECT_EQ(&item, item);
	ret = or_timed_out(pl_chan_recv_until(ch, &item, in_ms(1)));
	if (ret)
		return ret;
	EXPECT_EQ(1, pl_chan_select(cases, 2, PL_FOREVER));
	ret = or_timed_out(pl_chan_send_until(ch, NULL, in_ms(1)));
	return ret;
}

static int op_chan(void)
{
	struct pl_chan *ch;
	int ret = pl_chan_create(&ch, 1);

	if (ret)
		return ret;
	ret = use_chan(ch);
	EXPECT_EQ(0, pl_chan_close(ch));
	EXPECT_EQ(0, pl_chan_destroy(ch));
	return ret;
}

/* ---- queues ---- */

static void count_items(void **batch, size_t nr, void *arg)
{
	(void)batch;
	nr_ran += (int)nr;
}

/* What was refused is not executed, all else is. */
static int op_queue(void)
{
	int i, ret, said = 0, nr = 0;
	struct pl_queue *q;

	ret = pl_queue_create(&q, count_items, NULL);
	if (ret)
		return ret;
	for (i = 0; i < 10; i++) {
		ret = i % 2 ? pl_queue_push_urgent(q, NULL) :
			      pl_queue_push(q, NULL);
		nr += !ret;
		said = ret ? ret : said;
	}
	EXPECT_EQ(0, pl_queue_close(q));
	do {
		ret = pl_queue_join(q);
		said = ret ? ret : said;
	} while (ret == -ENOMEM);
	EXPECT_EQ(0, ret);
	EXPECT_EQ(nr, nr_ran);
	return said;
}

/* ---- scopes ---- */

static intptr_t count_child(void *arg)
{
	count(arg);
	return 7;
}

/* What was refused does not run, all else does; and the scope is left. */
static int op_scope(void)
{
	struct pl_scope s = PL_SCOPE_INIT;
	int i, said = 0, nr = 0, ret = pl_scope_enter(&s, in_ms(100000), 0);
	struct pl_child c[5];

	if (ret)
		return ret;
	for (i = 0; i < 10; i++) {
		ret = pl_scope_spawn(&s, i % 2 ? &c[i / 2] : NULL, count_child,
				     NULL, NULL);
		nr += !ret;
		said = ret ? ret : said;
	}
	EXPECT_EQ(0, pl_scope_leave(&s));
	EXPECT_EQ(nr, nr_ran);
	return said;
}

/* ---- waits for events ---- */

/*
 * The peer has shut down its side, so a request does not wait for room.  Some
 * times, so that the call that fails is likely to be one of these.
 */
static int op_poll_half_closed(void)
{
	static char much[1 << 16];
	int i, ret = -ETIMEDOUT;

	while (send(fds[0], much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	EXPECT_EQ(0, shutdown(fds[1], SHUT_WR));
	for (i = 0; i < 4 && ret == -ETIMEDOUT; i++)
		ret = pl_poll(fds[0], POLLOUT, in_ms(50));
	return or_timed_out(ret);
}

static int op_poll_many(void)
{
	struct pollfd both[] = { { fds[0], POLLIN, 0 }, { fds[1], POLLIN, 0 } };

	return or_timed_out(pl_poll_many(both, 2, in_ms(50)));
}

/* ---- waits ---- */

static int op_sem_wait_until(void)
{
	static struct pl_sem sem;

	return or_timed_out(pl_sem_wait_until(&sem, in_ms(1)));
}

static int op_latch_wait_until(void)
{
	static struct pl_latch latch = PL_LATCH_INIT(1);

	return or_timed_out(pl_latch_wait_until(&latch, in_ms(1)));
}

static int op_rwlock_until(void)
{
	static struct pl_rwlock lock;
	int ret;

	pl_rwlock_rdlock(&lock);
	ret = or_timed_out(pl_rwlock_wrlock_until(&lock, in_ms(1)));
	EXPECT_EQ(0, pl_rwlock_tryrdlock(&lock));
	pl_rwlock_rdunlock(&lock);
	pl_rwlock_rdunlock(&lock);
	return ret;
}

static int op_once(void)
{
	static struct pl_once once;

	EXPECT_EQ(0, pl_once(&once, count, NULL));
	EXPECT_EQ(0, pl_once(&once, count, NULL));
	EXPECT_EQ(1, nr_ran);
	return 0;
}

static int op_set_workers(void)
{
	return pl_runtime_set_workers(3);
}

#endif /* SELFTESTS_NOMEM_NOUNS_H */
