// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hands: threads that joined a crew. The scheduler tells when one loses or
 * gets a processor.
 *
 * A worker runs, is blocked, parked, idle (blocked, but as announced) or gone;
 * `duty' says which, and whoever changes it moves it from one count to the
 * other. It is the scheduler's to say who is blocked and who runs, and the
 * lot's, under its lock, who is parked.
 *
 * sched_out() runs with the scheduler's own lock held. It counts, on a line of
 * its processor's, and queues an irq_work if there is a backlog and somebody is
 * parked; that sums, and calls. Without these it writes nothing that another
 * thread writes, nor does sched_in().
 *
 * A worker belongs to its thread: only that may take it off the list of
 * notifiers, which it does when it leaves. If it exits instead, or runs another
 * program, or the pool goes first, the next sched_out() takes the worker off
 * and gives it to a work item.
 *
 *	notifier			detaching thread
 *	preemption off			worker->pool = NULL	[worker-a]
 *	pool = worker->pool [worker-b]	RCU's grace period
 *	use it				free the pool
 *	preemption on
 *
 * The last detach of a pool's workers is not always that of dismissal: a slot
 * may have been taken over from a thread that exits. So a pool remembers that
 * any worker was detached while its notifier could still run, and is then freed
 * by a work item after a grace period; a close does not wait for that.
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

/* The list of slots of every pool, and who a worker belongs to. */
static DEFINE_MUTEX(workers_lock);
static u32 nr_workers;		/* workers_lock held: with a notifier */

/*
 * workers_lock held: the scheduler calls notifiers. All of the machine's
 * context switches pay for that, so it ends crew_linger_ms after the last
 * worker did. No sooner: to change it patches the kernel's text, which threads
 * that join and leave in a loop may have done twice in that time at most.
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

/* False if it was not in @from. */
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

/* Who is in a call of the space holds the pool, so here it is still ours. */
static void worker_listed(struct parklot_park_notifier *notifier)
{
	struct parklot_pool_worker *worker = worker_of(notifier);
	struct parklot_pool *pool = worker->pool;

	raw_spin_lock(&pool->lock);
	list_add(&worker->entry, &pool->parked);
	worker_move(worker, pool, PARKLOT_RUNS, PARKLOT_PARKED);
	raw_spin_unlock(&pool->lock);
}

/* By the waker, so that the next one counts the wakee as running at once. */
static void worker_unlisted(struct parklot_park_notifier *notifier)
{
	struct parklot_pool_worker *worker = worker_of(notifier);
	struct parklot_pool *pool = worker->pool;

	raw_spin_lock(&pool->lock);
	worker_move(worker, pool, PARKLOT_PARKED, PARKLOT_RUNS);
	list_del(&worker->entry);
	raw_spin_unlock(&pool->lock);
}

/* Listed and counted before, with a full barrier. */
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
 * The thread sleeps: it was not merely preempted, nor does it wait for one
 * of PREEMPT_RT's locks, nor is it held from outside, by a signal, a debugger
 * or a freezer: who does that means to hold the others as well. A parent in
 * vfork() calls itself frozen, but has not been asked to freeze.
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

/* The thread loses its processor: does the worker stop to run with that? */
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

/* Fewer run; with the scheduler's lock held. */
static void worker_queue_check(struct parklot_pool *pool)
{
	PARKLOT_INJECT("crew-a");
	if (parklot_pool_needs_check(pool))
		irq_work_queue(&pool->work);
}

/*
 * The thread exits or runs another program, or the pool is gone. The list of
 * notifiers is being walked: whoever does that reads the next one from this
 * one, which is why it keeps it, and is freed by RCU.
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
	/* [worker-b] pairs with [worker-a] in worker_detach(). */
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
 * The caller's worker, of any pool. Only the caller changes its notifiers, but
 * worker_sched_out() does as well unless preemption is off: it frees the worker
 * if that is of no pool any more, or of another program's.
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

/* No notifier calls it any more. */
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

/* From its pool, which the notifiers may still use for a moment. */
static void worker_detach(struct parklot_pool_worker *worker)
{
	struct parklot_pool *pool = worker->pool;

	lockdep_assert_held(&workers_lock);
	preempt_disable();
	worker_retire(worker, pool);
	preempt_enable();
	pool->worker[worker->slot] = NULL;
	/* [worker-a] pairs with [worker-b] in worker_sched_out(). */
	WRITE_ONCE(worker->pool, NULL);
	PARKLOT_INJECT("worker-a");
}

/* The thread is another one: its notifier may run at this moment. */
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

/* No notifier calls it any more. */
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
 * Its thread exits, or runs another program: then its memory is another. Only
 * pointers are compared, and a pool keeps its mm_struct from being freed and
 * allocated anew.
 */
static bool worker_has_left(const struct parklot_pool_worker *worker)
{
	const struct task_struct *task = worker->task;

	lockdep_assert_held(&workers_lock);
	return READ_ONCE(task->flags) & PF_EXITING ||
	       READ_ONCE(task->mm) != worker->pool->mm;
}

/*
 * The slot, if no thread of the crew has it. A waiter for the end of a thread
 * may take that thread's slot before it is quite dead.
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

/* Not if its pool went first, or was that of a program run before. */
static bool worker_is_serving(const struct parklot_pool_worker *worker)
{
	lockdep_assert_held(&workers_lock);
	return worker->pool && worker->pool->mm == current->mm;
}

/* -EBUSY if the caller serves a crew; its worker of an old one is taken off. */
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
 * @pool: whose
 * @slot:   one of its slots
 * @word:   user space's, in which the thread announces that it is idle
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

/* The caller's worker of @pool, in a call that holds it. */
static struct parklot_pool_worker *
worker_of_pool(const struct parklot_pool *pool)
{
	struct parklot_pool_worker *worker;

	preempt_disable();
	worker = worker_self();
	/* It can only become NULL, and not while the call holds the space. */
	if (worker && READ_ONCE(worker->pool) != pool)
		worker = NULL;
	preempt_enable();
	return worker;
}

/**
 * parklot_worker_leave() - the caller is no worker any more
 * @pool: whose, or NULL
 * @slot:   his own
 *
 * Return: 0, or -ENOENT if it is not his.
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
 * parklot_worker_dismiss() - let go of all workers of a pool
 * @pool: of a space that no call is in flight on
 *
 * Return: may notifiers still use @pool, until a grace period has passed?
 */
bool parklot_worker_dismiss(struct parklot_pool *pool)
{
	bool needs_grace;
	u32 i;

	mutex_lock(&workers_lock);
	for (i = 0; i < pool->nr_slots; i++) {
		if (pool->worker[i])
			worker_detach_other(pool->worker[i]);
		cond_resched();
	}
	needs_grace = pool->needs_grace;
	mutex_unlock(&workers_lock);
	return needs_grace;
}

/**
 * parklot_worker_defer() - do @work when no notifier uses its pool any more
 * @work: frees the pool, and what that is a part of
 *
 * The module is not unloaded before @work is done.
 */
void parklot_worker_defer(struct rcu_work *work)
{
	queue_rcu_work(reap_wq, work);
}

/**
 * parklot_worker_enter() - the caller is about to park
 * @pool: of the space that it parks in, or NULL
 *
 * What the thread does until parklot_worker_return() is not blocking. It must
 * not sleep but in parklot_lot_park().
 *
 * Return: how to tell the pool, or NULL if the caller is none of its workers.
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
 * parklot_worker_return() - the caller is back from the lot
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
 * what was deferred may not have begun.
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
