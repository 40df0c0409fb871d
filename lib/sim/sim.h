/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sim: one seed decides which thread runs, and what time it is
 *
 * The simulation is a C library in front of the C library: libc_*.c here define
 * pthread_create(), nanosleep(), clock_gettime(), read(), syscall() and the
 * like, so that neither the library nor a program knows of it.  Threads are
 * real, but one runs at a time.  At a *point* (a tag of PL_INJECT(), a lock, a
 * pause of a spin, each call above, a thread's start and end) the seed decides
 * which runs next.  The clock is virtual: a point takes some 100 ns, and when
 * all threads sleep it jumps to the next deadline.  If there is none, they
 * sleep for ever: a deadlock, which is reported in the instant in which it
 * happens.
 *
 * Descriptors are real, and never waited for: as one thread runs at a time,
 * what a pipe or a socket of the process has is determined, too.
 *
 * Orders of memory accesses are not simulated: each access is seen at once.
 *
 * Only the variant "sim" of the build has this room.
 */
#ifndef PL_SIM_H
#define PL_SIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#define PL__SIM_NS_PER_SEC	1000000000ULL
#define PL__SIM_FOREVER		UINT64_MAX

static inline struct timespec pl__sim_timespec(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / PL__SIM_NS_PER_SEC),
		.tv_nsec = (long)(ns % PL__SIM_NS_PER_SEC),
	};
}

/* Of a length, half of for ever at most, so that a sum does not wrap around. */
static inline uint64_t pl__sim_ns(const struct timespec *ts)
{
	if (ts->tv_sec > INT32_MAX)
		return PL__SIM_FOREVER / 2;
	return (uint64_t)ts->tv_sec * PL__SIM_NS_PER_SEC +
	       (uint64_t)ts->tv_nsec;
}

/* The exit status of a process in which the simulation found a fault. */
#define PL__SIM_STATUS		86

enum pl__sim_state {
	PL__SIM_RUNNABLE,
	PL__SIM_BLOCKED,	/* asleep, as /proc has it */
	PL__SIM_COMPUTES,	/* until its deadline, and passes no points */
	PL__SIM_PREEMPTED,	/* without a processor until its deadline */
	PL__SIM_ENDED,
};

/* How a member of the device's crew sleeps. */
enum pl__sim_crew {
	PL__SIM_CREW_BLOCKED,
	PL__SIM_CREW_PARKED,
	PL__SIM_CREW_IDLE,
};

/* T: the thread that has the turn. */
struct pl__sim_thread {
	_Atomic uint32_t	turn;		/* a futex; 1: it may run */
	enum pl__sim_state	state;		/* T */
	const char		*where;		/* T: the last point */
	const void		*key;		/* T: it is woken by, or NULL */
	bool			(*is_ready)(void *arg);	/* T: or NULL */
	void			*arg;		/* T */
	uint64_t		deadline_ns;	/* T */
	uint64_t		queued;		/* T: since when it waits */
	/* T: of a machine, see machine.c */
	bool			has_cpu;
	uint64_t		at_ns, slice_end_ns;
	uint64_t		wanted_ns, lacked_ns;	/* a processor */
	bool			timed_out;	/* T */
	/* T: requests go on once it is in the kernel, by then at the latest */
	bool			has_work;
	uint64_t		work_due_ns;
	uint64_t		since_ns;	/* T: it computes */
	uint64_t		ran_ns;		/* T: processor time */
	uint64_t		nr_sleeps;	/* T */
	uint64_t		prio;		/* T: of the strategy PCT */
	uint64_t		cpus;		/* T: bits: it may run there */
	/* T: of the device's crew, see device.c; NULL: of none */
	struct pl__sim_space	*space;
	uint32_t		slot;
	bool			is_parking;
	enum pl__sim_crew	crew_sleep;
	int			real_tid;
	pthread_t		id;
	bool			is_detached, is_joined;
	void			*(*fn)(void *arg);
	void			*fn_arg, *result;
};

/* Whether the process is simulated; else all calls are the real ones. */
extern bool pl__sim_is_on;

/* The process is simulated from here on. */
void pl__sim_begin(uint64_t seed);

/* Another thread may run; @where is a string that stays. */
void pl__sim_point(const char *where);

/* A random number of the seed's, and whether something happens once in @n. */
uint64_t pl__sim_random(void);
bool pl__sim_one_in(uint32_t n);

uint64_t pl__sim_now(void);

/*
 * Sleeps until pl__sim_wake(@key), or until @is_ready(@arg), which any thread
 * calls, or until the deadline: false.  @key and @is_ready may be NULL.
 */
bool pl__sim_sleep(const char *where, const void *key,
		   bool (*is_ready)(void *arg), void *arg,
		   uint64_t deadline_ns);
/* Wakes at most @nr that sleep on @key, mostly the first; returns how many. */
int pl__sim_wake(const void *key, int nr);

/* The caller computes for @ns, without a point. */
void pl__sim_compute(uint64_t ns);
/* It has no processor for @ns; not on a machine of processors. */
void pl__sim_preempt(uint64_t ns);

struct pl__sim_thread *pl__sim_self(void);
struct pl__sim_thread *pl__sim_thread_add(void);
struct pl__sim_thread *pl__sim_thread_of(pthread_t id);
/* By the number that gettid() says in the simulation, or by the kernel's. */
struct pl__sim_thread *pl__sim_thread_by_tid(int tid);
int pl__sim_tid(const struct pl__sim_thread *t);
uint64_t pl__sim_cpu_ns(const struct pl__sim_thread *t);
uint64_t pl__sim_cpu_ns_all(void);
/* A new thread's first turn; and its last act. */
void pl__sim_thread_first(struct pl__sim_thread *t);
void pl__sim_thread_last(void);

/* The number of processors that the process sees. */
uint32_t pl__sim_nr_cpus(void);
/* False: there is no quota.  What its cgroup's file cpu.max says. */
bool pl__sim_machine_cpu_max(char *text, size_t size);

/* A number for an address, the same in each run of a seed. */
uint64_t pl__sim_number(const void *address);

/* Whether the caller is a signal's handler, or in one of a fault as well. */
bool pl__sim_in_handler(bool *of_fault);

/* Says what is wrong, where all threads are and what happened last; ends. */
void __attribute__((noreturn, format(printf, 1, 2)))
pl__sim_fail(const char *fmt, ...);

/*
 * The C library's, behind the functions of the same name here.  All are looked
 * up before main(), so that the children of a run do not, one by one.
 */
struct pl__sim_symbol {
	const char	*name;
	void		*fn;
} __attribute__((aligned(16)));

void *pl__sim_look_up(struct pl__sim_symbol *s);

#define PL__SIM_REAL(name) __extension__ ({				\
	static struct pl__sim_symbol real_				\
	__attribute__((section("pl_sim_symbols"))) = { #name, NULL };	\
									\
	(__typeof__(&name))(real_.fn ?: pl__sim_look_up(&real_));	\
})

#define PL__SIM_API __attribute__((visibility("default")))

#endif /* PL_SIM_H */
