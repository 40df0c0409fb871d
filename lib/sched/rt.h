/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * rt: what the workers share: the runtime, and how many of them run
 *
 * As many run as are wanted: neither idle nor blocked.  There may be more when
 * a blocked one returns or fewer are wanted.  Such a one is surplus at the end
 * of its task, and parks although there is work:
 *
 *	surplus worker			one that blocks
 *	nr_idle++		[idle-a]	nr_blocked++
 *	full barrier			full barrier	[idle-b]
 *	if (enough run)			if (there is work, too few run)
 *		park				signal the lots
 *
 * One of the two sees the other; what it leaves in its queues is stolen.
 */
#ifndef PL_RT_H
#define PL_RT_H

#include "sched/worker.h"
#include "time/timer.h"

enum pl__rt_state {
	PL__RT_STOPPED,
	PL__RT_STARTING,
	PL__RT_RUNNING,
	PL__RT_STOPPING,	/* tasks are cancelled, then waited for */
	PL__RT_DRAINED,		/* no task is left; taken apart */
};

/* Tasks that wait for memory for their first stack. */
struct pl__stackless {
	struct pl__lock		lock;
	_Atomic uint32_t	nr;		/* under lock; read without */
	struct pl__link		*head[3];	/* L: by class */
};

enum pl__sysmon_state {
	PL__SYSMON_AWAKE,	/* or there is none: nobody is to be woken */
	PL__SYSMON_NO_BACKLOG,	/* so is the crew: it looks, there is nothing */
	PL__SYSMON_ASLEEP,
	PL__SYSMON_OVER,	/* its thread ends */
};

/* A count that many threads change: each the line that its number says. */
#define PL__NR_STRIPES		16	/* a power of 2 */

struct pl__stripe {
	_Atomic uint32_t	nr;
} __pl_cacheline;

/* There is one.  R: written while it starts and stops only. */
struct pl__rt {
	struct pl_config	cfg;		/* R: resolved, nothing is 0 */
	struct pl__worker	**workers;	/* R: cfg.max_workers of them */
	struct pl__lots		lots;		/* R */
	struct pl__timers	*timers;	/* R */
	struct pl__stacks	stacks;		/* R */
	struct pl__slab		tasks;		/* for ever */
	_Atomic bool		has_tasks;	/* tasks is set up */
	uint32_t		first_slot;	/* below: a fork's parent's */
	enum pl_backend		backend;	/* R */
	uint32_t		spin_ns_max;	/* R: 0: workers never spin */
	uint32_t		nr_cpus;	/* R: that are usable */
	uint32_t		io;		/* R: enum pl_io, as wanted */
	uint32_t		wait;		/* R: enum pl_wait, likewise */
	bool			has_sysmon;	/* R: who blocks is seen */

	_Atomic uint32_t	state __pl_cacheline; /* enum pl__rt_state */
	_Atomic uint32_t	nr_started;	/* workers[0 .. nr_started) */
	_Atomic uint32_t	nr_alive;	/* of these, with a thread */
	_Atomic uint32_t	target;		/* that run at a time */
	_Atomic uint32_t	sysmon;		/* enum pl__sysmon_state */

	_Atomic uint32_t	nr_idle __pl_cacheline;
	_Atomic uint32_t	nr_searching;	/* 0 or 1: the token */
	_Atomic uint32_t	nr_blocked;	/* workers outside of a crew */
	_Atomic uint32_t	nr_seen;	/* of these, by sysmon */
	_Atomic uint32_t	nr_in_hook;	/* of these, as they start */
	_Atomic uint32_t	nr_crew_blocked; /* of a crew, for a while */
	_Atomic uint32_t	nr_starting;	/* alive, did not look yet */
	_Atomic uint32_t	nr_notifying_all;	/* nobody is to park */

	/* Ordinary threads that look at any of this right now. */
	struct pl__stripe	inside[PL__NR_STRIPES];
	_Atomic uint32_t	ended_word;	/* moved while STOPPING */
	_Atomic uint64_t	spawned_outside;
	_Atomic uint64_t	ended_outside;	/* spawns taken back */
	_Atomic uint64_t	wakes_outside;
	_Atomic uint64_t	spawned_past;	/* by workers that are gone */
	_Atomic uint64_t	ended_past;
	_Atomic uint64_t	nr_blocks;	/* sysmon writes it */
	_Atomic uint64_t	nr_all_blocked; /* likewise */

	struct pl__stackless	stackless __pl_cacheline;
	struct pl__lock		start_lock;	/* starting, ending workers */
	pthread_t		ended;		/* L: the last; not joined */
	bool			has_ended;	/* L: there is one */
};

extern struct pl__rt pl__rt;

/* To take part from an ordinary thread; false: there is no runtime. */
bool pl__rt_enter(void);
void pl__rt_exit(void);

/* By their tasks, as the crew, sysmon or they themselves say. */
static inline uint32_t pl__nr_blocked(void)
{
	return load_relaxed(&pl__rt.nr_blocked) +
	       pl__crew_nr_blocked(&pl__rt.lots);
}

static inline uint32_t pl__nr_off(void)
{
	return load_relaxed(&pl__rt.nr_idle) + pl__nr_blocked();
}

/* Neither idle nor blocked, as far as can be seen. */
static inline uint32_t pl__nr_running(void)
{
	uint32_t alive = load_relaxed(&pl__rt.nr_alive);
	uint32_t off = pl__nr_off();

	return alive > off ? alive - off : 0;
}

/* Fewer run than are wanted. */
static inline bool pl__is_short(void)
{
	return load_relaxed(&pl__rt.nr_alive) <
	       load_relaxed(&pl__rt.target) + pl__nr_off();
}

/*
 * There may be more, as others are blocked: by now, or for a while.  Not for
 * who is in the hook, where one more would be blocked as well.
 */
static inline bool pl__is_start_due(void)
{
	uint32_t nr = load_relaxed(&pl__rt.nr_alive);

	return nr < pl__rt.cfg.max_workers &&
	       nr + load_relaxed(&pl__rt.nr_in_hook) <
		    load_relaxed(&pl__rt.target) +
		    load_relaxed(&pl__rt.nr_blocked) +
		    load_relaxed(&pl__rt.nr_crew_blocked);
}

/* There are workers that are not wanted at times. */
static inline bool pl__has_surplus_workers(void)
{
	return load_relaxed(&pl__rt.nr_alive) >
	       load_relaxed(&pl__rt.target);
}

/* The caller, a running worker, is one too many. */
static inline bool pl__is_surplus(void)
{
	return unlikely(pl__has_surplus_workers()) &&
	       pl__nr_running() > load_relaxed(&pl__rt.target);
}

static inline bool pl__rt_is_stopping(void)
{
	return atomic_load(&pl__rt.state) == PL__RT_STOPPING;
}

#endif /* PL_RT_H */
