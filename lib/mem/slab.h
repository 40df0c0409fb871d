/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * slab: objects that are found by number, and never go away
 *
 * An object's slot is the low half of a handle; the version, which its owner
 * keeps in the object, is the high half.  So that any stale or invented
 * handle may be looked at, objects never move, their memory is never given
 * back while the slab lives, and nothing in them but the first member is
 * touched between free and the next alloc: the version survives.
 *
 * Each thread that allocates much has a cache of its own, a plain list that
 * no one else touches.  Caches and the slab exchange whole batches, chained
 * beforehand, in O(1) under the lock.
 *
 *	thread that carves			any thread with a handle
 *	fill in directory and objects
 *	nr_slots += n		[slab-a]	slot < nr_slots	[slab-a]
 *						look in directory
 */
#ifndef PL_SLAB_H
#define PL_SLAB_H

#include "base/base.h"
#include "base/lock.h"

#define PL__SLAB_BATCH		32	/* a cache holds up to two */

/* First member of every object; the object's owner reads slot only. */
struct pl__slab_obj {
	struct pl__slab_obj	*next;
	uint32_t		slot;	/* I */
	uint32_t		batch;	/* of a batch's first: the next batch */
};

/*
 * I: set at init, then read-only.  L: lock held.  A: written under the lock,
 * read by anybody.
 */
struct pl__slab {
	size_t			obj_size;	/* I */
	uint32_t		max;		/* I: slots at most */
	uint32_t		shift;		/* I: log2(slots in a chunk) */
	uint32_t		nr_chunks;	/* I: length of chunks */
	_Atomic uint32_t	nr_slots;	/* A: carved so far */
	_Atomic(char *)		*chunks;	/* A: the directory */

	struct pl__lock		lock __pl_cacheline;
	uint32_t		batch;		/* L: slot + 1 of the first */
	struct pl__slab_obj	*singles;	/* L: those in no batch */
};

/* Used by one thread at a time; zero-filled is empty. */
struct pl__slab_cache {
	struct pl__slab_obj	*head;
	uint32_t		nr;
};

/**
 * pl__slab_init() - an empty slab
 * @obj_size: a multiple of 64
 * @max:      how many objects there may be
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int pl__slab_init(struct pl__slab *s, size_t obj_size, uint32_t max);

/** pl__slab_fini() - gives all memory back, whoever holds objects */
void pl__slab_fini(struct pl__slab *s);

/**
 * pl__slab_alloc() - an object, zeroed if it is new, else as it was freed
 * @c: the caller's cache, or NULL
 *
 * Return: the object; NULL if there are @max (those in caches count), or no
 * memory.
 */
void *pl__slab_alloc(struct pl__slab *s, struct pl__slab_cache *c);

/** pl__slab_free() - gives @obj back to @c, or to all if that is NULL */
void pl__slab_free(struct pl__slab *s, struct pl__slab_cache *c, void *obj);

/** pl__slab_cache_drain() - lets everybody have what @c holds */
void pl__slab_cache_drain(struct pl__slab *s, struct pl__slab_cache *c);

/**
 * pl__slab_abandon() - whoever had to do with it is gone, whatever they did
 *
 * What there was is neither free nor anybody's: how many slots.  New ones come
 * after those.
 */
uint32_t pl__slab_abandon(struct pl__slab *s);

/** pl__slab_nr_slots() - slots [0, this) have objects */
static inline uint32_t pl__slab_nr_slots(struct pl__slab *s)
{
	return load_acquire(&s->nr_slots);
}

/** pl__slab_get() - the object of a slot, free or not; NULL: never had one */
static inline void *pl__slab_get(struct pl__slab *s, uint32_t slot)
{
	char *chunk;

	/* [slab-a] pairs with the publisher, carve(): chunk is set. */
	if (unlikely(slot >= load_acquire(&s->nr_slots)))
		return NULL;
	chunk = load_relaxed(&s->chunks[slot >> s->shift]);
	return chunk + (slot & ((1U << s->shift) - 1)) * s->obj_size;
}

/** pl__slab_find() - the object that @p points into; NULL: none does */
void *pl__slab_find(struct pl__slab *s, const void *p);

#endif /* PL_SLAB_H */
