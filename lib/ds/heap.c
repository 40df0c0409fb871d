/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * heap: the children of entry i are 4i + 1 ... 4i + 4
 */
#include "ds/heap.h"
#include "base/inject.h"
#include "base/sys.h"

#include <string.h>

#define NR_CHILDREN	4
#define SIZE_MIN	1024

static size_t room_bytes(uint32_t size)
{
	return sizeof(struct pl__heap_room) +
	       size * sizeof(struct pl__heap_entry);
}

/* L: allocates a spare array of @size. */
static bool add_spare(struct pl__heap *h, uint32_t size)
{
	struct pl__heap_room *room;

	room = pl__alloc(room_bytes(size));
	if (!room)
		return false;
	room->size = size;
	pl__free(h->spare);
	h->spare = room;
	PL_INJECT("heap-a");
	/* [heap-a] pairs with pl__heap_reserve(), which relies on it. */
	store_release(&h->size, size);
	return true;
}

/* Doubles the room, so that moving costs a push at most a copy or two. */
bool pl__heap_grow(struct pl__heap *h, uint32_t nr)
{
	uint64_t size = SIZE_MIN;
	bool ok = true;

	while (size < nr)
		size *= 2;
	if (size > UINT32_MAX)
		return false;

	pl__lock(&h->lock);
	if (size > load_relaxed(&h->size))
		ok = add_spare(h, (uint32_t)size);
	pl__unlock(&h->lock);
	return ok;
}

static void heap_move(struct pl__heap *h)
{
	struct pl__heap_room *old = h->room;

	/* [heap-a] pairs with pl__heap_grow(): the pusher has reserved room. */
	pl__lock(&h->lock);
	PL_BUG_ON(!h->spare);
	h->room = h->spare;
	h->spare = NULL;
	pl__unlock(&h->lock);
	if (old)
		memcpy(h->room->entries, old->entries,
		       h->nr * sizeof(old->entries[0]));
	pl__free(old);
}

void pl__heap_fini(struct pl__heap *h)
{
	pl__free(h->spare);
	pl__free(h->room);
}

/* Puts @e at @i, or as far up as its deadline belongs. */
static void sift_up(struct pl__heap_entry *entries, uint32_t i,
		    struct pl__heap_entry e)
{
	uint32_t parent;

	for (; i; i = parent) {
		parent = (i - 1) / NR_CHILDREN;
		if (entries[parent].deadline_ns <= e.deadline_ns)
			break;
		entries[i] = entries[parent];
	}
	entries[i] = e;
}

static uint32_t earliest_child(const struct pl__heap_entry *entries,
			       uint32_t first, uint32_t nr)
{
	uint32_t end = nr - first < NR_CHILDREN ? nr : first + NR_CHILDREN;
	uint32_t i, min = first;

	for (i = first + 1; i < end; i++)
		if (entries[i].deadline_ns < entries[min].deadline_ns)
			min = i;
	return min;
}

/* Puts @e at @i, or as far down as its deadline belongs. */
static void sift_down(struct pl__heap_entry *entries, uint32_t nr, uint32_t i,
		      struct pl__heap_entry e)
{
	uint64_t first;
	uint32_t child;

	/* 64 bits, as 4i may need more than 32. */
	while ((first = (uint64_t)i * NR_CHILDREN + 1) < nr) {
		child = earliest_child(entries, (uint32_t)first, nr);
		if (e.deadline_ns <= entries[child].deadline_ns)
			break;
		entries[i] = entries[child];
		i = child;
	}
	entries[i] = e;
}

void pl__heap_push(struct pl__heap *h, uint64_t deadline_ns, void *ptr)
{
	if (unlikely(!h->room || h->nr == h->room->size))
		heap_move(h);
	sift_up(h->room->entries, h->nr++,
		(struct pl__heap_entry){ deadline_ns, ptr });
}

void *pl__heap_pop(struct pl__heap *h)
{
	struct pl__heap_entry *entries;
	void *ptr;

	if (!h->nr)
		return NULL;
	entries = h->room->entries;
	ptr = entries[0].ptr;
	h->nr--;
	if (h->nr)
		sift_down(entries, h->nr, 0, entries[h->nr]);
	return ptr;
}

void pl__heap_filter(struct pl__heap *h, bool (*keep)(void *ptr, void *arg),
		     void *arg)
{
	struct pl__heap_entry *entries = h->room ? h->room->entries : NULL;
	uint32_t i, nr = 0;

	for (i = 0; i < h->nr; i++)
		if (keep(entries[i].ptr, arg))
			entries[nr++] = entries[i];
	h->nr = nr;

	/* Leaves are heaps; makes heaps of their parents, the last first. */
	for (i = nr > 1 ? (nr - 2) / NR_CHILDREN + 1 : 0; i--;)
		sift_down(entries, nr, i, entries[i]);
}

void pl__heap_swap(struct pl__heap *a, struct pl__heap *b)
{
	struct pl__heap_room *room = a->room, *spare = a->spare;
	uint32_t nr = a->nr, size = load_relaxed(&a->size);

	a->nr = b->nr;
	a->room = b->room;
	a->spare = b->spare;
	store_relaxed(&a->size, load_relaxed(&b->size));
	b->nr = nr;
	b->room = room;
	b->spare = spare;
	store_relaxed(&b->size, size);
}

bool pl__heap_map(struct pl__heap *h, uint32_t size)
{
	struct pl__heap_room *room = pl__map(room_bytes(size));

	if (!room)
		return false;
	room->size = size;
	h->room = room;
	store_relaxed(&h->size, size);
	return true;
}

void pl__heap_unmap(struct pl__heap *h)
{
	if (h->room)
		pl__unmap(h->room, room_bytes(h->room->size));
}
