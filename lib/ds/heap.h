/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * heap: the earliest deadline of many, for one thread
 *
 * 4-ary: half as deep as a binary one, and the four children of an entry lie
 * in one or two cache lines.  Deadlines stand beside the pointers, so that
 * no entry is looked into for ordering.
 *
 * Pushing takes no memory.  Anybody may make room beforehand, the heap's
 * thread moves into it when it must.
 *
 *	who will push through the thread	the heap's thread
 *	spare = new, size = n	[heap-a]	full: move into spare	[heap-a]
 */
#ifndef PL_HEAP_H
#define PL_HEAP_H

#include "base/base.h"
#include "base/lock.h"

struct pl__heap_entry {
	uint64_t		deadline_ns;
	void			*ptr;
};

struct pl__heap_room {
	uint32_t		size;
	struct pl__heap_entry	entries[];
};

/* T: the heap's thread.  L: lock held.  Zero-filled is empty, without room. */
struct pl__heap {
	uint32_t		nr;		/* T */
	struct pl__heap_room	*room;		/* T */

	/* Seldom written. */
	_Atomic uint32_t	size __pl_cacheline;	/* written under L */
	struct pl__lock		lock;
	struct pl__heap_room	*spare;		/* L: to move into */
};

void pl__heap_fini(struct pl__heap *h);

/** pl__heap_grow() - pl__heap_reserve()'s slow half */
bool pl__heap_grow(struct pl__heap *h, uint32_t nr);

/**
 * pl__heap_reserve() - make sure that the heap can hold @nr entries
 *
 * Context: any thread.
 * Return: false: no memory.
 */
static inline bool pl__heap_reserve(struct pl__heap *h, uint32_t nr)
{
	/* [heap-a] pairs with pl__heap_grow(): spare is set. */
	return likely(load_acquire(&h->size) >= nr) || pl__heap_grow(h, nr);
}

/** pl__heap_push() - add an entry; room was reserved */
void pl__heap_push(struct pl__heap *h, uint64_t deadline_ns, void *ptr);

/** pl__heap_pop() - take an entry of the earliest deadline; NULL: empty */
void *pl__heap_pop(struct pl__heap *h);

/**
 * pl__heap_filter() - throw out all that @keep says no to
 *
 * Asks once for each entry; O(n).
 */
void pl__heap_filter(struct pl__heap *h, bool (*keep)(void *ptr, void *arg),
		     void *arg);

/** pl__heap_deadline() - the earliest; UINT64_MAX if it is empty */
static inline uint64_t pl__heap_deadline(const struct pl__heap *h)
{
	return h->nr ? h->room->entries[0].deadline_ns : UINT64_MAX;
}

#endif /* PL_HEAP_H */
