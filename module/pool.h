/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A pool: how many workers of a space's crew run, and which are parked and may
 * run instead. It knows lots, but neither threads nor how they block
 * (worker.c).
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
 * I: set at init. L: lock held. W: written with the lock held, read without.
 * M: workers_lock held. P: written on that processor, interrupts off.
 * Times are CLOCK_MONOTONIC, ns.
 */
struct parklot_pool {
	struct mm_struct	*mm;		/* I: only compared */
	atomic_t		*nr_cpus;	/* number of used lines */
	/* I: nr_cpu_ids lines of the counters area, used in this order. */
	struct parklot_cpu_counters **line;
	/* P: the line of each processor, or NULL if no worker has run there. */
	struct parklot_cpu_counters **own;
	const u32		*backlog;	/* I: user space's word */
	u32			target;		/* W: number of workers */
	u32			max;		/* W: number of workers */
	u32			stall_ns;	/* W: shortage's least age */

	/* Written by workers that park, and by checks during a shortage. */
	raw_spinlock_t		lock ____cacheline_aligned_in_smp;
	struct list_head	parked;		/* W: workers, last one first */
	u64			seen;		/* L: shortage's begin, or 0 */
	u64			next;		/* L: no call before, or 0 */
	bool			is_replacing;	/* L: calls are under way */
	u64			nr_replaced;	/* W: number of calls */
	struct hrtimer		timer;		/* L: checks later */
	struct irq_work		work;		/* checks soon */

	u32			nr_slots;	/* I: number of slots */
	struct parklot_pool_worker **worker;	/* M: each slot's, or NULL */
	bool			needs_grace;	/* M: freed by RCU */
};

#ifdef PARKLOT_HAS_CREW
/*
 * A registered thread. (struct parklot_worker is user space's.)
 * O: its own thread. M: workers_lock held. L: the pool's lock held.
 * I: set at init.
 */
struct parklot_pool_worker {
	struct preempt_notifier	preempt_notifier; /* O */
	struct parklot_park_notifier park_notifier;
	struct parklot_pool	*pool;		/* M: NULL by [worker-a] */
	struct task_struct	*task;		/* I: referenced */
	const u32		*word;		/* I: state in user space */
	u32			slot;		/* I: index in the pool */
	bool			is_in_park;	/* O: its sleeps do not block */
	atomic_t		state;		/* enum parklot_worker_state */
	struct list_head	entry;		/* L: in the pool's parked */
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

/* Returns NULL for a state that is not counted. */
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
 * parklot_pool_count() - count a worker that changes its state
 * @pool: the worker's
 * @from: the state that it leaves
 * @to:   the state that it enters, counted first
 *
 * A full barrier if the worker stops running. Inline: with constant states the
 * compiler drops most of it.
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

	/* An interrupt may check, and count, on this processor, too. */
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
	if (from == PARKLOT_RUNS) {
		/*
		 * [crew-a] pairs with [crew-a] of another worker, with the
		 * barrier of the thread that raises the backlog, and with
		 * [crew-b] in parklot_pool_running(): the state is counted
		 * before the backlog, the list of the parked and the other
		 * lines are read. Otherwise each of two threads could miss the
		 * write of the other, and neither would see the shortage.
		 */
		smp_mb();
	}
}

/**
 * parklot_pool_needs_check() - may a shortage exist?
 * @pool: any pool
 *
 * Call it after parklot_pool_count(): [crew-a] there comes between the caller's
 * own count and all that is read here. Whether too few workers run takes longer
 * to find out: parklot_pool_check() does that.
 *
 * Context: any, the scheduler's included.
 * Return: true unless there is certainly none.
 */
static inline bool
parklot_pool_needs_check(const struct parklot_pool *pool)
{
	return READ_ONCE(pool->target) && READ_ONCE(*pool->backlog) &&
	       !list_empty(&pool->parked);
}

#endif /* PARKLOT_POOL_H */
