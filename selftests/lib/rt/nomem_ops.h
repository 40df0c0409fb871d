/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The operations that are tried: each returns 0, or what refused it said.
 * nomem.h is included before this.
 */
#ifndef SELFTESTS_NOMEM_OPS_H
#define SELFTESTS_NOMEM_OPS_H

#include "count.h"
#include <liburing.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

static int until_ran(int ret, int nr)
{
	if (!ret)
		EXPECT_TRUE(UNTIL(nr_ran == nr));
	return ret;
}

/* ---- operations ---- */

static int op_start(void)
{
	return pl_runtime_start(NULL);
}

static int op_start_many(void)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.nr_workers = cfg.min_workers = 4;
	cfg.max_workers = 8;
	cfg.backend = PL_BACKEND_FUTEX;
	return pl_runtime_start(&cfg);
}

static int op_start_dumper(void)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.dump_signal = SIGUSR2;
	return pl_runtime_start(&cfg);
}

static int op_start_module(void)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.backend = PL_BACKEND_MODULE;
	return pl_runtime_start(&cfg);
}

static int spawn_class(uint32_t stack, uint32_t flags)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.stack = stack;
	opts.flags = flags;
	return until_ran(pl_spawn(NULL, count, NULL, &opts), 1);
}

static int op_spawn(void)
{
	return until_ran(pl_spawn(NULL, count, NULL, NULL), 1);
}

static int op_spawn_small(void)
{
	return spawn_class(PL_STACK_SMALL, 0);
}

static int op_spawn_large(void)
{
	return spawn_class(PL_STACK_LARGE, 0);
}

static int op_spawn_worker(void)
{
	return spawn_class(PL_STACK_WORKER, 0);
}

static int op_spawn_urgent(void)
{
	return spawn_class(PL_STACK_NORMAL, PL_SPAWN_URGENT);
}

/* One that was used and is not, in an area where another still is. */
static int op_trim(void)
{
	struct pl__stacks *s = &pl__rt.stacks;
	struct pl__stack *st[64];
	bool is_beside = false;
	uint32_t i, nr = 0;

	while (!is_beside && nr < ARRAY_SIZE(st)) {
		st[nr] = pl__stack_get(s, NULL, PL_STACK_NORMAL);
		if (!st[nr])
			break;
		for (i = 0; i < nr; i++)
			is_beside |= st[i]->area == st[nr]->area;
		nr++;
	}
	if (is_beside) {
		pl__stack_put(s, NULL, st[--nr]);
		pl__stacks_trim(s);
	}
	while (nr)
		pl__stack_put(s, NULL, st[--nr]);
	return is_beside ? 0 : -ENOMEM;
}

/*
 * More stacks than are kept for long; all of one area but a few are in use, so
 * that those are cleaned one by one.
 */
static struct {
	struct pl__stacks	s;
	struct pl__stack	*used[8];
	uint32_t		nr_used;
} aged;

static void prepare_age(void)
{
	static const size_t sizes[PL__STACK_CLASSES] = {
		256 << 10, 32 << 10, 8 << 20,
	};
	static struct pl__stack *st[1100];
	uint32_t i, last = ARRAY_SIZE(st) - 1;

	ASSERT_EQ(0, pl__stacks_init(&aged.s, sizes));
	for (i = 0; i <= last; i++) {
		st[i] = pl__stack_get(&aged.s, NULL, PL_STACK_SMALL);
		ASSERT_NE(NULL, st[i]);
	}
	for (i = 0; i <= last; i++)
		if (st[i]->area == st[last]->area &&
		    aged.nr_used < ARRAY_SIZE(aged.used))
			aged.used[aged.nr_used++] = st[i];
		else
			pl__stack_put(&aged.s, NULL, st[i]);
	ASSERT_TRUE(pl__stacks_is_trim_due(&aged.s));
}

/* As the timer thread does it, but for the time that it takes. */
static int op_age(void)
{
	uint64_t now = 0, ns;

	while ((ns = pl__stacks_age(&aged.s, now)) != UINT64_MAX)
		now += ns;
	EXPECT_FALSE(pl__stacks_is_trim_due(&aged.s));
	while (aged.nr_used)
		pl__stack_put(&aged.s, NULL, aged.used[--aged.nr_used]);
	pl__stacks_fini(&aged.s);
	return 0;
}

/* A queue that was long, and is empty. */
static int op_shrink(void)
{
	struct pl__deque d;
	uintptr_t i;

	if (pl__deque_init(&d, 0))
		return -ENOMEM;
	for (i = 1; i <= 2 * PL__DEQUE_KEEP; i++)
		if (!pl__deque_push(&d, (void *)i))
			break;
	while (pl__deque_pop(&d))
		;
	pl__deque_trim(&d);
	pl__deque_fini(&d);
	return i <= 2 * PL__DEQUE_KEEP ? -ENOMEM : 0;
}

static int op_flush(void)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	int ret;

	opts.flags = PL_SPAWN_NOSIGNAL;
	ret = pl_spawn(NULL, count, NULL, &opts);
	if (!ret)
		EXPECT_EQ(1, pl_flush());
	return until_ran(ret, 1);
}

/* More than any first array, chunk or area holds. */
static int op_spawn_many(void)
{
	int nr = pl_spawn_many(NULL, 4000, count, NULL, NULL);

	return until_ran(nr < 0 ? nr : 0, nr);
}

/* Needs another worker, from then on or later. */
static void wait_for_one(void *arg)
{
	spawn(count, NULL);
	EXPECT_TRUE(UNTIL_BUSY(nr_ran == 1));
	nr_ran++;
}

static int op_notify(void)
{
	return until_ran(pl_spawn(NULL, wait_for_one, NULL, NULL), 2);
}

static struct pl_word word;

static void wake_word(void *arg)
{
	atomic_store(&word.value, 1);
	pl_word_wake(&word, 1);
}

/* A worker that is blocked by its task has another take its place. */
static int op_notify_blocked(void)
{
	int ret = pl_spawn(NULL, wake_word, NULL, NULL);

	while (!ret && atomic_load(&word.value) == 0) {
		ret = pl_word_wait(&word, 0, PL_FOREVER);
		ret = ret == -EAGAIN ? 0 : ret;
	}
	return ret;
}

static void stay(void *arg)
{
	EXPECT_TRUE(UNTIL(go));
}

/* Set up before anything is refused. */
static pl_task_t task;

static int op_join(void)
{
	return pl_join(task);
}

static int op_join_until(void)
{
	return pl_join_until(task, in_ms(3600 * 1000));
}

static int op_sleep(void)
{
	return pl_sleep(NSEC_PER_USEC);
}

/* After the first the worker has room for those that it keeps. */
static int op_sleep_again(void)
{
	int i, ret = 0;

	for (i = 0; i < 4 && !ret; i++)
		ret = pl_sleep(NSEC_PER_MSEC);
	return ret;
}

static int op_timer_add(void)
{
	return until_ran(pl_timer_add(NULL, pl_now(), count, NULL), 1);
}

static int op_timer_del(void)
{
	pl_timer_t t;
	int ret = pl_timer_add(&t, PL_FOREVER, count, NULL);

	if (!ret)
		EXPECT_EQ(0, pl_timer_del(t));
	return ret;
}

static int op_timers(void)
{
	int i, ret = 0;

	for (i = 0; i < 12000 && !ret; i++)
		ret = pl_timer_add(NULL, in_ms(3600 * 1000), count, NULL);
	return ret;
}

static int op_word_wait(void)
{
	int ret = pl_word_wait(&word, 0, in_ms(1));

	return ret == -ETIMEDOUT ? 0 : ret;
}

static int op_word_requeue(void)
{
	static struct pl_word other;

	EXPECT_EQ(0, pl_word_wake(&word, 1));
	return pl_word_requeue(&word, &other, 1, 1);
}

static struct pl_mutex mutex;
static struct pl_cond cond;

static void hold_mutex(void *arg)
{
	pl_mutex_lock(&mutex);
	nr_ran = 1;
	/* Until it is waited for, or given up. */
	EXPECT_TRUE(UNTIL(atomic_load(&mutex.word.value) == 2 || go == 3));
	pl_mutex_unlock(&mutex);
}

static int op_mutex_lock(void)
{
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	pl_mutex_lock(&mutex);
	EXPECT_EQ(-EBUSY, pl_mutex_trylock(&mutex));
	pl_mutex_unlock(&mutex);
	return 0;
}

static int op_mutex_lock_until(void)
{
	int ret;

	EXPECT_TRUE(UNTIL(nr_ran == 1));
	ret = pl_mutex_lock_until(&mutex, in_ms(3600 * 1000));
	if (!ret)
		pl_mutex_unlock(&mutex);
	return ret;
}

static void signal_cond(void *arg)
{
	EXPECT_TRUE(UNTIL(go >= 2));
	pl_mutex_lock(&mutex);
	pl_cond_signal(&cond);
	pl_cond_broadcast(&cond);
	pl_mutex_unlock(&mutex);
}

static int cond_wait(uint64_t deadline_ns)
{
	int ret;

	pl_mutex_lock(&mutex);
	go = 2;
	ret = pl_cond_wait_until(&cond, &mutex, deadline_ns);
	EXPECT_EQ(-EBUSY, pl_mutex_trylock(&mutex));
	pl_mutex_unlock(&mutex);
	return ret;
}

static int op_cond_wait(void)
{
	return cond_wait(PL_FOREVER);
}

static int op_cond_wait_until(void)
{
	return cond_wait(in_ms(3600 * 1000));
}

static void sleep_for_ever(void *arg)
{
	EXPECT_NE(0, pl_sleep_until(PL_FOREVER));
	nr_ran++;
}

static int op_interrupt(void)
{
	return until_ran(pl_interrupt(task), 1);
}

static int op_cancel(void)
{
	return until_ran(pl_cancel(task), 1);
}

#if !RT_ASAN
/* Refused in the child, which reports it to no caller and goes on. */
static int op_fork(void)
{
	pid_t pid = fork();

	if (!pid) {
		pl__fault_plan(PL__FAULT_NONE, 0, 0);
		EXPECT_EQ(0, pl_sleep(1));
		_exit(0);
	}
	EXPECT_EQ(0, reap(pid));
	return 0;
}
#endif

static int fds[2];

static void send_byte(void *arg)
{
	EXPECT_TRUE(UNTIL(go));
	EXPECT_EQ(1, write(fds[1], "x", 1));
}

static int one_byte(ssize_t ret)
{
	return ret == 1 ? 0 : (int)ret;
}

static int op_read(void)
{
	char byte;

	return one_byte(pl_read(fds[0], &byte, 1));
}

/* The first read finds nothing, so that it waits in epoll. */
static int op_read_polled(void)
{
	char byte;
	ssize_t ret = pl_read_until(fds[0], &byte, 1, in_ms(50));

	return ret == -ETIMEDOUT ? 0 : one_byte(ret);
}

static int op_read_until(void)
{
	char byte;

	return one_byte(pl_read_until(fds[0], &byte, 1, in_ms(3600 * 1000)));
}

static int op_recv(void)
{
	char byte;

	return one_byte(pl_recv(fds[0], &byte, 1, 0));
}

static int fd_to_close;

static void read_closed(void *arg)
{
	char byte;

	EXPECT_EQ(-EBADF, pl_read(fd_to_close, &byte, 1));
}

static int op_close(void)
{
	return pl_close(fd_to_close);
}

static int op_write(void)
{
	return one_byte(pl_write(fds[0], "x", 1));
}

static int op_send(void)
{
	return one_byte(pl_send(fds[0], "x", 1, 0));
}

static int op_io_wait(void)
{
	struct io_uring_sqe sqe;

	pl_io_sqe_init(&sqe);
	io_uring_prep_nop(&sqe);
	return pl_io_wait(&sqe, PL_FOREVER);
}

/* Some times, so that the call that fails is likely to be one of its own. */
static int op_io_wait_linked(void)
{
	struct io_uring_sqe sqe[2];
	int i, ret = 0, res[2];

	pl_io_sqe_init(&sqe[0]);
	io_uring_prep_nop(&sqe[0]);
	sqe[1] = sqe[0];
	for (i = 0; i < 4 && !ret; i++) {
		ret = pl_io_wait_linked(sqe, res, 2, PL_FOREVER);
		EXPECT_EQ(ret ? -ECANCELED : 0, res[0]);
	}
	return ret ? ret : res[1];
}

static int op_connect(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(sa_family_t);
	int ret, fd, to, from = socket(AF_UNIX, SOCK_STREAM, 0);

	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)&addr, len));
	ASSERT_EQ(0, listen(fd, 1));
	len = sizeof(addr);
	ASSERT_EQ(0, getsockname(fd, (struct sockaddr *)&addr, &len));
	ret = pl_connect(from, (struct sockaddr *)&addr, len);
	if (!ret) {
		to = pl_accept(fd, NULL, NULL, 0);
		ret = to < 0 ? to : pl_close(to);
	}
	close(from);
	close(fd);
	return ret;
}

/* Whether there is such a host is not the question. */
static int op_getaddrinfo(void)
{
	struct addrinfo *list;
	int ret = pl_getaddrinfo("localhost", "80", NULL, &list, NULL);

	if (!ret)
		freeaddrinfo(list);
	return ret == -ENXIO ? 0 : ret;
}

static int op_getnameinfo(void)
{
	const struct sockaddr_in addr = { .sin_family = AF_INET };
	char service[32];

	return pl_getnameinfo((const struct sockaddr *)&addr, sizeof(addr),
			      NULL, 0, service, sizeof(service), 0, NULL);
}

static int op_stop(void)
{
	return pl_runtime_stop();
}

static atomic_int stop_said;

static void stop_from_timer(void *arg)
{
	stop_said = pl_runtime_stop();
	nr_ran++;
}

/* Refused, it has not begun: no task was cancelled. */
static int op_stop_from_timer(void)
{
	int ret = pl_timer_add(NULL, 0, stop_from_timer, NULL);

	if (until_ran(ret, 1))
		return ret;
	if (stop_said)
		EXPECT_EQ(0, pl_sleep(1));
	else
		EXPECT_TRUE(UNTIL(pl_runtime_stop() == -EALREADY &&
				  atomic_load(&pl__rt.state) ==
				  PL__RT_STOPPED));
	return stop_said;
}

static int op_stat(void)
{
	struct pl_stat_worker w = PL_STAT_WORKER_INIT;
	struct pl_stat st = PL_STAT_INIT;

	EXPECT_EQ(0, pl_stat_worker(0, &w));
	return pl_stat_read(&st);
}

#endif /* SELFTESTS_NOMEM_OPS_H */
