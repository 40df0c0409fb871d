/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * stack_pool: stacks of one class that no task uses, and the areas of all
 */
#ifndef PL_STACK_POOL_H
#define PL_STACK_POOL_H

#include "mem/stack.h"
#include "base/list.h"
#include "base/lock.h"

#define PL__STACK_AT_ONCE	16		/* stacks cleaned at once */
#define PL__STACK_BYTES_AT_ONCE	(4UL << 20)	/* or stacks of so many bytes */

/* L: the pool's lock is held.  I: set at init, then read-only. */
struct pl__stack_area {
	struct pl__list		list;		/* L: in areas or full */
	char			*base;		/* I */
	/* L: a bit for each idle stack that is not being cleaned */
	uint64_t		idle;
	uint64_t		dirty;	/* L: idle stacks that have memory */
	uint64_t		guarded; /* I: stacks with a guard */
	/* I: valgrind's ids, under valgrind only */
	uint32_t		valgrind[];
};

struct pl__stack_pool {
	struct pl__lock		lock __pl_cacheline;
	struct pl__stack	*warm;		/* L: stacks, last put first */
	_Atomic uint32_t	nr_warm; /* changed under lock; read without */
	uint32_t		nr_low;	/* L: least nr_warm since last aging */
	/* aging thread: warm ones to give back */
	uint32_t		nr_unused;
	struct pl__list		areas;	/* L: with idle stacks; dirty first */
	struct pl__list		full;		/* L: without idle stacks */
	size_t			size; /* I: bytes of a stack, of its guard */
	uint32_t		cls;		/* I: enum pl_stack */
	uint32_t		nr_per_area;	/* I */
	/* I: most stacks in a worker's cache */
	uint32_t		nr_cached;
	/* I: with more warm stacks, aging gives some back */
	uint32_t		nr_warm_max;
	uint32_t		nr_at_once; /* I: most stacks cleaned at once */
	/* L: threads that clean stacks or unmap areas */
	uint32_t		nr_cleaning;
};

/* Of a stack with its guard, which is as wide. */
static inline size_t pl__stack_slot_size(const struct pl__stack_pool *p)
{
	return 2 * p->size;
}

/* The lowest byte of the guard of stack @i. */
static inline char *pl__stack_slot_at(const struct pl__stack_pool *p,
		     const struct pl__stack_area *a, uint32_t i)
{
	return a->base + i * pl__stack_slot_size(p);
}

static inline size_t pl__stack_area_size(const struct pl__stack_pool *p)
{
	return pl__stack_slot_size(p) * p->nr_per_area;
}

static inline uint64_t pl__stack_all_of(const struct pl__stack_pool *p)
{
	return p->nr_per_area == 64 ? UINT64_MAX :
				      (1ULL << p->nr_per_area) - 1;
}

/*
 * Under the lock: puts @a into the list of its kind.  Cleaners look for dirty
 * areas in front.
 */
void pl__stack_area_place(struct pl__stack_pool *p, struct pl__stack_area *a);

/* Unmaps an area that is in no list. */
void pl__stack_area_free(struct pl__stack_pool *p, struct pl__stack_area *a);

#endif /* PL_STACK_POOL_H */
