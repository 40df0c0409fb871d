// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The hot paths of one worker beside three others, for bench/counts/sharing to
 * see which memory they write
 *
 * The others are "idle", parked.  A path that makes a task ready among them wakes
 * one each time, so that the next round waits until it is parked again.  Such
 * paths run beside "busy" workers too, in tasks that the kernel holds; and so
 * does a worker that parks.  Of some paths another thread is traced: one that
 * is no worker, beside four of these, or the timer thread.
 */
#include "lines.h"
#include "lines_threads.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* Lets a task of this worker run, or one that another has taken. */
static void let_run(void)
{
	if (!strcmp(beside, "idle"))
		usleep(100);
	else
		pl_yield();
}

/* ---- tasks ---- */

static void spawn_end(void)
{
	unsigned int i;

	for (i = 0; i < 2 * ROUNDS; i++) {
		mark_round(i);
		must("spawn", pl_spawn(NULL, nothing, NULL, NULL));
		if (i % 32 == 31)
			pl_yield();
	}
	end();
}

static void spawn_join(void)
{
	unsigned int i;

	for (i = 0; i < 2 * ROUNDS; i++) {
		mark_round(i);
		pl_join(spawn(nothing, NULL));
	}
	end();
}

/*
 * The worker that is woken takes the task; this one, or a thread that is none,
 * goes on with its own.
 */
static void spawn_notify(void)
{
	unsigned int i;

	for (i = 0; i < 2 * ROUNDS; i++) {
		begin_one(i);
		must("spawn", pl_spawn(NULL, count_end, NULL, NULL));
		end_one(i);
		wait_until_ended(i + 1);
	}
}

static void yield_on(void *arg)
{
	unsigned int i;

	put_own_stack();
	for (i = 0; i < 2 * ROUNDS; i++) {
		if (!arg)
			mark_round(i);
		pl_yield();
	}
	if (!arg)
		end();
}

static void yield(void)
{
	twice(yield_on);
}

static void yield_alone(void)
{
	yield_on(NULL);
}

/* ---- waiting ---- */

static void play_word(void *arg)
{
	const uint32_t me = (uint32_t)(uintptr_t)arg;
	unsigned int i;

	put_own_stack();
	for (i = 0; i < 2 * ROUNDS; i++) {
		if (!me)
			mark_round(i);
		while (atomic_load(&path.word.value) != me)
			pl_word_wait(&path.word, !me, path.deadline_ns);
		atomic_store(&path.word.value, !me);
		pl_word_wake(&path.word, 1);
	}
	if (!me)
		end();
}

static void word(void)
{
	path.deadline_ns = PL_FOREVER;
	twice(play_word);
}

static void word_until(void)
{
	path.deadline_ns = pl_now() + 3600 * NSEC_PER_SEC;
	twice(play_word);
}

/* A waiter that is woken each time it waits again. */
static void wait_on(void *arg)
{
	(void)arg;
	put_own_stack();
	while (!atomic_load(&path.stop)) {
		path.counted++;
		pl_word_wait(&path.word, 0, PL_FOREVER);
	}
}

static void wake(void)
{
	pl_task_t t = spawn(wait_on, NULL);
	unsigned int i;

	for (i = 0; i < 2 * ROUNDS; i++) {
		while (!pl__nr_waiting(&path.word.value))
			let_run();
		begin_one(i);
		pl_word_wake(&path.word, 1);
		end_one(i);
	}
	atomic_store(&path.stop, 1);
	atomic_store(&path.word.value, 1);
	pl_word_wake(&path.word, 1);
	pl_join(t);
}

/* Each time the worker parks, as it is the only one without a task. */
static void park(void)
{
	unsigned int i;

	for (i = 0; i < 2 * ROUNDS; i++) {
		mark_round(i);
		pl_word_wait(&path.word, 0, PL_FOREVER);
	}
	end();
	atomic_store(&path.stop, 1);
}

static void unpark(void)
{
	while (!atomic_load(&path.stop)) {
		if (is_idle(1) && pl__nr_waiting(&path.word.value))
			pl_word_wake(&path.word, 1);
		usleep(100);
	}
}

static void mutex(void)
{
	unsigned int i;

	for (i = 0; i < 2 * ROUNDS; i++) {
		mark_round(i);
		pl_mutex_lock(&path.mutex);
		path.counted++;
		pl_mutex_unlock(&path.mutex);
	}
	end();
}

static void put_chan(struct pl_chan **ch, size_t room)
{
	must("chan", pl_chan_create(ch, room));
	put_heap(*ch, "object", "channel");
}

static void chan(void)
{
	unsigned int i;
	void *item;

	put_chan(&path.chan, 1);
	for (i = 0; i < 2 * ROUNDS; i++) {
		mark_round(i);
		must("send", pl_chan_send(path.chan, &path));
		must("recv", pl_chan_recv(path.chan, &item));
	}
	end();
}

static void play_chan(void *arg)
{
	unsigned int i;
	void *item;

	put_own_stack();
	for (i = 0; i < 2 * ROUNDS; i++) {
		if (!arg)
			mark_round(i);
		if (arg)
			must("recv", pl_chan_recv(path.chan, &item));
		else
			must("send", pl_chan_send(path.chan, &path));
	}
	if (!arg)
		end();
}

static void chan_wait(void)
{
	put_chan(&path.chan, 0);
	twice(play_chan);
}

/* ---- timers, stacks, sockets ---- */

static void timer(void)
{
	const uint64_t ns = pl_now() + 3600 * NSEC_PER_SEC;
	unsigned int i;
	pl_timer_t t;

	for (i = 0; i < 2 * ROUNDS; i++) {
		mark_round(i);
		must("add", pl_timer_add(&t, ns + i, nothing, NULL));
		must("del", pl_timer_del(t));
	}
	end();
}

/* @nr stacks are taken, then put back. */
static void take_stacks(unsigned int nr)
{
	struct pl__worker *w = pl__self();
	unsigned int i, k;

	for (i = 0; i < 2 * ROUNDS; i += nr) {
		mark_round(i);
		for (k = 0; k < nr; k++)
			path.stacks[k] = pl__stack_get(&pl__rt.stacks,
						       &w->stacks,
						       PL_STACK_NORMAL);
		for (k = 0; k < nr; k++)
			pl__stack_put(&pl__rt.stacks, &w->stacks,
				      path.stacks[k]);
	}
	end();
	for (k = 0; k < nr; k++)
		put_range(path.stacks[k], sizeof(*path.stacks[k]), "task",
			  "stack's struct");
}

static void stack(void)
{
	take_stacks(1);
}

static void stack_many(void)
{
	take_stacks(STACKS);
}

static void send_recv(void)
{
	unsigned int i;
	char c;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, path.fd))
		die("socketpair: %s", strerror(errno));
	for (i = 0; i < 2 * ROUNDS; i++) {
		mark_round(i);
		must("send", (int)pl_send(path.fd[0], "x", 1, 0));
		must("recv", (int)pl_recv(path.fd[1], &c, 1, 0));
	}
	end();
}

/* A descriptor on which nothing is in flight, and each worker has a ring. */
static void close_socket(void)
{
	int fds[2 * ROUNDS];
	unsigned int i;

	make_ring();
	for (i = 0; i < 2 * ROUNDS; i++)
		fds[i] = must("socket", socket(AF_UNIX, SOCK_STREAM, 0));
	for (i = 0; i < 2 * ROUNDS; i++) {
		mark_round(i);
		must("close", pl_close(fds[i]));
	}
	end();
}

/* ---- which ---- */

static const struct path {
	const char *beside, *name;
	void (*run)(void);	/* by a task */
	void (*outside)(void);	/* what the first thread does meanwhile */
	void (*in_thread)(void); /* instead of run: by a thread */
	void (*stay)(void *arg);	/* by busy workers; NULL: stay() */
	const char *traced;	/* thread; NULL: the task's worker */
} paths[] = {
	{ "busy", "spawn", .run = spawn_end },
	{ "busy", "spawn_join", .run = spawn_join },
	{ "busy", "yield", .run = yield },
	{ "busy", "word", .run = word },
	{ "busy", "word_until", .run = word_until },
	{ "busy", "wake", .run = wake },
	{ "busy", "chan_wait", .run = chan_wait },
	{ "busy", "park", .run = park, .outside = unpark },
	{ "busy", "sleep", .run = sleep_on },
	{ "busy", "fire", .run = fire, .traced = "timer" },
	{ "busy", "close", .run = close_socket, .stay = stay_with_ring },
	{ "busy", "steal", .run = steal, .stay = stay_behind_tasks },
	{ "busy", "thread_spawn", .in_thread = thread_spawn,
	  .traced = "thread" },
	{ "idle", "spawn", .run = spawn_notify },
	{ "idle", "thread_spawn", .in_thread = spawn_notify,
	  .traced = "thread" },
	{ "idle", "wake", .run = wake },
	{ "idle", "yield_alone", .run = yield_alone },
	{ "idle", "mutex", .run = mutex },
	{ "idle", "chan", .run = chan },
	{ "idle", "timer", .run = timer },
	{ "idle", "stack", .run = stack },
	{ "idle", "stack_many", .run = stack_many },
	{ "idle", "send_recv", .run = send_recv },
};

#define NR_PATHS (sizeof(paths) / sizeof(*paths))

/* ---- the process ---- */

static void occupy(const struct path *p)
{
	uint32_t i;

	if (pipe2(path.pipe, O_CLOEXEC))
		die("pipe: %s", strerror(errno));
	for (i = 1; i <= nr_beside; i++) {
		must("spawn", pl_spawn(NULL, p->stay ? p->stay : stay, NULL,
				       NULL));
		while (atomic_load(&path.nr_blocked) < i)
			usleep(100);
	}
}

static void free_workers(void)
{
	if (!strcmp(beside, "busy") &&
	    write(path.pipe[1], "wxyz", nr_beside) != (ssize_t)nr_beside)
		die("write: %s", strerror(errno));
}

static void run(void *arg)
{
	const struct path *p = arg;
	struct pl__worker *w = pl__self();

	settle();
	p->run();
	if (pl__self() != w)
		die("%s: has moved to another worker", p->name);
	put_own_stack();
	path.worker = w->index;
}

static void start(void)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.nr_workers = WORKERS;
	cfg.min_workers = WORKERS;
	cfg.worker_start = put_thread;
	must("start", pl_runtime_start(&cfg));
}

/* By a task of the one worker that is left, or by a thread beside all. */
static void run_path(const struct path *p)
{
	pl_task_t t;

	if (p->in_thread) {
		in_thread(p->in_thread);
		return;
	}
	t = spawn(run, (void *)p);
	if (p->outside)
		p->outside();
	must("join", pl_join(t));
}

static void put_path(const struct path *p)
{
	printf("path %s %s worker ", p->beside, p->name);
	if (p->traced)
		printf("%s", p->traced);
	else
		printf("%u", path.worker);
	printf(" rounds %u\n", ROUNDS);
}

static void measure(const struct path *p)
{
	beside = p->beside;
	nr_beside = p->in_thread ? WORKERS : WORKERS - 1;
	start();
	/* Its slot is none that tasks of the path have had. */
	(void)pl__thread_task();
	if (!strcmp(beside, "busy"))
		occupy(p);
	run_path(p);
	put_range(pl__thread_task(), sizeof(struct pl__task), "other",
		  "thread");
	put_range(&path, sizeof(path), "object", "path");
	put_owners();
	put_path(p);
	free_workers();
	must("stop", pl_runtime_stop());
}

int main(int argc, char **argv)
{
	const struct path *p;

	for (p = paths; argc == 1 && p < paths + NR_PATHS; p++)
		printf("%s-%s\n", p->beside, p->name);
	if (argc == 1)
		return 0;
	if (argc != 3)
		die("usage: [busy|idle PATH]");
	if (mmap((void *)MARKS, 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	printf("at %016lx main\n", (uintptr_t)main);
	for (p = paths; p < paths + NR_PATHS; p++)
		if (!strcmp(p->beside, argv[1]) && !strcmp(p->name, argv[2])) {
			measure(p);
			return 0;
		}
	die("%s %s: no such path", argv[1], argv[2]);
}
