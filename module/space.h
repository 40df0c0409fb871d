/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A space: the lots of one process, and the pages that it shares with the
 * kernel. It knows no descriptor and touches no user memory.
 */
#ifndef PARKLOT_SPACE_H
#define PARKLOT_SPACE_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "charge.h"
#include "inject.h"
#include "lot.h"

struct mm_struct;
struct page;
struct parklot_park;
struct parklot_pool;
struct parklot_setup;
struct parklot_wake_entry;
struct seq_file;

/* Whole zeroed pages, charged to the caller. I: set at init. */
struct parklot_area {
	u32			nr_pages;	/* I: number of pages */
	struct page		**pages;	/* I: the pages */
};

/*
 * The result of SETUP. I: set at init. Each call reads the first part; the
 * statistics, which each waker writes, have a line of their own.
 */
struct parklot_lots {
	u32			nr_lots;	/* I: number of lots */
	struct parklot_lot	*lot;		/* I: array of nr_lots */
	struct parklot_area	counters;	/* I: written by the kernel */
	struct parklot_area	words;		/* I: written by the process */
	struct parklot_pool	*pool;		/* I: or NULL: no crew */
	/* Number of WAKEs, with a park or without. */
	atomic_long_t		nr_batches ____cacheline_aligned_in_smp;
	atomic_long_t		nr_empty;	/* WAKEs without a wakee */
	struct parklot_charge	charge;		/* I: for all allocations */
};

/* I: set at init. S: setup_lock held. */
struct parklot_space {
	struct mm_struct	*mm;		/* I: the owner's, grabbed */
	/* I: the opener's table; only compared (parklot_close_was_last()). */
	const void		*files;
	bool			has_others;	/* parkers by another table */
	unsigned int		fd_hint;	/* descriptor found last */
	struct mutex		setup_lock;
	struct parklot_lots	*lots;		/* S: once, by [setup-a] */
	struct rcu_work		free_work;	/* after close, with a crew */
};

struct parklot_space *parklot_space_create(void);
void parklot_space_destroy(struct parklot_space *space);
int parklot_space_setup(struct parklot_space *space,
			struct parklot_setup *setup);
void parklot_space_interrupt(struct parklot_space *space);

int parklot_lots_join(struct parklot_lots *lots, u32 slot);
void parklot_lots_show(struct parklot_lots *lots, struct seq_file *seq);

/**
 * parklot_space_is_own() - does @space belong to the calling process?
 * @space: any space
 *
 * Return: true if it does.
 */
static inline bool parklot_space_is_own(const struct parklot_space *space)
{
	return space->mm == current->mm;
}

/**
 * parklot_space_lots() - get the result of SETUP
 * @space: any space
 *
 * Return: the lots, or NULL before SETUP.
 */
static inline struct parklot_lots *
parklot_space_lots(struct parklot_space *space)
{
	PARKLOT_INJECT("setup-b");
	/*
	 * [setup-b] pairs with [setup-a] in parklot_space_setup(): a caller
	 * that sees the pointer sees initialized lots.
	 */
	return smp_load_acquire(&space->lots);
}

/**
 * parklot_lots_get() - find the lot that user space calls @nr
 * @lots: the space's lots
 * @nr:   any number
 *
 * Return: the lot, or NULL.
 */
static inline struct parklot_lot *
parklot_lots_get(const struct parklot_lots *lots, u32 nr)
{
	if (nr >= lots->nr_lots)
		return NULL;
	return &lots->lot[array_index_nospec(nr, lots->nr_lots)];
}

#endif /* PARKLOT_SPACE_H */
