// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hands: threads that joined a crew. The scheduler tells when one loses or
 * gets a processor.
 *
 * A hand runs, is blocked, parked, idle (blocked, but as announced) or gone;
 * `duty' says which, and whoever changes it moves it from one count to the
 * other. It is the scheduler's to say who is blocked and who runs, and the
 * lot's, under its lock, who is parked.
 *
 * sched_out() runs with the scheduler's own lock held. It counts, on a line of
 * its processor's, and queues an irq_work if there is a backlog and somebody is
 * parked; that sums, and calls. Without these it writes nothing that another
 * thread writes, nor does sched_in().
 *
 * A hand belongs to its thread: only that may take it off the list of
 * notifiers, which it does when it leaves. If it exits instead, or runs another
 * program, or the roster goes first, the next sched_out() takes the hand off
 * and gives it to a work item.
 *
 *	notifier			detaching thread
 *	preemption off			hand->roster = NULL	[hand-a]
 *	roster = hand->roster [hand-b]	RCU's grace period
 *	use it				free the roster
 *	preemption on
 *
 * The last detach of a roster's hands is not always that of dismissal: a slot
 * may have been taken over from a thread that exits. So a roster remembers that
 * any hand was detached while its notifier could still run, and is then freed
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
#include "crew.h"
#include "hand.h"
#include "inject.h"
#include "trace.h"

/* The list of slots of every roster, and who a hand belongs to. */
static DEFINE_MUTEX(hands_lock);
static u32 nr_hands;		/* hands_lock held: with a notifier */

/*
 * hands_lock held: the scheduler calls notifiers. All of the machine's context
 * switches pay for that, so it ends crew_linger_ms after the last hand did. No
 * sooner: to change it patches the kernel's text, which threads that join and
 * leave in a loop may have done twice in that time at most.
 */
static bool is_notifying;
module_param_named(crew_is_watched, is_notifying, bool, 0444);
MODULE_PARM_DESC(crew_is_watched, "the scheduler tells of workers");

static unsigned int crew_linger_ms = 1000;
module_param(crew_linger_ms, uint, 0644);
MODULE_PARM_DESC(crew_linger_ms, "that ends so long after the last worker");

static void become_quiet(struct work_struct *work);
static DECLARE_DELAYED_WORK(quiet_work, become_quiet);

static LLIST_HEAD(dead_hands);
static struct workqueue_struct *bury_wq;

/* False if it was not in @from. */
static __always_inline bool
hand_move(struct parklot_hand *hand, struct parklot_roster *roster,
	  enum parklot_duty from, enum parklot_duty to)
{
	if (atomic_cmpxchg(&hand->duty, from, to) != from)
		return false;
	parklot_roster_count(roster, from, to);
	return true;
}

static void hand_retire(struct parklot_hand *hand,
			struct parklot_roster *roster)
{
	enum parklot_duty from = atomic_xchg(&hand->duty, PARKLOT_GONE);

	if (from != PARKLOT_GONE)
		parklot_roster_count(roster, from, PARKLOT_GONE);
}

static struct parklot_hand *hand_of(struct parklot_watch *watch)
{
	return container_of(watch, struct parklot_hand, watch);
}

/* Who is in a call of the space holds the roster, so here it is still ours. */
static void hand_listed(struct parklot_watch *watch)
{
	struct parklot_hand *hand = hand_of(watch);
	struct parklot_roster *roster = hand->roster;

	raw_spin_lock(&roster->lock);
	list_add(&hand->entry, &roster->parked);
	hand_move(hand, roster, PARKLOT_RUNS, PARKLOT_PARKED);
	raw_spin_unlock(&roster->lock);
}

/* By the waker, so that the next one counts the wakee as running at once. */
static void hand_unlisted(struct parklot_watch *watch)
{
	struct parklot_hand *hand = hand_of(watch);
	struct parklot_roster *roster = hand->roster;

	raw_spin_lock(&roster->lock);
	hand_move(hand, roster, PARKLOT_PARKED, PARKLOT_RUNS);
	list_del(&hand->entry);
	raw_spin_unlock(&roster->lock);
}

/* Listed and counted before, with a full barrier. */
static void hand_parked(struct parklot_watch *watch)
{
	struct parklot_roster *roster = hand_of(watch)->roster;

	PARKLOT_INJECT("crew-a");
	if (parklot_roster_needs_check(roster))
		parklot_roster_check(roster);
}

static const struct parklot_watch_ops hand_watch_ops = {
	.listed		= hand_listed,
	.unlisted	= hand_unlisted,
	.parked		= hand_parked,
};

static void bury(struct work_struct *work);
static DECLARE_WORK(bury_work, bury);

static void bury_by_irq(struct irq_work *work)
{
	queue_work(bury_wq, &bury_work);
}

static struct irq_work dead_work = IRQ_WORK_INIT_HARD(bury_by_irq);

/*
 * The thread sleeps: it was not merely preempted, nor does it wait for one
 * of PREEMPT_RT's locks, nor is it held from outside, by a signal, a debugger
 * or a freezer: who does that means to hold the others as well. A parent in
 * vfork() calls itself frozen, but has not been asked to freeze.
 */
static bool is_sleeping(void)
{
	if (task_is_runnable(current))
		return false;
	if (READ_ONCE(current->__state) & (TASK_RTLOCK_WAIT | TASK_FROZEN))
		return false;
	return !(READ_ONCE(current->jobctl) &
		 (JOBCTL_STOPPED | JOBCTL_TRACED | JOBCTL_TRAP_FREEZE));
}

/* The thread loses its processor: does the hand stop to run with that? */
static bool hand_stop(struct parklot_hand *hand, struct parklot_roster *roster)
{
	if (hand->is_in_park || !is_sleeping())
		return false;
	if (READ_ONCE(*hand->word) == PARKLOT_WORKER_IDLE)
		return hand_move(hand, roster, PARKLOT_RUNS, PARKLOT_IDLE);
	if (!hand_move(hand, roster, PARKLOT_RUNS, PARKLOT_BLOCKED))
		return false;
	if (trace_parklot_blocked_enabled())
		trace_parklot_blocked(hand->slot,
				      parklot_roster_running(roster));
	return true;
}

/* Fewer run; with the scheduler's lock held. */
static void hand_look(struct parklot_roster *roster)
{
	PARKLOT_INJECT("crew-a");
	if (parklot_roster_needs_check(roster))
		irq_work_queue(&roster->work);
}

/*
 * The thread exits or runs another program, or the roster is gone. The list of
 * notifiers is being walked: whoever does that reads the next one from this
 * one, which is why it keeps it, and is freed by RCU.
 */
static void hand_end_self(struct parklot_hand *hand,
			  struct parklot_roster *roster)
{
	if (roster) {
		hand_retire(hand, roster);
		hand_look(roster);
	}
	__hlist_del(&hand->notifier.link);
	if (llist_add(&hand->dead, &dead_hands))
		irq_work_queue(&dead_work);
}

static void hand_sched_out(struct preempt_notifier *notifier,
			   struct task_struct *next)
{
	struct parklot_hand *hand =
		container_of(notifier, struct parklot_hand, notifier);
	/* [hand-b] pairs with [hand-a] in hand_detach(). */
	struct parklot_roster *roster = READ_ONCE(hand->roster);

	PARKLOT_INJECT("hand-b");
	if (!roster || current->mm != roster->mm)
		hand_end_self(hand, roster);
	else if (hand_stop(hand, roster))
		hand_look(roster);
}

static void hand_sched_in(struct preempt_notifier *notifier, int cpu)
{
	struct parklot_hand *hand =
		container_of(notifier, struct parklot_hand, notifier);
	struct parklot_roster *roster = READ_ONCE(hand->roster);
	enum parklot_duty duty = atomic_read(&hand->duty);

	if (!roster)
		return;
	if (duty == PARKLOT_IDLE)
		hand_move(hand, roster, PARKLOT_IDLE, PARKLOT_RUNS);
	if (duty != PARKLOT_BLOCKED ||
	    !hand_move(hand, roster, PARKLOT_BLOCKED, PARKLOT_RUNS))
		return;
	if (trace_parklot_unblocked_enabled())
		trace_parklot_unblocked(hand->slot,
					parklot_roster_running(roster));
}

static struct preempt_ops hand_ops = {
	.sched_in	= hand_sched_in,
	.sched_out	= hand_sched_out,
};

/*
 * The caller's hand, of any roster. Only the caller changes its notifiers, but
 * hand_sched_out() does as well unless preemption is off: it frees the hand if
 * that is of no roster any more, or of another program's.
 */
static struct parklot_hand *hand_self(void)
{
	struct preempt_notifier *notifier;

	lockdep_assert_preemption_disabled();

	hlist_for_each_entry(notifier, &current->preempt_notifiers, link)
		if (notifier->ops == &hand_ops)
			return container_of(notifier, struct parklot_hand,
					    notifier);
	return NULL;
}

static struct parklot_hand *hand_create(struct parklot_roster *roster,
					u32 slot, const u32 *word)
{
	struct parklot_hand *hand = kzalloc(sizeof(*hand), PARKLOT_GFP);

	if (!hand)
		return NULL;
	preempt_notifier_init(&hand->notifier, &hand_ops);
	INIT_LIST_HEAD(&hand->entry);
	atomic_set(&hand->duty, PARKLOT_GONE);
	hand->watch.ops = &hand_watch_ops;
	hand->roster = roster;
	hand->task = get_task_struct(current);
	hand->word = word;
	hand->slot = slot;
	/* The descriptor holds the module as well, but may be closed first. */
	__module_get(THIS_MODULE);
	return hand;
}

/* No notifier calls it any more. */
static void hand_free(struct parklot_hand *hand)
{
	put_task_struct(hand->task);
	kfree_rcu(hand, rcu);
	module_put(THIS_MODULE);
}

static void hand_register(struct parklot_hand *hand)
{
	preempt_disable();
	hand_move(hand, hand->roster, PARKLOT_GONE, PARKLOT_RUNS);
	preempt_notifier_register(&hand->notifier);
	preempt_enable();
}

/* From its roster, which the notifiers may still use for a moment. */
static void hand_detach(struct parklot_hand *hand)
{
	struct parklot_roster *roster = hand->roster;

	lockdep_assert_held(&hands_lock);
	preempt_disable();
	hand_retire(hand, roster);
	preempt_enable();
	roster->hand[hand->slot] = NULL;
	/* [hand-a] pairs with [hand-b] in hand_sched_out(). */
	WRITE_ONCE(hand->roster, NULL);
	PARKLOT_INJECT("hand-a");
}

/* The thread is another one: its notifier may run at this moment. */
static void hand_detach_other(struct parklot_hand *hand)
{
	hand->roster->needs_grace = true;
	hand_detach(hand);
}

static void become_quiet(struct work_struct *work)
{
	mutex_lock(&hands_lock);
	if (is_notifying && !nr_hands) {
		preempt_notifier_dec();
		is_notifying = false;
	}
	mutex_unlock(&hands_lock);
}

/* No notifier calls it any more. */
static void hand_end(struct parklot_hand *hand)
{
	mutex_lock(&hands_lock);
	if (hand->roster)
		hand_detach(hand);
	if (!--nr_hands)
		mod_delayed_work(bury_wq, &quiet_work,
				 msecs_to_jiffies(READ_ONCE(crew_linger_ms)));
	mutex_unlock(&hands_lock);
	hand_free(hand);
}

static void bury(struct work_struct *work)
{
	struct llist_node *dead = llist_del_all(&dead_hands);
	struct parklot_hand *hand, *next;

	llist_for_each_entry_safe(hand, next, dead, dead)
		hand_end(hand);
}

/*
 * Its thread exits, or runs another program: then its memory is another. Only
 * pointers are compared, and a roster keeps its mm_struct from being freed and
 * allocated anew.
 */
static bool has_left(const struct parklot_hand *hand)
{
	const struct task_struct *task = hand->task;

	lockdep_assert_held(&hands_lock);
	return READ_ONCE(task->flags) & PF_EXITING ||
	       READ_ONCE(task->mm) != hand->roster->mm;
}

/*
 * The slot, if no thread of the crew has it. A waiter for the end of a thread
 * may take that thread's slot before it is quite dead.
 */
static int vacate(struct parklot_roster *roster, u32 slot)
{
	struct parklot_hand *hand = roster->hand[slot];

	lockdep_assert_held(&hands_lock);
	if (!hand)
		return 0;
	if (!has_left(hand))
		return -EBUSY;
	hand_detach_other(hand);
	return 0;
}

/* Not if its roster went first, or was that of a program run before. */
static bool is_serving(const struct parklot_hand *hand)
{
	lockdep_assert_held(&hands_lock);
	return hand->roster && hand->roster->mm == current->mm;
}

/* -EBUSY if the caller serves a crew; its hand of an old one is taken off. */
static int take_off_old(struct parklot_hand **old)
{
	struct parklot_hand *hand;
	int err = 0;

	*old = NULL;
	preempt_disable();
	hand = hand_self();
	if (hand && is_serving(hand)) {
		err = -EBUSY;
	} else if (hand) {
		preempt_notifier_unregister(&hand->notifier);
		*old = hand;
	}
	preempt_enable();
	return err;
}

/**
 * parklot_hand_join() - make the caller a hand
 * @roster: whose
 * @slot:   one of its slots
 * @word:   user space's, in which the thread announces that it is idle
 *
 * Return: 0, -EBUSY if the slot is taken or the caller has one, or -ENOMEM.
 */
int parklot_hand_join(struct parklot_roster *roster, u32 slot,
		      const u32 *word)
{
	struct parklot_hand *hand, *old;
	int err;

	hand = hand_create(roster, slot, word);
	if (!hand)
		return -ENOMEM;

	mutex_lock(&hands_lock);
	err = take_off_old(&old);
	if (!err)
		err = vacate(roster, slot);
	if (!err) {
		roster->hand[slot] = hand;
		if (!is_notifying)
			preempt_notifier_inc();
		is_notifying = true;
		nr_hands++;
		hand_register(hand);
	}
	mutex_unlock(&hands_lock);
	if (err)
		hand_free(hand);
	if (old)
		hand_end(old);
	return err;
}

/* The caller's hand of @roster, in a call that holds it. */
static struct parklot_hand *hand_of_roster(const struct parklot_roster *roster)
{
	struct parklot_hand *hand;

	preempt_disable();
	hand = hand_self();
	/* It can only become NULL, and not while the call holds the space. */
	if (hand && READ_ONCE(hand->roster) != roster)
		hand = NULL;
	preempt_enable();
	return hand;
}

/**
 * parklot_hand_leave() - the caller is no hand any more
 * @roster: whose, or NULL
 * @slot:   his own
 *
 * Return: 0, or -ENOENT if it is not his.
 */
int parklot_hand_leave(struct parklot_roster *roster, u32 slot)
{
	struct parklot_hand *hand = roster ? hand_of_roster(roster) : NULL;

	if (!hand || hand->slot != slot)
		return -ENOENT;
	preempt_disable();
	preempt_notifier_unregister(&hand->notifier);
	preempt_enable();
	hand_end(hand);
	if (parklot_roster_needs_check(roster))
		parklot_roster_check(roster);
	return 0;
}

/**
 * parklot_hand_dismiss() - let go of all hands of a roster
 * @roster: of a space that no call is in flight on
 *
 * Return: may notifiers still use @roster, until a grace period has passed?
 */
bool parklot_hand_dismiss(struct parklot_roster *roster)
{
	bool needs_grace;
	u32 i;

	mutex_lock(&hands_lock);
	for (i = 0; i < roster->nr_slots; i++) {
		if (roster->hand[i])
			hand_detach_other(roster->hand[i]);
		cond_resched();
	}
	needs_grace = roster->needs_grace;
	mutex_unlock(&hands_lock);
	return needs_grace;
}

/**
 * parklot_hand_defer() - do @work when no notifier uses its roster any more
 * @work: frees the roster, and what that is a part of
 *
 * The module is not unloaded before @work is done.
 */
void parklot_hand_defer(struct rcu_work *work)
{
	queue_rcu_work(bury_wq, work);
}

/**
 * parklot_hand_enter() - the caller is about to park
 * @roster: of the space that it parks in, or NULL
 *
 * What the thread does until parklot_hand_return() is not blocking. It must not
 * sleep but in parklot_lot_park().
 *
 * Return: how to tell the roster, or NULL if the caller is none of its hands.
 */
struct parklot_watch *parklot_hand_enter(struct parklot_roster *roster)
{
	struct parklot_hand *hand;

	if (!roster || hlist_empty(&current->preempt_notifiers))
		return NULL;
	hand = hand_of_roster(roster);
	if (!hand)
		return NULL;
	WRITE_ONCE(hand->is_in_park, true);
	return &hand->watch;
}

/**
 * parklot_hand_return() - the caller is back from the lot
 * @watch: from parklot_hand_enter()
 */
void parklot_hand_return(struct parklot_watch *watch)
{
	if (watch)
		WRITE_ONCE(hand_of(watch)->is_in_park, false);
}

int parklot_hand_init(void)
{
	bury_wq = alloc_workqueue("parklot", WQ_UNBOUND, 0);
	return bury_wq ? 0 : -ENOMEM;
}

/*
 * No hand holds the module, but the last work item may not have returned, and
 * what was deferred may not have begun.
 */
void parklot_hand_exit(void)
{
	synchronize_rcu();
	irq_work_sync(&dead_work);
	rcu_barrier();
	flush_workqueue(bury_wq);
	cancel_delayed_work_sync(&quiet_work);
	become_quiet(NULL);
	destroy_workqueue(bury_wq);
}
