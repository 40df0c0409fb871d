/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What benchmarks of tasks share: a runtime of so many workers, a first task,
 * a count down to wait for
 */
#ifndef BENCH_TASK_H
#define BENCH_TASK_H

#include <parklot.h>
#include <stdatomic.h>

#include "bench.h"

/* What must not fail: 0 or more. */
static inline int must(const char *what, int ret)
{
	if (ret < 0)
		die("%s: %s", what, strerror(-ret));
	return ret;
}

/*
 * All @nr workers are started at once, so that none is in the measurement; or
 * as many as PARKLOT_WORKERS says, by which cliff asks for them.
 */
static inline void start_workers(uint32_t nr)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	const char *s = getenv("PARKLOT_WORKERS");

	if (s && *s)
		nr = whole(s, 1024);
	cfg.nr_workers = nr;
	cfg.min_workers = nr;
	must("start", pl_runtime_start(&cfg));
}

static inline struct pl_spawn_opts spawn_opts(uint32_t stack, uint32_t flags)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.stack = stack;
	opts.flags = flags;
	return opts;
}

static inline pl_task_t spawn(void (*fn)(void *arg), void *arg)
{
	pl_task_t t;

	must("spawn", pl_spawn(&t, fn, arg, NULL));
	return t;
}

static inline void nothing(void *arg)
{
	(void)arg;
}

/* Two tasks, which are told apart by @arg. */
static inline void twice(void (*fn)(void *arg))
{
	pl_task_t a = spawn(fn, (void *)0), b = spawn(fn, (void *)1);

	pl_join(a);
	pl_join(b);
}

/* A runtime of @nr workers in which @fn is the first task, until it ends. */
static inline void in_task(uint32_t nr, void (*fn)(void *arg), void *arg)
{
	start_workers(nr);
	must("join", pl_join(spawn(fn, arg)));
	must("stop", pl_runtime_stop());
}

/* System calls to let workers sleep and to wake them, as the library counts. */
static inline uint64_t nr_worker_calls(void)
{
	struct pl_stat st = PL_STAT_INIT;

	must("stat", pl_stat_read(&st));
	return st.parks + st.wakes + st.wakes_empty;
}

/* Waits until @nr have called count_done(). */
struct count {
	_Atomic uint32_t left;
	struct pl_word word;
};

static inline void count_init(struct count *c, uint32_t nr)
{
	atomic_store(&c->word.value, 0);
	atomic_store(&c->left, nr);
}

static inline void count_done(struct count *c)
{
	if (atomic_fetch_sub(&c->left, 1) != 1)
		return;
	atomic_store(&c->word.value, 1);
	pl_word_wake(&c->word, UINT32_MAX);
}

static inline void count_wait(struct count *c)
{
	while (!atomic_load(&c->word.value))
		pl_word_wait(&c->word, 0, PL_FOREVER);
}

static inline void count_done_by(void *c)
{
	count_done(c);
}

/* Spawns @nr tasks of nothing, and waits for them. */
static inline void spawn_and_wait(uint32_t nr)
{
	struct count c;
	uint32_t i;

	count_init(&c, nr);
	for (i = 0; i < nr; i++)
		must("spawn", pl_spawn(NULL, count_done_by, &c, NULL));
	count_wait(&c);
}

#endif /* BENCH_TASK_H */
