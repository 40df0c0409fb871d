/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * rt: the runtime: what all workers share, and the counters of what they do
 */
#ifndef PL_RT_H
#define PL_RT_H

#include "ctx/self.h"
#include "ds/mpsc.h"
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

/* The program's tasks, where max_tasks limits them; see rt/spawn.c. */
struct pl__task_limit {
	_Atomic uint32_t	nr;	/* on it spawners wait */
	_Atomic uint32_t	nr_waiting;	/* spawners that wait */
	_Atomic uint64_t	nr_refused;	/* spawns that were refused */
	_Atomic uint64_t	nr_waited;	/* spawns that waited */
};

/* Bits of pl__rt.gates, at which a spawn looks further. */
#define PL__GATE_STACKLESS	(1U << 0)	/* tasks wait for stacks */
#define PL__GATE_TASK_LIMIT	(1U << 1)	/* R: there is a limit */

/* Tasks that are set aside for the same reason.  L: pl__aside.lock is held. */
struct pl__aside_queue {
	_Atomic uint32_t	nr;	/* changed under lock; read without */
	uint32_t		turn;		/* L: tasks taken */
	struct pl__fifo		resumed;	/* L */
	struct pl__fifo		unstarted;	/* L */
	_Atomic uint64_t	taken_ns;	/* L writes: last task taken */
};

/* Tasks that are expected to keep their worker from others, see aside.h. */
struct pl__aside {
	struct pl__lock		lock;
	uint32_t		turn;		/* L: looks for a task */
	struct pl__aside_queue	block;		/* in the kernel */
	struct pl__aside_queue	compute;
	_Atomic uint64_t	nr_put;		/* tasks that were set aside */
	_Atomic uint64_t	nr_spares;	/* spares that were started */
};

/* Ready tasks of PL_SPAWN_BACKGROUND, see aside.h.  L: lock is held. */
struct pl__background {
	struct pl__lock		lock;
	_Atomic uint32_t	nr;	/* changed under lock; read without */
	struct pl__fifo		ready;		/* L */
	_Atomic uint64_t	taken_ns;	/* L writes: last task taken */
	_Atomic uint64_t	nr_late;	/* taken before others */
};

/* Why `active` was changed; pl_runtime(3) has a counter of each. */
enum pl__elastic_why {
	PL__RAISED_WAITS,	/* tasks waited for long */
	PL__RAISED_STUCK,	/* they waited behind one that computes */
	PL__RAISED_TRIAL,	/* to see whether more do better */
	PL__RAISED_BACK,	/* fewer did worse; or there was a pause */
	PL__LOWERED_TRIAL,	/* to see whether fewer do as well */
	PL__LOWERED_BACK,	/* more did no better */
	PL__NR_ELASTIC_WHY
};

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

/* At most so many inboxes, see ready.h. */
#define PL__NR_INBOXES		64

struct pl__inbox_line {
	struct pl__inbox	inbox;	/* A */
} __pl_cacheline;

/* The only instance.  R: written only while the runtime starts and stops. */
struct pl__rt {
	struct pl_config	cfg;		/* R: resolved */
	struct pl__worker	**workers;	/* R: cfg.max_workers of them */
	struct pl__lots		lots;		/* R */
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
	uint32_t		nr_keepers; /* R: workers, by index: kept.h */
	uint32_t		nr_inboxes;	/* R: inboxes in use */
	/* R: cfg.max_workers of them, by index; workers write: place.h */
	_Atomic uint64_t	*locations;

	_Atomic uint32_t	state __pl_cacheline;	/* enum pl__rt_state */
	_Atomic uint32_t	nr_started;	/* workers[0 .. nr_started) */
	_Atomic uint32_t	nr_alive;	/* workers with a thread */
	_Atomic uint32_t	target;	/* workers meant to run, at most */
	_Atomic uint32_t	active;	/* workers meant to run: pace.h */
	_Atomic uint32_t	sysmon;		/* enum pl__sysmon_state */
	_Atomic uint32_t	gates;		/* PL__GATE_* */
	/* bits of enum pl__level; 0: flat; sysmon writes: place.h */
	_Atomic uint32_t	levels;

	_Atomic uint32_t	nr_idle __pl_cacheline;
	_Atomic uint32_t	nr_searching;	/* see notify.h */
	/* the next worker that leaves idle is to search, see notify.h */
	_Atomic bool		is_search_left;
	_Atomic uint32_t	nr_blocked;	/* workers outside of a crew */
	_Atomic uint32_t	nr_seen;	/* in nr_blocked, by sysmon */
	_Atomic uint32_t	nr_in_hook;	/* in nr_blocked, in the hook */
	_Atomic uint32_t	nr_stalled;	/* workers, see pace.h */
	_Atomic uint32_t	stalled_limit;	/* sysmon writes */
	/* workers of a crew that sysmon found blocked twice in a row */
	_Atomic uint32_t	nr_crew_blocked;
	_Atomic uint32_t	nr_starting;	/* alive, did not search yet */
	_Atomic int		start_error; /* of the last: -errno, or 0 */
	/* calls of pl__notify_all(); no worker parks meanwhile */
	_Atomic uint32_t	nr_notifying_all;
	/* ns: when nr_searching rose from 0, or moved on; see notify.c */
	_Atomic uint64_t	search_ns;

	struct pl__inbox_line	inboxes[PL__NR_INBOXES];

	struct pl__stripe	outside[PL__NR_STRIPES];
	/* the stopper's futex: changes while STOPPING */
	_Atomic uint32_t	ended_word;
	_Atomic uint64_t	ended_outside;	/* spawns that were undone */
	_Atomic uint64_t	wakes_outside;
	_Atomic uint64_t	spawned_past;	/* by workers freed since */
	_Atomic uint64_t	ended_past;
	/* times that a worker was found blocked; sysmon writes */
	_Atomic uint64_t	nr_blocks;
	/* times that a worker was found stalled; sysmon writes */
	_Atomic uint64_t	nr_stalls;
	/* times that the limit of those was raised; sysmon writes */
	_Atomic uint64_t	nr_stalls_over;
	/* times that active was changed, by enum pl__elastic_why */
	_Atomic uint64_t	nr_changes[PL__NR_ELASTIC_WHY];
	/* times that searches were taken over, see notify.h */
	_Atomic uint64_t	nr_late_searches;
	/* times that all workers were blocked; sysmon writes */
	_Atomic uint64_t	nr_all_blocked;

	struct pl__stackless	stackless __pl_cacheline;
	struct pl__task_limit	task_limit __pl_cacheline;
	struct pl__aside	aside __pl_cacheline;
	struct pl__background	background __pl_cacheline;
	struct pl__lock		start_lock;	/* to start and end workers */
	pthread_t		ended;		/* L: last thread; not joined */
	bool			has_ended;	/* L: ended is valid */
};

extern struct pl__rt pl__rt;

/* That of the calling thread. */
static inline struct pl__stripe *pl__stripe(void)
{
	return &pl__rt.outside[pl__self_number() % PL__NR_STRIPES];
}

/* An ordinary thread enters the runtime; false: there is none. */
bool pl__rt_enter(void);
void pl__rt_exit(void);

/*
 * Workers blocked by their tasks, as the crew, sysmon or the workers themselves
 * count them.
 */
static inline uint32_t pl__nr_blocked(void)
{
	return load_relaxed(&pl__rt.nr_blocked) +
	       pl__crew_nr_blocked(&pl__rt.lots);
}

/* How many more workers may compute for long, see pace.h. */
static inline uint32_t pl__nr_may_compute(void)
{
	/* [relief-b] pairs with [relief-a] in pl__relief_recheck(). */
	uint32_t limit = load_relaxed(&pl__rt.stalled_limit);
	uint32_t nr = load_relaxed(&pl__rt.nr_stalled);

	return nr < limit ? limit - nr : 0;
}

static inline uint32_t pl__nr_not_running(void)
{
	return load_relaxed(&pl__rt.nr_idle) +
	       load_relaxed(&pl__rt.nr_stalled) + pl__nr_blocked();
}

/* Workers neither idle, blocked nor stalled, as far as the counters show. */
static inline uint32_t pl__nr_running(void)
{
	uint32_t alive = load_relaxed(&pl__rt.nr_alive);
	uint32_t others = pl__nr_not_running();

	return alive > others ? alive - others : 0;
}

/*
 * Where a thread that is no worker adds timers, modulo the number of buckets:
 * in one of the last few.  A worker adds them to the bucket of its index.
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
