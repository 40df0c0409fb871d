/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A lot: a list of sleeping threads, a count that user space reads, and a
 * word that user space writes. It knows neither descriptors nor processes.
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

/* Wakes in one hold of a lot's lock, and with preemption off, at most. */
#define PARKLOT_WAKES_AT_ONCE	8

/*
 * I: set at init, then read-only. L: lock held.
 * W: written with the lock held, read without.
 */
struct parklot_lot {
	raw_spinlock_t		lock;
	u32			nr_parked;	/* W: length of the list */
	struct list_head	parked;		/* L: first to wake first */
	struct list_head	*last_due;	/* L: last due one: lot.c, 4. */
	u32			*counter;	/* I: user space's nr_parked */
	const u32		*seq;		/* I: user space's word */
	u32			nr_interrupts;	/* W: number of interrupts */
	/* Parkers' own: nr_interrupts when a descriptor was last looked for. */
	u32			nr_settled;
	u64			nr_woken;	/* W: number of counted wakes */
} ____cacheline_aligned_in_smp;

/* Sleepers that were removed from their lots, to be woken together. */
struct parklot_batch {
	bool			handoff;	/* last task runs here */
	u32			nr;
	struct task_struct	*task[PARKLOT_WAKES_AT_ONCE];
};

struct parklot_park_notifier;

/* A parked task. I: set at init. L: the lot's lock held. */
struct parklot_sleeper {
	struct list_head	entry;	/* L: in a lot's list */
	struct task_struct	*task;	/* I */
	struct parklot_park_notifier *notifier;	/* I: or NULL */
	int			reason;	/* 0 while parked: [wake-a] */
	bool			is_listed; /* L: on a list, and counted */
};

/* Callbacks for a sleeper that is listed or removed. */
struct parklot_park_notifier_ops {
	/* The lot's lock is held: the sleeper was listed; was removed. */
	void (*listed)(struct parklot_park_notifier *notifier);
	void (*unlisted)(struct parklot_park_notifier *notifier);
	/* The sleeper's thread is listed, holds no lock, is about to sleep. */
	void (*parked)(struct parklot_park_notifier *notifier);
};

/* I: set at init. L: the lot's lock held. W: read without it, too. */
struct parklot_park_notifier {
	const struct parklot_park_notifier_ops *ops;	/* I */
	struct parklot_lot	*lot;		/* W: the sleeper's, or NULL */
	struct parklot_sleeper	*sleeper;	/* L: valid if lot is set */
};

/* A source of wakes besides wakers: it wakes the task when it has fired. */
struct parklot_wake_source {
	/* May it be ready? The task's state is set: this must not sleep. */
	bool (*has_fired)(struct parklot_wake_source *source);
	/* Is it ready? If not, the next event makes it fire again. */
	bool (*is_ready)(struct parklot_wake_source *source);
};

/* The arguments of a park. */
struct parklot_park_args {
	u32	nr;		/* the lot's number, for tracing */
	u32	seq;		/* sleep only while the word is this */
	ktime_t	deadline;	/* or KTIME_MAX: none */
	u32	nr_interrupts;	/* the lot's, as read by the caller */
	struct parklot_park_notifier *notifier;	/* or NULL */
	struct parklot_wake_source *source;	/* or NULL */
};

void parklot_lot_init(struct parklot_lot *lot, u32 *counter, const u32 *seq);
int parklot_lot_park(struct parklot_lot *lot,
		     const struct parklot_park_args *args);
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
}

/**
 * parklot_batch_begin() - call before parklot_lot_wake(), once or repeatedly
 * @batch:   on the caller's stack
 * @handoff: the caller is about to park, and the last task that is woken runs
 *	     on this processor, if the kernel can do that
 *
 * Context: until parklot_batch_end() the caller may not sleep.
 */
static inline void parklot_batch_begin(struct parklot_batch *batch,
				       bool handoff)
{
	parklot_batch_init(batch, handoff);
	preempt_disable();
	/*
	 * [park-b] pairs with [park-a] in lot_enqueue(): the caller's work, and
	 * seq, are written before nr_parked is read. Otherwise the waker may
	 * read an old nr_parked, and the parker an old seq, and it sleeps.
	 */
	smp_mb();
	PARKLOT_INJECT("park-b");
}

#endif /* PARKLOT_LOT_H */
