// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What ever more workers do together, for scale-run: trees of tasks,
 * yields, spawns by threads, timers, sleeps, sockets, and how long until all
 * of them run
 *
 * PARKLOT_WORKERS= says how many.  Each case loops for CASE_NS, and counts in
 * lines of its own: what is shared is the library's.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#include "../lib/task.h"

#define CASE_NS		(300 * NSEC_PER_MSEC)
#define LINE		64
#define TREE_DEPTH	16
#define NR_YIELDERS	16U		/* a worker */
#define NR_SLEEPERS	1000U		/* a worker */
#define SLEEP_NS	NSEC_PER_MSEC
#define NR_PAIRS	16U		/* a worker */
#define AHEAD_MAX	1024U		/* tasks of a thread that are alive */
#define NR_BATCH	64U		/* spawned between two looks */
#define NR_KEPT		20000U		/* spawned while the worker is busy */
#define KEPT_TRIES	100
#define NR_LINES	8U		/* in which these are counted */
#define NR_RAMPS	60U
#define RAMP_REST_NS	(2 * NSEC_PER_MSEC)
#define RAMP_NS		(20 * NSEC_PER_MSEC)
#define WORKER_NAME	"pl-worker"
#define TIMER_NAME	"pl-timer"
/* The clock of a thread's processor time, as the kernel numbers it. */
#define THREAD_CLOCK(tid)	((clockid_t)(~(unsigned int)(tid) << 3 | 6))

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

/* @suffix: of what is not the case's rate. */
static void put(const char *suffix, const char *unit, double value)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%s:%u", bench_name, suffix,
		 nr_workers);
	bench_put(name, unit, value);
}

static void put_rate(double nr, uint64_t ns)
{
	put("", "1/s", nr * (double)NSEC_PER_SEC / (double)ns);
}

/* The processor time of a thread, if its name begins with @name. */
static uint64_t thread_ns(const char *id, const char *name)
{
	char path[64], text[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", id);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	if (strncmp(text, name, strlen(name)))
		return 0;
	return clock_ns(THREAD_CLOCK(atoi(id)));
}

/* The processor time of all threads with names that begin with @name. */
static uint64_t threads_ns(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	uint64_t sum = 0;

	if (!dir)
		die("/proc/self/task: %s", strerror(errno));
	while ((e = readdir(dir)))
		sum += thread_ns(e->d_name, name);
	closedir(dir);
	return sum;
}

static uint64_t nr_parks(void)
{
	struct pl_stat st = PL_STAT_INIT;

	must("stat", pl_stat_read(&st));
	return st.parks;
}

/*
 * By a thread: tasks may leave no worker to another one.  Beside the rate what
 * one costs the workers and the timer thread, and how many times they park.
 */
static void put_counted(void)
{
	uint64_t nr, start_ns, worker_ns, timer_ns, parks;

	sleep_until(now_ns() + CASE_NS / 10);
	worker_ns = threads_ns(WORKER_NAME);
	timer_ns = threads_ns(TIMER_NAME);
	parks = nr_parks();
	start_ns = now_ns();
	nr = counted();
	sleep_until(start_ns + CASE_NS);
	nr = counted() - nr;
	put_rate((double)nr, now_ns() - start_ns);
	nr = nr ? nr : 1;
	put("_work", "ns", (double)(threads_ns(WORKER_NAME) - worker_ns) /
			   (double)nr);
	if (!strcmp(bench_name, "sleep"))
		put("_fire", "ns", (double)(threads_ns(TIMER_NAME) - timer_ns) /
				   (double)nr);
	put("_parks", "parks", (double)(nr_parks() - parks) / (double)nr);
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
	uint64_t start_ns, ns, worker_ns;
	unsigned int nr = 0;

	(void)arg;
	grow((void *)TREE_DEPTH);
	worker_ns = threads_ns(WORKER_NAME);
	start_ns = now_ns();
	do {
		grow((void *)TREE_DEPTH);
		nr++;
		ns = now_ns() - start_ns;
	} while (ns < CASE_NS);
	put_rate(nr * nodes, ns);
	put("_work", "ns", (double)(threads_ns(WORKER_NAME) - worker_ns) /
			   (nr * nodes));
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

/* ---- spawns by threads, on one half of the processors ---- */

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

static _Atomic uint64_t spawn_ns, nr_spawned;

static void *spawn_on(void *own)
{
	struct line *l = own;
	uint64_t nr = 0, start_ns, ns = 0;
	unsigned int i;

	while (goes_on()) {
		start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		for (i = 0; i < NR_BATCH; i++)
			must("spawn", pl_spawn(NULL, ran, &l[nr++ % NR_LINES],
					       NULL));
		ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
		if (nr - nr_ran(l) > AHEAD_MAX) {
			while (nr - nr_ran(l) > AHEAD_MAX / 2)
				sched_yield();
		}
	}
	while (nr_ran(l) < nr)
		sched_yield();
	atomic_fetch_add(&spawn_ns, ns);
	atomic_fetch_add(&nr_spawned, nr);
	return NULL;
}

/* start_workers() would take PARKLOT_WORKERS. */
static void start_half(uint32_t nr)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.nr_workers = nr;
	cfg.min_workers = nr;
	unsetenv("PARKLOT_WORKERS");
	must("start", pl_runtime_start(&cfg));
}

static void keep_worker(void *arg)
{
	(void)arg;
	while (goes_on())
		sched_yield();
}

/* The worker's time for NR_KEPT; 0: another one ran some of them before. */
static uint64_t run_kept(void)
{
	uint64_t worker_ns, nr_early;
	unsigned int i;

	atomic_store(&is_over, false);
	for (i = 0; i < NR_LINES; i++)
		atomic_store(&lines[i].nr, 0);
	must("spawn", pl_spawn(NULL, keep_worker, NULL, NULL));
	for (i = 0; i < NR_KEPT; i++)
		must("spawn", pl_spawn(NULL, ran, &lines[i % NR_LINES], NULL));
	worker_ns = threads_ns(WORKER_NAME);
	nr_early = counted();
	atomic_store(&is_over, true);
	while (counted() < NR_KEPT)
		sleep_until(now_ns() + NSEC_PER_MSEC);
	return nr_early ? 0 : threads_ns(WORKER_NAME) - worker_ns;
}

/*
 * What a task of a thread costs one worker that never has to wait for it; not
 * said on a machine so busy that another worker always came first.
 */
static void put_run(void)
{
	uint64_t ns = 0;
	unsigned int i;

	for (i = 0; i < KEPT_TRIES && !ns; i++)
		ns = run_kept();
	if (ns)
		put("_run", "ns", (double)ns / NR_KEPT);
	for (i = 0; i < NR_LINES; i++)
		atomic_store(&lines[i].nr, 0);
	atomic_store(&is_over, false);
}

static void foreign(void)
{
	pthread_t *threads;
	uint32_t i, nr;

	nr = nr_workers > 1 ? nr_workers / 2 : 1;
	start_half(nr_workers > 1 ? nr_workers - nr : 1);
	threads = zalloc(nr, sizeof(*threads));
	set_lines(nr * NR_LINES);
	if (nr_workers == 1)
		put_run();
	for (i = 0; i < nr; i++) {
		if (pthread_create(&threads[i], NULL, spawn_on,
				   &lines[i * NR_LINES]))
			die("cannot start a thread");
	}
	put_counted();
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	put("_spawn", "ns", (double)atomic_load(&spawn_ns) /
			    (double)atomic_load(&nr_spawned));
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
	unsigned int i;

	(void)arg;
	ramp();
	for (i = 0; i < NR_RAMPS; i++) {
		pl_sleep(RAMP_REST_NS);
		ns[i] = ramp();
	}
	put("", "us", bench_median(ns, NR_RAMPS) / 1000);
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
