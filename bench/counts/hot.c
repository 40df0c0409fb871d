// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The hot paths, each so many times over, for bench/counts/count to count
 * their instructions: on one worker, so that a count repeats
 */
#include "../lib/task.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned int nr;

/* ---- tasks ---- */

static void spawn_all(void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; i < nr; i++) {
		must("spawn", pl_spawn(NULL, nothing, NULL, NULL));
		if (i % 64 == 0)
			pl_yield();
	}
}

static void spawn_urgent(void *arg)
{
	struct pl_spawn_opts opts = spawn_opts(PL_STACK_NORMAL,
					       PL_SPAWN_URGENT);
	unsigned int i;

	(void)arg;
	for (i = 0; i < nr; i++)
		must("spawn", pl_spawn(NULL, nothing, NULL, &opts));
}

static void spawn_join(void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; i < nr; i++)
		pl_join(spawn(nothing, NULL));
}

/* Said to block, and does not: no task waits. */
static void call_blocking(void *arg)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		must("blocking", pl_blocking(nothing, arg));
}

static void yield_on(void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; i < nr / 2; i++)
		pl_yield();
}

static void yield(void *arg)
{
	(void)arg;
	twice(yield_on);
}

/* ---- waiting ---- */

static struct pl_word word;
static struct pl_mutex mutex;
static struct pl_cond cond;
static uint64_t deadline_ns = PL_FOREVER;

static void play_word(void *arg)
{
	const uint32_t me = (uint32_t)(uintptr_t)arg;
	unsigned int i;

	for (i = 0; i < nr / 2; i++) {
		while (atomic_load(&word.value) != me)
			pl_word_wait(&word, !me, deadline_ns);
		atomic_store(&word.value, !me);
		pl_word_wake(&word, 1);
	}
}

static void wait_wake(void *arg)
{
	(void)arg;
	twice(play_word);
}

static void wait_wake_until(void *arg)
{
	(void)arg;
	deadline_ns = pl_now() + 3600 * NSEC_PER_SEC;
	twice(play_word);
}

static void wake_nobody(void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; i < nr; i++)
		pl_word_wake(&word, 1);
}

static void lock_unlock(void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; i < nr; i++) {
		pl_mutex_lock(&mutex);
		pl_mutex_unlock(&mutex);
	}
}

static void play_cond(void *arg)
{
	const uint32_t me = (uint32_t)(uintptr_t)arg;
	unsigned int i;

	for (i = 0; i < nr / 2; i++) {
		pl_mutex_lock(&mutex);
		while (word.value != me)
			pl_cond_wait(&cond, &mutex);
		word.value = !me;
		pl_cond_signal(&cond);
		pl_mutex_unlock(&mutex);
	}
}

static void wait_signal(void *arg)
{
	(void)arg;
	twice(play_cond);
}

/* ---- timers ---- */

static void add_del(void *arg)
{
	const uint64_t ns = pl_now() + 3600 * NSEC_PER_SEC;
	unsigned int i;
	pl_timer_t t;

	(void)arg;
	for (i = 0; i < nr; i++) {
		must("add", pl_timer_add(&t, ns + i, nothing, NULL));
		must("del", pl_timer_del(t));
	}
}

/* ---- I/O ---- */

/* There is always something to receive; so it yields after 16. */
static void recv_ready(void *arg)
{
	unsigned int i;
	int fds[2];
	char c = 0;

	(void)arg;
	must("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	for (i = 0; i < nr; i++) {
		must("write", write(fds[1], &c, 1));
		must("recv", pl_recv(fds[0], &c, 1, 0));
	}
	close(fds[0]);
	close(fds[1]);
}

/* A file goes by the ring; this one never has to wait. */
static void read_ready(void *arg)
{
	int fd = open("/dev/zero", O_RDONLY);
	unsigned int i;
	char c;

	(void)arg;
	must("open", fd);
	for (i = 0; i < nr; i++)
		must("read", pl_read(fd, &c, 1));
	close(fd);
}

/* What the socket has room for, and what is there: no call has to wait. */
static void send_recv(void *arg)
{
	unsigned int i;
	int fd[2];
	char c;

	(void)arg;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		die("socketpair: %s", strerror(errno));
	for (i = 0; i < nr; i++) {
		must("send", (int)pl_send(fd[0], "x", 1, 0));
		must("recv", (int)pl_recv(fd[1], &c, 1, 0));
	}
	must("close", pl_close(fd[0]));
	must("close", pl_close(fd[1]));
}

/* ---- from and to a thread ---- */

static void answer(void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; i < nr; i++) {
		while (atomic_load(&word.value) != 1)
			pl_word_wait(&word, 0, PL_FOREVER);
		atomic_store(&word.value, 0);
		pl_word_wake(&word, 1);
	}
}

/* Each time the thread sleeps, then the worker. */
static void park_wake(void)
{
	pl_task_t t;
	unsigned int i;

	start_workers(1);
	t = spawn(answer, NULL);
	for (i = 0; i < nr; i++) {
		atomic_store(&word.value, 1);
		pl_word_wake(&word, 1);
		while (atomic_load(&word.value) != 0)
			pl_word_wait(&word, 1, PL_FOREVER);
	}
	pl_join(t);
	must("stop", pl_runtime_stop());
}

static void add_del_outside(void)
{
	start_workers(1);
	add_del(NULL);
	must("stop", pl_runtime_stop());
}

static const struct path {
	const char *name;
	void (*in_task)(void *arg);
	void (*outside)(void);
} paths[] = {
	{ "spawn", spawn_all, NULL },
	{ "spawn_urgent", spawn_urgent, NULL },
	{ "spawn_join", spawn_join, NULL },
	{ "blocking", call_blocking, NULL },
	{ "yield", yield, NULL },
	{ "wait_wake", wait_wake, NULL },
	{ "wait_wake_until", wait_wake_until, NULL },
	{ "wake_nobody", wake_nobody, NULL },
	{ "mutex", lock_unlock, NULL },
	{ "cond", wait_signal, NULL },
	{ "timer", add_del, NULL },
	{ "recv", recv_ready, NULL },
	{ "read", read_ready, NULL },
	{ "send_recv", send_recv, NULL },
	{ "timer_outside", NULL, add_del_outside },
	{ "park_wake", NULL, park_wake },
};

int main(int argc, char **argv)
{
	const struct path *p, *end = paths + sizeof(paths) / sizeof(*paths);

	for (p = paths; argc == 1 && p < end; p++)
		puts(p->name);
	if (argc == 1)
		return 0;
	if (argc != 3)
		die("usage: [PATH NR]");
	nr = whole(argv[2], 1U << 30);
	for (p = paths; p < end && strcmp(p->name, argv[1]); p++)
		;
	if (p == end)
		die("%s: no such path", argv[1]);
	if (p->in_task)
		in_task(1, p->in_task, NULL);
	else
		p->outside();
	return 0;
}
