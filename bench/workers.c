// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What ever more workers do together, for bench/scale-run: trees of tasks,
 * yields, spawns by threads, timers, sleeps, sockets, and how long until all
 * of them run
 *
 * PARKLOT_WORKERS= says how many.  Each case loops for CASE_NS, and counts in
 * lines of its own: what is shared is the library's.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#include "task.h"

#define CASE_NS		(300 * NSEC_PER_MSEC)
#define LINE		64
#define TREE_DEPTH	14
#define NR_YIELDERS	16U		/* a worker */
#define NR_SLEEPERS	1000U		/* a worker */
#define SLEEP_NS	NSEC_PER_MSEC
#define NR_PAIRS	16U		/* a worker */
#define AHEAD_MAX	1024U		/* tasks of a thread that are alive */
#define NR_LINES	8U		/* in which these are counted */
#define NR_RAMPS	60U
#define RAMP_REST_NS	(2 * NSEC_PER_MSEC)
#define RAMP_NS		(20 * NSEC_PER_MSEC)

/* One task's, or one thread's. */
struct line {
	_Alignas(LINE) _Atomic uint64_t nr;
};

static uint32_t nr_workers;
static struct line *lines;
static uint32_t nr_lines;
static atomic_bool is_over;

static void set_lines(uint32_t nr)
{
	nr_lines = nr;
	lines = aligned_alloc(LINE, nr * sizeof(*lines));
	if (!lines)
		die("no memory");
	memset(lines, 0, nr * sizeof(*lines));
}

static void count_one(struct line *l)
{
	atomic_store_explicit(&l->nr, atomic_load_explicit(&l->nr,
			      memory_order_relaxed) + 1, memory_order_relaxed);
}

static uint64_t counted(void)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < nr_lines; i++)
		sum += atomic_load(&lines[i].nr);
	return sum;
}

static bool goes_on(void)
{
	return !atomic_load_explicit(&is_over, memory_order_relaxed);
}

static void put_rate(double nr, uint64_t ns)
{
	char name[32];

	snprintf(name, sizeof(name), "%s:%u", bench_name, nr_workers);
	bench_put(name, "1/s", nr * (double)NSEC_PER_SEC / (double)ns);
}

/* By a thread: tasks may leave no worker to another one. */
static void put_counted(void)
{
	uint64_t nr, start_ns;

	sleep_until(now_ns() + CASE_NS / 10);
	start_ns = now_ns();
	nr = counted();
	sleep_until(start_ns + CASE_NS);
	put_rate((double)(counted() - nr), now_ns() - start_ns);
	atomic_store(&is_over, true);
}

/* @per_worker tasks of @fn for each worker, each with its line. */
static void count_by(uint32_t per_worker, void (*fn)(void *line))
{
	uint32_t i, nr = nr_workers * per_worker;
	struct pl_spawn_opts small = spawn_opts(PL_STACK_SMALL, 0);
	pl_task_t *tasks = zalloc(nr, sizeof(*tasks));

	start_workers(nr_workers);
	set_lines(nr);
	for (i = 0; i < nr; i++)
		must("spawn", pl_spawn(&tasks[i], fn, &lines[i], &small));
	put_counted();
	for (i = 0; i < nr; i++)
		pl_join(tasks[i]);
	must("stop", pl_runtime_stop());
	free(tasks);
}

/* ---- trees: a task for each node, which joins its two children ---- */

static void grow(void *arg)
{
	struct pl_spawn_opts small = spawn_opts(PL_STACK_SMALL, 0);
	uintptr_t depth = (uintptr_t)arg;
	pl_task_t child[2];
	int i;

	for (i = 0; depth && i < 2; i++)
		must("spawn", pl_spawn(&child[i], grow, (void *)(depth - 1),
				       &small));
	for (i = 0; depth && i < 2; i++)
		pl_join(child[i]);
}

static void trees(void *arg)
{
	const double nodes = (double)((2U << TREE_DEPTH) - 1);
	uint64_t start_ns, ns;
	unsigned int nr = 0;

	(void)arg;
	grow((void *)TREE_DEPTH);
	start_ns = now_ns();
	do {
		grow((void *)TREE_DEPTH);
		nr++;
		ns = now_ns() - start_ns;
	} while (ns < CASE_NS);
	put_rate(nr * nodes, ns);
}

/* ---- yields ---- */

static void yield_on(void *line)
{
	while (goes_on()) {
		count_one(line);
		pl_yield();
	}
}

static void yields(void)
{
	count_by(NR_YIELDERS, yield_on);
}

/* ---- spawns by threads, as many as there are workers ---- */

static void ran(void *line)
{
	struct line *l = line;

	atomic_fetch_add_explicit(&l->nr, 1, memory_order_relaxed);
}

static uint64_t nr_ran(const struct line *own)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < NR_LINES; i++)
		sum += atomic_load(&own[i].nr);
	return sum;
}

static void *spawn_on(void *own)
{
	struct line *l = own;
	uint64_t nr = 0;

	while (goes_on()) {
		must("spawn", pl_spawn(NULL, ran, &l[nr++ % NR_LINES], NULL));
		if (nr % 64 == 0 && nr - nr_ran(l) > AHEAD_MAX) {
			while (nr - nr_ran(l) > AHEAD_MAX / 2)
				sched_yield();
		}
	}
	while (nr_ran(l) < nr)
		sched_yield();
	return NULL;
}

static void foreign(void)
{
	pthread_t *threads;
	uint32_t i, nr;

	start_workers(nr_workers);
	nr = nr_workers;
	threads = zalloc(nr, sizeof(*threads));
	set_lines(nr * NR_LINES);
	for (i = 0; i < nr; i++) {
		if (pthread_create(&threads[i], NULL, spawn_on,
				   &lines[i * NR_LINES]))
			die("cannot start a thread");
	}
	put_counted();
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	must("stop", pl_runtime_stop());
}

/* ---- timers: each task adds one and deletes it ---- */

static void add_del(void *line)
{
	const uint64_t ns = pl_now() + 3600 * NSEC_PER_SEC;
	pl_timer_t t;

	while (goes_on()) {
		must("add", pl_timer_add(&t, ns, nothing, NULL));
		must("del", pl_timer_del(t));
		count_one(line);
	}
}

static void timers(void)
{
	count_by(1, add_del);
}

/* ---- sleeps: timers that fire ---- */

static void sleep_on(void *line)
{
	while (goes_on()) {
		pl_sleep(SLEEP_NS);
		count_one(line);
	}
}

static void sleeps(void)
{
	count_by(NR_SLEEPERS, sleep_on);
}

/* ---- sockets: a byte there and back ---- */

struct pair {
	int fd[2];
	struct line *line;
};

static void answer(void *arg)
{
	struct pair *p = arg;
	char c;

	while (pl_recv(p->fd[1], &c, 1, 0) == 1)
		must("send", (int)pl_send(p->fd[1], &c, 1, 0));
}

static void ask(void *arg)
{
	struct pair *p = arg;
	char c = 0;

	while (goes_on()) {
		must("send", (int)pl_send(p->fd[0], &c, 1, 0));
		must("recv", (int)pl_recv(p->fd[0], &c, 1, 0));
		count_one(p->line);
	}
	must("shutdown", shutdown(p->fd[0], SHUT_RDWR));
}

static void echoes(void)
{
	uint32_t i, nr = nr_workers * NR_PAIRS;
	struct pair *pairs = zalloc(nr, sizeof(*pairs));
	pl_task_t *tasks = zalloc(2 * nr, sizeof(*tasks));

	raise_limit();
	start_workers(nr_workers);
	set_lines(nr);
	for (i = 0; i < nr; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i].fd))
			die("socketpair %u of %u: %s", i, nr, strerror(errno));
		pairs[i].line = &lines[i];
		tasks[2 * i] = spawn(answer, &pairs[i]);
		tasks[2 * i + 1] = spawn(ask, &pairs[i]);
	}
	put_counted();
	for (i = 0; i < 2 * nr; i++)
		pl_join(tasks[i]);
	for (i = 0; i < 2 * nr; i++)
		close(pairs[i / 2].fd[i % 2]);
	must("stop", pl_runtime_stop());
	free(tasks);
	free(pairs);
}

/* ---- ramps: all are parked; then a task spawns one for each ---- */

static _Atomic uint32_t nr_running;
static _Atomic uint64_t all_ran_ns;
static uint64_t ramp_ns;
static struct count ramped;

/* Holds its worker until all of them run. */
static void run_on(void *arg)
{
	(void)arg;
	if (atomic_fetch_add(&nr_running, 1) + 1 == nr_workers)
		atomic_store(&all_ran_ns, now_ns());
	while (atomic_load(&nr_running) < nr_workers &&
	       now_ns() - ramp_ns < RAMP_NS)
		sched_yield();
	count_done(&ramped);
}

static double ramp(void)
{
	count_init(&ramped, nr_workers);
	atomic_store(&nr_running, 0);
	ramp_ns = now_ns();
	must("spawn", pl_spawn_many(NULL, nr_workers, run_on, NULL, NULL));
	count_wait(&ramped);
	return (double)(atomic_load(&all_ran_ns) - ramp_ns);
}

static void ramps(void *arg)
{
	double ns[NR_RAMPS];
	char name[32];
	unsigned int i;

	(void)arg;
	ramp();
	for (i = 0; i < NR_RAMPS; i++) {
		pl_sleep(RAMP_REST_NS);
		ns[i] = ramp();
	}
	snprintf(name, sizeof(name), "%s:%u", bench_name, nr_workers);
	bench_put(name, "us", bench_median(ns, NR_RAMPS) / 1000);
}

static void tree(void)
{
	in_task(nr_workers, trees, NULL);
}

static void ramp_up(void)
{
	in_task(nr_workers, ramps, NULL);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "tree", tree },
		{ "yield", yields },
		{ "foreign", foreign },
		{ "timer", timers },
		{ "sleep", sleeps },
		{ "echo", echoes },
		{ "ramp", ramp_up },
		{ NULL, NULL },
	};
	const char *s = getenv("PARKLOT_WORKERS");

	nr_workers = s && *s ? whole(s, 1024) : 1;
	return bench_main(argc, argv, "workers", cases);
}
