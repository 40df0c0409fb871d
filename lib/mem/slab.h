/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * slab: objects that are found by number and never unmapped
 *
 * An object's slot is the low half of a handle; the version, which the owner
 * keeps in the object, is the high half.  So that any stale or invented handle
 * can be checked, objects do not move, the slab does not unmap their memory,
 * and between a free and the next alloc only the first member of an object is
 * written: the version survives.
 *
 * Each thread that allocates much has a cache of its own, a plain list that no
 * other thread touches; or several share one under a lock.  Caches and the slab
 * exchange whole batches, chained beforehand, in O(1) under the slab's lock.
 * Each batch says of how many objects it is, so that others may be larger.
 *
 * New objects are carved by whole batches, and a caller without a cache leaves
 * the rest of its batch to others like it.  So a page of new objects, if a
 * batch fills it, is touched by one thread first, and is on the node of that.
 *
 *	thread that carves			any thread with a handle
 *	fill in directory and objects
 *	nr_slots += n		[slab-a]	slot < nr_slots	[slab-a]
 *						look in directory
 *
 * Invariant: a thread that finds its slot below nr_slots finds the directory
 * and the object filled in.  nr_slots is stored with release and read with
 * acquire; otherwise a handle leads to a NULL chunk.
 */
#ifndef PL_SLAB_H
#define PL_SLAB_H

#include "base/base.h"
#include "base/lock.h"

#define PL__SLAB_BATCH		32	/* at first; a cache holds up to two */

/* First member of every object; the object's owner reads only slot. */
struct pl__slab_obj {
	struct pl__slab_obj	*next;
	uint32_t		slot;	/* I: number of the object */
	/* first of a batch: slot + 1 of the next batch's; second: how many */
	uint32_t		batch;
};

/*
 * I: set at init, then read-only.  L: lock is held.  A: written under the lock,
 * read by any thread.
 */
struct pl__slab {
	size_t			obj_size;	/* I */
	uint32_t		max;		/* I: most slots */
	uint32_t		shift;		/* I: log2(slots in a chunk) */
	uint32_t		nr_chunks;	/* I: length of chunks */
	uint32_t		nr_in_batch;	/* L, and users with a cache */
	_Atomic uint32_t	nr_slots;	/* A: slots carved so far */
	_Atomic(char *)		*chunks;	/* A: the directory */

	struct pl__lock		lock __pl_cacheline;
	/* L: slot + 1 of the first batch, or 0 */
	uint32_t		batch;
	struct pl__slab_obj	*singles;	/* L: objects in no batch */
	/* L: new objects, for callers without a cache */
	struct pl__slab_obj	*loose;
};

/* Used by one thread at a time; a zero-filled cache is empty. */
struct pl__slab_cache {
	struct pl__slab_obj	*head;
	uint32_t		nr;
};

/**
 * pl__slab_init() - an empty slab
 * @obj_size: a multiple of 64
 * @max:      most objects that it can have
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int pl__slab_init(struct pl__slab *s, size_t obj_size, uint32_t max);

/**
 * pl__slab_set_batch() - how many objects are exchanged at a time
 * @nr: 2 or more
 *
 * Larger ones take the slab's lock less often, and caches hold more.  No other
 * thread uses the slab with a cache meanwhile.
 */
void pl__slab_set_batch(struct pl__slab *s, uint32_t nr);

/** pl__slab_fini() - free all memory, also of objects that are in use */
void pl__slab_fini(struct pl__slab *s);

/**
 * pl__slab_alloc() - an object, zeroed if it is new, else as it was freed
 * @c: the caller's cache, or NULL
 *
 * Return: the object; NULL if there are @max (objects in caches count), or no
 * memory.
 */
void *pl__slab_alloc(struct pl__slab *s, struct pl__slab_cache *c);

/** pl__slab_free() - give @obj to @c, or to the slab if @c is NULL */
void pl__slab_free(struct pl__slab *s, struct pl__slab_cache *c, void *obj);

/** pl__slab_cache_drain() - give all objects of @c to the slab */
void pl__slab_cache_drain(struct pl__slab *s, struct pl__slab_cache *c);

/**
 * pl__slab_abandon() - in a child of fork(): give up all objects
 *
 * The other threads of the parent may have stopped at any instruction, so the
 * objects carved so far are neither free nor in use; new ones come after them.
 * Returns the number of their slots.
 */
uint32_t pl__slab_abandon(struct pl__slab *s);

/** pl__slab_nr_slots() - slots below this number have objects */
static inline uint32_t pl__slab_nr_slots(struct pl__slab *s)
{
	return load_acquire(&s->nr_slots);
}

/**
 * pl__slab_get() - the object of a slot, free or not; NULL: it never had one
 */
static inline void *pl__slab_get(struct pl__slab *s, uint32_t slot)
{
	char *chunk;

	/* [slab-a] pairs with carve(): the chunk is set. */
	if (unlikely(slot >= load_acquire(&s->nr_slots)))
		return NULL;
	chunk = load_relaxed(&s->chunks[slot >> s->shift]);
	return chunk + (slot & ((1U << s->shift) - 1)) * s->obj_size;
}

/** pl__slab_find() - the object that @p points into; NULL: none */
void *pl__slab_find(struct pl__slab *s, const void *p);

#endif /* PL_SLAB_H */
