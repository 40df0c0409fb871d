/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * lot: where idle workers sleep
 *
 * Workers are spread over a few lots, so that parking and waking contend
 * little.  A lot has a sequence word, signals << 1 | stopped, and keeps its
 * sleepers last parked first: the cache of that worker is warm, and the others
 * may sleep on.
 *
 *	worker				signaller
 *	seq = peek()			queue a task
 *	look in every queue		if (a sleeper is listed)
 *	list, nr_parked++	[lot-a]		unlist, nr_parked--, wake; done
 *	if (seq unchanged)	[lot-c]	seq += 2		[lot-pub]
 *		sleep			if (nr_parked)		[lot-b]
 *						unlist, nr_parked--, wake
 *
 * Invariant: no signal is lost between a worker's last look and its sleep.
 * Each side writes its own word, then reads the other's, and all four accesses
 * are seq_cst: either the worker finds seq changed or the signaller finds
 * nr_parked.  Otherwise the worker sleeps while the task waits.  A signaller
 * that has woken a sleeper leaves seq as it is: the sleeper looks for the task,
 * and the workers about to sleep need not look again.
 *
 * The signaller takes nr_parked down, not the sleeper, so that the next
 * signaller reads the exact number at once.  A worker that it counts as woken
 * was asleep or about to sleep, and reports PL__LOT_WOKEN.
 *
 * Two back ends hold the sleepers: lot.c in a list of its own, lot_dev.c
 * in /dev/parklot.  The list holds a worker that sleeps in its ring, as it can
 * wake that, unless the device polls the ring for it.
 */
#ifndef PL_LOT_H
#define PL_LOT_H

#include "base/list.h"
#include "base/lock.h"
#include "park/parker.h"

struct parklot_words;
struct parklot_counters;

enum pl__lot_reason {
	PL__LOT_WOKEN,		/* by a signal that counted this worker */
	PL__LOT_CHANGED,	/* seq was not the expected one */
	PL__LOT_POLLED,		/* its descriptor is readable */
	PL__LOT_LATE,		/* its deadline has passed */
};

/* L: lot->lock is held.  A: atomic.  I: set at init, then read-only. */
struct pl__lot {
	_Atomic uint32_t	*seq;		/* I: seq_own or the device's */
	/* A: signallers write it */
	_Atomic uint32_t	seq_own __pl_cacheline;
	/* L, A: number of sleepers */
	_Atomic uint32_t	nr_parked __pl_cacheline;
	struct pl__lock		lock;
	struct pl__list		sleepers;	/* L: last parked first */
} __pl_cacheline;

/* A sleeper; an entry of lot->sleepers. */
struct pl__lot_entry {
	struct pl__list		list;		/* L: in lot->sleepers */
	struct pl__parker	parker;
	bool			is_last; /* O: others are to be woken first */
};

struct pl__lots;

struct pl__lots_ops {
	enum pl__lot_reason (*park)(struct pl__lots *lots, uint32_t i,
				    struct pl__lot_entry *e,
				    uint64_t deadline_ns, uint32_t seq);
	enum pl__lot_reason (*park_polling)(struct pl__lots *lots, uint32_t i,
					    int fd, uint64_t deadline_ns,
					    uint32_t seq);
	uint32_t (*wake)(struct pl__lots *lots, uint32_t first, uint32_t nr);
	void (*fini)(struct pl__lots *lots);
};

struct pl__lots {
	const struct pl__lots_ops *ops;		/* I */
	struct pl__lot		*lot;		/* I: array of nr lots */
	uint32_t		nr;		/* I */
	int			fd;		/* I: the device's, or -1 */
	struct parklot_words	*words;	/* I: page that the process writes */
	const struct parklot_counters *counters;
	size_t			words_size;
	size_t			counters_size;
	bool			can_poll; /* I: the device can poll a ring */
	/* wakes in the kernel that woke none */
	_Atomic uint64_t	nr_empty;
	/* I: workers that fit in the crew, or 0 */
	uint32_t		nr_members;
	_Atomic uint32_t	*nr_cpus; /* I: lines in use of the crew's */
	_Atomic uint64_t	nr_called; /* wakes because a worker blocked */
};

/*
 * Sets up @nr lots.  @device: fails with -ENODEV, -EACCES, ... if the device
 * cannot be used, and with -ENOMEM.  @nr_members: how many workers may join its
 * crew, if it has one.
 */
int pl__lots_init(struct pl__lots *lots, uint32_t nr, bool device,
		  uint32_t nr_members);
void pl__lots_fini(struct pl__lots *lots);

/*
 * Called in a child of fork(): the device is the parent's, its pages are not
 * mapped.
 */
void pl__lots_abandon(struct pl__lots *lots);

uint32_t pl__lot_peek(struct pl__lots *lots, uint32_t i);

static inline bool pl__lot_is_stopped(uint32_t seq)
{
	return seq & 1;
}

/*
 * Sleeps on @e until signalled or until @deadline_ns, unless the sequence of
 * lot @i is not @seq.  LATE: no signal has counted this worker, and none will.
 */
enum pl__lot_reason pl__lot_park(struct pl__lots *lots, uint32_t i,
				 struct pl__lot_entry *e, uint64_t deadline_ns,
				 uint32_t seq);

/* As pl__lot_park(), and until @fd is readable; only if lots->can_poll. */
enum pl__lot_reason pl__lot_park_polling(struct pl__lots *lots, uint32_t i,
					 int fd, uint64_t deadline_ns,
					 uint32_t seq);

/*
 * Parking in two steps, for a worker that sleeps in its ring.  pl__lot_list()
 * returns true once @e is listed; after its sleep the worker calls
 * pl__lot_unlist(), which returns false if a signal has woken it.  One that is
 * last is woken after those of all lots that are not.
 */
bool pl__lot_list(struct pl__lots *lots, uint32_t i, struct pl__lot_entry *e,
		  struct pl__bell *bell, uint32_t seq);
bool pl__lot_unlist(struct pl__lots *lots, uint32_t i,
		    struct pl__lot_entry *e);

/*
 * Wakes up to @nr workers, of lot @first and then of others.  If fewer sleep it
 * signals every lot, so that workers about to sleep look again, and wakes those
 * that sleep by then.  Returns how many were asleep or about to sleep.  Makes
 * no system call if none is parked.
 */
uint32_t pl__lots_signal(struct pl__lots *lots, uint32_t first, uint32_t nr);

/* Sets the stop bit of each lot, and wakes all workers. */
void pl__lots_stop(struct pl__lots *lots);

/* lot.c */
void pl__lots_futex_init(struct pl__lots *lots);

/*
 * Wakes those that sleep on futexes, in rings or not.  @are_last: leaves those
 * that are last, and is set if there are any; NULL: wakes these, too.
 */
uint32_t pl__lots_list_wake(struct pl__lots *lots, uint32_t first, uint32_t nr,
			    bool *are_last);

/* lot_dev.c */
int pl__lots_dev_init(struct pl__lots *lots);

/*
 * lot_dev.c: the device sees when workers of the crew block.  It counts them,
 * on a line for each processor, and wakes a parked worker if too few run while
 * there is a backlog.
 */
void pl__crew_init(struct pl__lots *lots);

uint32_t pl__crew_sum_blocked(const struct pl__lots *lots);

/*
 * Workers of the crew that are blocked, or more, if some block and return
 * meanwhile.  Reads a cache line for each processor on which the crew has run.
 */
static inline uint32_t pl__crew_nr_blocked(const struct pl__lots *lots)
{
	return atomic_load_explicit(lots->nr_cpus, memory_order_relaxed) ?
	       pl__crew_sum_blocked(lots) : 0;
}

/*
 * The calling thread joins as @slot.  Returns its state, not 0 while it is
 * idle.
 */
_Atomic uint32_t *pl__crew_join(struct pl__lots *lots, uint32_t slot);

/* The calling thread, which has joined as @slot, leaves. */
void pl__crew_leave(struct pl__lots *lots, uint32_t slot);

/* Sets how many workers are to run at a time. */
void pl__crew_set(struct pl__lots *lots, uint32_t target);

/* Tells the crew whether tasks wait; this is a hint, and may be late. */
void pl__crew_set_backlog(struct pl__lots *lots, bool has_work);

#endif /* PL_LOT_H */
