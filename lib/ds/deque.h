/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * deque: a run queue; its owner pushes and pops at one end, thieves steal
 *
 * Chase and Lev's, as proven for weak memory by Le, Pop, Cohen and Zappa
 * Nardelli, with seq_cst accesses in place of fences: TSan understands them,
 * and they cost the same or less.  Elements [top, bottom) are in the deque.
 * Only the owner changes bottom; top only grows, and the thread that increments
 * it has the element.  Invariant: one thread takes the last element:
 *
 *	owner's pop			thief
 *	bottom = n	[deque-a]	t = top			[deque-b]
 *	t = top		[deque-a]	if (t < bottom)		[deque-b]
 *	if (t < n)				top = t + 1
 *		take n without a CAS
 *
 * Could the owner read a top below n, take n without a compare-and-swap, and a
 * thief still take n?  That thief read top as n, so top had become n before;
 * then it read bottom as above n.  All four accesses are seq_cst, so the thief
 * read bottom before the owner lowered it, and the owner read top after that:
 * it would have found n.  At t == n both sides use a compare-and-swap of top;
 * so does the owner at once, without lowering bottom, if it sees that n is the
 * only element.
 *
 *	owner's push, full		thief
 *	copy into new array		t = top
 *	array = new	[deque-c]	if (t < bottom)		[deque-d]
 *	a[n] = p				p = array[t]	[deque-c]
 *	bottom = n + 1	[deque-d]		top = t + 1	[deque-e]
 *
 * A thief that read bottom as above n sees the element, and the array that has
 * it [deque-d].  A thief with an old array finds the copied element there, as
 * long as the element is in the queue.  The owner reuses a slot only after it
 * saw top beyond the slot's element; so a thief that reads the slot too late
 * fails to increment top [deque-e].  Otherwise a thief takes an element twice,
 * or one that was never pushed.
 *
 * So no array has an element while the owner sees the queue empty.  Then the
 * owner returns to a small array, and gives back the pages of the larger ones;
 * their addresses stay mapped, for late thieves, until fini.
 *
 * The owner's push and pop are wait-free, except for growing; a steal fails
 * only because another thread took the element.
 */
#ifndef PL_DEQUE_H
#define PL_DEQUE_H

#include "base/base.h"
#include "base/inject.h"

/* Attempts of pl__deque_steal(). */
#define PL__DEQUE_TRIES		16

/* Slots of an array that is too small to be worth giving back. */
#define PL__DEQUE_KEEP		4096

struct pl__deque_array {
	struct pl__deque_array	*larger;	/* O: twice as long, or NULL */
	int64_t			mask;		/* I: length - 1 */
	_Atomic(void *)		slots[];	/* O writes, thieves read */
};

/* O: only the owner.  W: written by the owner, read by thieves. */
struct pl__deque {
	/*
	 * Thieves write this cache line; the owner writes it only at the last
	 * element.
	 */
	_Atomic int64_t		top __pl_cacheline;

	/* The owner's cache line. */
	_Atomic int64_t		bottom __pl_cacheline;		/* W */
	_Atomic(struct pl__deque_array *) array;		/* W */
	int64_t			top_seen;	/* O: an earlier value of top */
	struct pl__deque_array	*smallest;			/* O */
};

/** pl__deque_init() - empty, with room for @nr; 0 or -ENOMEM */
int pl__deque_init(struct pl__deque *d, size_t nr);
void pl__deque_fini(struct pl__deque *d);

/* Owner: doubles the room; false: no memory, and nothing changed. */
bool pl__deque_grow(struct pl__deque *d, int64_t top, int64_t bottom);

/* Owner: pushes @p; the caller has made sure that there is room. */
static inline void pl__deque_put(struct pl__deque *d, int64_t bottom,
				 struct pl__deque_array *a, void *p)
{
	store_relaxed(&a->slots[bottom & a->mask], p);
	PL_INJECT("deque-d");
	/* [deque-d] pairs with pl__deque_steal_once(): element, array. */
	store_release(&d->bottom, bottom + 1);
}

/* Owner: as pl__deque_push(), but false also if the deque only looks full. */
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
 * pl__deque_pop() - take the newest element; NULL: empty
 *
 * Context: the owner.
 */
static inline void *pl__deque_pop(struct pl__deque *d)
{
	int64_t n = load_relaxed(&d->bottom) - 1;
	struct pl__deque_array *a = load_relaxed(&d->array);
	int64_t top;
	void *p;

	/*
	 * Top only grows: if the deque looks empty to the owner, it is empty.
	 */
	top = load_relaxed(&d->top);
	PL_SIM_POINT("deque-pop");
	if (top > n)
		return NULL;
	/*
	 * The only element: bottom may stay, whichever thread increments top.
	 */
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

	/* The last element, or none: the thread that increments top has it. */
	if (top > n || !atomic_compare_exchange_strong(&d->top, &top, top + 1))
		p = NULL;
	store_release(&d->bottom, n + 1);
	return p;
}

/**
 * pl__deque_steal_once() - take the oldest element, unless another thread does
 * @lost: set to whether another thread took it; NULL without that: empty
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
	/*
	 * [deque-e] pairs with pl__deque_push(): the thief has read p before.
	 */
	if (atomic_compare_exchange_strong(&d->top, &top, top + 1))
		return p;
	*lost = true;
	return NULL;
}

/**
 * pl__deque_steal() - take the oldest element, retrying after each lost race
 *
 * Context: any thread.
 * Return: NULL if the deque was empty, or other threads took PL__DEQUE_TRIES
 * elements meanwhile: then it is probably not empty.  A worker that goes to
 * sleep after NULL calls pl__deque_empty() first, as it must anyway.
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

/* The slow path of pl__deque_trim(). */
void pl__deque_shrink(struct pl__deque *d);

/**
 * pl__deque_trim() - give back the memory of a long queue that is now empty
 *
 * Context: the owner, when it has no work.
 */
static inline void pl__deque_trim(struct pl__deque *d)
{
	if (unlikely(load_relaxed(&d->array)->mask >= PL__DEQUE_KEEP))
		pl__deque_shrink(d);
}

/** pl__deque_len() - a hint; exact for the owner while no thief steals */
static inline size_t pl__deque_len(struct pl__deque *d)
{
	int64_t top = atomic_load(&d->top);
	int64_t bottom = atomic_load(&d->bottom);

	return bottom > top ? (size_t)(bottom - top) : 0;
}

/**
 * pl__deque_empty() - a hint
 *
 * Reads with seq_cst: if a push and a later seq_cst access of its owner come
 * before this read, it returns false, unless the element was taken.
 */
static inline bool pl__deque_empty(struct pl__deque *d)
{
	return !pl__deque_len(d);
}

#endif /* PL_DEQUE_H */
