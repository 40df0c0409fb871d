/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * worker: a thread with a deque of ready tasks, and its state
 */
#ifndef PL_WORKER_H
#define PL_WORKER_H

#include "base/lock.h"
#include "base/sys.h"
#include "ds/deque.h"
#include "ds/mpsc.h"
#include "mem/slab.h"
#include "mem/stack.h"
#include "ctx/switch.h"
#include "park/lot.h"
#include "ring/ring.h"
#include "queue/latency.h"
#include "queue/task.h"

#include <pthread.h>

struct pl__group;
struct pl__ring;
struct pl__worker;

/* Called after a switch, on @w, see run.h. */
typedef void pl__after(struct pl__worker *w, void *arg);

/* Written by the worker, read by pl_stat_read(). */
struct pl__worker_stat {
	_Atomic uint64_t	switches;
	/* ticks at which no task was taken, less tasks taken between ticks */
	_Atomic uint64_t	untaken;
	_Atomic uint64_t	steals;
	_Atomic uint64_t	parks;
	_Atomic uint64_t	wakes;
	_Atomic uint64_t	signals;
	_Atomic uint64_t	nosignals;
	_Atomic uint64_t	spawned;
	_Atomic uint64_t	ended;
	_Atomic uint64_t	cpu_past_ns;	/* ns: of its earlier threads */
};

/* State of a worker, of which pace.c has the table. */
enum pl__duty {
	PL__GONE,		/* has no thread */
	PL__RUNS,
	PL__IDLE,		/* looks for the last time, or is parked */
	PL__IN_START_HOOK,
	PL__SLEEPS,		/* its task, on its stack, waits */
	/* from here on it is in a task, as above where it RUNS */
	PL__BLOCKED,		/* in the kernel, as sysmon saw */
	PL__STALLED,		/* computes for long, as sysmon saw */
	/* spares: they stand in the same states, from before they begin */
	PL__SPARE,		/* runs after all */
	PL__SPARE_BLOCKED,
	PL__SPARE_STALLED,
	PL__NR_DUTIES,
};

/* The worker when sysmon last saw it change. */
struct pl__sysmon_view {
	uint64_t		since_ns;
	uint64_t		cpu_ns;
	uint64_t		nr_sleeps;	/* when it was last awake */
	uint32_t		tick;
	bool			may_be_blocked;	/* not seen to compute since */
	bool			waits_for_own;	/* see lock.h */
	_Atomic bool		is_own_wait;	/* or may be, if BLOCKED */
	/*
	 * enum pl__run, of its task, which is this tick's; the worker clears
	 * it at its next task.
	 */
	_Atomic uint8_t		learned;
	_Atomic uint32_t	learned_tick;
	_Atomic int		stat_plus_1;	/* its /proc stat file, or 0 */
	int			stat_tid;	/* thread of stat_plus_1 */
	_Atomic uint64_t	task_since;	/* A: see watch.h */
	_Atomic uint64_t	ran_since;	/* A: see watch.h */

	/* Used by steal.c. */
	uint64_t		stalled_since_ns; /* in one task since then */
	uint64_t		ready_ns;	/* its ring became ready */
	uint64_t		ready_nr;	/* its requests, at ready_ns */
	uint32_t		stalled_tick;	/* tick at stalled_since_ns */
	bool			is_readable;	/* its ring, by last poll() */

	/* Used by pace.c. */
	bool			is_long;	/* stalled, at this look */
	uint32_t		relief_tick;	/* tick at relief_since_ns */
	/* ns: in one task since then */
	uint64_t		relief_since_ns;
	uint64_t		relief_cpu_ns; /* then, or at the last look */
	uint64_t		relief_look_ns;	/* that look */

	/* Used by kept.c. */
	uint32_t		kept_tick;	/* at the last look */

	/* Used by elastic.c. */
	uint64_t		elastic_cpu_ns;	/* at the last window */
	uint64_t		elastic_lacked_ns;	/* the same */
	/* the same at the last look, if it had tasks; or 0 */
	uint64_t		elastic_look_ns;
	uint32_t		elastic_tick;	/* at the last look */
};

/* Which workers poll a worker's ring, see steal.c. */
enum pl__ring_state {
	PL__OWNED,		/* its owner */
	PL__ORPHANED,		/* owner stalled; no completions seen */
	PL__ORPHAN_READY,	/* owner stalled; a thief may poll it */
};

#define PL__NR_ATTEMPT_HINTS 256	/* a power of 2 */

/*
 * O: owner, the worker's thread.  A: atomic, any thread.  I: set at init, then
 * read-only.  W: sysmon.  S: pl__rt.start_lock held.
 */
struct pl__worker {
	/* The owner's cache line. */
	struct pl__task		*current;	/* O: its task; NULL: in loop */
	/* O: after-switch callback */
	pl__after		*after;
	void			*after_arg;	/* O: its argument */
	int			*errno_at;	/* O: errno of its thread */
	struct pl__task		*for_loop; /* O: task for the loop to run */
	struct pl__ring		*ring;		/* O: NULL before first I/O */
	struct pl__group	*group;		/* I */
	struct pl__inbox	*inbox;		/* I: in which it looks first */
	_Atomic uint32_t	tick;		/* O writes: tasks taken */
	_Atomic uint32_t	duty;		/* A: enum pl__duty */
	/* O: ticks without these bits are an event's turn, see ready.h */
	uint32_t		event_mask;
	uint32_t		nr_unsignalled;	/* O: spawned, not signalled */
	/* O: tasks to take oldest first */
	size_t			nr_ahead_of_yield;
	size_t			nr_events_ahead; /* O: of them, in events */
	uint32_t		rng; /* O: random number, for steals */
	uint32_t		nr_thefts;	/* O: victims it looked at */
	uint32_t		inbox_turn;	/* O: at which it looks next */
	uint32_t		spin_ns;	/* O: spins before it parks */
	int32_t			spawns_to_sample; /* O: see latency.h */
	int32_t			spawns_unsampled; /* O: between samples */
	uint64_t		sampled_ns;	/* O: the last sample */
	uint16_t		place;		/* I: of its tasks, task.h */
	bool			is_searching;	/* O: counted in nr_searching */
	bool			has_left_half;	/* O: of a queue, in a search */
	/* O: reaps its ring, and notifies afterwards */
	bool			is_reaping;
	bool			is_starting;	/* O: counted in nr_starting */
	/* A: requests of other workers in flight that it has submitted */
	_Atomic uint32_t	nr_for_others;
	_Atomic bool		may_keep;	/* A: see kept.h */
	struct pl__own_waits	own_waits;	/* O writes */
	int			ring_error;	/* O: -errno: it has no ring */
	uint32_t		next_late; /* O: whose deadlines it looks at */
	/* O: index of the next worker to steal from if stalled */
	uint32_t		next_stalled;
	/* O: tasks that workers[next_stalled] had taken */
	uint64_t		stalled_moves;
	struct pl__task		*overdue;	/* O: not to be set aside */
	/* O: what it runs as a spare, until judged; since when; sleeps then */
	struct pl__task		*spare_task;
	void			(*spare_fn)(void *arg);
	uint64_t		spare_ns;
	uint64_t		spare_cpu_ns;	/* used then */
	uint64_t		spare_sleeps;
	uint32_t		spare_own_waits; /* O: then, by own_waits */
	bool			spare_was_short; /* O: the one before it */
	struct pl__ctx		loop;		/* O: context of the loop */
	struct pl__slab_cache	tasks;		/* O */
	struct pl__slab_cache	timers;		/* O */
	struct pl__stack_cache	stacks;		/* O */

	struct pl__worker_stat	stat __pl_cacheline;	/* O writes */
	struct pl__latency_hist	io_latency;	/* O writes */
	struct pl__latency_hist	deadline_latency;	/* O writes */
	struct pl__latency_hist	spawn_latency;	/* O writes */
	uint32_t		nr_deadlines;	/* O: deadlines that expired */
	uint32_t		nr_expired; /* O: waits with a past deadline */
	/* O: calls that did not wait, of one tick: has_had_turn() */
	uint32_t		nr_attempts, attempts_tick;
	struct pl__attempt_hint	attempt_hints[PL__NR_ATTEMPT_HINTS];	/* O */

	struct pl__deque	deque __pl_cacheline;	/* O pushes, A */
	struct pl__deque	events;	/* O pushes, A: oldest first */
	/* A: enum pl__ring_state */
	_Atomic uint32_t	ring_state __pl_cacheline;
	struct pl__lot_entry	park __pl_cacheline;	/* of lib/park */
	/* A: ring, as other threads read it */
	_Atomic(struct pl__ring *) ring_seen;
	_Atomic int		tid;		/* A: 0: not known yet */
	/* A: its state in the crew, or NULL */
	_Atomic(_Atomic uint32_t *) crew_word;
	struct pl__thread_stack	thread_stack;	/* S, O: of its thread */
	pthread_t		thread;		/* S: start_lock held */
	bool			has_thread;	/* S */
	uint32_t		index;		/* I: in its group */
	uint32_t		number; /* I: among all, as they started */
	uint32_t		lot;		/* I */

	struct pl__sysmon_view	sysmon __pl_cacheline;	/* W */
} __pl_cacheline;

/* It runs a task that was set aside, see aside.h, or is in pl_blocking(). */
static inline bool pl__is_spare(struct pl__worker *w)
{
	return load_relaxed(&w->duty) >= PL__SPARE;
}

/* It neither blocks nor computes for long, as far as was seen. */
static inline bool pl__is_running(struct pl__worker *w)
{
	uint32_t duty = load_relaxed(&w->duty);

	return duty == PL__RUNS || duty == PL__SPARE;
}

static inline bool pl__is_blocked(struct pl__worker *w)
{
	uint32_t duty = load_relaxed(&w->duty);

	return duty == PL__BLOCKED || duty == PL__SPARE_BLOCKED;
}

static inline bool pl__is_stalled(struct pl__worker *w)
{
	uint32_t duty = load_relaxed(&w->duty);

	return duty == PL__STALLED || duty == PL__SPARE_STALLED;
}

#endif /* PL_WORKER_H */
