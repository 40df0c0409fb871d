/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* What happened last, and what is said of a fault. */
#include "sim/state.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NR_EVENTS	100	/* in a report */
#define STUCK_TICKS	4

/* Of the real clock. */
uint32_t pl__sim_tick_ms = 5000;

static struct {
	uint64_t	now_ns;
	const char	*what;
	uint32_t	thread;
} events[NR_EVENTS];
static uint64_t nr_events;
static bool is_traced;

#define ull(n)		((unsigned long long)(n))
#define since_start(ns)	ull((ns) - PL__SIM_START_NS)

static void hash_add(uint64_t value)
{
	pl__sim.hash = (pl__sim.hash ^ value) * 1099511628211ULL;
}

static uint64_t hash_of(const char *what)
{
	uint64_t hash = 5381;

	while (*what)
		hash = hash * 33 + (unsigned char)*what++;
	return hash;
}

/* A point of one thread, right after one of another. */
static void note_pair(uint32_t thread, uint64_t what)
{
	static uint64_t before;
	static uint32_t thread_before;
	uint64_t pair = (before * 31 + what) * 0x9e3779b97f4a7c15ULL >> 48;

	if (pl__sim.shared)
		pl__sim.shared->hash = pl__sim.hash;
	if (pl__sim.shared && thread != thread_before)
		pl__sim.shared->pairs[pair / 64] |= 1ULL << pair % 64;
	before = what;
	thread_before = thread;
}

void pl__sim_event(const char *what)
{
	uint32_t thread = (uint32_t)(pl__sim.running - pl__sim_threads);
	uint64_t hash = hash_of(what);

	hash_add(hash);
	hash_add(thread);
	hash_add(pl__sim.now_ns);
	note_pair(thread, hash);
	events[nr_events % NR_EVENTS].now_ns = pl__sim.now_ns;
	events[nr_events % NR_EVENTS].what = what;
	events[nr_events++ % NR_EVENTS].thread = thread;
	if (is_traced)
		dprintf(STDERR_FILENO, "sim: %llu %u %s\n",
			since_start(pl__sim.now_ns), thread, what);
}

static const char *const state_names[] = {
	[PL__SIM_RUNNABLE]	= "is runnable",
	[PL__SIM_BLOCKED]	= "sleeps",
	[PL__SIM_COMPUTES]	= "computes",
	[PL__SIM_PREEMPTED]	= "has no processor",
	[PL__SIM_ENDED]		= "has ended",
};

/* The first line of a file that the kernel has of the thread. */
static const char *read_of(const struct pl__sim_thread *t, const char *file,
			   char *line, int size)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", t->real_tid,
		 file);
	f = fopen(path, "r");
	if (!f || !fgets(line, size, f))
		*line = '\0';
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static void say_thread(const struct pl__sim_thread *t)
{
	char name[32];

	dprintf(STDERR_FILENO, "sim:   thread %d '%s' %s, at '%s'",
		(int)(t - pl__sim_threads),
		read_of(t, "comm", name, sizeof(name)), state_names[t->state],
		t->where ? t->where : "its start");
	if (t->state != PL__SIM_RUNNABLE && t->deadline_ns != PL__SIM_FOREVER)
		dprintf(STDERR_FILENO, ", for %llu ns more",
			ull(t->deadline_ns - pl__sim.now_ns));
	dprintf(STDERR_FILENO, "\n");
}

static void say_events(void)
{
	uint64_t i = nr_events > NR_EVENTS ? nr_events - NR_EVENTS : 0;

	dprintf(STDERR_FILENO, "sim: what happened last (ns, thread, point):\n");
	for (; i < nr_events; i++)
		dprintf(STDERR_FILENO, "sim:   %llu %u %s\n",
			since_start(events[i % NR_EVENTS].now_ns),
			events[i % NR_EVENTS].thread,
			events[i % NR_EVENTS].what);
}

/* The library's, if it is there; it needs no lock. */
int __attribute__((weak)) pl_dump(int fd);

/* A debugger's breakpoint stops here, where the fault was found. */
void __attribute__((noinline)) pl__sim_failed(void);
void pl__sim_failed(void)
{
	__asm__ volatile("" ::: "memory");
}

void pl__sim_fail(const char *fmt, ...)
{
	struct pl__sim_thread *t;
	char why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	pl__sim_is_on = false;
	dprintf(STDERR_FILENO, "sim: seed %llu: %s, after %llu points and %llu us\n",
		ull(pl__sim.seed), why, ull(pl__sim.nr_points),
		since_start(pl__sim.now_ns) / 1000);
	pl__sim_for_each(t)
		if (t->state != PL__SIM_ENDED)
			say_thread(t);
	say_events();
	if (pl_dump)
		pl_dump(STDERR_FILENO);
	pl__sim_failed();
	_exit(PL__SIM_STATUS);
}

static void say_end(void)
{
	if (pl__sim_is_on)
		dprintf(STDERR_FILENO, "sim: seed %llu hash %016llx points %llu switches %llu virtual %llu us\n",
			ull(pl__sim.seed), ull(pl__sim.hash),
			ull(pl__sim.nr_points), ull(pl__sim.nr_switches),
			since_start(pl__sim.now_ns) / 1000);
}

/* For a child, which is real, and may take as long as the machine does. */
static bool is_wait(int call)
{
	return call == SYS_wait4 || call == SYS_waitid;
}

/*
 * A thread that is not simulated watches the real clock: the one that has the
 * turn must pass points.
 */
static void *sim_watch(void *unused)
{
	struct timespec ts = {
		.tv_sec = pl__sim_tick_ms / 1000,
		.tv_nsec = pl__sim_tick_ms % 1000 * 1000000L,
	};
	uint64_t last = 0, nr = 0;
	char line[64];
	bool in_call = false;

	(void)unused;
	while (nr < STUCK_TICKS) {
		PL__SIM_REAL(nanosleep)(&ts, NULL);
		read_of(pl__sim.running, "syscall", line, sizeof(line));
		in_call = *line >= '0' && *line <= '9';
		nr = last == pl__sim.nr_points &&
		     !(in_call && is_wait(atoi(line))) ? nr + 1 : 0;
		last = pl__sim.nr_points;
	}
	pl__sim_fail("STUCK (thread %d has passed no point for %u ms, in %s %.*s; see parklot-sim(7))",
		     (int)(pl__sim.running - pl__sim_threads),
		     pl__sim_tick_ms * STUCK_TICKS,
		     in_call ? "system call" : "a computation",
		     in_call ? (int)strcspn(line, " ") : 0, line);
}

void pl__sim_report_begin(void)
{
	const char *trace = getenv("SIM_TRACE");
	sigset_t all, before;
	pthread_t t;

	nr_events = 0;
	is_traced = trace && !strcmp(trace, "2");
	if (trace)
		atexit(say_end);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!PL__SIM_REAL(pthread_create)(&t, NULL, sim_watch, NULL))
		PL__SIM_REAL(pthread_detach)(t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
