/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A pool: how many of a space's crew run, and who is parked and may be let
 * run. Knows lots, but neither threads nor how they block (worker.c).
 */
#ifndef PARKLOT_POOL_H
#define PARKLOT_POOL_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/parklot.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "inject.h"
#include "lot.h"

struct mm_struct;
struct seq_file;
struct task_struct;

enum parklot_worker_state {
	PARKLOT_RUNS,
	PARKLOT_BLOCKED,
	PARKLOT_PARKED,
	PARKLOT_IDLE,
	PARKLOT_GONE,
};

/*
 * I: set at init.  L: lock held.  W: written with the lock held, read without.
 * M: worker.c's lock held.  P: written on that processor, interrupts off.
 */
struct parklot_pool {
	struct mm_struct	*mm;		/* I: only its identity */
	atomic_t		*nr_cpus;	/* lines in use */
	/* Lines of the counters: I: nr_cpu_ids, the first is used first. */
	struct parklot_cpu_counters **line;
	/* P: that of a processor; NULL: no worker has run there. */
	struct parklot_cpu_counters **own;
	const u32		*backlog;	/* I: user space's word */
	u32			target;		/* W */
	u32			max;		/* W */
	u32			stall_ns;	/* W */

	/* Written by workers that park, and where too few run. */
	raw_spinlock_t		lock ____cacheline_aligned_in_smp;
	struct list_head	parked;		/* W: workers, last one first */
	u64			seen;		/* L: shortage, ns; 0: none */
	u64			next;		/* L: no call before, ns */
	bool			is_replacing;	/* L: one, this very moment */
	u64			nr_replaced;	/* W */
	struct hrtimer		timer;		/* L: to check later */
	struct irq_work		work;		/* to check soon */

	u32			nr_slots;	/* I */
	struct parklot_pool_worker **worker;	/* M: nr_slots */
	bool			needs_grace;	/* M: to be freed by RCU */
};

#ifdef PARKLOT_HAS_CREW
/*
 * O: its own thread.  M: worker.c's lock held.  L: the pool's lock held.
 * I: set at init.
 */
struct parklot_pool_worker {
	struct preempt_notifier	preempt_notifier; /* O */
	struct parklot_park_notifier park_notifier;
	struct parklot_pool	*pool;		/* M: NULL by [worker-a] */
	struct task_struct	*task;		/* I: referenced */
	const u32		*word;		/* I: user space's state */
	u32			slot;		/* I */
	bool			is_in_park;	/* O */
	atomic_t		state;		/* enum parklot_worker_state */
	struct list_head	entry;		/* L */
	struct llist_node	dead;
	struct rcu_head		rcu;
};
#endif

struct parklot_pool *
parklot_pool_create(u32 nr_slots, struct parklot_counters *counters,
		    const struct parklot_words *words);
void parklot_pool_set_line(struct parklot_pool *pool, u32 nr,
			   struct parklot_cpu_counters *line);
void parklot_pool_destroy(struct parklot_pool *pool);
int parklot_pool_set(struct parklot_pool *pool,
		     const struct parklot_crew *crew);

struct parklot_cpu_counters *
parklot_pool_use_line(struct parklot_pool *pool);
u32 parklot_pool_running(const struct parklot_pool *pool);
void parklot_pool_check(struct parklot_pool *pool);
void parklot_pool_show(const struct parklot_pool *pool,
		       struct seq_file *seq);

/* NULL: that state is not counted. */
static __always_inline struct parklot_state_counters *
parklot_line_state(struct parklot_cpu_counters *line,
		   enum parklot_worker_state state)
{
	switch (state) {
	case PARKLOT_RUNS:
		return &line->running;
	case PARKLOT_BLOCKED:
		return &line->blocked;
	case PARKLOT_PARKED:
		return &line->parked;
	default:
		return NULL;
	}
}

/**
 * parklot_pool_count() - a worker goes from one duty to another
 * @pool: whose
 * @from:   is one fewer
 * @to:     is one more, and that first
 *
 * A full barrier if a worker stops to run. Inline: constant duties spare most.
 *
 * Context: any, the scheduler's included; not preemptible.
 */
static __always_inline void
parklot_pool_count(struct parklot_pool *pool,
		   enum parklot_worker_state from, enum parklot_worker_state to)
{
	struct parklot_cpu_counters *line;
	struct parklot_state_counters *counters;
	unsigned long flags;

	/* A check in an interrupt counts as well. */
	raw_local_irq_save(flags);
	line = pool->own[smp_processor_id()];
	if (unlikely(!line))
		line = parklot_pool_use_line(pool);
	counters = parklot_line_state(line, to);
	if (counters)
		WRITE_ONCE(counters->in, counters->in + 1);
	PARKLOT_INJECT("count");
	counters = parklot_line_state(line, from);
	if (counters)
		WRITE_ONCE(counters->out, counters->out + 1);
	raw_local_irq_restore(flags);
	/*
	 * [crew-a] pairs with itself, in another worker's call, with the
	 * barrier of who raises the backlog, and with [crew-b] in
	 * parklot_pool_running().
	 */
	if (from == PARKLOT_RUNS)
		smp_mb();
}

/**
 * parklot_pool_needs_check() - may somebody be parked who should run?
 * @pool: any
 *
 * To be asked after parklot_pool_count(), whose [crew-a] is between the
 * caller's own tally and all that is read here. Whether too few run takes
 * longer to find out: that is parklot_pool_check()'s.
 *
 * Context: any, the scheduler's included.
 */
static inline bool
parklot_pool_needs_check(const struct parklot_pool *pool)
{
	return READ_ONCE(pool->target) && READ_ONCE(*pool->backlog) &&
	       !list_empty(&pool->parked);
}

#endif /* PARKLOT_POOL_H */
