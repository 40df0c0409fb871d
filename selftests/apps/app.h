/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program of many tasks that use a library of others, as a user writes it
 * from the manual: <parklot.h> alone.
 *
 *	PROGRAM [--seconds N] [--seed S] [ARGUMENT]
 *
 * NR_MEMBERS tasks do units of work.  One of them is cancelled every now and
 * then: it gives back what it has, starts its successor, and ends.  A ticker
 * beside them ought not to notice.  What the process has is counted after a
 * first round of one unit each; after the second one, which takes N seconds, it
 * has no more than that: descriptors, threads, children, memory.
 *
 * Prints how late the ticker was at worst, beside one that is a thread, and
 * what it counted.  At the first fault it ends with 1 and a line on standard
 * error.
 */
#ifndef SELFTESTS_APPS_APP_H
#define SELFTESTS_APPS_APP_H

#include "process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define NR_MEMBERS	200
#define TICK_NS		NSEC_PER_MSEC

/* One of the tasks, and then its successors. */
struct member {
	uint32_t nr;			/* 0 to NR_MEMBERS - 1 */
	uint64_t seed;
	_Atomic pl_task_t task;
};

/* What a program consists of. */
struct app {
	const char *name;
	uint64_t cancel_ns;		/* between two cancels, at most */
	void (*worker_start)(void *arg); /* or NULL: of the configuration */
	void (*begin)(void);		/* of a round; in the main thread */
	void (*work)(struct member *m);	/* one unit of work */
	uint32_t (*flags)(uint32_t nr);	/* PL_SPAWN_* of that member */
	void (*halfway)(void);		/* or NULL: in the main thread */
	bool (*is_done)(void);		/* or NULL: the second round may end */
	void (*end)(void);		/* of a round; in the main thread */
};

static const struct app *app;
static struct member app_members[NR_MEMBERS];
static struct pl_latch app_latch;	/* members that have not ended */
static atomic_bool app_is_over;
static bool app_is_first;		/* the round of one unit each */
static const char *app_argument;
static unsigned long app_seconds = 2;
static uint64_t app_late_ns, app_thread_late_ns;
static _Atomic uint64_t app_nr_units, app_nr_cancelled;

/* How late after @due it is; at least @worst. */
static inline uint64_t app_late(uint64_t due, uint64_t worst)
{
	const uint64_t now = pl_now();

	if (now < due)
		app_fail("a sleep ended early");
	return now - due > worst ? now - due : worst;
}

static inline void app_tick(void *unused)
{
	uint64_t due;

	(void)unused;
	while (!app_is_over) {
		due = pl_now() + TICK_NS;
		pl_sleep_until(due);
		app_late_ns = app_late(due, app_late_ns);
	}
}

/* What the machine alone makes of it: a thread, by the C library. */
static inline void *app_tick_thread(void *unused)
{
	struct timespec ts;
	uint64_t due;

	while (!app_is_over) {
		due = pl_now() + TICK_NS;
		ts.tv_sec = (time_t)(due / NSEC_PER_SEC);
		ts.tv_nsec = (long)(due % NSEC_PER_SEC);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		app_thread_late_ns = app_late(due, app_thread_late_ns);
	}
	return unused;
}

static inline void app_member_spawn(struct member *m);

static inline void app_member_run(void *arg)
{
	struct member *m = arg;

	m->task = pl_self();
	do {
		app->work(m);
		app_nr_units++;
	} while (!app_is_first && !app_is_over && !pl_cancelled());
	if (!app_is_first && !app_is_over)
		app_member_spawn(m);
	else
		pl_latch_done(&app_latch);
}

static inline void app_member_spawn(struct member *m)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.name = app->name;
	opts.flags = app->flags(m->nr);
	app_must("pl_spawn", pl_spawn(NULL, app_member_run, m, &opts));
}

static inline void app_cancel(void *unused)
{
	uint64_t seed = app_seed;

	(void)unused;
	while (!app_is_over) {
		pl_sleep(app_random(&seed, (uint32_t)app->cancel_ns));
		if (!app_is_first && !app_is_over && !pl_cancel(
		    app_members[app_random(&seed, NR_MEMBERS)].task))
			app_nr_cancelled++;
	}
}

static inline bool app_have_all_ended(void)
{
	return !pl_latch_wait_until(&app_latch, 0);
}

static inline void app_round(bool is_first)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	pl_task_t ticker, canceller;
	pthread_t thread;
	uint32_t i;

	app_is_first = is_first;
	app_is_over = false;
	app_late_ns = app_thread_late_ns = 0;
	app_nr_units = app_nr_cancelled = 0;
	cfg.max_workers = NR_MEMBERS + 256;
	cfg.worker_start = app->worker_start;
	app_must("pl_runtime_start", pl_runtime_start(&cfg));
	app->begin();
	app_must("pl_latch_init", pl_latch_init(&app_latch, NR_MEMBERS));
	app_must("pl_spawn", pl_spawn(&ticker, app_tick, NULL, NULL));
	app_must("pthread_create",
		 -pthread_create(&thread, NULL, app_tick_thread, NULL));
	app_must("pl_spawn", pl_spawn(&canceller, app_cancel, NULL, NULL));
	for (i = 0; i < NR_MEMBERS; i++) {
		app_members[i].nr = i;
		app_members[i].seed = app_seed + i;
		app_member_spawn(&app_members[i]);
	}
	if (!is_first) {
		pl_sleep(app_seconds * NSEC_PER_SEC / 2);
		if (app->halfway)
			app->halfway();
		pl_sleep(app_seconds * NSEC_PER_SEC / 2);
		if (app->is_done)
			app_wait(app->is_done, "what the test is for");
		app_is_over = true;
	}
	app_wait(app_have_all_ended, "the end of all tasks");
	app_is_over = true;
	pthread_join(thread, NULL);
	pl_join(ticker);
	pl_join(canceller);
	app->end();
	app_wait(app_has_no_tasks, "no tasks, timers and I/O");
	app_must("pl_runtime_stop", pl_runtime_stop());
	app_wait(app_is_alone, "the end of all threads");
}

static inline int app_main(int argc, char **argv, const struct app *which)
{
	struct usage before, after;
	int i;

	app = which;
	app_name = app->name;
	app_seed = (uint64_t)getpid();
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			app_seconds = strtoul(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			app_seed = strtoul(argv[++i], NULL, 10);
		else
			app_argument = argv[i];
	}
	app_round(true);
	before = app_usage();
	app_round(false);
	after = app_usage();
	app_compare(&before, &after);
	printf("%s: seed %llu, %llu units, %llu cancelled, worst tick %.1f ms "
	       "(of a thread %.1f ms), heap %+ld KiB, resident %+ld KiB\n",
	       app->name,
	       (unsigned long long)app_seed, (unsigned long long)app_nr_units,
	       (unsigned long long)app_nr_cancelled, (double)app_late_ns / 1e6,
	       (double)app_thread_late_ns / 1e6,
	       (after.heap - before.heap) / 1024,
	       (after.resident - before.resident) / 1024);
	return 0;
}

#endif /* SELFTESTS_APPS_APP_H */
