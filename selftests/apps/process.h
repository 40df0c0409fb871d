/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program of selftests/apps as a process: how it ends at a fault, waits for a
 * state, and what it has, which is at the end what it was after a first round.
 * For C and C++.
 */
#ifndef SELFTESTS_APPS_PROCESS_H
#define SELFTESTS_APPS_PROCESS_H

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <parklot.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NSEC_PER_SEC	1000000000ULL
#define NSEC_PER_MSEC	1000000ULL

/* How much more memory than after the first round is no leak. */
#define HEAP_SLACK	(512L << 10)
#define RESIDENT_SLACK	(48L << 20)

/* What the process has: numbers, and bytes. */
struct usage {
	long fds, heap, resident;
};

static const char *app_name;
static uint64_t app_seed;

static inline void __attribute__((noreturn, format(printf, 1, 2)))
app_fail(const char *format, ...)
{
	va_list args;

	flockfile(stderr);
	fprintf(stderr, "%s: seed %llu: ", app_name,
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
	struct usage u;
	FILE *file;

	u.fds = app_nr_entries("/proc/self/fd");
	u.heap = (long)(heap.uordblks + heap.hblkhd);
	file = fopen("/proc/self/statm", "re");
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

static inline bool app_has_no_tasks(void)
{
	struct pl_stat st = PL_STAT_INIT;

	app_must("pl_stat_read", pl_stat_read(&st));
	return !st.tasks_alive && !st.io_in_flight && !st.timers_alive;
}

#endif /* SELFTESTS_APPS_PROCESS_H */
