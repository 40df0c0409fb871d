// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timeouts of parked commands.
 *
 * With an hrtimer for each command, one soft interrupt would end all commands
 * of one deadline, however many there are, and no thread could run meanwhile.
 * So each processor has a queue, ordered by deadline, and one timer for its
 * first entry. The timer ends a few commands and is started anew for the
 * others: between two of its soft interrupts threads run.
 *
 * Invariant, under the queue's lock: while a queue is not empty its timer is
 * started, for the first deadline at the latest, or timeouts_fire() is about
 * to take the lock. A cancel does not touch the timer, which may then find no
 * timeout that is due.
 *
 * The lock is held while a timeout is claimed, and a canceller takes it as
 * well, so it may free the timeout afterwards. The lots' locks are taken inside
 * this lock.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>

#include "compat.h"
#include "timeout.h"

/* Timeouts ended by one soft interrupt, in one hold of the lock, at most. */
#define TIMEOUTS_AT_ONCE	8

/* L: lock held. */
struct parklot_timeouts {
	raw_spinlock_t		lock;
	struct timerqueue_head	queue;		/* L: by deadline */
	struct hrtimer		timer;		/* L: started for the first */
};

static DEFINE_PER_CPU(struct parklot_timeouts, timeouts);

/*
 * Starts the timer for a time in the future only: the soft interrupt that fires
 * timers would fire this one again before it ends.
 */
static void timeouts_restart(struct parklot_timeouts *timeouts, ktime_t now)
{
	struct timerqueue_node *first = timerqueue_getnext(&timeouts->queue);

	lockdep_assert_held(&timeouts->lock);
	if (first)
		hrtimer_start(&timeouts->timer, max(first->expires, now + 1),
			      HRTIMER_MODE_ABS_SOFT);
}

static u32 timeouts_claim(struct parklot_timeouts *timeouts, ktime_t now,
			  struct parklot_timeout **claimed)
{
	struct parklot_timeout *timeout;
	struct timerqueue_node *first;
	u32 i, nr = 0;

	lockdep_assert_held(&timeouts->lock);
	for (i = 0; i < TIMEOUTS_AT_ONCE; i++) {
		first = timerqueue_getnext(&timeouts->queue);
		if (!first || first->expires > now)
			break;
		timerqueue_del(&timeouts->queue, first);
		timeout = container_of(first, struct parklot_timeout, node);
		if (timeout->ops->claim(timeout))
			claimed[nr++] = timeout;
	}
	return nr;
}

static enum hrtimer_restart timeouts_fire(struct hrtimer *timer)
{
	struct parklot_timeouts *timeouts =
		container_of(timer, struct parklot_timeouts, timer);
	struct parklot_timeout *claimed[TIMEOUTS_AT_ONCE];
	unsigned long flags;
	u32 i, nr;

	raw_spin_lock_irqsave(&timeouts->lock, flags);
	nr = timeouts_claim(timeouts, ktime_get(), claimed);
	timeouts_restart(timeouts, ktime_get());
	raw_spin_unlock_irqrestore(&timeouts->lock, flags);
	for (i = 0; i < nr; i++)
		claimed[i]->ops->end(claimed[i]);
	return HRTIMER_NORESTART;
}

/**
 * parklot_timeout_init() - make a timeout that is not started
 * @timeout: any memory
 * @ops:     claim and end it
 */
void parklot_timeout_init(struct parklot_timeout *timeout,
			  const struct parklot_timeout_ops *ops)
{
	timeout->ops = ops;
	timeout->queue = raw_cpu_ptr(&timeouts);
	timerqueue_init(&timeout->node);
}

/**
 * parklot_timeout_start() - claim and end @timeout at @deadline
 * @timeout:  from parklot_timeout_init(), never started
 * @deadline: CLOCK_MONOTONIC
 */
void parklot_timeout_start(struct parklot_timeout *timeout, ktime_t deadline)
{
	struct parklot_timeouts *timeouts = timeout->queue;
	unsigned long flags;

	timeout->node.expires = deadline;
	raw_spin_lock_irqsave(&timeouts->lock, flags);
	if (timerqueue_add(&timeouts->queue, &timeout->node))
		hrtimer_start(&timeouts->timer, deadline,
			      HRTIMER_MODE_ABS_SOFT);
	raw_spin_unlock_irqrestore(&timeouts->lock, flags);
}

/**
 * parklot_timeout_cancel() - make sure that @timeout will not be claimed
 * @timeout: started or not
 *
 * When this returns @timeout is not claimed, or has been. A timeout that has
 * been claimed is ended all the same.
 */
void parklot_timeout_cancel(struct parklot_timeout *timeout)
{
	struct parklot_timeouts *timeouts = timeout->queue;
	unsigned long flags;

	raw_spin_lock_irqsave(&timeouts->lock, flags);
	if (timerqueue_node_queued(&timeout->node))
		timerqueue_del(&timeouts->queue, &timeout->node);
	raw_spin_unlock_irqrestore(&timeouts->lock, flags);
}

void parklot_timeouts_init(void)
{
	struct parklot_timeouts *queue;
	int cpu;

	for_each_possible_cpu(cpu) {
		queue = per_cpu_ptr(&timeouts, cpu);
		raw_spin_lock_init(&queue->lock);
		timerqueue_init_head(&queue->queue);
		hrtimer_setup(&queue->timer, timeouts_fire, CLOCK_MONOTONIC,
			      HRTIMER_MODE_ABS_SOFT);
	}
}

/* A command holds the module: the queues are empty; timers may be started. */
void parklot_timeouts_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		hrtimer_cancel(&per_cpu_ptr(&timeouts, cpu)->timer);
}
