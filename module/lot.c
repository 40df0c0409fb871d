// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parking and waking.
 *
 * 1. No signal is lost. Both sides of the first race write their own word and
 * then read the other's:
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
 * They cannot both read the old value. The waker's half may run in user space,
 * on the mapped count, which then saves the call; it has the same [park-b].
 *
 * 2. Every sleeper is taken off its list exactly once, under the lock, which
 * `is_listed' says: by a waker, which sets `reason', or by itself.
 * Whoever does it takes nr_parked down in the same hold. So a wake that races
 * a timeout, an alarm or a signal is either counted and PARKLOT_WOKEN, or
 * neither.
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
 * [wake-a] is a release: once the reason is set the sleeper may be gone
 * without ever taking the lock, so it is the waker's last touch. The task
 * itself may then exit; its task_struct is freed by RCU, for which a waker that
 * is not preemptible counts as a reader. Nor do the wakees of a batch get in
 * the way of the wakes that are still to be done.
 * wake_up_process() is a full barrier before it looks at the state, as
 * set_current_state() is behind it, so the sleeper sees the reason or is woken.
 * A task that already sleeps somewhere else gets a spurious wakeup, which
 * every sleep in the kernel must expect.
 *
 * 4. A waker of all sleepers takes those that were parked when it began, each
 * once. It cannot take them in one hold of the lock, and sleepers that come
 * right back must not keep it busy. So it marks the last one, `last_due': all
 * up to there are due, and sleepers that park meanwhile go behind them. The due
 * ones stay on the list: should this waker lose its processor halfway, other
 * wakers take them first, and none of them waits for it.
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
 * @counter: where to show how many are parked; nobody else writes it
 * @seq:     the word to compare; anybody may write anything to it
 */
void parklot_lot_init(struct parklot_lot *lot, u32 *counter, const u32 *seq)
{
	raw_spin_lock_init(&lot->lock);
	INIT_LIST_HEAD(&lot->parked);
	lot->last_due = &lot->parked;
	lot->counter = counter;
	lot->seq = seq;
}

/* The list's length, for wakers here and in user space. */
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

/* Off the list, by whoever holds the lock. */
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

/* 0, or the reason not to sleep: then nothing has changed. */
static int lot_enqueue(struct parklot_lot *lot, struct parklot_sleeper *me,
		       const struct parklot_park_args *args)
{
	lockdep_assert_held(&lot->lock);
	if (me->reason)
		return me->reason;
	if (lot->nr_interrupts != args->nr_interrupts)
		return PARKLOT_INTERRUPTED;
	if (args->fifo)
		list_add_tail(&me->entry, &lot->parked);
	else
		list_add(&me->entry, lot->last_due);
	lot_show_count(lot, lot->nr_parked + 1);

	/* [park-a] pairs with [park-b] in parklot_batch_begin(). */
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

/**
 * parklot_lot_enlist() - park a sleeper
 * @lot:     where
 * @sleeper: is on no list
 * @args:    how
 *
 * Return: 0, or the reason why it is not parked: PARKLOT_CHANGED,
 * PARKLOT_INTERRUPTED, or that of a parklot_lot_give_up() that came first.
 */
int parklot_lot_enlist(struct parklot_lot *lot, struct parklot_sleeper *sleeper,
		       const struct parklot_park_args *args)
{
	int reason;

	raw_spin_lock_irq(&lot->lock);
	reason = lot_enqueue(lot, sleeper, args);
	raw_spin_unlock_irq(&lot->lock);
	return reason;
}

/**
 * parklot_lot_give_up() - take a sleeper off, if no waker was first
 * @lot:     where it was parked, or will be
 * @sleeper: which
 * @reason:  what it comes back with then
 *
 * A sleeper without a task may be given up before it is listed, or after it
 * was refused: parklot_lot_enlist() has it end with @reason, or has ended it.
 *
 * Context: any, also that of an interrupt.
 * Return: was it taken off by this call, so that the caller ends it?
 */
bool parklot_lot_give_up(struct parklot_lot *lot,
			 struct parklot_sleeper *sleeper, int reason)
{
	unsigned long flags;
	bool was_listed;

	raw_spin_lock_irqsave(&lot->lock, flags);
	was_listed = sleeper->is_listed;
	if (was_listed) {
		lot_set_unlisted(lot, sleeper);
		lot_show_count(lot, lot->nr_parked - 1);
	}
	if (!sleeper->reason)
		sleeper->reason = reason;
	raw_spin_unlock_irqrestore(&lot->lock, flags);
	return was_listed;
}

/* The reason: a waker's if one came first, else @reason. */
static int lot_dequeue(struct parklot_lot *lot, struct parklot_sleeper *me,
		       int reason)
{
	PARKLOT_INJECT("dequeue");
	parklot_lot_give_up(lot, me, reason);
	return me->reason;
}

/* Until somebody wakes us, or 0: until then. */
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
 * A waker's reason, PARKLOT_TIMEDOUT, PARKLOT_POLLED for the alarm, or
 * -ERESTARTSYS; spurious wakes go on.
 */
static int lot_sleep(const struct parklot_sleeper *me,
		     const struct parklot_park_args *args)
{
	struct parklot_wake_source *source = args->source;
	int reason;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE | TASK_FREEZABLE);
		PARKLOT_INJECT("wake-b");
		/* [wake-b] pairs with [wake-a] in lot_take_one(). */
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

/* Onto the lot, and sleep. */
static int lot_park(struct parklot_lot *lot,
		    const struct parklot_park_args *args)
{
	struct parklot_sleeper me = {
		.task		= current,
		.notifier	= args->notifier,
	};
	int reason;

	reason = parklot_lot_enlist(lot, &me, args);
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

/* @sleeper, who is listed, into @batch, which has room. */
static void lot_take_one(struct parklot_lot *lot,
			 struct parklot_sleeper *sleeper, int reason,
			 struct parklot_batch *batch)
{
	lot_set_unlisted(lot, sleeper);
	batch->task[batch->nr++] = sleeper->task;
	if (!sleeper->task)
		list_add_tail(&sleeper->entry, &batch->requests);
	/* [wake-a] pairs with [wake-b] in lot_sleep(). Now it may go. */
	smp_store_release(&sleeper->reason, reason);
}

static bool lot_has_due(const struct parklot_lot *lot)
{
	return lot->last_due != &lot->parked;
}

/*
 * Up to @nr sleepers, the due ones first, into @batch, which has room for
 * them; of the others none if @only_due.
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
		if (batch->task[i])
			wake_up_process(batch->task[i]);
	batch->nr = 0;
}

/* Where it may sleep: what is done for a request may take locks of any kind. */
static void batch_end_requests(struct parklot_batch *batch)
{
	struct parklot_sleeper *sleeper, *next;

	list_for_each_entry_safe(sleeper, next, &batch->requests, entry)
		sleeper->awake(sleeper);
	INIT_LIST_HEAD(&batch->requests);
}

/**
 * parklot_batch_end() - wake whoever was taken and is not awake yet
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
	batch_end_requests(batch);
}

/* Only when there is more to take: the last one is parklot_batch_end()'s. */
static void batch_make_room(struct parklot_batch *batch)
{
	if (batch->nr < PARKLOT_WAKES_AT_ONCE)
		return;
	batch_wake_tasks(batch);
	preempt_enable();
	batch_end_requests(batch);
	PARKLOT_INJECT("room");
	cond_resched();
	preempt_disable();
}

/*
 * Takes up to @nr. If that covers all sleepers, and they cannot all go at once,
 * they are due from the first hold of the lock on; the number of them bounds
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
 * @lot:   whose
 * @nr:    how many at most
 * @batch: from parklot_batch_begin()
 *
 * Context: process. Preemption comes on now and then, the lock is dropped
 * after every PARKLOT_WAKES_AT_ONCE.
 * Return: how many were taken off the lot, each of whom reports PARKLOT_WOKEN;
 * the last of them may sleep on until parklot_batch_end().
 */
u32 parklot_lot_wake(struct parklot_lot *lot, u32 nr,
		     struct parklot_batch *batch)
{
	return lot_wake_many(lot, nr, PARKLOT_WOKEN, batch);
}

/**
 * parklot_lot_pass_on() - wake another sleeper in place of one that is lost
 * @lot: where a waker has counted it
 *
 * A thread that is being killed, or a command whose ring has ended, does not
 * look for what it was woken for. Of the threads of one process all die; it
 * matters to processes that share their memory, and to other rings.
 *
 * Context: may sleep.
 */
void parklot_lot_pass_on(struct parklot_lot *lot)
{
	struct parklot_batch batch;

	parklot_batch_begin(&batch, false);
	parklot_lot_wake(lot, 1, &batch);
	parklot_batch_end(&batch);
}

/**
 * parklot_lot_park() - sleep on @lot until something comes up
 * @lot:  where
 * @args: how
 *
 * Return: PARKLOT_WOKEN, _CHANGED, _TIMEDOUT, _POLLED, _INTERRUPTED or _CALLED,
 * or -ERESTARTSYS; never a signal, an alarm or a timeout when a waker has
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
		parklot_lot_pass_on(lot);
	if (begun)
		trace_parklot_park(args->nr, reason, ktime_get_ns() - begun);
	return reason;
}

/**
 * parklot_lot_interrupt() - send everybody home
 * @lot: whose sleepers come back with PARKLOT_INTERRUPTED
 *
 * So do those who looked at nr_interrupts before and are still on their way
 * to sleep. Nobody is counted as woken.
 */
void parklot_lot_interrupt(struct parklot_lot *lot)
{
	struct parklot_batch batch;

	raw_spin_lock_irq(&lot->lock);
	/* [close-a] pairs with [close-b] in park_run(), uring_park(). */
	smp_store_release(&lot->nr_interrupts, lot->nr_interrupts + 1);
	raw_spin_unlock_irq(&lot->lock);
	PARKLOT_INJECT("close-a");

	parklot_batch_begin(&batch, false);
	lot_wake_many(lot, U32_MAX, PARKLOT_INTERRUPTED, &batch);
	parklot_batch_end(&batch);
}

/**
 * parklot_lot_wake_one() - wake one certain sleeper
 * @lot:    where it was seen
 * @notifier: its own, of a task; it may be on another lot now, but is not
 *	     freed
 * @reason: what it comes back with; no WAKE counts it
 *
 * Who of two lots' locks is held does not matter: only @lot's holders write
 * @lot to the watch, or take it away again.
 *
 * Context: any, also that of an interrupt.
 * Return: was it still there?
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
