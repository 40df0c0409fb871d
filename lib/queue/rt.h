/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * rt: the runtime: what all groups of workers share, and the counters of what
 * they do
 */
#ifndef PL_RT_H
#define PL_RT_H

#include "ctx/self.h"
#include "queue/group.h"
#include "queue/worker.h"
#include "time/timer.h"

enum pl__rt_state {
	PL__RT_STOPPED,
	PL__RT_STARTING,
	PL__RT_RUNNING,
	PL__RT_STOPPING,	/* tasks are cancelled, then waited for */
	PL__RT_DRAINED,		/* no task is left; taken apart */
};

/* Tasks that wait for memory for their first stack.  L: lock is held. */
struct pl__stackless {
	struct pl__lock		lock;
	_Atomic uint32_t	nr; /* changed under lock; read without */
	struct pl__link		*head[3];	/* L: by stack class */
};

/* Bits of pl__rt.gates, at which a spawn looks further. */
#define PL__GATE_STACKLESS	(1U << 0)	/* tasks wait for stacks */
#define PL__GATE_TASK_LIMIT	(1U << 1)	/* there is a limit */
#define PL__GATE_GROUPS		(1U << 2)	/* there are groups */

enum pl__sysmon_state {
	PL__SYSMON_AWAKE,	/* or no sysmon exists: no wake needed */
	PL__SYSMON_NO_BACKLOG,	/* awake; the crew's backlog is clear */
	PL__SYSMON_ASLEEP,
	PL__SYSMON_OVER,	/* its thread ends */
};

/*
 * What threads that are no workers write when they spawn, and workers when they
 * sample: each uses the stripe of its number, one cache line, so that few share
 * one.  L: lock is held.
 */
#define PL__NR_STRIPES		64	/* a power of 2 */

struct pl__stripe {
	_Atomic uint32_t	inside;	/* threads inside of the runtime */
	struct pl__lock		lock;
	/* L: slots for tasks; they come in batches, which workers free */
	struct pl__slab_cache	tasks;
	_Atomic uint64_t	spawned;	/* also what was taken back */
	/* a sampled task was spawned then and has not run, or 0: latency.c */
	_Atomic uint64_t	sampled_ns;
} __pl_cacheline;

/*
 * Buckets of timers: one for each worker that there may be, up to a limit, and
 * some for all other threads.
 */
#define PL__NR_WORKER_BUCKETS	256
#define PL__NR_THREAD_BUCKETS	16

/* The only instance.  R: written only while the runtime starts and stops. */
struct pl__rt {
	struct pl_config	cfg;		/* R: resolved */
	struct pl__worker	**workers; /* R: of all groups, by number */
	struct pl__timers	*timers;	/* R */
	struct pl__stacks	stacks;		/* R */
	struct pl__slab		tasks;		/* as long as the process */
	_Atomic bool		has_tasks;	/* the slab tasks is set up */
	/* after a fork: slots below belong to the parent's tasks */
	uint32_t		first_slot;
	enum pl_backend		backend;	/* R */
	uint32_t		spin_ns_max;	/* R: 0: workers never spin */
	uint32_t		nr_cpus;	/* R: usable processors */
	uint64_t		quota_period_ns; /* R: of their time; 0: all */
	uint64_t		stall_ns; /* R: in one task: stalled */
	uint32_t		io;		/* R: enum pl_io, configured */
	uint32_t		wait; /* R: enum pl_wait, configured */
	bool			has_sysmon;	/* R: sysmon runs */
	uint32_t		nr_keepers; /* R: workers, by number: kept.h */

	_Atomic uint32_t	state __pl_cacheline;	/* enum pl__rt_state */
	_Atomic uint32_t	nr_started;	/* workers[0 .. nr_started) */
	_Atomic uint32_t	sysmon;		/* enum pl__sysmon_state */
	_Atomic uint32_t	gates;		/* PL__GATE_* */
	/* bits of enum pl__level; 0: flat; sysmon writes: place.h */
	_Atomic uint32_t	levels;

	struct pl__stripe	outside[PL__NR_STRIPES];
	/* the stopper's futex: changes while STOPPING */
	_Atomic uint32_t	ended_word;
	_Atomic uint64_t	ended_outside;	/* spawns that were undone */
	_Atomic uint64_t	spawned_past;	/* by workers freed since */
	_Atomic uint64_t	ended_past;
	/* times that a worker was found blocked; sysmon writes */
	_Atomic uint64_t	nr_blocks;
	/* times that a worker was found stalled; sysmon writes */
	_Atomic uint64_t	nr_stalls;
	/* times that the limit of those was raised; sysmon writes */
	_Atomic uint64_t	nr_stalls_over;
	/* times that searches were taken over, see notify.h */
	_Atomic uint64_t	nr_late_searches;
	/* times that all workers were blocked; sysmon writes */
	_Atomic uint64_t	nr_all_blocked;

	struct pl__stackless	stackless __pl_cacheline;
	struct pl__task_limit	task_limit __pl_cacheline;
	struct pl__group	main;	/* the default group */
	/* [0 .. nr_groups), the first is main; see rt/group.c */
	struct pl__group	*groups[PL_GROUPS_MAX];
	_Atomic uint32_t	nr_groups;
	struct pl__lock		start_lock; /* L: to start and end workers */
	pthread_t		ended;		/* L: last thread; not joined */
	bool			has_ended;	/* L: ended is valid */
};

extern struct pl__rt pl__rt;

/* The one of index @i; NULL: there is none, nor one of a higher index. */
static inline struct pl__group *pl__group_at(uint32_t i)
{
	return i < load_acquire(&pl__rt.nr_groups) ? pl__rt.groups[i] : NULL;
}

#define pl__for_each_group(g, i) \
	for ((i) = 0; ((g) = pl__group_at(i)); (i)++)

/* That of @w, the caller; the default of a thread that is no worker. */
static inline struct pl__group *pl__own_group(const struct pl__worker *w)
{
	return w ? w->group : &pl__rt.main;
}

/* That of the calling thread. */
static inline struct pl__stripe *pl__stripe(void)
{
	return &pl__rt.outside[pl__self_number() % PL__NR_STRIPES];
}

/* An ordinary thread enters the runtime; false: there is none. */
bool pl__rt_enter(void);
void pl__rt_exit(void);

/*
 * Where a thread that is no worker adds timers, modulo the number of buckets:
 * in one of the last few.  A worker adds them to the bucket of its number.
 */
static inline uint32_t pl__thread_bucket(void)
{
	return pl__rt.cfg.nr_timer_buckets - 1 -
	       pl__self_number() % PL__NR_THREAD_BUCKETS;
}

static inline bool pl__rt_is_stopping(void)
{
	return atomic_load(&pl__rt.state) == PL__RT_STOPPING;
}

#endif /* PL_RT_H */
