/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What the library orders, for a program with ThreadSanitizer on the library as
 * it is installed.  Each way of passing something on guards plain memory that
 * nothing else does, so that a report says which of them was not seen.  With
 * the argument "race" nothing guards it.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <parklot.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define NR	8
#define ROUNDS	50
#define CHECK(cond) do {						\
	if (!(cond)) {							\
		fprintf(stderr, "%d: %s\n", __LINE__, #cond);		\
		_exit(3);						\
	}								\
} while (0)

static long counted;
static struct pl_mutex mutex;
static struct pl_rwlock rwlock;
static struct pl_cond cond;
static struct pl_sem sem, full, room;
static struct pl_latch latch;
static struct pl_chan *chan;
static pl_key_t key;
static int fds[2];
static long passed;
static int nr_racing;

/* Runs NR tasks of @fn, with the numbers from 0, and joins them. */
static void crowd(void (*fn)(void *arg))
{
	pl_task_t t[NR];
	long i;

	for (i = 0; i < NR; i++)
		CHECK(!pl_spawn(&t[i], fn, (void *)i, NULL));
	for (i = 0; i < NR; i++)
		CHECK(!pl_join(t[i]));
}

static void by_mutex(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		pl_mutex_lock(&mutex);
		counted++;
		if (i % 8 == 0)
			pl_yield();
		pl_mutex_unlock(&mutex);
	}
}

static void by_rwlock(void *arg)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if ((long)arg % 2) {
			pl_rwlock_wrlock(&rwlock);
			counted++;
			pl_rwlock_wrunlock(&rwlock);
		} else {
			pl_rwlock_rdlock(&rwlock);
			CHECK(counted >= 0);
			pl_rwlock_rdunlock(&rwlock);
		}
	}
}

/* Tasks take turns, by their number. */
static void by_cond(void *arg)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		pl_mutex_lock(&mutex);
		while (counted % NR != (long)arg)
			pl_cond_wait(&cond, &mutex);
		counted++;
		pl_cond_broadcast(&cond);
		pl_mutex_unlock(&mutex);
	}
}

static void by_sem(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		CHECK(!pl_sem_wait(&sem));
		counted++;
		pl_sem_post(&sem, 1);
	}
}

static void by_chan(void *arg)
{
	long items[ROUNDS], *got;
	void *item;
	int i;

	if ((long)arg % 2)
		for (i = 0; i < ROUNDS; i++) {
			CHECK(!pl_chan_recv(chan, &item));
			got = (long *)item;
			CHECK(*got >= 0);
			*got = -1;
			pl_sem_post(&room, 1);
		}
	else
		for (i = 0; i < ROUNDS; i++) {
			items[i] = i;
			CHECK(!pl_chan_send(chan, &items[i]));
			pl_sem_wait(&room);
		}
	/* Others may have what is on this stack. */
	pl_latch_done(&latch);
	pl_latch_wait(&latch);
}

static void by_timer(void *arg)
{
	(void)arg;
	passed = 1;
	pl_sem_post(&full, 1);
}

static void by_key(void *arg)
{
	long *value = (long *)arg;

	*value = 1;
	pl_sem_post(&full, 1);
}

static void set_key(void *arg)
{
	*(long *)arg = 0;
	CHECK(!pl_key_set(key, arg));
}

static intptr_t child(void *arg)
{
	long *mine = (long *)arg;

	*mine += 1;
	pl_yield();
	return *mine;
}

static void by_scope(void)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct pl_child children[NR];
	long mine[NR], i;

	CHECK(!pl_scope_enter(&s, PL_FOREVER, 0));
	for (i = 0; i < NR; i++) {
		mine[i] = i;
		CHECK(!pl_scope_spawn(&s, &children[i], child, &mine[i], NULL));
	}
	CHECK(!pl_scope_leave(&s));
	for (i = 0; i < NR; i++)
		CHECK(children[i].result == i + 1 && mine[i] == i + 1);
}

/* The one message of a byte, @c. */
static struct mmsghdr *message(struct mmsghdr *msg, struct iovec *iov, char *c)
{
	iov->iov_base = c;
	iov->iov_len = 1;
	memset(msg, 0, sizeof(*msg));
	msg->msg_hdr.msg_iov = iov;
	msg->msg_hdr.msg_iovlen = 1;
	return msg;
}

/* The writer says by a byte, or by the end, that it has written elsewhere. */
static void ask(void *arg)
{
	struct mmsghdr msg;
	struct iovec iov;
	char c = 'x';
	int i;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		passed++;
		CHECK(pl_write(fds[0], &c, 1) == 1);
		CHECK(pl_recvmmsg(fds[0], message(&msg, &iov, &c), 1, 0) == 1);
	}
	passed++;
	pl_close(fds[0]);
}

static void answer(void *arg)
{
	struct mmsghdr msg;
	struct iovec iov;
	char c;

	(void)arg;
	while (pl_recv(fds[1], &c, 1, 0) == 1) {
		passed++;
		CHECK(pl_sendmmsg(fds[1], message(&msg, &iov, &c), 1, 0) == 1);
	}
	passed++;
	pl_close(fds[1]);
}

static void by_io(void)
{
	pl_task_t a, b;

	passed = 0;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	CHECK(!pl_spawn(&a, ask, NULL, NULL) &&
	      !pl_spawn(&b, answer, NULL, NULL));
	CHECK(!pl_join(a) && !pl_join(b));
	CHECK(passed == 2 * ROUNDS + 2);
}

static void ordered(void)
{
	pl_timer_t timer;
	pl_task_t t;
	long value;

	crowd(by_mutex);
	CHECK(counted == NR * ROUNDS);
	crowd(by_rwlock);
	counted = 0;
	crowd(by_cond);
	CHECK(counted == NR * ROUNDS);
	crowd(by_sem);
	CHECK(!pl_chan_create(&chan, 4) && !pl_latch_init(&latch, NR));
	crowd(by_chan);
	CHECK(!pl_chan_destroy(chan));
	passed = 0;
	CHECK(!pl_timer_add(&timer, 1000000, by_timer, NULL));
	CHECK(!pl_sem_wait(&full) && passed == 1);
	CHECK(!pl_key_create(&key, by_key));
	CHECK(!pl_spawn(&t, set_key, &value, NULL));
	CHECK(!pl_sem_wait(&full) && value == 1);
	by_scope();
	by_io();
}

/*
 * Both run at a time, and nothing orders them.  The one counts after the other:
 * ThreadSanitizer can miss accesses at the very same time.
 */
static void race(void *arg)
{
	static int is_written;
	int nr;

	(void)arg;
	nr = __atomic_add_fetch(&nr_racing, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&nr_racing, __ATOMIC_RELAXED) < 2)
		;
	while (nr == 2 && !__atomic_load_n(&is_written, __ATOMIC_RELAXED))
		;
	counted++;
	__atomic_store_n(&is_written, 1, __ATOMIC_RELAXED);
}

static void unordered(void)
{
	pl_task_t a, b;

	CHECK(!pl_spawn(&a, race, NULL, NULL) &&
	      !pl_spawn(&b, race, NULL, NULL));
	CHECK(!pl_join(a) && !pl_join(b));
}

int main(int argc, char **argv)
{
	struct pl_config config = PL_CONFIG_INIT;

	config.nr_workers = 4;
	CHECK(!pl_runtime_start(&config));
	CHECK(!pl_sem_init(&sem, 1) && !pl_sem_init(&full, 0) &&
	      !pl_sem_init(&room, 0));
	if (argc > 1 && !strcmp(argv[1], "race"))
		unordered();
	else
		ordered();
	CHECK(!pl_runtime_stop());
	puts("ended");
	return 0;
}
