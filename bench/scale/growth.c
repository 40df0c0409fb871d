// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What one costs as they become more: tasks spawned in a loop, threads that
 * spawn, live timers, parked tasks, workers
 *
 * A result is called "series:number", so that cliff.awk can hold each against
 * the number before it, and plot can draw a line.  What is fast is done many
 * times over, for the clock's sake.
 */
#include <pthread.h>

#include "../lib/memory.h"
#include "../lib/task.h"

#define NR_AT_LEAST	100000U		/* of what is done many times over */
#define NR_PARKED	10000U		/* the same of parked tasks */
#define NR_FOR_MEMORY	1000U		/* of fewer, pages tell nothing */
#define NR_FIRED	100U		/* the same of timers */
#define NR_WARM		1000U
#define NR_BY_THREADS	400000U		/* by all together */
#define NR_YIELDS	1000000U
#define NR_YIELDERS	1000U
#define NR_PLAYERS	16U
#define NR_TRIPS	100000U		/* of all pairs together */
#define HOUR_NS		(3600 * NSEC_PER_SEC)

static uint32_t nr;		/* what the case's name ends in */
static struct count count;

static void put(const char *series, const char *unit, double value)
{
	char name[64];

	snprintf(name, sizeof(name), "%s:%u", series, nr);
	bench_put(name, unit, value);
}

static void put_each(const char *series, uint64_t ns, double nr_done)
{
	put(series, "ns", (double)ns / nr_done);
}

static uint32_t rounds_of(uint32_t at_least)
{
	return nr < at_least ? at_least / nr : 1;
}

static void done(void *arg)
{
	(void)arg;
	count_done(&count);
}

/* ---- tasks spawned in a loop: time for each, and the most memory ---- */

static void spawn_loop(const char *series)
{
	uint32_t rounds = rounds_of(NR_AT_LEAST), i;
	uint64_t before, most;
	char text[48];

	spawn_and_wait(NR_WARM);
	before = memory_used();
	bench_begin();
	for (i = 0; i < rounds; i++)
		spawn_and_wait(nr);
	put_each(series, now_ns() - bench_wall_ns, (double)rounds * nr);
	if (nr < NR_FOR_MEMORY)
		return;
	most = memory_peak();
	most = most > before ? most - before : 0;
	snprintf(text, sizeof(text), "%s_memory", series);
	put(text, "B", (double)most / nr);
	snprintf(text, sizeof(text), "%s_peak", series);
	put(text, "MB", (double)most / 1e6);
}

static void task_loop(void *arg)
{
	(void)arg;
	spawn_loop("spawn");
}

static void from_a_task(void)
{
	in_task(2, task_loop, NULL);
}

static void from_a_thread(void)
{
	start_workers(2);
	spawn_loop("thread_spawn");
	must("stop", pl_runtime_stop());
}

/* ---- threads that spawn ---- */

static pthread_barrier_t begin;

static void *spawn_share(void *arg)
{
	uint32_t i;

	pthread_barrier_wait(&begin);
	for (i = 0; i < NR_BY_THREADS / nr; i++)
		must("spawn", pl_spawn(NULL, done, NULL, NULL));
	return arg;
}

static void from_threads(void)
{
	pthread_t *threads = zalloc(nr, sizeof(*threads));
	uint32_t i;

	start_workers(2);
	spawn_and_wait(NR_WARM);
	count_init(&count, NR_BY_THREADS / nr * nr);
	if (pthread_barrier_init(&begin, NULL, nr + 1))
		die("no barrier");
	for (i = 0; i < nr; i++) {
		if (pthread_create(&threads[i], NULL, spawn_share, NULL))
			die("cannot start a thread");
	}
	bench_begin();
	pthread_barrier_wait(&begin);
	count_wait(&count);
	put_each("threads", now_ns() - bench_wall_ns, NR_BY_THREADS);
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	must("stop", pl_runtime_stop());
	free(threads);
}

/* ---- live timers ---- */

static _Atomic uint64_t fired_ns;

static void last_fires(void *arg)
{
	(void)arg;
	if (atomic_load(&count.left) == 1)
		atomic_store(&fired_ns, now_ns());
	count_done(&count);
}

/* In no order, as deadlines of different lengths are. */
static void fill(pl_timer_t *timers, uint64_t first_ns)
{
	uint64_t ns;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		ns = first_ns + mix(i) % HOUR_NS;
		must("add", pl_timer_add(&timers[i], ns, nothing, NULL));
	}
}

static void pairs(uint64_t first_ns)
{
	pl_timer_t t;
	uint32_t i;

	bench_begin();
	for (i = 0; i < NR_AT_LEAST; i++) {
		must("add", pl_timer_add(&t, first_ns + mix(i) % HOUR_NS,
					 nothing, NULL));
		must("del", pl_timer_del(t));
	}
	put_each("timer", now_ns() - bench_wall_ns, NR_AT_LEAST);
}

/* A pair of add and del, while so many others are alive. */
static void live_timers(void)
{
	pl_timer_t *timers = zalloc(nr, sizeof(*timers));
	const uint64_t first_ns = pl_now() + HOUR_NS;
	uint64_t before;
	uint32_t i;

	memset(timers, 0xff, nr * sizeof(*timers));
	start_workers(2);
	before = memory_used();
	bench_begin();
	fill(timers, first_ns);
	if (nr >= NR_FOR_MEMORY) {
		put_each("timer_add", now_ns() - bench_wall_ns, nr);
		put("timer_memory", "B", memory_since(before, nr));
	}
	pairs(first_ns);
	bench_begin();
	for (i = 0; i < nr; i++)
		must("del", pl_timer_del(timers[i]));
	if (nr >= NR_FOR_MEMORY)
		put_each("timer_del", now_ns() - bench_wall_ns, nr);
	must("stop", pl_runtime_stop());
	free(timers);
}

/* All at the same time: from when they are due until the last has run. */
static uint64_t fire_all(void)
{
	uint64_t due_ns = pl_now() + NSEC_PER_MSEC + (uint64_t)nr * 500;
	uint64_t added_ns;
	uint32_t i;

	count_init(&count, nr);
	for (i = 0; i < nr; i++)
		must("add", pl_timer_add(NULL, due_ns, last_fires, NULL));
	added_ns = pl_now();
	count_wait(&count);
	return atomic_load(&fired_ns) -
	       (added_ns > due_ns ? added_ns : due_ns);
}

static void due_timers(void)
{
	uint32_t rounds = rounds_of(NR_FIRED), i;
	uint64_t sum_ns = 0;

	start_workers(2);
	for (i = 0; i < rounds; i++)
		sum_ns += fire_all();
	put_each("timer_fire", sum_ns, (double)rounds * nr);
	must("stop", pl_runtime_stop());
}

/* ---- parked tasks ---- */

static struct count parked;
static struct pl_word go;

static void park(void *arg)
{
	const uint32_t round = (uint32_t)(uintptr_t)arg;

	count_done(&parked);
	while (atomic_load(&go.value) == round)
		pl_word_wait(&go, round, PL_FOREVER);
	count_done(&count);
}

static void park_all(uint32_t round)
{
	struct pl_spawn_opts opts = spawn_opts(PL_STACK_SMALL, 0);
	uint32_t i;

	count_init(&parked, nr);
	count_init(&count, nr);
	for (i = 0; i < nr; i++)
		must("spawn", pl_spawn(NULL, park, (void *)(uintptr_t)round,
				       &opts));
	count_wait(&parked);
}

static void wake_all(uint32_t round)
{
	atomic_store(&go.value, round + 1);
	pl_word_wake(&go, UINT32_MAX);
	count_wait(&count);
}

/* At first they are given stacks that no task had before. */
static void park_first(void)
{
	uint64_t before = memory_used();

	bench_begin();
	park_all(0);
	if (nr >= NR_FOR_MEMORY) {
		put_each("park_first", now_ns() - bench_wall_ns, nr);
		put("park_memory", "B", memory_since(before, nr));
	}
	wake_all(0);
}

static void park_and_wake(void *arg)
{
	uint32_t rounds = rounds_of(NR_PARKED), i;
	uint64_t start_ns, parked_ns, park_ns = 0, wake_ns = 0;

	(void)arg;
	park_first();
	for (i = 1; i <= rounds; i++) {
		start_ns = now_ns();
		park_all(i);
		parked_ns = now_ns();
		wake_all(i);
		park_ns += parked_ns - start_ns;
		wake_ns += now_ns() - parked_ns;
	}
	put_each("park", park_ns, (double)rounds * nr);
	put_each("wake", wake_ns, (double)rounds * nr);
}

static void parked_tasks(void)
{
	in_task(2, park_and_wake, NULL);
}

/* ---- workers ---- */

static void yield_on(void *arg)
{
	uint32_t i;

	(void)arg;
	for (i = 0; i < NR_YIELDS / NR_YIELDERS; i++)
		pl_yield();
	count_done(&count);
}

struct player {
	struct pl_word	*word;
	uint32_t	me;
};

static void play(void *arg)
{
	const struct player *p = arg;
	uint32_t i;

	for (i = 0; i < NR_TRIPS / (NR_PLAYERS / 2); i++) {
		while (atomic_load(&p->word->value) != p->me)
			pl_word_wait(p->word, !p->me, PL_FOREVER);
		atomic_store(&p->word->value, !p->me);
		pl_word_wake(p->word, 1);
	}
	count_done(&count);
}

static void all_play(void)
{
	static struct pl_word words[NR_PLAYERS / 2];
	static struct player players[NR_PLAYERS];
	uint32_t i;

	bench_begin();
	count_init(&count, NR_PLAYERS);
	for (i = 0; i < NR_PLAYERS; i++) {
		players[i] = (struct player){ &words[i / 2], i % 2 };
		spawn(play, &players[i]);
	}
	count_wait(&count);
	put_each("worker_pingpong", now_ns() - bench_wall_ns, NR_TRIPS);
}

static void in_workers(void *arg)
{
	uint32_t i;

	(void)arg;
	spawn_and_wait(NR_WARM);
	bench_begin();
	spawn_and_wait(NR_AT_LEAST);
	put_each("worker_spawn", now_ns() - bench_wall_ns, NR_AT_LEAST);

	bench_begin();
	count_init(&count, NR_YIELDERS);
	for (i = 0; i < NR_YIELDERS; i++)
		spawn(yield_on, NULL);
	count_wait(&count);
	put_each("worker_yield", now_ns() - bench_wall_ns, NR_YIELDS);
	all_play();
}

/* However many the environment wants: they are what is measured. */
static void so_many_workers(void)
{
	unsetenv("PARKLOT_WORKERS");
	in_task(nr, in_workers, NULL);
}

/* ---- cases ---- */

static const struct line {
	const char *series;
	void (*run)(void);
	uint32_t factor, last;		/* 1, factor, ... last */
} lines[] = {
	{ "spawn", from_a_task, 10, 10000000 },
	{ "thread_spawn", from_a_thread, 10, 10000000 },
	{ "threads", from_threads, 2, 64 },
	{ "timer", live_timers, 10, 1000000 },
	{ "timer_fire", due_timers, 10, 1000000 },
	{ "parked", parked_tasks, 10, 1000000 },
	{ "workers", so_many_workers, 2, 64 },
};
#define NR_LINES	(sizeof(lines) / sizeof(*lines))

/* The case is called SERIES:NUMBER. */
static void run(void)
{
	size_t len = strcspn(bench_name, ":");
	const struct line *l = lines;

	while (strncmp(l->series, bench_name, len) || l->series[len])
		l++;
	nr = whole(bench_name + len + 1, l->last);
	l->run();
}

int main(int argc, char **argv)
{
	static char names[BENCH_NAMES_MAX][32];
	static struct bench_case cases[BENCH_NAMES_MAX + 1];
	const struct line *l;
	size_t n = 0;
	uint32_t x;

	for (l = lines; l < lines + NR_LINES; l++) {
		for (x = 1; x <= l->last; x *= l->factor) {
			snprintf(names[n], sizeof(names[n]), "%s:%u",
				 l->series, x);
			cases[n] = (struct bench_case){ names[n], run };
			n++;
		}
	}
	return bench_main(argc, argv, "growth", cases);
}
