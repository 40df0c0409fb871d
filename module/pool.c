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
 * 3. A check, under the pool's lock, chooses as many workers to call as are
 * missing, or sets the timer for the time when calls are due: when the shortage
 * is stall_ns old, and crew_interval_us after the last calls. Calls are made
 * with interrupts off; so a check makes CALLS_AT_ONCE at most, and the timer
 * the next ones after a pause. While calls are under way no others start.
 * Each time a worker takes the number of running ones below target the shortage
 * begins anew: a worker that blocks briefly, over and over again, is never
 * replaced.
 *
 * 4. Locks: a lot's, then the pool's. The workers to call are chosen under the
 * pool's lock and called under their lots' locks, each of which is taken after
 * the pool's is dropped; with interrupts off all along, so that RCU, which
 * frees workers, does not free them in between.
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

#define CALLS_AT_ONCE	4

/*
 * Without a pause the timer's interrupt would call its function again before it
 * returns, and interrupts would stay off for several checks.
 */
#define CALLS_PAUSE_NS	(10 * NSEC_PER_USEC)

static unsigned int crew_interval_us = 50;
module_param(crew_interval_us, uint, 0644);
MODULE_PARM_DESC(crew_interval_us, "least time between calls of a crew, of which several are made at once");

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

/* Returns how many workers are missing, or 0 if there is no shortage. */
static u32 pool_nr_missing(const struct parklot_pool *pool)
{
	u32 nr_running, target;

	if (!parklot_pool_needs_check(pool))
		return 0;
	nr_running = parklot_pool_running(pool);
	target = min(READ_ONCE(pool->target), READ_ONCE(pool->max));
	return target > nr_running ? target - nr_running : 0;
}

static void pool_set_timer(struct parklot_pool *pool, u64 due)
{
	lockdep_assert_held(&pool->lock);
	if (!hrtimer_is_queued(&pool->timer))
		hrtimer_start(&pool->timer, ns_to_ktime(due),
			      HRTIMER_MODE_ABS_HARD);
}

/* Workers that are called at once, and the lots on which they were seen. */
struct pool_calls {
	u32			nr;
	u32			nr_replaced;	/* were still parked */
	bool			is_part;	/* more are missing */
	struct parklot_pool_worker *worker[CALLS_AT_ONCE];
	struct parklot_lot	*lot[CALLS_AT_ONCE];
};

/*
 * Finds up to @nr workers, those that parked last first. It skips workers that
 * are about to leave their lots on their own: these run, or park anew and then
 * check themselves. Each of them has a processor, so they are few.
 */
static void pool_find_parked(struct parklot_pool *pool, u32 nr,
			     struct pool_calls *calls)
{
	struct parklot_pool_worker *last;
	struct parklot_lot *lot;

	lockdep_assert_held(&pool->lock);
	list_for_each_entry(last, &pool->parked, entry) {
		if (calls->nr == nr)
			break;
		lot = READ_ONCE(last->park_notifier.lot);
		if (!lot)
			continue;
		calls->worker[calls->nr] = last;
		calls->lot[calls->nr++] = lot;
	}
}

/*
 * Chooses the workers to call now, or sets the timer if calls are not due yet.
 * While workers are being called no other is chosen: the thread that calls them
 * checks again afterwards. With @has_stopped a worker has just stopped running;
 * if that takes the number below target, it is a new shortage, even if no check
 * has seen the end of the last one.
 */
static void pool_choose(struct parklot_pool *pool, bool has_stopped,
			struct pool_calls *calls)
{
	u32 nr_missing;
	u64 now, due;

	lockdep_assert_held(&pool->lock);
	if (pool->is_replacing)
		return;
	nr_missing = pool_nr_missing(pool);
	if (!nr_missing) {
		pool->seen = 0;
		return;
	}
	now = ktime_get_ns();
	if (!pool->seen || (has_stopped && nr_missing == 1))
		pool->seen = now;
	due = max(pool->seen + pool->stall_ns, pool->next);
	if (now < due) {
		pool_set_timer(pool, due);
		return;
	}
	pool_find_parked(pool, min_t(u32, nr_missing, CALLS_AT_ONCE), calls);
	if (!calls->nr)
		return;
	pool->is_replacing = true;
	pool->next = now + (u64)READ_ONCE(crew_interval_us) * NSEC_PER_USEC;
	calls->is_part = nr_missing > CALLS_AT_ONCE;
}

static bool pool_call(struct parklot_pool *pool,
		      struct parklot_pool_worker *worker,
		      struct parklot_lot *lot)
{
	if (!parklot_lot_wake_one(lot, &worker->park_notifier, PARKLOT_CALLED))
		return false;
	if (trace_parklot_replace_enabled())
		trace_parklot_replace(worker->slot,
				      parklot_pool_running(pool));
	return true;
}

/*
 * If too few workers still run, the timer calls others: soon if these were too
 * few, or if one of them left its lot on its own.
 */
static void pool_note_called(struct parklot_pool *pool,
			     const struct pool_calls *calls)
{
	raw_spin_lock(&pool->lock);
	pool->is_replacing = false;
	WRITE_ONCE(pool->nr_replaced, pool->nr_replaced + calls->nr_replaced);
	if (calls->is_part || calls->nr_replaced < calls->nr)
		pool->next = ktime_get_ns() + CALLS_PAUSE_NS;
	if (pool_nr_missing(pool))
		pool_set_timer(pool, pool->next);
	raw_spin_unlock(&pool->lock);
}

static void pool_check(struct parklot_pool *pool, bool has_stopped)
{
	struct pool_calls calls = { .nr = 0 };
	unsigned long flags;
	u32 i;

	local_irq_save(flags);
	raw_spin_lock(&pool->lock);
	pool_choose(pool, has_stopped, &calls);
	raw_spin_unlock(&pool->lock);
	for (i = 0; i < calls.nr; i++) {
		PARKLOT_INJECT("replace");
		calls.nr_replaced += pool_call(pool, calls.worker[i],
					       calls.lot[i]);
	}
	if (calls.nr)
		pool_note_called(pool, &calls);
	local_irq_restore(flags);
}

/**
 * parklot_pool_check() - replace workers, if that is due
 * @pool: one of its workers has just stopped running
 *
 * Tries once: if a chosen worker leaves its lot on its own just then, the timer
 * checks anew, with interrupts on in between.
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
