// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parking and waking.
 *
 * 1. No signal is lost. Each side of the first race writes its own word, issues
 * a full barrier, and then reads the word of the other side:
 *
 *	parker				waker
 *	s = seq (user space)		publish the work
 *	look for work			seq += 2 (user space)
 *	under lock:
 *	    onto the list, nr_parked++
 *	    smp_mb()	[park-a]	smp_mb()		[park-b]
 *	    if (seq != s)		if (nr_parked)
 *		off, nr_parked--	    under lock: off the list,
 *	if (still on)			    nr_parked--
 *	    sleep			    wake
 *
 * With both barriers the two sides cannot both read the old value: either the
 * parker sees the new seq and does not sleep, or the waker sees nr_parked and
 * wakes it. The waker's half may run in user space, on the mapped count, which
 * then saves the call; it needs [park-b] there, too.
 *
 * 2. Each sleeper is removed from its list exactly once, under the lock, as
 * `is_listed' says: by a waker, which sets `reason', or by itself. The thread
 * that removes a sleeper takes nr_parked down in the same hold of the lock. So
 * a wake that races a timeout, a wake source or a signal is either counted and
 * PARKLOT_WOKEN, or neither.
 *
 * 3. Sleepers live on the stacks of their tasks:
 *
 *	sleeper				waker
 *					preempt_disable()
 *	state = TASK_INTERRUPTIBLE	t = sleeper->task
 *	if (reason)	[wake-b]	reason = WOKEN		[wake-a]
 *	    return			wake_up_process(t)
 *	schedule()			preempt_enable()
 *
 * [wake-a] is a release and the waker's last access to the sleeper: once the
 * reason is set, the sleeper may return without ever taking the lock. The task
 * itself may then exit; its task_struct is freed by RCU, for which a waker that
 * is not preemptible counts as a reader. Non-preemption also keeps the wakees
 * of a batch from delaying the wakes that are still to be done.
 * wake_up_process() is a full barrier before it reads the task's state, as
 * set_current_state() is one after it has written it: so the sleeper sees the
 * reason, or the waker sees the state and wakes the task. A task that already
 * sleeps somewhere else gets a spurious wakeup, which each sleep in the kernel
 * must expect.
 *
 * 4. A waker of all sleepers takes those that were parked when it began, each
 * once. One hold of the lock does not suffice for all, and sleepers that park
 * again at once must not keep the waker busy. So it marks the last one,
 * `last_due': all sleepers up to there are due, and sleepers that park
 * meanwhile are listed behind them. The due ones stay on the list: if this
 * waker is preempted halfway, other wakers take them first, and none of them
 * waits for it.
 */
#include <linux/hrtimer.h>
#include <linux/parklot.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "compat.h"
#include "inject.h"
#include "lot.h"
#include "trace.h"

/**
 * parklot_lot_init() - make an empty lot
 * @lot:     zeroed memory
 * @counter: shows how many sleepers are parked; written by this lot only
 * @seq:     the word to compare; user space may write anything to it
 */
void parklot_lot_init(struct parklot_lot *lot, u32 *counter, const u32 *seq)
{
	raw_spin_lock_init(&lot->lock);
	INIT_LIST_HEAD(&lot->parked);
	lot->last_due = &lot->parked;
	lot->counter = counter;
	lot->seq = seq;
}

/* Publishes the list's length to wakers here and in user space. */
static void lot_show_count(struct parklot_lot *lot, u32 nr)
{
	lockdep_assert_held(&lot->lock);
	WRITE_ONCE(lot->nr_parked, nr);
	WRITE_ONCE(*lot->counter, nr);
}

static void lot_set_listed(struct parklot_lot *lot,
			   struct parklot_sleeper *sleeper)
{
	struct parklot_park_notifier *notifier = sleeper->notifier;

	lockdep_assert_held(&lot->lock);
	sleeper->is_listed = true;
	if (!notifier)
		return;
	notifier->sleeper = sleeper;
	WRITE_ONCE(notifier->lot, lot);
	notifier->ops->listed(notifier);
}

/* Removes @sleeper from the list. */
static void lot_set_unlisted(struct parklot_lot *lot,
			     struct parklot_sleeper *sleeper)
{
	struct parklot_park_notifier *notifier = sleeper->notifier;

	lockdep_assert_held(&lot->lock);
	if (lot->last_due == &sleeper->entry)
		lot->last_due = sleeper->entry.prev;
	list_del(&sleeper->entry);
	sleeper->is_listed = false;
	if (!notifier)
		return;
	WRITE_ONCE(notifier->lot, NULL);
	PARKLOT_INJECT("unlisted");
	notifier->ops->unlisted(notifier);
}

/* Returns 0, or the reason not to sleep: then nothing has changed. */
static int lot_enqueue(struct parklot_lot *lot, struct parklot_sleeper *me,
		       const struct parklot_park_args *args)
{
	lockdep_assert_held(&lot->lock);
	if (lot->nr_interrupts != args->nr_interrupts)
		return PARKLOT_INTERRUPTED;
	list_add(&me->entry, lot->last_due);
	lot_show_count(lot, lot->nr_parked + 1);

	/*
	 * [park-a] pairs with [park-b] in parklot_batch_begin(): nr_parked is
	 * written before seq is read. Otherwise a waker that has written seq
	 * may read the old nr_parked and wake no sleeper, while this parker
	 * reads the old seq and sleeps.
	 */
	smp_mb();
	PARKLOT_INJECT("park-a");
	if (READ_ONCE(*lot->seq) == args->seq) {
		lot_set_listed(lot, me);
		return 0;
	}
	list_del(&me->entry);
	lot_show_count(lot, lot->nr_parked - 1);
	return PARKLOT_CHANGED;
}

/* Returns the reason: a waker's if a waker came first, else @reason. */
static int lot_dequeue(struct parklot_lot *lot, struct parklot_sleeper *me,
		       int reason)
{
	PARKLOT_INJECT("dequeue");
	raw_spin_lock_irq(&lot->lock);
	if (me->is_listed) {
		lot_set_unlisted(lot, me);
		lot_show_count(lot, lot->nr_parked - 1);
		me->reason = reason;
	}
	raw_spin_unlock_irq(&lot->lock);
	return me->reason;
}

/* Returns 0 at the deadline, or -EINTR if woken before. */
static int lot_sleep_until(ktime_t deadline)
{
	if (deadline == KTIME_MAX) {
		schedule();
		return -EINTR;
	}
	return schedule_hrtimeout_range(&deadline, current->timer_slack_ns,
					HRTIMER_MODE_ABS);
}

/*
 * Returns a waker's reason, PARKLOT_TIMEDOUT, PARKLOT_POLLED for the wake
 * source, or -ERESTARTSYS; goes on sleeping after a spurious wakeup.
 */
static int lot_sleep(const struct parklot_sleeper *me,
		     const struct parklot_park_args *args)
{
	struct parklot_wake_source *source = args->source;
	int reason;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE | TASK_FREEZABLE);
		PARKLOT_INJECT("wake-b");
		/*
		 * [wake-b] pairs with [wake-a] in lot_take_one(): once the
		 * reason is seen, the waker's accesses to the sleeper are over.
		 * Otherwise the waker would read a stack frame that is gone.
		 */
		reason = smp_load_acquire(&me->reason);
		if (reason)
			break;
		if (source && source->has_fired(source)) {
			__set_current_state(TASK_RUNNING);
			if (source->is_ready(source))
				return PARKLOT_POLLED;
			continue;
		}
		if (signal_pending(current)) {
			reason = -ERESTARTSYS;
			break;
		}
		if (!lot_sleep_until(args->deadline)) {
			reason = PARKLOT_TIMEDOUT;
			break;
		}
	}
	__set_current_state(TASK_RUNNING);
	return reason;
}

/* Lists the caller on @lot and sleeps. */
static int lot_park(struct parklot_lot *lot,
		    const struct parklot_park_args *args)
{
	struct parklot_sleeper me = {
		.task		= current,
		.notifier	= args->notifier,
	};
	int reason;

	raw_spin_lock_irq(&lot->lock);
	reason = lot_enqueue(lot, &me, args);
	raw_spin_unlock_irq(&lot->lock);
	if (reason)
		return reason;
	if (me.notifier)
		me.notifier->ops->parked(me.notifier);

	reason = lot_sleep(&me, args);
	if (reason == PARKLOT_TIMEDOUT || reason == PARKLOT_POLLED ||
	    reason < 0)
		return lot_dequeue(lot, &me, reason);
	return reason;
}

/* Moves @sleeper, which is listed, to @batch, which has room. */
static void lot_take_one(struct parklot_lot *lot,
			 struct parklot_sleeper *sleeper, int reason,
			 struct parklot_batch *batch)
{
	lot_set_unlisted(lot, sleeper);
	batch->task[batch->nr++] = sleeper->task;
	/*
	 * [wake-a] pairs with [wake-b] in lot_sleep(): all accesses to the
	 * sleeper come before the reason is set. After that it may return, and
	 * an access would hit a stack frame that another call uses.
	 */
	smp_store_release(&sleeper->reason, reason);
}

static bool lot_has_due(const struct parklot_lot *lot)
{
	return lot->last_due != &lot->parked;
}

/*
 * Moves up to @nr sleepers, the due ones first, to @batch, which has room for
 * them. With @only_due, no other sleepers are taken.
 */
static u32 lot_take(struct parklot_lot *lot, u32 nr, bool only_due, int reason,
		    struct parklot_batch *batch)
{
	struct parklot_sleeper *sleeper;
	u32 taken;

	lockdep_assert_held(&lot->lock);
	for (taken = 0; taken < nr; taken++) {
		if (only_due ? !lot_has_due(lot) : list_empty(&lot->parked))
			break;
		sleeper = list_first_entry(&lot->parked,
					   struct parklot_sleeper, entry);
		lot_take_one(lot, sleeper, reason, batch);
	}
	if (!taken)
		return 0;
	lot_show_count(lot, lot->nr_parked - taken);
	if (reason == PARKLOT_WOKEN)
		WRITE_ONCE(lot->nr_woken, lot->nr_woken + taken);
	return taken;
}

static void batch_wake_tasks(struct parklot_batch *batch)
{
	u32 i;

	PARKLOT_INJECT("wake-a");
	for (i = 0; i < batch->nr; i++)
		wake_up_process(batch->task[i]);
	batch->nr = 0;
}

/**
 * parklot_batch_end() - wake the sleepers of @batch that are not yet awake
 * @batch: from parklot_batch_begin()
 */
void parklot_batch_end(struct parklot_batch *batch)
{
	struct task_struct *last = NULL;

	if (batch->handoff && batch->nr)
		last = batch->task[--batch->nr];
	batch_wake_tasks(batch);
	if (last)
		wake_up_here(last);
	preempt_enable();
}

/* Called when there is more to take: parklot_batch_end() wakes the last one. */
static void batch_make_room(struct parklot_batch *batch)
{
	if (batch->nr < PARKLOT_WAKES_AT_ONCE)
		return;
	batch_wake_tasks(batch);
	preempt_enable();
	PARKLOT_INJECT("room");
	cond_resched();
	preempt_disable();
}

/*
 * Takes up to @nr sleepers. If that covers all, and one hold of the lock is not
 * enough for them, they become due in the first hold; their number then bounds
 * the loop, and other wakers may shorten it.
 */
static u32 lot_wake_many(struct parklot_lot *lot, u32 nr, int reason,
			 struct parklot_batch *batch)
{
	bool has_begun = false, only_due = false;
	u32 room, taken, woken = 0;

	if (!nr || !READ_ONCE(lot->nr_parked))
		return 0;
	do {
		batch_make_room(batch);
		raw_spin_lock_irq(&lot->lock);
		room = PARKLOT_WAKES_AT_ONCE - batch->nr;
		if (!has_begun && nr >= lot->nr_parked) {
			nr = lot->nr_parked;
			only_due = room < nr;
			if (only_due)
				lot->last_due = lot->parked.prev;
		}
		has_begun = true;
		room = min(nr - woken, room);
		taken = lot_take(lot, room, only_due, reason, batch);
		raw_spin_unlock_irq(&lot->lock);
		woken += taken;
	} while (taken == room && woken < nr);
	return woken;
}

/**
 * parklot_lot_wake() - wake up to @nr sleepers of @lot
 * @lot:   the lot
 * @nr:    the number of sleepers to wake at most
 * @batch: from parklot_batch_begin()
 *
 * Context: process. Preemption is enabled now and then, and the lock is dropped
 * after every PARKLOT_WAKES_AT_ONCE sleepers.
 * Return: how many sleepers were removed; each of them reports PARKLOT_WOKEN.
 * The last of them may sleep on until parklot_batch_end().
 */
u32 parklot_lot_wake(struct parklot_lot *lot, u32 nr,
		     struct parklot_batch *batch)
{
	return lot_wake_many(lot, nr, PARKLOT_WOKEN, batch);
}

/*
 * Wakes another sleeper in place of the caller, which a waker has counted. A
 * thread that is being killed does not look for the work that it was woken for.
 * If all threads of a process die, no thread needs the wake; it matters to
 * processes that share their memory.
 */
static void lot_pass_on(struct parklot_lot *lot)
{
	struct parklot_batch batch;

	parklot_batch_begin(&batch, false);
	parklot_lot_wake(lot, 1, &batch);
	parklot_batch_end(&batch);
}

/**
 * parklot_lot_park() - sleep on @lot until there is a reason to return
 * @lot:  the lot to park on
 * @args: how to park
 *
 * Return: PARKLOT_WOKEN, _CHANGED, _TIMEDOUT, _POLLED, _INTERRUPTED or _CALLED,
 * or -ERESTARTSYS; never a signal, a wake source or a timeout if a waker has
 * counted the caller.
 */
int parklot_lot_park(struct parklot_lot *lot,
		     const struct parklot_park_args *args)
{
	u64 begun = 0;
	int reason;

	if (READ_ONCE(*lot->seq) != args->seq)
		return PARKLOT_CHANGED;
	if (args->deadline != KTIME_MAX && args->deadline <= ktime_get())
		return PARKLOT_TIMEDOUT;

	if (trace_parklot_park_enabled())
		begun = ktime_get_ns();
	reason = lot_park(lot, args);
	if (reason == PARKLOT_WOKEN && fatal_signal_pending(current))
		lot_pass_on(lot);
	if (begun)
		trace_parklot_park(args->nr, reason, ktime_get_ns() - begun);
	return reason;
}

/**
 * parklot_lot_interrupt() - end all sleeps on @lot
 * @lot: the lot; its sleepers return PARKLOT_INTERRUPTED
 *
 * A parker that read nr_interrupts before this, and is not yet listed, returns
 * PARKLOT_INTERRUPTED as well. No sleeper is counted as woken.
 */
void parklot_lot_interrupt(struct parklot_lot *lot)
{
	struct parklot_batch batch;

	raw_spin_lock_irq(&lot->lock);
	/*
	 * [table-a] pairs with [table-b] in park_run(): a parker that reads the
	 * new number also sees the table as the close left it. Otherwise it
	 * could still find the closed descriptor, and would be listed after
	 * the interrupt, to sleep for ever.
	 */
	smp_store_release(&lot->nr_interrupts, lot->nr_interrupts + 1);
	raw_spin_unlock_irq(&lot->lock);
	PARKLOT_INJECT("table-a");

	parklot_batch_begin(&batch, false);
	lot_wake_many(lot, U32_MAX, PARKLOT_INTERRUPTED, &batch);
	parklot_batch_end(&batch);
}

/**
 * parklot_lot_wake_one() - wake one certain sleeper
 * @lot:      the lot on which it was seen
 * @notifier: of the sleeper, which may have moved to another lot, but the
 *	      notifier is not freed
 * @reason:   the sleeper's reason; no WAKE counts it
 *
 * notifier->lot is compared under @lot's lock alone. That is enough although
 * another lot may own the sleeper: a notifier's lot becomes @lot, or stops to
 * be @lot, only under @lot's lock.
 *
 * Context: any, also that of an interrupt.
 * Return: was the sleeper still on @lot?
 */
bool parklot_lot_wake_one(struct parklot_lot *lot,
			  struct parklot_park_notifier *notifier, int reason)
{
	struct parklot_batch batch;
	unsigned long flags;
	bool is_here;

	parklot_batch_init(&batch, false);
	local_irq_save(flags);
	raw_spin_lock(&lot->lock);
	is_here = READ_ONCE(notifier->lot) == lot;
	if (is_here) {
		lot_take_one(lot, notifier->sleeper, reason, &batch);
		lot_show_count(lot, lot->nr_parked - 1);
	}
	raw_spin_unlock(&lot->lock);
	batch_wake_tasks(&batch);
	local_irq_restore(flags);
	return is_here;
}
