/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A lot: a list of sleeping threads, a count that user space reads, and a
 * word that user space writes. Knows neither descriptors nor processes.
 */
#ifndef PARKLOT_LOT_H
#define PARKLOT_LOT_H

#include <linux/cache.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "inject.h"

struct task_struct;

/* Under one hold of a lot's lock, and of preemption, at most so many go. */
#define PARKLOT_WAKES_AT_ONCE	8

/*
 * I: set at init, then read-only.  L: lock held.
 * W: written with the lock held, read without.
 */
struct parklot_lot {
	raw_spinlock_t		lock;
	u32			nr_parked;	/* W: sleepers on the list */
	struct list_head	parked;		/* L: next to wake first */
	struct list_head	*last_due;	/* L: see lot.c, 4. */
	u32			*counter;	/* I: shows nr_parked */
	const u32		*seq;		/* I: user space's word */
	u32			nr_interrupts;	/* W: all sent home, so often */
	u32			nr_settled;	/* caller's: interrupts seen */
	u64			nr_woken;	/* W: by wakers, so far */
} ____cacheline_aligned_in_smp;

/* Sleepers that were taken off their lots and are to be woken together. */
struct parklot_batch {
	bool			handoff;	/* the last one runs here */
	u32			nr;
	struct task_struct	*task[PARKLOT_WAKES_AT_ONCE]; /* or NULL */
	struct list_head	requests;	/* sleepers without a task */
};

struct parklot_park_notifier;

/*
 * Who is parked: a task, or somebody who is told. I: set at init.  L: the
 * lot's lock held.
 */
struct parklot_sleeper {
	struct list_head	entry;	/* L: the lot's, then a batch's */
	struct task_struct	*task;	/* I: or NULL */
	struct parklot_park_notifier *notifier;	/* I: or NULL */
	/* I: without a task. The reason is there, no lock is held. */
	void (*awake)(struct parklot_sleeper *sleeper);
	int			reason;	/* 0 until taken off: [wake-a] */
	bool			is_listed; /* L: on a list, and counted */
};

/* What somebody above does when a sleeper of his comes or goes. */
struct parklot_park_notifier_ops {
	/* It is on a lot's list, or is not any more; under its lock. */
	void (*listed)(struct parklot_park_notifier *notifier);
	void (*unlisted)(struct parklot_park_notifier *notifier);
	/* It is listed, holds no lock and is about to sleep. */
	void (*parked)(struct parklot_park_notifier *notifier);
};

/* I: set at init.  L: the lot's lock held.  W: read without it, too. */
struct parklot_park_notifier {
	const struct parklot_park_notifier_ops *ops;	/* I */
	struct parklot_lot		*lot;		/* W: listed there */
	struct parklot_sleeper		*sleeper;	/* L: if it is */
};

/* Something else that ends a sleep: who makes it so wakes the task. */
struct parklot_wake_source {
	/* May it be so? The task's state is set: this must not sleep. */
	bool (*has_fired)(struct parklot_wake_source *source);
	/* Is it so? If not, what comes after this rings again. */
	bool (*is_ready)(struct parklot_wake_source *source);
};

/* How to park. */
struct parklot_park_args {
	u32	nr;		/* the lot's number, to be traced */
	u32	seq;		/* sleep only if the word is still this */
	bool	fifo;		/* woken after those who are parked already */
	ktime_t	deadline;	/* KTIME_MAX: none */
	u32	nr_interrupts;	/* the lot's, when the caller looked at it */
	struct parklot_park_notifier *notifier;	/* or NULL */
	struct parklot_wake_source *source;	/* or NULL */
};

void parklot_lot_init(struct parklot_lot *lot, u32 *counter, const u32 *seq);
int parklot_lot_park(struct parklot_lot *lot,
		     const struct parklot_park_args *args);
int parklot_lot_enlist(struct parklot_lot *lot, struct parklot_sleeper *sleeper,
		       const struct parklot_park_args *args);
bool parklot_lot_give_up(struct parklot_lot *lot,
			 struct parklot_sleeper *sleeper, int reason);
void parklot_lot_pass_on(struct parklot_lot *lot);
void parklot_lot_interrupt(struct parklot_lot *lot);
bool parklot_lot_wake_one(struct parklot_lot *lot,
			  struct parklot_park_notifier *notifier, int reason);

u32 parklot_lot_wake(struct parklot_lot *lot, u32 nr,
		     struct parklot_batch *batch);
void parklot_batch_end(struct parklot_batch *batch);

static inline void parklot_batch_init(struct parklot_batch *batch,
				      bool handoff)
{
	batch->handoff = handoff;
	batch->nr = 0;
	INIT_LIST_HEAD(&batch->requests);
}

/**
 * parklot_batch_begin() - before one or several parklot_lot_wake()
 * @batch:     on the caller's stack
 * @handoff: the caller is about to park, and the last one that is woken
 *	       runs on this processor, if the kernel can do that
 *
 * Context: until parklot_batch_end() the caller may not sleep.
 */
static inline void parklot_batch_begin(struct parklot_batch *batch,
				       bool handoff)
{
	parklot_batch_init(batch, handoff);
	preempt_disable();
	/* [park-b] pairs with [park-a] in parklot_lot_park(). */
	smp_mb();
	PARKLOT_INJECT("park-b");
}

#endif /* PARKLOT_LOT_H */
