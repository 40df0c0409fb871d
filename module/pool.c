// SPDX-License-Identifier: GPL-2.0-only
/*
 * When too few workers run, and which parked worker runs instead.
 *
 * The counts lie in the counters pages themselves, where user space cannot
 * write: a line for each processor, written by this processor only, since
 * workers block far more often than the number of running ones is wanted.
 * Lines of workers would do as well, but user space chooses the number of
 * workers, and the sum is taken with interrupts off.
 *
 * 1. No shortage is overlooked. A shortage: fewer than `target' workers run,
 * the backlog is not 0, and a worker is parked. Three events may bring it
 * about; each thread writes its own word, issues a full barrier, and then reads
 * the words of the others:
 *
 *	blocks, parks or leaves		raises the backlog (user space)
 *	running.out++			backlog = 1
 *	full barrier	[crew-a]	full barrier
 *	if (backlog and any parked)	sum
 *	    sum, under lock		if (sum < target)
 *	    if (sum < target)		    WAKE
 *		call
 *
 * One of all those barriers is the last. The thread behind it reads all that
 * was written before any of them: each `out', the backlog and the list of the
 * parked workers; and a sum is never too high (2). It may be too low, if a
 * worker returns meanwhile: then the check, or the call, was needless.
 *
 * A worker that parks is listed and counted before it checks. So if one worker
 * blocks and another one parks, the later of the two sees the shortage.
 *
 * 2. A sum counts each worker once at most. A worker may enter and leave a
 * state on several processors while their lines are read:
 *
 *	worker				sum
 *	running.out++, on one		read each `in'
 *	full barrier	[crew-a]	read barrier		[crew-b]
 *	running.in++, on another	read each `out'
 *
 * If a sum contains the worker's last `in', it also contains the `out' before.
 *
 * 3. A check, under the pool's lock, calls one worker, or sets the timer for
 * the time when a call is due: when the shortage is stall_ns old, and
 * crew_interval_us after the last call. While a call is under way no other
 * starts. Each time a worker takes the number of running ones below target the
 * shortage begins anew: a worker that blocks briefly, over and over again, is
 * never replaced.
 *
 * 4. Locks: a lot's, then the pool's. The worker to call is chosen under the
 * pool's lock and called under its lot's lock, which is taken after the pool's
 * is dropped; with interrupts off all along, so that RCU, which frees workers,
 * does not free it in between.
 */
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/mm.h>
#include <linux/parklot.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "compat.h"
#include "inject.h"
#include "lot.h"
#include "pool.h"
#include "trace.h"

static unsigned int crew_interval_us = 50;
module_param(crew_interval_us, uint, 0644);
MODULE_PARM_DESC(crew_interval_us, "least time between two calls of a crew");

static_assert(sizeof(atomic_t) == sizeof(u32));

/**
 * parklot_pool_use_line() - give this processor a line of the counters
 * @pool: none of its workers has run on this processor
 *
 * This is the only write to a word that processors share; each processor does
 * it once.
 *
 * Context: interrupts are off.
 * Return: the line.
 */
struct parklot_cpu_counters *
parklot_pool_use_line(struct parklot_pool *pool)
{
	int nr = atomic_inc_return(pool->nr_cpus) - 1;

	pool->own[smp_processor_id()] = pool->line[nr];
	return pool->line[nr];
}

/**
 * parklot_pool_running() - count the running workers
 * @pool: any pool
 *
 * Reads as many lines as there are processors on which workers have run.
 *
 * Return: the number; it may be too low if workers change their states
 * meanwhile, but not too high.
 */
u32 parklot_pool_running(const struct parklot_pool *pool)
{
	u32 i, nr = 0;

	for (i = 0; i < atomic_read(pool->nr_cpus); i++)
		nr += READ_ONCE(pool->line[i]->running.in);
	/*
	 * [crew-b] pairs with [crew-a] in parklot_pool_count(): each `in' is
	 * read before any `out'. Otherwise a worker that left the state on one
	 * processor and entered it on another would count twice, and a shortage
	 * would be overlooked.
	 */
	smp_rmb();
	PARKLOT_INJECT("crew-b");
	for (i = 0; i < atomic_read(pool->nr_cpus); i++)
		nr -= READ_ONCE(pool->line[i]->running.out);
	return max_t(s32, nr, 0);
}

/* Is there a shortage? If so, @nr_running is the number of running workers. */
static bool pool_is_short(const struct parklot_pool *pool, u32 *nr_running)
{
	if (!parklot_pool_needs_check(pool))
		return false;
	*nr_running = parklot_pool_running(pool);
	return *nr_running < READ_ONCE(pool->target) &&
	       *nr_running < READ_ONCE(pool->max);
}

static void pool_set_timer(struct parklot_pool *pool, u64 due)
{
	lockdep_assert_held(&pool->lock);
	if (!hrtimer_is_queued(&pool->timer))
		hrtimer_start(&pool->timer, ns_to_ktime(due),
			      HRTIMER_MODE_ABS_HARD);
}

/*
 * Finds the worker that parked last. It skips workers that are about to leave
 * their lots on their own: these run, or park anew and then check themselves.
 * Each of them has a processor, so they are few.
 */
static struct parklot_lot *pool_find_parked(struct parklot_pool *pool,
					    struct parklot_pool_worker **worker)
{
	struct parklot_pool_worker *last;
	struct parklot_lot *lot;

	lockdep_assert_held(&pool->lock);
	list_for_each_entry(last, &pool->parked, entry) {
		lot = READ_ONCE(last->park_notifier.lot);
		if (!lot)
			continue;
		*worker = last;
		return lot;
	}
	return NULL;
}

/*
 * Chooses the worker to call now, and returns its lot, or sets the timer if a
 * call is not due yet. While a worker is being called no other is chosen: the
 * thread that calls it checks again afterwards. With @has_stopped a worker has
 * just stopped running; if that takes the number below target, it is a new
 * shortage, even if no check has seen the end of the last one.
 */
static struct parklot_lot *pool_choose(struct parklot_pool *pool,
				       bool has_stopped,
				       struct parklot_pool_worker **worker)
{
	u64 now, due, interval;
	struct parklot_lot *lot;
	u32 nr_running;

	lockdep_assert_held(&pool->lock);
	if (pool->is_replacing)
		return NULL;
	if (!pool_is_short(pool, &nr_running)) {
		pool->seen = 0;
		return NULL;
	}
	now = ktime_get_ns();
	if (!pool->seen ||
	    (has_stopped && nr_running + 1 == pool->target))
		pool->seen = now;
	due = max(pool->seen + pool->stall_ns, pool->next);
	if (now < due) {
		pool_set_timer(pool, due);
		return NULL;
	}
	lot = pool_find_parked(pool, worker);
	if (lot) {
		interval = (u64)READ_ONCE(crew_interval_us) * NSEC_PER_USEC;
		pool->is_replacing = true;
		pool->next = now + interval;
	}
	return lot;
}

/* If too few workers still run, the timer calls the next one. */
static void pool_note_replaced(struct parklot_pool *pool, u32 slot)
{
	u32 nr_running;

	if (trace_parklot_replace_enabled())
		trace_parklot_replace(slot, parklot_pool_running(pool));
	raw_spin_lock(&pool->lock);
	pool->is_replacing = false;
	WRITE_ONCE(pool->nr_replaced, pool->nr_replaced + 1);
	if (pool_is_short(pool, &nr_running))
		pool_set_timer(pool, pool->next);
	raw_spin_unlock(&pool->lock);
}

/*
 * The chosen worker left its lot on its own; has the timer check again, since
 * that worker alone may not suffice.
 */
static void pool_note_missed(struct parklot_pool *pool)
{
	u32 nr_running;

	raw_spin_lock(&pool->lock);
	pool->is_replacing = false;
	pool->next = 0;
	if (pool_is_short(pool, &nr_running))
		pool_set_timer(pool, ktime_get_ns());
	raw_spin_unlock(&pool->lock);
}

static void pool_check(struct parklot_pool *pool, bool has_stopped)
{
	struct parklot_pool_worker *worker;
	struct parklot_lot *lot;
	unsigned long flags;

	local_irq_save(flags);
	raw_spin_lock(&pool->lock);
	lot = pool_choose(pool, has_stopped, &worker);
	raw_spin_unlock(&pool->lock);
	if (lot) {
		PARKLOT_INJECT("replace");
		if (parklot_lot_wake_one(lot, &worker->park_notifier,
					 PARKLOT_CALLED))
			pool_note_replaced(pool, worker->slot);
		else
			pool_note_missed(pool);
	}
	local_irq_restore(flags);
}

/**
 * parklot_pool_check() - replace a worker, if that is due
 * @pool: one of its workers has just stopped running
 *
 * Tries once: if the chosen worker leaves its lot on its own just then, the
 * timer checks anew, with interrupts on in between.
 *
 * Context: any but the scheduler's; no locks held.
 */
void parklot_pool_check(struct parklot_pool *pool)
{
	pool_check(pool, true);
}

static void pool_check_by_irq(struct irq_work *work)
{
	pool_check(container_of(work, struct parklot_pool, work), true);
}

static enum hrtimer_restart pool_check_by_timer(struct hrtimer *timer)
{
	pool_check(container_of(timer, struct parklot_pool, timer), false);
	return HRTIMER_NORESTART;
}

static void pool_free(struct parklot_pool *pool)
{
	kvfree(pool->own);
	kvfree(pool->line);
	kvfree(pool->worker);
	kfree(pool);
}

/* Allocates the slots, and two pointers to a line for each processor. */
static int pool_alloc(struct parklot_pool *pool, u32 nr_slots)
{
	pool->worker = kvcalloc(nr_slots, sizeof(*pool->worker), PARKLOT_GFP);
	pool->line = kvcalloc(nr_cpu_ids, sizeof(*pool->line), PARKLOT_GFP);
	pool->own = kvcalloc(nr_cpu_ids, sizeof(*pool->own), PARKLOT_GFP);
	return pool->worker && pool->line && pool->own ? 0 : -ENOMEM;
}

/**
 * parklot_pool_create() - make a pool without workers
 * @nr_slots: the number of workers that may join, not 0
 * @counters: shows how many lines are in use; written by this pool only
 * @words:    holds the backlog; user space may write anything to it
 *
 * The pool must not be used before parklot_pool_set_line() has given it
 * nr_cpu_ids lines. Until parklot_pool_set() it counts and calls no worker.
 *
 * Return: the pool, or -ENOMEM.
 */
struct parklot_pool *
parklot_pool_create(u32 nr_slots, struct parklot_counters *counters,
		    const struct parklot_words *words)
{
	struct parklot_pool *pool;

	pool = kzalloc(sizeof(*pool), PARKLOT_GFP);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	if (pool_alloc(pool, nr_slots)) {
		pool_free(pool);
		return ERR_PTR(-ENOMEM);
	}
	pool->nr_slots = nr_slots;
	pool->mm = current->mm;
	pool->nr_cpus = (atomic_t *)&counters->nr_cpus;
	pool->backlog = &words->backlog;
	pool->max = U32_MAX;
	raw_spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->parked);
	pool->work = IRQ_WORK_INIT_HARD(pool_check_by_irq);
	hrtimer_setup(&pool->timer, pool_check_by_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_HARD);
	return pool;
}

/**
 * parklot_pool_set_line() - give @pool one of its lines
 * @pool: without workers so far
 * @nr:   below nr_cpu_ids; lines are used in the order of their numbers
 * @line: zeroed; written by this pool only
 */
void parklot_pool_set_line(struct parklot_pool *pool, u32 nr,
			   struct parklot_cpu_counters *line)
{
	pool->line[nr] = line;
}

/**
 * parklot_pool_destroy() - free @pool
 * @pool: has no workers, and no notifier uses it
 *
 * Context: may sleep.
 */
void parklot_pool_destroy(struct parklot_pool *pool)
{
	irq_work_sync(&pool->work);
	hrtimer_cancel(&pool->timer);
	pool_free(pool);
}

/**
 * parklot_pool_set() - set how many workers are to run
 * @pool: any pool
 * @crew: from user space, not checked
 *
 * Return: 0, or -EINVAL.
 */
int parklot_pool_set(struct parklot_pool *pool, const struct parklot_crew *crew)
{
	if (crew->flags || crew->target > crew->max)
		return -EINVAL;

	raw_spin_lock_irq(&pool->lock);
	WRITE_ONCE(pool->target, crew->target);
	WRITE_ONCE(pool->max, crew->max);
	WRITE_ONCE(pool->stall_ns, crew->stall_ns);
	pool->seen = 0;
	/* The timer may be set for a shortage that the new numbers end. */
	hrtimer_try_to_cancel(&pool->timer);
	raw_spin_unlock_irq(&pool->lock);

	parklot_pool_check(pool);
	return 0;
}

/**
 * parklot_pool_show() - write the counts to fdinfo
 * @pool: any pool
 * @seq:  the file
 */
void parklot_pool_show(const struct parklot_pool *pool, struct seq_file *seq)
{
	u32 i, nr_blocked = 0;

	for (i = 0; i < atomic_read(pool->nr_cpus); i++)
		nr_blocked += READ_ONCE(pool->line[i]->blocked.in) -
			      READ_ONCE(pool->line[i]->blocked.out);
	seq_printf(seq, "parklot-running:\t%u\n", parklot_pool_running(pool));
	seq_printf(seq, "parklot-blocked:\t%d\n", max_t(s32, nr_blocked, 0));
	seq_printf(seq, "parklot-replaced:\t%llu\n",
		   READ_ONCE(pool->nr_replaced));
}
