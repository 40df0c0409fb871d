// SPDX-License-Identifier: GPL-2.0-only
/*
 * Too few run: who says so, and who is called.
 *
 * The tallies lie in the counters pages themselves, where user space cannot
 * write: a line for each processor, that only this processor writes, since
 * workers block far more often than anybody wants to know how many run. Lines
 * of workers would do as well, but their number is user space's to choose, and
 * the sum is taken with interrupts off.
 *
 * 1. No shortage is overlooked. It is one if fewer than `target' run, the
 * backlog is not 0, and somebody is parked. Three may bring it about; each
 * writes its own word and then reads those of the others:
 *
 *	blocks, parks or leaves		raises the backlog (user space)
 *	running.out++			backlog = 1
 *	full barrier	[crew-a]	full barrier
 *	if (backlog and any parked)	sum
 *	    sum, under lock		if (sum < target)
 *	    if (sum < target)		    WAKE
 *		call
 *
 * Of all those barriers one is the last. The thread behind it reads what was
 * written before any of them, so it sees every `out', the backlog and the list
 * of the parked; and a sum is never too high (2). It may be too low, as that of
 * a thread that returns meanwhile: then the check, or the call, was needless.
 *
 * Who parks is on the list and counted before he looks, so that of two workers,
 * one of which blocks and one parks, the later one sees the shortage.
 *
 * 2. A sum counts each worker once at most. It may enter and leave on several
 * processors while their lines are read:
 *
 *	worker				sum
 *	running.out++, on one		read each `in'
 *	full barrier	[crew-a]	read barrier		[crew-b]
 *	running.in++, on another	read each `out'
 *
 * If its last `in' is read, so is the `out' before that.
 *
 * 3. A check, under the pool's lock, calls one, or sets the timer for when
 * it is due: when the shortage is as old as stall_ns, and not too soon after
 * the last call, nor during one. Each time a worker brings what runs below
 * target the shortage begins anew: a worker that comes back soon, over and over
 * again, is never replaced.
 *
 * 4. Locks: a lot's, then the pool's. Whom to call is found under the
 * pool's and called under his lot's, which is taken after; with
 * interrupts off all along, so that the worker, which RCU frees, is still
 * there.
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
 * parklot_pool_use_line() - give this processor a line of the crew's
 * @pool: which has never run here
 *
 * The only write to what several share, once for each processor.
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
 * parklot_pool_running() - how many run
 * @pool: any
 *
 * Reads as many lines as there are processors on which the crew has run.
 *
 * Return: that, or fewer if some come and go meanwhile, but not more.
 */
u32 parklot_pool_running(const struct parklot_pool *pool)
{
	u32 i, nr = 0;

	for (i = 0; i < atomic_read(pool->nr_cpus); i++)
		nr += READ_ONCE(pool->line[i]->running.in);
	/* [crew-b] pairs with [crew-a] in parklot_pool_count(). */
	smp_rmb();
	PARKLOT_INJECT("crew-b");
	for (i = 0; i < atomic_read(pool->nr_cpus); i++)
		nr -= READ_ONCE(pool->line[i]->running.out);
	return max_t(s32, nr, 0);
}

/* Is somebody parked who should run? If so, @nr_running do. */
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
 * The last one parked, but for those who are about to leave their lots by
 * themselves: they run, or park anew and then look themselves. Each of them
 * has a processor, so they are few.
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
 * Whom to call now, and where; the timer is set if it is not time yet. While
 * one is being called nobody else is: who calls him looks again behind that.
 * @has_stopped: a worker has just stopped to run. If with that too few do it is
 * a new shortage, even if nobody has seen the end of the last one.
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

/* If still too few run, the next one is the timer's to call. */
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

/* Who was to be called left by himself: he runs, but may not be enough. */
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
 * parklot_pool_check() - let one run instead of another, if it is time
 * @pool: one of its workers has just stopped to run
 *
 * Tries once: if the one chosen leaves his lot by himself just then, the timer
 * has it done anew, with interrupts on in between.
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

/* Room for the workers, and for what of theirs each processor counts. */
static int pool_alloc(struct parklot_pool *pool, u32 nr_slots)
{
	pool->worker = kvcalloc(nr_slots, sizeof(*pool->worker), PARKLOT_GFP);
	pool->line = kvcalloc(nr_cpu_ids, sizeof(*pool->line), PARKLOT_GFP);
	pool->own = kvcalloc(nr_cpu_ids, sizeof(*pool->own), PARKLOT_GFP);
	return pool->worker && pool->line && pool->own ? 0 : -ENOMEM;
}

/**
 * parklot_pool_create() - a crew without workers
 * @nr_slots: how many there may be, not 0
 * @counters: where to say how many lines are in use; nobody else writes it
 * @words:    where the backlog is; anybody may write anything to it
 *
 * It is not to be used before parklot_pool_set_line() has given it nr_cpu_ids
 * lines. Until parklot_pool_set() it counts and calls nobody.
 *
 * Return: it, or -ENOMEM.
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
 * parklot_pool_set_line() - give one processor a place to count
 * @pool: without workers so far
 * @nr:     below nr_cpu_ids: the first is used first
 * @line:   zeroed; nobody else writes it
 */
void parklot_pool_set_line(struct parklot_pool *pool, u32 nr,
			   struct parklot_cpu_counters *line)
{
	pool->line[nr] = line;
}

/**
 * parklot_pool_destroy() - free @pool
 * @pool: has no workers, and no notifier is in the middle of it
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
 * parklot_pool_set() - how many are to run
 * @pool: any
 * @crew:   as user space wants it
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
	/* It may be set for what is not so any more. */
	hrtimer_try_to_cancel(&pool->timer);
	raw_spin_unlock_irq(&pool->lock);

	parklot_pool_check(pool);
	return 0;
}

/**
 * parklot_pool_show() - the counts, for fdinfo
 * @pool: any
 * @seq:    where to
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
