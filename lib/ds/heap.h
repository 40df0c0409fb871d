/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * heap: the earliest deadline of many, for one thread at a time
 *
 * 4-ary: half as deep as a binary heap, and the four children of an entry are
 * in one or two cache lines.  Deadlines are beside the pointers, so that
 * ordering reads no entry's object.
 *
 * Pushing takes no memory.  Any thread may make room beforehand; the heap's
 * thread moves into it when it has to.
 *
 *	thread that reserves			the heap's thread
 *	spare = new, size = n	[heap-a]	full: move into spare	[heap-a]
 *
 * Invariant: the heap's thread finds the room that was reserved.  size is
 * stored with release after spare; a thread that reads the new size with
 * acquire sees spare set, and passes that on to the heap's thread with its
 * entry.  Otherwise a push finds no room.
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

/*
 * T: the heap's thread.  L: lock is held.  A zero-filled heap is empty, without
 * room.
 */
struct pl__heap {
	uint32_t		nr;		/* T */
	struct pl__heap_room	*room;		/* T */

	/* Seldom written. */
	/* changed under lock; read without */
	_Atomic uint32_t	size __pl_cacheline;
	struct pl__lock		lock;
	struct pl__heap_room	*spare;		/* L: larger array, or NULL */
};

void pl__heap_fini(struct pl__heap *h);

/** pl__heap_grow() - the slow path of pl__heap_reserve() */
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

/** pl__heap_pop() - take the entry with the earliest deadline; NULL: empty */
void *pl__heap_pop(struct pl__heap *h);

/**
 * pl__heap_filter() - remove all entries that @keep refuses
 *
 * Calls it once for each entry; O(n).
 */
void pl__heap_filter(struct pl__heap *h, bool (*keep)(void *ptr, void *arg),
		     void *arg);

/**
 * pl__heap_map() - give an empty heap its only room, of pages
 *
 * It takes memory for what it holds, at most, and is freed by pl__heap_unmap();
 * pl__heap_reserve() and pl__heap_fini() are for other heaps.
 *
 * Return: false: no memory.
 */
bool pl__heap_map(struct pl__heap *h, uint32_t size);
void pl__heap_unmap(struct pl__heap *h);

/** pl__heap_swap() - exchange all of two heaps, which nobody else uses */
void pl__heap_swap(struct pl__heap *a, struct pl__heap *b);

/** pl__heap_deadline() - the earliest deadline; UINT64_MAX if it is empty */
static inline uint64_t pl__heap_deadline(const struct pl__heap *h)
{
	return h->nr ? h->room->entries[0].deadline_ns : UINT64_MAX;
}

/** pl__heap_first() - the entry with that deadline; not of an empty one */
static inline void *pl__heap_first(const struct pl__heap *h)
{
	return h->room->entries[0].ptr;
}

/** pl__heap_is_full() - there is no room for another entry */
static inline bool pl__heap_is_full(const struct pl__heap *h)
{
	return h->nr == load_relaxed(&h->size);
}

#endif /* PL_HEAP_H */
