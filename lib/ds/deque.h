/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * deque: a run queue; its owner pushes and pops at one end, others steal
 *
 * Chase and Lev's, as proven for weak memory by Le, Pop, Cohen and Zappa
 * Nardelli, with seq_cst accesses in place of fences: TSan understands them,
 * and they cost the same or less.  Elements [top, bottom) are in it.  Only
 * the owner moves bottom; top only grows, and whoever moves it has the
 * element.  Above all, the last element is taken by one:
 *
 *	owner's pop			thief
 *	bottom = n	[deque-a]	t = top			[deque-b]
 *	t = top		[deque-a]	if (t < bottom)		[deque-b]
 *	if (t < n)				top = t + 1
 *		take n, no need to ask
 *
 * Could the owner read a top below n, take n without asking, and a thief
 * still take n?  That thief read top as n, so top had become n before it; then
 * it read bottom as above n.  All four are seq_cst, so that bottom was read
 * before the owner lowered it, and the owner's read of top came after that:
 * it would have found n.  At t == n both ask, by compare-and-swap of top; as
 * the owner does at once, and leaves bottom, if it sees that n is all there is.
 *
 *	owner's push, full		thief
 *	copy into new array		t = top
 *	array = new	[deque-c]	if (t < bottom)		[deque-d]
 *	a[n] = p				p = array[t]	[deque-c]
 *	bottom = n + 1	[deque-d]		top = t + 1	[deque-e]
 *
 * A thief that read bottom as above n sees the element, and the array that
 * has it [deque-d].  One that holds an old array finds there what was copied,
 * as long as that is in the queue.  A slot is written anew only when the owner
 * saw top beyond what it held; then the thief that reads it too late fails to
 * move top [deque-e].
 *
 * So a queue that the owner sees empty holds nothing in any array.  Then it
 * goes back to a small one, and gives back the pages of those that it grew
 * into; their addresses stay, for thieves that are late, until fini.
 *
 * The owner's push and pop are wait-free, but for growing; a steal fails only
 * because another one took the element.
 */
#ifndef PL_DEQUE_H
#define PL_DEQUE_H

#include "base/base.h"
#include "base/inject.h"

/* In pl__deque_steal(). */
#define PL__DEQUE_TRIES		16

/* So many slots are not worth to be given back. */
#define PL__DEQUE_KEEP		4096

struct pl__deque_array {
	struct pl__deque_array	*larger;	/* O: twice as long, or NULL */
	int64_t			mask;		/* I: length - 1 */
	_Atomic(void *)		slots[];	/* O writes, thieves read */
};

/* O: the owner alone.  W: written by the owner, read by thieves. */
struct pl__deque {
	/* Thieves write this line, the owner only at the last element. */
	_Atomic int64_t		top __pl_cacheline;

	/* The owner's line. */
	_Atomic int64_t		bottom __pl_cacheline;		/* W */
	_Atomic(struct pl__deque_array *) array;		/* W */
	int64_t			top_seen;			/* O: <= top */
	struct pl__deque_array	*smallest;			/* O */
};

/** pl__deque_init() - empty, with room for @nr; 0 or -ENOMEM */
int pl__deque_init(struct pl__deque *d, size_t nr);
void pl__deque_fini(struct pl__deque *d);

/* Twice the room, or false: no memory, nothing changed.  Owner. */
bool pl__deque_grow(struct pl__deque *d, int64_t top, int64_t bottom);

/* There is room.  Owner. */
static inline void pl__deque_put(struct pl__deque *d, int64_t bottom,
				 struct pl__deque_array *a, void *p)
{
	store_relaxed(&a->slots[bottom & a->mask], p);
	PL_INJECT("deque-d");
	/* [deque-d] pairs with pl__deque_steal_once(): element, array. */
	store_release(&d->bottom, bottom + 1);
}

/* The same as pl__deque_push(); false if it looks full, too.  Owner. */
static inline bool pl__deque_try_push(struct pl__deque *d, void *p)
{
	int64_t bottom = load_relaxed(&d->bottom);
	struct pl__deque_array *a = load_relaxed(&d->array);

	if (unlikely(bottom - d->top_seen > a->mask))
		return false;
	pl__deque_put(d, bottom, a, p);
	return true;
}

/**
 * pl__deque_push() - add @p, which is not NULL, at the owner's end
 *
 * Context: the owner.
 * Return: false if it is full and there is no memory to let it grow.
 */
bool pl__deque_push(struct pl__deque *d, void *p);

/**
 * pl__deque_pop() - take the newest; NULL: empty
 *
 * Context: the owner.
 */
static inline void *pl__deque_pop(struct pl__deque *d)
{
	int64_t n = load_relaxed(&d->bottom) - 1;
	struct pl__deque_array *a = load_relaxed(&d->array);
	int64_t top;
	void *p;

	/* Top only grows: what looks empty to the owner is empty. */
	top = load_relaxed(&d->top);
	if (top > n)
		return NULL;
	/* Nor is there more than one: bottom may stay, whoever moves top. */
	if (top == n) {
		p = load_relaxed(&a->slots[n & a->mask]);
		PL_INJECT("deque-a");
		return atomic_compare_exchange_strong(&d->top, &top, top + 1) ?
		       p : NULL;
	}

	/* [deque-a] pairs with [deque-b] in pl__deque_steal_once(). */
	atomic_store(&d->bottom, n);
	PL_INJECT("deque-a");
	top = atomic_load(&d->top);
	p = load_relaxed(&a->slots[n & a->mask]);
	if (top < n)
		return p;

	/* The last one, or it is gone: whoever moves top has it. */
	if (top > n || !atomic_compare_exchange_strong(&d->top, &top, top + 1))
		p = NULL;
	store_release(&d->bottom, n + 1);
	return p;
}

/**
 * pl__deque_steal_once() - take the oldest, unless somebody else just does
 * @lost: set to whether NULL is because of that; else it is empty
 *
 * Context: any thread.
 */
static inline void *pl__deque_steal_once(struct pl__deque *d, bool *lost)
{
	struct pl__deque_array *a;
	int64_t top;
	void *p;

	*lost = false;
	/* [deque-b] pairs with [deque-a] in pl__deque_pop(). */
	top = atomic_load(&d->top);
	PL_INJECT("deque-b");
	/* [deque-d] pairs with pl__deque_put(). */
	if (top >= atomic_load(&d->bottom))
		return NULL;

	/* [deque-c] pairs with pl__deque_grow(). */
	a = load_acquire(&d->array);
	PL_INJECT("deque-c");
	p = load_relaxed(&a->slots[top & a->mask]);
	PL_INJECT("deque-e");
	/* [deque-e] pairs with pl__deque_push(): p was read before. */
	if (atomic_compare_exchange_strong(&d->top, &top, top + 1))
		return p;
	*lost = true;
	return NULL;
}

/**
 * pl__deque_steal() - take the oldest, trying again for each race lost
 *
 * Context: any thread.
 * Return: NULL if it was seen empty, or others took PL__DEQUE_TRIES elements
 * while we tried: it is then not empty for certain.  Who goes to sleep on that
 * asks pl__deque_empty() first, as he must anyway.
 */
static inline void *pl__deque_steal(struct pl__deque *d)
{
	bool lost;
	void *p;
	int i;

	for (i = 0; i < PL__DEQUE_TRIES; i++) {
		p = pl__deque_steal_once(d, &lost);
		if (p || !lost)
			return p;
		pl__cpu_relax();
	}
	return NULL;
}

/* pl__deque_trim()'s slow half. */
void pl__deque_shrink(struct pl__deque *d);

/**
 * pl__deque_trim() - give back the memory of a long queue that is now empty
 *
 * Context: the owner, when it has nothing to do.
 */
static inline void pl__deque_trim(struct pl__deque *d)
{
	if (unlikely(load_relaxed(&d->array)->mask >= PL__DEQUE_KEEP))
		pl__deque_shrink(d);
}

/** pl__deque_len() - a hint; exact to the owner while nobody steals */
static inline size_t pl__deque_len(struct pl__deque *d)
{
	int64_t top = atomic_load(&d->top);
	int64_t bottom = atomic_load(&d->bottom);

	return bottom > top ? (size_t)(bottom - top) : 0;
}

/**
 * pl__deque_empty() - a hint
 *
 * It is a seq_cst look: a push, then a seq_cst access by its owner, then this
 * in the order of those says false, unless the element was taken.
 */
static inline bool pl__deque_empty(struct pl__deque *d)
{
	return !pl__deque_len(d);
}

#endif /* PL_DEQUE_H */
