/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * lot: where idle workers sleep
 *
 * Workers are spread over a few lots, so that parking and waking contend
 * little.  A lot has a sequence word, signals << 1 | stopped, and keeps its
 * sleepers last parked first, as that one's cache is warm and the others may
 * sleep on.
 *
 *	worker				signaller
 *	seq = peek()			queue a task
 *	look in every queue		seq += 2		[lot-pub]
 *	list, nr_parked++	[lot-a]	if (nr_parked)		[lot-b]
 *	if (seq unchanged)	[lot-c]		unlist, nr_parked--, wake
 *		sleep
 *
 * Each side writes its own word, then reads the other's; all four are seq_cst,
 * so that they cannot both read the old value and no signal is lost.  The
 * signaller takes nr_parked down, so that the next one sees the truth at once;
 * what it counted as woken was asleep or about to be, and says so itself.
 *
 * Two back ends hold the sleepers: lot_futex.c here, lot_dev.c in /dev/parklot.
 * A sleeper in its ring is held by the first, which can wake it, unless the
 * second one polls the ring for it.
 */
#ifndef PL_LOT_H
#define PL_LOT_H

#include "base/list.h"
#include "base/lock.h"
#include "park/parker.h"

struct parklot_words;
struct parklot_counters;

enum pl__lot_reason {
	PL__LOT_WOKEN,		/* by a signal that counted us */
	PL__LOT_CHANGED,	/* seq was not the expected one */
	PL__LOT_POLLED,		/* the descriptor is readable */
	PL__LOT_LATE,		/* the deadline has come */
};

/* L: lot->lock held.  A: atomic.  I: set at init, then read-only. */
struct pl__lot {
	_Atomic uint32_t	*seq;		/* I: seq_own or the device's */
	_Atomic uint32_t	seq_own __pl_cacheline; /* A: signallers */
	_Atomic uint32_t	nr_parked __pl_cacheline; /* L, A: sleepers */
	struct pl__lock		lock;
	struct pl__list		sleepers;	/* L: last parked first */
} __pl_cacheline;

/* An entry of lot->sleepers. */
struct pl__lot_entry {
	struct pl__list		list;		/* L */
	struct pl__parker	parker;
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
	struct pl__lot		*lot;		/* I: nr of them */
	uint32_t		nr;		/* I */
	int			fd;		/* I: the device's, or -1 */
	struct parklot_words	*words;		/* I: device's, as the rest */
	const struct parklot_counters *counters;
	size_t			words_size;
	size_t			counters_size;
	bool			can_poll;	/* I */
	_Atomic uint64_t	nr_empty;	/* entered the kernel, woke 0 */
	uint32_t		nr_members;	/* I: slots of the crew, or 0 */
	_Atomic uint32_t	*nr_cpus;	/* I: the crew's lines in use */
	_Atomic uint64_t	nr_called;	/* as another was blocked */
};

/*
 * @device: -ENODEV, -EACCES, ... if it cannot be used; -ENOMEM.
 * @nr_members: how many workers may join its crew, if it has one.
 */
int pl__lots_init(struct pl__lots *lots, uint32_t nr, bool device,
		  uint32_t nr_members);
void pl__lots_fini(struct pl__lots *lots);

/* In a child: the device is the parent's, and its pages are not here. */
void pl__lots_abandon(struct pl__lots *lots);

uint32_t pl__lot_peek(struct pl__lots *lots, uint32_t i);

static inline bool pl__lot_is_stopped(uint32_t seq)
{
	return seq & 1;
}

/*
 * Sleeps on @e until signalled, or @deadline_ns, unless lot @i's sequence is
 * not @seq.  LATE: no signal has counted us, and none will.
 */
enum pl__lot_reason pl__lot_park(struct pl__lots *lots, uint32_t i,
				 struct pl__lot_entry *e, uint64_t deadline_ns,
				 uint32_t seq);

/* The same until @fd is readable, too; if lots->can_poll. */
enum pl__lot_reason pl__lot_park_polling(struct pl__lots *lots, uint32_t i,
					 int fd, uint64_t deadline_ns,
					 uint32_t seq);

/*
 * The same in two steps, for who sleeps in its ring: true once @e is listed.
 * Then it sleeps, and unlists itself; false from that: it has been woken.
 */
bool pl__lot_list(struct pl__lots *lots, uint32_t i, struct pl__lot_entry *e,
		  struct pl__bell *bell, uint32_t seq);
bool pl__lot_unlist(struct pl__lots *lots, uint32_t i,
		    struct pl__lot_entry *e);

/*
 * Signals every lot, from @first on, and wakes up to @nr workers: how many
 * were asleep, or as good as.  None parked: no system call.
 */
uint32_t pl__lots_signal(struct pl__lots *lots, uint32_t first, uint32_t nr);

/* Sets the stop bits and wakes all. */
void pl__lots_stop(struct pl__lots *lots);

/* lot_futex.c */
void pl__lots_futex_init(struct pl__lots *lots);
uint32_t pl__lot_list_wake(struct pl__lots *lots, uint32_t i, uint32_t nr);

/* lot_dev.c */
int pl__lots_dev_init(struct pl__lots *lots);

/*
 * lot_crew.c: workers that the device sees block.  It counts them, on a line
 * for each processor, and calls a parked one if too few run while there is a
 * backlog.
 */
void pl__crew_init(struct pl__lots *lots);

uint32_t pl__crew_sum_blocked(const struct pl__lots *lots);

/*
 * Workers of the crew that are blocked; or more, if some come and go meanwhile.
 * Reads a line for each processor on which the crew has run.
 */
static inline uint32_t pl__crew_nr_blocked(const struct pl__lots *lots)
{
	return atomic_load_explicit(lots->nr_cpus, memory_order_relaxed) ?
	       pl__crew_sum_blocked(lots) : 0;
}

/* The caller joins as @slot: its word, which is not 0 while it is idle. */
_Atomic uint32_t *pl__crew_join(struct pl__lots *lots, uint32_t slot);

/* The caller, who has joined so, leaves. */
void pl__crew_leave(struct pl__lots *lots, uint32_t slot);

/* How many are to run at a time. */
void pl__crew_set(struct pl__lots *lots, uint32_t target);

/* Whether tasks wait: a hint, and may be late. */
void pl__crew_set_backlog(struct pl__lots *lots, bool has_work);

#endif /* PL_LOT_H */
