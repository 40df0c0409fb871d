/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * worker: a thread with a deque of ready tasks, and what it is at
 */
#ifndef PL_WORKER_H
#define PL_WORKER_H

#include "ds/deque.h"
#include "ds/mpsc.h"
#include "mem/slab.h"
#include "mem/stack.h"
#include "ctx/switch.h"
#include "park/lot.h"
#include "ring/attempt_hint.h"
#include "sched/latency_hist.h"
#include "sched/task.h"

#include <pthread.h>

struct pl__ring;

/* Written by the worker, read by pl_stat_read(). */
struct pl__worker_stat {
	_Atomic uint64_t	switches;
	_Atomic uint64_t	steals;
	_Atomic uint64_t	parks;
	_Atomic uint64_t	wakes;
	_Atomic uint64_t	signals;
	_Atomic uint64_t	nosignals;
	_Atomic uint64_t	spawned;
	_Atomic uint64_t	ended;
	_Atomic uint64_t	cpu_past_ns;	/* of threads that it had */
};

/* What a worker is at; BLOCKED is sysmon's word for it, see sysmon.c. */
enum pl__duty {
	PL__RUNS,
	PL__BLOCKED,		/* by a call of its task's; in nr_blocked */
	PL__SLEEPS,		/* the task by ours, in pl__sleep(); likewise */
	PL__IDLE,		/* in nr_idle */
	PL__IN_START_HOOK,	/* in its start hook; in nr_blocked */
};

/* How sysmon found a worker when it last had moved. */
struct pl__sysmon_view {
	uint64_t		since_ns;
	uint64_t		cpu_ns;
	uint32_t		tick;
	bool			may_be_blocked;	/* ever since */
	_Atomic int		stat_plus_1;	/* descriptor, or 0 */
	int			stat_tid;	/* whose */

	/* Of orphan_ring.c. */
	uint64_t		stalled_since_ns; /* in the same task */
	uint64_t		ready_ns;	/* its ring became so */
	uint64_t		ready_nr;	/* after so many requests */
	uint32_t		stalled_tick;
	bool			is_readable;	/* its ring, when last asked */
};

/* Who polls the ring of a worker, see orphan_ring.c. */
enum pl__ring_state {
	PL__OWNED,		/* it does */
	PL__ORPHANED,		/* it is held up: others, when there is cause */
	PL__ORPHAN_READY,	/* which there is */
};

#define PL__NR_ATTEMPT_HINTS 256	/* a power of 2 */

/*
 * O: its own thread.  A: atomic, anybody.  I: set at init, then read-only.
 * W: sysmon.  S: pl__rt.start_lock held.
 */
struct pl__worker {
	/* The owner's line. */
	struct pl__task		*current;	/* O: NULL in the loop */
	void			(*after)(void *arg); /* O: after the switch */
	void			*after_arg;	/* O */
	struct pl__task		*for_loop;	/* O: to run on its stack */
	struct pl__ring		*ring;		/* O: NULL before first I/O */
	_Atomic uint32_t	tick;		/* O writes: tasks taken */
	_Atomic uint32_t	duty;		/* A: enum pl__duty */
	uint32_t		nr_unsignalled;	/* O: spawned, not signalled */
	size_t			nr_ahead_of_yield; /* O: so many oldest first */
	uint32_t		rng;		/* O: where to steal first */
	uint32_t		spin_ns;	/* O: before it parks */
	bool			is_searching;	/* O: has the token */
	bool			is_reaping;	/* O: calls for help itself */
	bool			is_starting;	/* O: in nr_starting */
	bool			has_reaped_orphan; /* O: a ring of others */
	int			ring_error;	/* O: why there is none */
	uint32_t		next_stalled;	/* O: which may be held up */
	uint64_t		stalled_moves;	/* O: its, when last looked */
	struct pl__ctx		loop;		/* O */
	struct pl__slab_cache	tasks;		/* O */
	struct pl__slab_cache	timers;		/* O */
	struct pl__stack_cache	stacks;		/* O */

	struct pl__worker_stat	stat __pl_cacheline; /* O writes */
	struct pl__latency_hist	io_latency;	/* O writes */
	struct pl__latency_hist	deadline_latency; /* O writes */
	uint32_t		nr_deadlines;	/* O: that came */
	uint32_t		nr_attempts;	/* O: calls, had or tried so */
	struct pl__attempt_hint	attempt_hints[PL__NR_ATTEMPT_HINTS]; /* O */

	struct pl__deque	deque __pl_cacheline; /* O pushes, A */
	struct pl__inbox	inbox __pl_cacheline; /* A */
	_Atomic uint32_t	ring_state;	/* A: enum pl__ring_state */
	struct pl__lot_entry	park __pl_cacheline; /* the lot's */
	_Atomic(struct pl__ring *) ring_seen;	/* A: ring, for others */
	_Atomic int		tid;		/* A: 0: not yet known */
	_Atomic(_Atomic uint32_t *) crew_word;	/* A: the crew's word, or 0 */
	pthread_t		thread;		/* S: start_lock held */
	bool			has_thread;	/* S */
	uint32_t		index;		/* I */
	uint32_t		lot;		/* I */

	struct pl__sysmon_view	sysmon __pl_cacheline; /* W */
} __pl_cacheline;

/* What its thread does, until the runtime ends, or pl__worker_end(). */
void pl__worker_run(struct pl__worker *w);

/*
 * A task on the worker's stack, or a thread that is none, blocks: until
 * @s is woken (true) or @deadline_ns (false).  Armed before, with this bell.
 */
struct pl__bell *pl__sleep_bell(struct pl__worker *w);
bool pl__sleep(struct pl__worker *w, struct pl__parker *s,
	       uint64_t deadline_ns);

/* Gives up PL__RUNS for @duty, and takes it up again. */
void pl__worker_leaves(struct pl__worker *w, enum pl__duty duty);
void pl__worker_runs(struct pl__worker *w);

/* Has a next task: it is not blocked, if sysmon said so. */
void pl__unblocked(struct pl__worker *w);

#endif /* PL_WORKER_H */
