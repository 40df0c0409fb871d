/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What another process costs between two moments: its CPU time, how often its
 * threads went to sleep (voluntary context switches), and if that is asked for
 * the system calls that it makes
 *
 * The kernel counts calls by one event for each thread, and for those that it
 * starts.  Each call takes longer meanwhile, so that no times should be
 * measured.  It needs leave to look at tracepoints: root's, as a rule.
 */
#ifndef BENCH_COST_H
#define BENCH_COST_H

#include <dirent.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../lib/util.h"

struct cost_thread {
	pid_t tid;
	uint64_t nr_switches;
};

struct cost {
	pid_t pid;
	uint64_t cpu_ns;
	uint64_t nr_switches;
	unsigned int nr_threads;
	struct cost_thread *threads;	/* as they were at the beginning */
	bool has_calls;
	uint64_t nr_calls;
	unsigned int nr_fds;
	int *fd;		/* one for each thread */
};

/* The number of the tracepoint where system calls begin; 0: not to be had. */
static inline uint64_t cost_tracepoint(void)
{
	unsigned long long id;
	FILE *f = fopen("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
			"re");

	if (!f)
		return 0;
	if (fscanf(f, "%llu", &id) != 1)
		id = 0;
	fclose(f);
	return id;
}

/* -1, and errno. */
static inline int cost_open(uint64_t tracepoint, pid_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr),
		.config = tracepoint, .inherit = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

static inline void cost_add(struct cost *c, int fd)
{
	c->fd = realloc(c->fd, (c->nr_fds + 1) * sizeof(*c->fd));
	if (!c->fd)
		die("no memory");
	c->fd[c->nr_fds++] = fd;
}

/* A thread that has ended meanwhile costs nothing. */
static inline void cost_count_calls(struct cost *c)
{
	const uint64_t tracepoint = cost_tracepoint();
	struct dirent *e;
	char path[64];
	DIR *dir;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)c->pid);
	dir = tracepoint ? opendir(path) : NULL;
	if (!dir)
		return;
	c->has_calls = true;
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		fd = cost_open(tracepoint, (pid_t)atoi(e->d_name));
		if (fd >= 0)
			cost_add(c, fd);
		else if (errno != ESRCH)
			c->has_calls = false;
	}
	closedir(dir);
}

static inline uint64_t cost_cpu_ns(pid_t pid)
{
	clockid_t id;

	return clock_getcpuclockid(pid, &id) ? 0 : clock_ns(id);
}

/* How often thread @tid of @pid went to sleep; 0: it has ended. */
static inline uint64_t cost_thread_switches(pid_t pid, pid_t tid)
{
	static const char key[] = "voluntary_ctxt_switches:";
	unsigned long long nr = 0;
	char line[256];
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%d/task/%d/status", (int)pid,
		 (int)tid);
	f = fopen(line, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, sizeof(key) - 1))
			nr = strtoull(line + sizeof(key) - 1, NULL, 10);
	}
	if (f)
		fclose(f);
	return nr;
}

/* How often it went to sleep before; of one that is new, 0. */
static inline uint64_t cost_switches_before(const struct cost *c, pid_t tid)
{
	unsigned int i;

	for (i = 0; i < c->nr_threads; i++) {
		if (c->threads[i].tid == tid)
			return c->threads[i].nr_switches;
	}
	return 0;
}

static inline void cost_keep_thread(struct cost *c, pid_t tid, uint64_t nr)
{
	c->threads = realloc(c->threads,
			     (c->nr_threads + 1) * sizeof(*c->threads));
	if (!c->threads)
		die("no memory");
	c->threads[c->nr_threads++] = (struct cost_thread){ tid, nr };
}

/*
 * Remember the threads, or with @ends add up what those of now did since; what
 * a thread did that has ended meanwhile is not known.
 */
static inline void cost_look_at_threads(struct cost *c, bool ends)
{
	struct dirent *e;
	char path[64];
	uint64_t nr;
	pid_t tid;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)c->pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		tid = (pid_t)atoi(e->d_name);
		nr = tid ? cost_thread_switches(c->pid, tid) : 0;
		if (!nr)
			continue;
		if (ends)
			c->nr_switches += nr - cost_switches_before(c, tid);
		else
			cost_keep_thread(c, tid, nr);
	}
	if (dir)
		closedir(dir);
}

static inline uint64_t cost_calls(const struct cost *c)
{
	uint64_t nr, sum = 0;
	unsigned int i;

	for (i = 0; i < c->nr_fds; i++) {
		if (read(c->fd[i], &nr, sizeof(nr)) == sizeof(nr))
			sum += nr;
	}
	return sum;
}

/* What takes long, before there is a load. */
static inline void cost_prepare(struct cost *c, pid_t pid, bool with_calls)
{
	*c = (struct cost){ .pid = pid };
	if (with_calls)
		cost_count_calls(c);
}

static inline void cost_begin(struct cost *c)
{
	if (c->pid)
		cost_look_at_threads(c, false);
	c->nr_calls = cost_calls(c);
	c->cpu_ns = cost_cpu_ns(c->pid);
}

/*
 * Sets cpu_ns and nr_switches, and if it has_calls nr_calls, to what it was
 * since then.
 */
static inline void cost_end(struct cost *c)
{
	unsigned int i;

	c->nr_calls = cost_calls(c) - c->nr_calls;
	c->cpu_ns = cost_cpu_ns(c->pid) - c->cpu_ns;
	if (c->pid)
		cost_look_at_threads(c, true);
	free(c->threads);
	for (i = 0; i < c->nr_fds; i++)
		close(c->fd[i]);
	free(c->fd);
}

#endif /* BENCH_COST_H */
