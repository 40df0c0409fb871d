// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The hot paths of one worker beside three others, for bench/sharing to see
 * which memory they write
 *
 * The others are "idle", parked.  A path that makes a task ready among them wakes
 * one each time, so that the next round waits until it is parked again.  Such
 * paths run beside "busy" workers too, in tasks that the kernel holds; and so
 * does a worker that parks.
 *
 * A path runs ROUNDS times to warm up, and as often between two marks: stores
 * to the page MARKS, which a trace shows.
 */
#include "owners.h"
#include "task.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS		64
#define WORKERS		4
#define STACKS		64	/* more than a worker caches */
#define MARKS		0x5a5a00000UL

/* What a path's tasks share: the path's own, none of the library's. */
static struct {
	struct pl_word word;
	struct pl_mutex mutex;
	struct pl_chan *chan, *back;
	struct pl__stack *stacks[STACKS];
	uint64_t deadline_ns;
	uint64_t counted;
	int fd[2];
	int pipe[2];
	_Atomic uint32_t nr_blocked;
	_Atomic uint32_t stop;
	_Atomic uint32_t nr_ended;
} __attribute__((aligned(64))) path;

static const char *beside;

/* ---- marks ---- */

static void begin(void)
{
	*(volatile uint64_t *)MARKS = 1;
}

static void end(void)
{
	*(volatile uint64_t *)(MARKS + 8) = 1;
}

/* For a loop of 2 * ROUNDS: marks the second half. */
static void mark_round(unsigned int i)
{
	if (i == ROUNDS)
		begin();
}

/* @nr workers are parked, and none looks for work. */
static bool is_idle(uint32_t nr)
{
	uint32_t nr_parked = 0, i;

	for (i = 0; i < pl__rt.lots.nr; i++)
		nr_parked += load_relaxed(&pl__rt.lots.lot[i].nr_parked);
	return nr_parked == nr && !load_relaxed(&pl__rt.nr_searching);
}

/* Until the other workers are as they are to be. */
static void settle(void)
{
	while (!strcmp(beside, "idle") && !is_idle(WORKERS - 1))
		usleep(100);
}

/* Lets a task of this worker run, or one that another has taken. */
static void let_run(void)
{
	if (!strcmp(beside, "idle"))
		usleep(100);
	else
		pl_yield();
}

/* The marks around one round, with the others settled before it. */
static void begin_one(unsigned int i)
{
	settle();
	if (i >= ROUNDS)
		begin();
}

static void end_one(unsigned int i)
{
	if (i >= ROUNDS)
		end();
}

/* ---- tasks ---- */

/* The stack that the caller runs on. */
static void put_own_stack(void)
{
	put_stacks(pl__current()->stack);
}

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

static void count_end(void *arg)
{
	(void)arg;
	atomic_fetch_add(&path.nr_ended, 1);
}

/* The worker that is woken takes the task; this one goes on with its own. */
static void spawn_notify(void)
{
	unsigned int i;

	for (i = 0; i < 2 * ROUNDS; i++) {
		begin_one(i);
		must("spawn", pl_spawn(NULL, count_end, NULL, NULL));
		end_one(i);
		while (atomic_load(&path.nr_ended) <= i)
			usleep(100);
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

/* ---- which ---- */

static const struct path {
	const char *beside, *name;
	void (*run)(void);
	void (*outside)(void);	/* what the first thread does meanwhile */
} paths[] = {
	{ "busy", "spawn", spawn_end, NULL },
	{ "busy", "spawn_join", spawn_join, NULL },
	{ "busy", "yield", yield, NULL },
	{ "busy", "word", word, NULL },
	{ "busy", "word_until", word_until, NULL },
	{ "busy", "wake", wake, NULL },
	{ "busy", "chan_wait", chan_wait, NULL },
	{ "busy", "park", park, unpark },
	{ "idle", "spawn", spawn_notify, NULL },
	{ "idle", "wake", wake, NULL },
	{ "idle", "yield_alone", yield_alone, NULL },
	{ "idle", "mutex", mutex, NULL },
	{ "idle", "chan", chan, NULL },
	{ "idle", "timer", timer, NULL },
	{ "idle", "stack", stack, NULL },
	{ "idle", "stack_many", stack_many, NULL },
	{ "idle", "send_recv", send_recv, NULL },
};

#define NR_PATHS (sizeof(paths) / sizeof(*paths))

/* ---- the process ---- */

/* Keeps its worker; other tasks of that may be stolen. */
static void stay(void *arg)
{
	char c;

	put_range(pl__current(), sizeof(struct pl__task), "other", "task");
	atomic_fetch_add(&path.nr_blocked, 1);
	if (read(path.pipe[0], &c, 1) < 0)
		die("read: %s", strerror(errno));
	(void)arg;
}

static void occupy(void)
{
	uint32_t i;

	if (pipe2(path.pipe, O_CLOEXEC))
		die("pipe: %s", strerror(errno));
	for (i = 1; i < WORKERS; i++) {
		must("spawn", pl_spawn(NULL, stay, NULL, NULL));
		while (atomic_load(&path.nr_blocked) < i)
			usleep(100);
	}
}

static void free_workers(void)
{
	if (!strcmp(beside, "busy") &&
	    write(path.pipe[1], "xyz", WORKERS - 1) != WORKERS - 1)
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
	printf("path %s %s worker %u rounds %u\n", p->beside, p->name,
	       w->index, ROUNDS);
}

/* The stack of a worker's thread, or of another, with its thread-locals. */
static void put_thread(void *arg)
{
	struct pl__worker *w = pl__self();
	char owner[16] = "other";
	pthread_attr_t attr;
	size_t size;
	void *low;

	if (w)
		snprintf(owner, sizeof(owner), "%u", w->index);
	if (pthread_getattr_np(pthread_self(), &attr) ||
	    pthread_attr_getstack(&attr, &low, &size))
		die("no stack of a thread");
	pthread_attr_destroy(&attr);
	put_range(low, size, owner, "thread's stack");
	(void)arg;
}

static void start(void)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.nr_workers = WORKERS;
	cfg.min_workers = WORKERS;
	cfg.worker_start = put_thread;
	must("start", pl_runtime_start(&cfg));
}

static void measure(const struct path *p)
{
	pl_task_t t;

	beside = p->beside;
	start();
	if (!strcmp(beside, "busy"))
		occupy();
	t = spawn(run, (void *)p);
	if (p->outside)
		p->outside();
	must("join", pl_join(t));
	put_range(pl__thread_task(), sizeof(struct pl__task), "other",
		  "thread");
	put_range(&path, sizeof(path), "object", "path");
	put_owners();
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
