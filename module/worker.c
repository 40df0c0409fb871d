// SPDX-License-Identifier: GPL-2.0-only
/*
 * Workers: threads that joined a crew. The scheduler tells a worker's notifier
 * when it loses or gets a processor.
 *
 * A worker runs, is blocked, parked, idle (blocked, but as announced) or gone,
 * as `state' says; the thread that changes the state also moves the worker from
 * one count to the other. The scheduler's notifier changes it between running,
 * blocked and idle; the lot, under its lock, between running and parked.
 *
 * worker_sched_out() runs with the scheduler's own lock held. It counts, on the
 * line of its processor, and queues an irq_work if there is a backlog and a
 * worker is parked; the irq_work sums and calls. Otherwise neither
 * worker_sched_out() nor worker_sched_in() writes a word that another thread
 * writes.
 *
 * A worker belongs to its thread: only the thread may remove it from the list
 * of notifiers, as it does when it leaves. If the thread exits instead, or runs
 * another program, or if the pool goes first, the next worker_sched_out()
 * removes the worker and gives it to a work item.
 *
 *	notifier				detaching thread
 *	preemption off				worker->pool = NULL [worker-a]
 *	pool = worker->pool	[worker-b]	RCU's grace period
 *	use it					free the pool
 *	preemption on
 *
 * The last worker of a pool may be detached before the pool is dismissed, when
 * another thread takes the slot of a thread that exits. So a pool remembers
 * whether any worker was detached while its notifier could still run, and is
 * then freed by a work item after a grace period; a close does not wait.
 */
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/parklot.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/jobctl.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "inject.h"
#include "pool.h"
#include "trace.h"
#include "worker.h"

/* Protects the slots of each pool, and the pool of each worker. */
static DEFINE_MUTEX(workers_lock);
static u32 nr_workers;		/* workers_lock held: with a notifier */

/*
 * workers_lock held: the scheduler calls notifiers. All context switches of the
 * machine pay for that, so it ends crew_linger_ms after the last worker has
 * gone. It does not end sooner: each change patches the kernel's text, and
 * threads that join and leave in a loop cause two patches in that time at most.
 */
static bool is_notifying;
module_param_named(crew_is_watched, is_notifying, bool, 0444);
MODULE_PARM_DESC(crew_is_watched, "the scheduler tells of workers");

static unsigned int crew_linger_ms = 1000;
module_param(crew_linger_ms, uint, 0644);
MODULE_PARM_DESC(crew_linger_ms, "that ends so long after the last worker");

static void worker_stop_notifying(struct work_struct *work);
static DECLARE_DELAYED_WORK(linger_work, worker_stop_notifying);

static LLIST_HEAD(dead_workers);
static struct workqueue_struct *reap_wq;

/* Changes the state; returns false if it was not @from. */
static __always_inline bool
worker_move(struct parklot_pool_worker *worker, struct parklot_pool *pool,
	    enum parklot_worker_state from, enum parklot_worker_state to)
{
	if (atomic_cmpxchg(&worker->state, from, to) != from)
		return false;
	parklot_pool_count(pool, from, to);
	return true;
}

static void worker_retire(struct parklot_pool_worker *worker,
			  struct parklot_pool *pool)
{
	enum parklot_worker_state from;

	from = atomic_xchg(&worker->state, PARKLOT_GONE);
	if (from != PARKLOT_GONE)
		parklot_pool_count(pool, from, PARKLOT_GONE);
}

static struct parklot_pool_worker *
worker_of(struct parklot_park_notifier *notifier)
{
	return container_of(notifier, struct parklot_pool_worker,
			    park_notifier);
}

/* The thread's call holds the space, so worker->pool is valid here. */
static void worker_listed(struct parklot_park_notifier *notifier)
{
	struct parklot_pool_worker *worker = worker_of(notifier);
	struct parklot_pool *pool = worker->pool;

	raw_spin_lock(&pool->lock);
	list_add(&worker->entry, &pool->parked);
	worker_move(worker, pool, PARKLOT_RUNS, PARKLOT_PARKED);
	raw_spin_unlock(&pool->lock);
}

/* Called by the waker, so that the next waker counts the wakee as running. */
static void worker_unlisted(struct parklot_park_notifier *notifier)
{
	struct parklot_pool_worker *worker = worker_of(notifier);
	struct parklot_pool *pool = worker->pool;

	raw_spin_lock(&pool->lock);
	worker_move(worker, pool, PARKLOT_PARKED, PARKLOT_RUNS);
	list_del(&worker->entry);
	raw_spin_unlock(&pool->lock);
}

/* worker_listed() has counted the worker, with a full barrier. */
static void worker_parked(struct parklot_park_notifier *notifier)
{
	struct parklot_pool *pool = worker_of(notifier)->pool;

	PARKLOT_INJECT("crew-a");
	if (parklot_pool_needs_check(pool))
		parklot_pool_check(pool);
}

static const struct parklot_park_notifier_ops worker_park_notifier_ops = {
	.listed		= worker_listed,
	.unlisted	= worker_unlisted,
	.parked		= worker_parked,
};

static void reap_dead(struct work_struct *work);
static DECLARE_WORK(reap_work, reap_dead);

static void reap_by_irq(struct irq_work *work)
{
	queue_work(reap_wq, &reap_work);
}

static struct irq_work reap_irq_work = IRQ_WORK_INIT_HARD(reap_by_irq);

/*
 * Does the thread sleep? Not if it was preempted, or waits for one of
 * PREEMPT_RT's locks, or is held from outside, by a signal, a debugger or a
 * freezer: these mean to hold the other workers as well. A parent in vfork() is
 * marked frozen, but has not been asked to freeze: it sleeps.
 */
static bool worker_is_sleeping(void)
{
	if (task_is_runnable(current))
		return false;
	if (READ_ONCE(current->__state) & (TASK_RTLOCK_WAIT | TASK_FROZEN))
		return false;
	return !(READ_ONCE(current->jobctl) &
		 (JOBCTL_STOPPED | JOBCTL_TRACED | JOBCTL_TRAP_FREEZE));
}

/* The thread loses its processor: does the worker stop running? */
static bool worker_stop_running(struct parklot_pool_worker *worker,
				struct parklot_pool *pool)
{
	if (worker->is_in_park || !worker_is_sleeping())
		return false;
	if (READ_ONCE(*worker->word) == PARKLOT_WORKER_IDLE)
		return worker_move(worker, pool, PARKLOT_RUNS, PARKLOT_IDLE);
	if (!worker_move(worker, pool, PARKLOT_RUNS, PARKLOT_BLOCKED))
		return false;
	if (trace_parklot_blocked_enabled())
		trace_parklot_blocked(worker->slot,
				      parklot_pool_running(pool));
	return true;
}

/* Called after a worker stopped running, with the scheduler's lock held. */
static void worker_queue_check(struct parklot_pool *pool)
{
	PARKLOT_INJECT("crew-a");
	if (parklot_pool_needs_check(pool))
		irq_work_queue(&pool->work);
}

/*
 * The thread exits or runs another program, or the pool is gone. The caller is
 * walking the list of notifiers and reads the next one from this one: so
 * __hlist_del() keeps that pointer, and RCU frees the worker.
 */
static void worker_end_self(struct parklot_pool_worker *worker,
			    struct parklot_pool *pool)
{
	if (pool) {
		worker_retire(worker, pool);
		worker_queue_check(pool);
	}
	__hlist_del(&worker->preempt_notifier.link);
	if (llist_add(&worker->dead, &dead_workers))
		irq_work_queue(&reap_irq_work);
}

static void worker_sched_out(struct preempt_notifier *notifier,
			     struct task_struct *next)
{
	struct parklot_pool_worker *worker =
		container_of(notifier, struct parklot_pool_worker,
			     preempt_notifier);
	/*
	 * [worker-b] pairs with [worker-a] in worker_detach(): the pool is read
	 * once, with preemption off. If it is not NULL, the pool is freed after
	 * this section only; a second read could use a pool that is freed.
	 */
	struct parklot_pool *pool = READ_ONCE(worker->pool);

	PARKLOT_INJECT("worker-b");
	if (!pool || current->mm != pool->mm)
		worker_end_self(worker, pool);
	else if (worker_stop_running(worker, pool))
		worker_queue_check(pool);
}

static void worker_sched_in(struct preempt_notifier *notifier, int cpu)
{
	struct parklot_pool_worker *worker =
		container_of(notifier, struct parklot_pool_worker,
			     preempt_notifier);
	struct parklot_pool *pool = READ_ONCE(worker->pool);
	enum parklot_worker_state state = atomic_read(&worker->state);

	if (!pool)
		return;
	if (state == PARKLOT_IDLE)
		worker_move(worker, pool, PARKLOT_IDLE, PARKLOT_RUNS);
	if (state != PARKLOT_BLOCKED ||
	    !worker_move(worker, pool, PARKLOT_BLOCKED, PARKLOT_RUNS))
		return;
	if (trace_parklot_unblocked_enabled())
		trace_parklot_unblocked(worker->slot,
					parklot_pool_running(pool));
}

static struct preempt_ops worker_ops = {
	.sched_in	= worker_sched_in,
	.sched_out	= worker_sched_out,
};

/*
 * Returns the caller's worker, of any pool. Only the caller changes its
 * notifiers, but with preemption on that includes worker_sched_out(), which
 * frees the worker if its pool is gone or belongs to another program.
 */
static struct parklot_pool_worker *worker_self(void)
{
	struct preempt_notifier *notifier;

	lockdep_assert_preemption_disabled();

	hlist_for_each_entry(notifier, &current->preempt_notifiers, link)
		if (notifier->ops == &worker_ops)
			return container_of(notifier,
					    struct parklot_pool_worker,
					    preempt_notifier);
	return NULL;
}

static struct parklot_pool_worker *worker_create(struct parklot_pool *pool,
						 u32 slot, const u32 *word)
{
	struct parklot_pool_worker *worker;

	worker = kzalloc(sizeof(*worker), PARKLOT_GFP);
	if (!worker)
		return NULL;
	preempt_notifier_init(&worker->preempt_notifier, &worker_ops);
	INIT_LIST_HEAD(&worker->entry);
	atomic_set(&worker->state, PARKLOT_GONE);
	worker->park_notifier.ops = &worker_park_notifier_ops;
	worker->pool = pool;
	worker->task = get_task_struct(current);
	worker->word = word;
	worker->slot = slot;
	/* The descriptor holds the module as well, but may be closed first. */
	__module_get(THIS_MODULE);
	return worker;
}

/* The worker's notifier is unregistered. */
static void worker_free(struct parklot_pool_worker *worker)
{
	put_task_struct(worker->task);
	kfree_rcu(worker, rcu);
	module_put(THIS_MODULE);
}

static void worker_register(struct parklot_pool_worker *worker)
{
	preempt_disable();
	worker_move(worker, worker->pool, PARKLOT_GONE, PARKLOT_RUNS);
	preempt_notifier_register(&worker->preempt_notifier);
	preempt_enable();
}

/* Detaches @worker from its pool, which its notifier may use for a moment. */
static void worker_detach(struct parklot_pool_worker *worker)
{
	struct parklot_pool *pool = worker->pool;

	lockdep_assert_held(&workers_lock);
	preempt_disable();
	worker_retire(worker, pool);
	preempt_enable();
	pool->worker[worker->slot] = NULL;
	/*
	 * [worker-a] pairs with [worker-b] in worker_sched_out(): the pointer
	 * is cleared before the grace period after which the pool is freed.
	 * Otherwise a notifier could read it later and use the freed pool.
	 */
	WRITE_ONCE(worker->pool, NULL);
	PARKLOT_INJECT("worker-a");
}

/* Detaches another thread's worker: its notifier may run at this moment. */
static void worker_detach_other(struct parklot_pool_worker *worker)
{
	worker->pool->needs_grace = true;
	worker_detach(worker);
}

static void worker_stop_notifying(struct work_struct *work)
{
	mutex_lock(&workers_lock);
	if (is_notifying && !nr_workers) {
		preempt_notifier_dec();
		is_notifying = false;
	}
	mutex_unlock(&workers_lock);
}

/* The worker's notifier is unregistered. */
static void worker_end(struct parklot_pool_worker *worker)
{
	mutex_lock(&workers_lock);
	if (worker->pool)
		worker_detach(worker);
	if (!--nr_workers)
		mod_delayed_work(reap_wq, &linger_work,
				 msecs_to_jiffies(READ_ONCE(crew_linger_ms)));
	mutex_unlock(&workers_lock);
	worker_free(worker);
}

static void reap_dead(struct work_struct *work)
{
	struct llist_node *dead = llist_del_all(&dead_workers);
	struct parklot_pool_worker *worker, *next;

	llist_for_each_entry_safe(worker, next, dead, dead)
		worker_end(worker);
}

/*
 * Has the thread left, by its exit, or by another program, which has other
 * memory? Only pointers are compared; the pool's space holds its mm_struct, so
 * that none is allocated at this address.
 */
static bool worker_has_left(const struct parklot_pool_worker *worker)
{
	const struct task_struct *task = worker->task;

	lockdep_assert_held(&workers_lock);
	return READ_ONCE(task->flags) & PF_EXITING ||
	       READ_ONCE(task->mm) != worker->pool->mm;
}

/*
 * Empties the slot, unless a thread of the crew has it. A thread that waits for
 * the end of another one may take its slot before that one is quite dead.
 */
static int worker_vacate_slot(struct parklot_pool *pool, u32 slot)
{
	struct parklot_pool_worker *worker = pool->worker[slot];

	lockdep_assert_held(&workers_lock);
	if (!worker)
		return 0;
	if (!worker_has_left(worker))
		return -EBUSY;
	worker_detach_other(worker);
	return 0;
}

/* Not if the pool went first, or belonged to a program run before. */
static bool worker_is_serving(const struct parklot_pool_worker *worker)
{
	lockdep_assert_held(&workers_lock);
	return worker->pool && worker->pool->mm == current->mm;
}

/*
 * Returns -EBUSY if the caller serves a crew. Otherwise @old is its worker of a
 * former crew, now unregistered, or NULL.
 */
static int worker_unregister_old(struct parklot_pool_worker **old)
{
	struct parklot_pool_worker *worker;
	int err = 0;

	*old = NULL;
	preempt_disable();
	worker = worker_self();
	if (worker && worker_is_serving(worker)) {
		err = -EBUSY;
	} else if (worker) {
		preempt_notifier_unregister(&worker->preempt_notifier);
		*old = worker;
	}
	preempt_enable();
	return err;
}

/**
 * parklot_worker_join() - make the caller a worker
 * @pool: the pool to join
 * @slot: one of the pool's slots
 * @word: user space's word in which the thread announces that it is idle
 *
 * Return: 0, -EBUSY if the slot is taken or the caller has one, or -ENOMEM.
 */
int parklot_worker_join(struct parklot_pool *pool, u32 slot,
			const u32 *word)
{
	struct parklot_pool_worker *worker, *old;
	int err;

	worker = worker_create(pool, slot, word);
	if (!worker)
		return -ENOMEM;

	mutex_lock(&workers_lock);
	err = worker_unregister_old(&old);
	if (!err)
		err = worker_vacate_slot(pool, slot);
	if (!err) {
		pool->worker[slot] = worker;
		if (!is_notifying)
			preempt_notifier_inc();
		is_notifying = true;
		nr_workers++;
		worker_register(worker);
	}
	mutex_unlock(&workers_lock);
	if (err)
		worker_free(worker);
	if (old)
		worker_end(old);
	return err;
}

/* Returns the caller's worker of @pool, in a call that holds @pool. */
static struct parklot_pool_worker *
worker_of_pool(const struct parklot_pool *pool)
{
	struct parklot_pool_worker *worker;

	preempt_disable();
	worker = worker_self();
	/* Only NULL may replace the pool, and not while a call holds it. */
	if (worker && READ_ONCE(worker->pool) != pool)
		worker = NULL;
	preempt_enable();
	return worker;
}

/**
 * parklot_worker_leave() - end the caller's being a worker
 * @pool: the pool, or NULL
 * @slot: the caller's own slot
 *
 * Return: 0, or -ENOENT if the slot is not the caller's.
 */
int parklot_worker_leave(struct parklot_pool *pool, u32 slot)
{
	struct parklot_pool_worker *worker = pool ? worker_of_pool(pool) : NULL;

	if (!worker || worker->slot != slot)
		return -ENOENT;
	preempt_disable();
	preempt_notifier_unregister(&worker->preempt_notifier);
	preempt_enable();
	worker_end(worker);
	if (parklot_pool_needs_check(pool))
		parklot_pool_check(pool);
	return 0;
}

/**
 * parklot_worker_dismiss() - detach all workers of a pool
 * @pool: of a space on which no call is in flight
 *
 * Return: may notifiers still use @pool, until a grace period has passed?
 */
bool parklot_worker_dismiss(struct parklot_pool *pool)
{
	bool needs_grace;
	u32 i;

	for (i = 0; i < pool->nr_slots; i++) {
		cond_resched();
		/* No worker joins any more. */
		if (!READ_ONCE(pool->worker[i]))
			continue;
		mutex_lock(&workers_lock);
		if (pool->worker[i])
			worker_detach_other(pool->worker[i]);
		mutex_unlock(&workers_lock);
	}
	mutex_lock(&workers_lock);
	needs_grace = pool->needs_grace;
	mutex_unlock(&workers_lock);
	return needs_grace;
}

/**
 * parklot_worker_defer() - do @work once no notifier uses its pool
 * @work: frees the pool, and the space that has it
 *
 * The module is not unloaded before @work is done.
 */
void parklot_worker_defer(struct rcu_work *work)
{
	queue_rcu_work(reap_wq, work);
}

/**
 * parklot_worker_enter() - announce that the caller is about to park
 * @pool: of the space in which it parks, or NULL
 *
 * Until parklot_worker_return() no sleep of the thread counts as blocking. It
 * must not sleep except in parklot_lot_park().
 *
 * Return: the notifier for the park, or NULL if the caller is not a worker of
 * @pool.
 */
struct parklot_park_notifier *parklot_worker_enter(struct parklot_pool *pool)
{
	struct parklot_pool_worker *worker;

	if (!pool || hlist_empty(&current->preempt_notifiers))
		return NULL;
	worker = worker_of_pool(pool);
	if (!worker)
		return NULL;
	WRITE_ONCE(worker->is_in_park, true);
	return &worker->park_notifier;
}

/**
 * parklot_worker_return() - announce that the caller is back from the lot
 * @notifier: from parklot_worker_enter()
 */
void parklot_worker_return(struct parklot_park_notifier *notifier)
{
	if (notifier)
		WRITE_ONCE(worker_of(notifier)->is_in_park, false);
}

int parklot_worker_init(void)
{
	reap_wq = alloc_workqueue("parklot", WQ_UNBOUND, 0);
	return reap_wq ? 0 : -ENOMEM;
}

/*
 * No worker holds the module, but the last work item may not have returned, and
 * deferred work may not have begun.
 */
void parklot_worker_exit(void)
{
	synchronize_rcu();
	irq_work_sync(&reap_irq_work);
	rcu_barrier();
	flush_workqueue(reap_wq);
	cancel_delayed_work_sync(&linger_work);
	worker_stop_notifying(NULL);
	destroy_workqueue(reap_wq);
}
