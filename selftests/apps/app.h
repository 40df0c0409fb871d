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

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <parklot.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NR_MEMBERS	200
#define NSEC_PER_SEC	1000000000ULL
#define NSEC_PER_MSEC	1000000ULL
#define TICK_NS		NSEC_PER_MSEC

/* How much more memory than after the first round is no leak. */
#define HEAP_SLACK	(512L << 10)
#define RESIDENT_SLACK	(48L << 20)

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
	void (*begin)(void);		/* of a round; in the main thread */
	void (*work)(struct member *m);	/* one unit of work */
	uint32_t (*flags)(uint32_t nr);	/* PL_SPAWN_* of that member */
	void (*halfway)(void);		/* or NULL: in the main thread */
	bool (*is_done)(void);		/* or NULL: the second round may end */
	void (*end)(void);		/* of a round; in the main thread */
};

/* What the process has. */
struct usage {
	long fds, heap, resident;
};

static const struct app *app;
static struct member app_members[NR_MEMBERS];
static struct pl_latch app_latch;	/* members that have not ended */
static atomic_bool app_is_over;
static bool app_is_first;		/* the round of one unit each */
static const char *app_argument;
static unsigned long app_seconds = 2;
static uint64_t app_seed, app_late_ns, app_thread_late_ns;
static _Atomic uint64_t app_nr_units, app_nr_cancelled;

static inline void __attribute__((noreturn, format(printf, 1, 2)))
app_fail(const char *format, ...)
{
	va_list args;

	flockfile(stderr);
	fprintf(stderr, "%s: seed %llu: ", app->name,
		(unsigned long long)app_seed);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	fflush(stdout);
	_exit(1);
}

static inline void app_must(const char *what, int err)
{
	if (err < 0)
		app_fail("%s: %s", what, strerror(-err));
}

/* For what ends soon, but on a machine that has much else to do. */
static inline uint64_t app_limit_ns(void)
{
	const char *factor = getenv("TEST_TIMEOUT_FACTOR");

	return 60 * NSEC_PER_SEC * (factor ? strtoul(factor, NULL, 10) : 1);
}

static inline uint32_t app_random(uint64_t *seed, uint32_t below)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*seed >> 33) % below;
}

static inline long app_nr_entries(const char *path)
{
	DIR *dir = opendir(path);
	long nr = 0;

	if (!dir)
		app_fail("%s: %s", path, strerror(errno));
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* Until @is_true, which no task has to signal; the main thread, at any time. */
static inline void app_wait(bool (*is_true)(void), const char *what)
{
	const uint64_t limit = pl_now() + app_limit_ns();

	while (!is_true()) {
		if (pl_now() > limit) {
			pl_dump(STDERR_FILENO);
			app_fail("for too long not: %s", what);
		}
		usleep(10 * 1000);
	}
}

/* Joined ones are in the list for a moment: it has ".", ".." and this one. */
static inline bool app_is_alone(void)
{
	return app_nr_entries("/proc/self/task") == 3;
}

static inline struct usage app_usage(void)
{
	struct mallinfo2 heap = mallinfo2();
	struct usage u = {
		.fds = app_nr_entries("/proc/self/fd"),
		.heap = (long)(heap.uordblks + heap.hblkhd),
	};
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file || fscanf(file, "%*d %ld", &u.resident) != 1)
		app_fail("/proc/self/statm: %s", strerror(errno));
	fclose(file);
	u.resident *= sysconf(_SC_PAGESIZE);
	return u;
}

static inline void app_compare(const struct usage *before,
			       const struct usage *after)
{
	if (after->fds != before->fds)
		app_fail("%ld descriptors, %ld before", after->fds, before->fds);
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		app_fail("there are children");
	if (after->heap > before->heap + HEAP_SLACK)
		app_fail("%ld bytes of heap, %ld before", after->heap,
			 before->heap);
#ifndef __SANITIZE_ADDRESS__
	if (after->resident > before->resident + RESIDENT_SLACK)
		app_fail("%ld bytes resident, %ld before", after->resident,
			 before->resident);
#endif
}

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

static inline bool app_has_no_tasks(void)
{
	struct pl_stat st = PL_STAT_INIT;

	app_must("pl_stat_read", pl_stat_read(&st));
	return !st.tasks_alive && !st.io_in_flight && !st.timers_alive;
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
