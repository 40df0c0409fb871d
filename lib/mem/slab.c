/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "mem/slab.h"
#include "base/inject.h"
#include "base/sys.h"

#include <string.h>

#define CHUNK_SIZE	(512UL << 10)	/* bytes, about; touched when carved */

int pl__slab_init(struct pl__slab *s, size_t obj_size, uint32_t max)
{
	if (!obj_size || obj_size % 64 || obj_size > CHUNK_SIZE || !max)
		return -EINVAL;

	memset(s, 0, sizeof(*s));
	s->obj_size = obj_size;
	s->max = max;
	s->nr_in_batch = PL__SLAB_BATCH;
	while (obj_size << (s->shift + 1) <= CHUNK_SIZE)
		s->shift++;
	s->nr_chunks = ((max - 1) >> s->shift) + 1;
	s->chunks = pl__map(s->nr_chunks * sizeof(*s->chunks));
	return s->chunks ? 0 : -ENOMEM;
}

void pl__slab_set_batch(struct pl__slab *s, uint32_t nr)
{
	pl__lock(&s->lock);
	s->nr_in_batch = nr;
	pl__unlock(&s->lock);
}

void pl__slab_fini(struct pl__slab *s)
{
	char *chunk;
	uint32_t i;

	for (i = 0; i < s->nr_chunks; i++) {
		chunk = load_relaxed(&s->chunks[i]);
		if (!chunk)
			break;
		pl__unmap(chunk, s->obj_size << s->shift);
	}
	pl__unmap(s->chunks, s->nr_chunks * sizeof(*s->chunks));
	s->chunks = NULL;
}

uint32_t pl__slab_abandon(struct pl__slab *s)
{
	s->lock = (struct pl__lock){ 0 };
	s->batch = 0;
	s->singles = NULL;
	s->loose = NULL;
	return load_relaxed(&s->nr_slots);
}

/* L: the chunk in which the next slot is. */
static char *next_chunk(struct pl__slab *s, uint32_t slot)
{
	uint32_t i = slot >> s->shift;
	char *chunk = load_relaxed(&s->chunks[i]);

	if (chunk)
		return chunk;
	chunk = pl__map(s->obj_size << s->shift);
	store_relaxed(&s->chunks[i], chunk);
	return chunk;
}

/* L: a chain of up to a batch of new objects, all of one chunk. */
static struct pl__slab_obj *carve(struct pl__slab *s, uint32_t *carved)
{
	uint32_t first = load_relaxed(&s->nr_slots), nr = s->nr_in_batch;
	uint32_t left = (1U << s->shift) - (first & ((1U << s->shift) - 1));
	struct pl__slab_obj *obj = NULL, *head = NULL;
	char *chunk;
	uint32_t i;

	nr = nr < left ? nr : left;
	nr = nr < s->max - first ? nr : s->max - first;
	chunk = nr ? next_chunk(s, first) : NULL;
	*carved = chunk ? nr : 0;
	if (!chunk)
		return NULL;

	for (i = nr; i--; head = obj) {
		size_t nth = (first + i) & ((1U << s->shift) - 1);

		obj = (struct pl__slab_obj *)(chunk + nth * s->obj_size);
		obj->next = head;
		obj->slot = first + i;
	}
	PL_INJECT("slab-a");
	/*
	 * [slab-a] pairs with pl__slab_get(): an object found there is
	 * complete.
	 */
	store_release(&s->nr_slots, first + nr);
	return head;
}

/* L: the first object of the first batch, its chain behind it. */
static struct pl__slab_obj *pop_batch(struct pl__slab *s)
{
	struct pl__slab_obj *head;

	if (!s->batch)
		return NULL;
	head = pl__slab_get(s, s->batch - 1);
	s->batch = head->batch;
	return head;
}

static void push_batch(struct pl__slab *s, struct pl__slab_obj *head,
		       uint32_t nr)
{
	head->next->batch = nr;
	pl__lock(&s->lock);
	head->batch = s->batch;
	s->batch = head->slot + 1;
	pl__unlock(&s->lock);
}

/* L: up to a batch of the objects of @list, as a chain. */
static struct pl__slab_obj *pop_some(struct pl__slab *s,
				     struct pl__slab_obj **list, uint32_t *nr)
{
	struct pl__slab_obj *head = *list, *last = head;

	*nr = 0;
	if (!head)
		return NULL;
	for (*nr = 1; *nr < s->nr_in_batch && last->next; (*nr)++)
		last = last->next;
	*list = last->next;
	last->next = NULL;
	return head;
}

static void refill(struct pl__slab *s, struct pl__slab_cache *c)
{
	pl__lock(&s->lock);
	c->head = pop_batch(s);
	if (c->head)
		c->nr = c->head->next->batch;
	else
		c->head = pop_some(s, &s->singles, &c->nr);
	if (!c->head)
		c->head = carve(s, &c->nr);
	/* There is nothing else. */
	if (unlikely(!c->head))
		c->head = pop_some(s, &s->loose, &c->nr);
	pl__unlock(&s->lock);
}

static struct pl__slab_obj *alloc_one(struct pl__slab *s)
{
	struct pl__slab_obj **from = &s->singles, *obj;
	uint32_t carved;

	pl__lock(&s->lock);
	if (!*from)
		*from = pop_batch(s);
	if (!*from)
		from = &s->loose;
	if (!*from)
		*from = carve(s, &carved);
	obj = *from;
	if (obj)
		*from = obj->next;
	pl__unlock(&s->lock);
	return obj;
}

void *pl__slab_alloc(struct pl__slab *s, struct pl__slab_cache *c)
{
	struct pl__slab_obj *obj;

	if (!c)
		return alloc_one(s);
	if (unlikely(!c->head))
		refill(s, c);
	obj = c->head;
	if (likely(obj)) {
		c->head = obj->next;
		c->nr--;
	}
	return obj;
}

/*
 * Keeps the newest objects, which are warm in the caches; gives the rest to the
 * slab.
 */
static void spill(struct pl__slab *s, struct pl__slab_cache *c)
{
	struct pl__slab_obj *last = c->head, *rest;
	uint32_t nr = s->nr_in_batch, i;

	for (i = 1; i < nr; i++)
		last = last->next;
	rest = last->next;
	last->next = NULL;
	push_batch(s, rest, c->nr - nr);
	c->nr = nr;
}

static void free_chain(struct pl__slab *s, struct pl__slab_obj *first,
		       struct pl__slab_obj *last)
{
	pl__lock(&s->lock);
	last->next = s->singles;
	s->singles = first;
	pl__unlock(&s->lock);
}

void pl__slab_free(struct pl__slab *s, struct pl__slab_cache *c, void *p)
{
	struct pl__slab_obj *obj = p;

	if (!c) {
		free_chain(s, obj, obj);
		return;
	}
	if (unlikely(c->nr >= 2 * s->nr_in_batch))
		spill(s, c);
	obj->next = c->head;
	c->head = obj;
	c->nr++;
}

void pl__slab_cache_drain(struct pl__slab *s, struct pl__slab_cache *c)
{
	struct pl__slab_obj *last = c->head;

	if (!last)
		return;
	while (last->next)
		last = last->next;
	free_chain(s, c->head, last);
	c->head = NULL;
	c->nr = 0;
}

void *pl__slab_find(struct pl__slab *s, const void *p)
{
	uint32_t nr = pl__slab_nr_slots(s), in_chunk = 1U << s->shift, slot;
	uintptr_t offset;
	char *chunk;

	for (slot = 0; slot < nr; slot += in_chunk) {
		chunk = pl__slab_get(s, slot);
		offset = (uintptr_t)p - (uintptr_t)chunk;
		if (offset < s->obj_size * in_chunk)
			return chunk + offset / s->obj_size * s->obj_size;
	}
	return NULL;
}
