/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A crowd that blocks, or computes: so many tasks on two workers, or so many
 * threads, each of which makes the same call again and again; and a ticker of
 * 1 ms beside them, which ought not to notice.
 *
 * A case is called "call:number", by how many make the call.  It prints, in the
 * place of the subject whether these are tasks ("parklot") or threads
 * ("pthread"), how late the ticker was: p50, p99 and worst, and calls a second,
 * all of $CROWD_SECONDS (2), in which the crowd is started.  Ticks that are
 * missed count as well, each as late as it is.
 *
 * A program of this room has the calls of one library, and no other:
 *
 *	PROGRAM parklot|pthread [--runs N] [--case NAME] [--list]
 */
#ifndef BENCH_CROWDS_CROWD_H
#define BENCH_CROWDS_CROWD_H

#include <pthread.h>

#include "../lib/task.h"

#define CROWD_WORKERS	2
#define CROWD_MOST	10000
#define CROWD_AHEAD_NS	(10 * NSEC_PER_MSEC)	/* ticks before the crowd */

struct crowd {
	uint32_t nr;
	uint64_t ns;			/* for how long */
	void (*call)(uint32_t member);	/* once; 0 to nr - 1 */
	atomic_bool is_over;
	_Atomic uint64_t nr_calls;
	uint64_t nr_counted;		/* of nr_calls, when the ticker ended */
	struct hist late;		/* of the ticker */
};

static struct crowd crowd;
static bool crowd_is_threads;
static uint64_t crowd_stall_ns;		/* of the runtime; 0: the default */

/* One of the crowd, or the ticker: a task or a thread. */
struct crowd_part {
	void (*fn)(void *arg);
	void *arg;
	pl_task_t task;
	pthread_t thread;
};

static inline void *crowd_part_run(void *arg)
{
	struct crowd_part *part = arg;

	part->fn(part->arg);
	return NULL;
}

static inline void crowd_part_start(struct crowd_part *part,
				    void (*fn)(void *arg), void *arg)
{
	int err;

	part->fn = fn;
	part->arg = arg;
	if (!crowd_is_threads) {
		must("spawn", pl_spawn(&part->task, fn, arg, NULL));
		return;
	}
	err = pthread_create(&part->thread, NULL, crowd_part_run, part);
	if (err)
		die("cannot start a thread: %s", strerror(err));
}

static inline void crowd_part_join(struct crowd_part *part)
{
	if (crowd_is_threads)
		pthread_join(part->thread, NULL);
	else
		pl_join(part->task);
}

/* The runtime, where tasks need one; none of @nr waits for a place in it. */
static inline void crowd_begin(uint32_t nr)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	if (crowd_is_threads)
		return;
	cfg.nr_workers = CROWD_WORKERS;
	cfg.min_workers = CROWD_WORKERS;
	cfg.max_workers = nr + 256;
	cfg.stall_ns = crowd_stall_ns;
	must("start", pl_runtime_start(&cfg));
}

static inline void crowd_end(void)
{
	if (!crowd_is_threads)
		must("stop", pl_runtime_stop());
}

static inline void crowd_member(void *arg)
{
	const uint32_t member = (uint32_t)(uintptr_t)arg;

	while (!atomic_load(&crowd.is_over)) {
		crowd.call(member);
		atomic_fetch_add(&crowd.nr_calls, 1);
	}
}

static inline void crowd_tick(void *arg)
{
	uint64_t due = now_ns(), end = due + CROWD_AHEAD_NS + crowd.ns, now;

	(void)arg;
	while (due < end) {
		due += NSEC_PER_MSEC;
		if (crowd_is_threads)
			sleep_until(due);
		else
			pl_sleep_until(due);
		now = now_ns();
		hist_add(&crowd.late, now > due ? now - due : 0);
	}
	crowd.nr_counted = atomic_load(&crowd.nr_calls);
	atomic_store(&crowd.is_over, true);
}

static inline void crowd_put(const char *metric, const char *unit, double value)
{
	char name[32];

	snprintf(name, sizeof(name), "%s/%s", metric, bench_name);
	bench_put(name, unit, value);
}

static inline void crowd_put_late(const char *metric, uint32_t per_100k)
{
	crowd_put(metric, "us",
		  (double)hist_quantile(&crowd.late, per_100k) / 1000);
}

/* How many the case's name says. */
static inline uint32_t crowd_nr_of_case(void)
{
	const char *colon = strchr(bench_name, ':');

	if (!colon)
		die("%s: no number", bench_name);
	return whole(colon + 1, CROWD_MOST);
}

static inline uint64_t crowd_ns(void)
{
	const char *seconds = getenv("CROWD_SECONDS");

	return (uint64_t)(number(seconds ? seconds : "2", 0.1, 30) * 1e9);
}

/* The whole case, once what the call needs is there. */
static inline void crowd_run(void (*call)(uint32_t member))
{
	struct crowd_part ticker, *members;
	uint32_t i;

	crowd.nr = crowd_nr_of_case();
	crowd.ns = crowd_ns();
	crowd.call = call;
	members = zalloc(crowd.nr, sizeof(*members));
	crowd_begin(crowd.nr);
	crowd_part_start(&ticker, crowd_tick, NULL);
	sleep_until(now_ns() + CROWD_AHEAD_NS);
	for (i = 0; i < crowd.nr; i++)
		crowd_part_start(&members[i], crowd_member,
				 (void *)(uintptr_t)i);
	crowd_part_join(&ticker);
	crowd_put_late("p50", 50000);
	crowd_put_late("p99", 99000);
	crowd_put("worst", "us", (double)crowd.late.max / 1000);
	crowd_put("calls", "1/s", (double)crowd.nr_counted * 1e9 /
		  (double)crowd.ns);
	for (i = 0; i < crowd.nr; i++)
		crowd_part_join(&members[i]);
	crowd_end();
	free(members);
}

/* The main() of a program: its first argument says of what the crowd is. */
static inline int crowd_main(int argc, char **argv,
			     const struct bench_case *cases)
{
	if (argc < 2 || (strcmp(argv[1], "parklot") &&
			 strcmp(argv[1], "pthread")))
		die("usage: parklot|pthread [--runs N] [--case NAME] [--list]");
	crowd_is_threads = !strcmp(argv[1], "pthread");
	return bench_main(argc - 1, argv + 1, argv[1], cases);
}

#endif /* BENCH_CROWDS_CROWD_H */
