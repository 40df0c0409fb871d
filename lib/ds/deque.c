/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "ds/deque.h"
#include "base/sys.h"

#include <string.h>
#include <sys/mman.h>

#define LEN_MIN		16
#define LEN_MAX		((int64_t)1 << 40)

static struct pl__deque_array *new_array(int64_t len)
{
	struct pl__deque_array *a;

	if (len > LEN_MAX)
		return NULL;
	a = pl__alloc(sizeof(*a) + (size_t)len * sizeof(a->slots[0]));
	if (a)
		a->mask = len - 1;
	return a;
}

int pl__deque_init(struct pl__deque *d, size_t nr)
{
	struct pl__deque_array *a;
	int64_t len = LEN_MIN;

	while (len < LEN_MAX && (size_t)len < nr)
		len *= 2;
	a = new_array(len);
	if (!a)
		return -ENOMEM;
	memset(d, 0, sizeof(*d));
	d->smallest = a;
	store_relaxed(&d->array, a);
	return 0;
}

void pl__deque_fini(struct pl__deque *d)
{
	struct pl__deque_array *a, *larger;

	for (a = d->smallest; a; a = larger) {
		larger = a->larger;
		pl__free(a);
	}
	d->smallest = NULL;
	store_relaxed(&d->array, NULL);
}

bool pl__deque_grow(struct pl__deque *d, int64_t top, int64_t bottom)
{
	struct pl__deque_array *old = load_relaxed(&d->array);
	struct pl__deque_array *a = old->larger;
	int64_t i;

	if (!a)
		a = old->larger = new_array(2 * (old->mask + 1));
	if (!a)
		return false;
	/*
	 * Thieves may take [top, ...) meanwhile: then the copies are not used.
	 */
	for (i = top; i < bottom; i++)
		store_relaxed(&a->slots[i & a->mask],
			      load_relaxed(&old->slots[i & old->mask]));
	PL_INJECT("deque-c");
	/*
	 * [deque-c] pairs with pl__deque_steal_once(): the thief sees the
	 * copies.
	 */
	store_release(&d->array, a);
	return true;
}

bool pl__deque_push(struct pl__deque *d, void *p)
{
	int64_t bottom = load_relaxed(&d->bottom);

	/* [deque-e] pairs with pl__deque_steal_once(). */
	d->top_seen = load_acquire(&d->top);
	PL_INJECT("deque-e");
	if (bottom - d->top_seen > load_relaxed(&d->array)->mask &&
	    !pl__deque_grow(d, d->top_seen, bottom))
		return false;
	pl__deque_put(d, bottom, load_relaxed(&d->array), p);
	return true;
}

/*
 * Gives back the pages that contain only slots, with contents that do not
 * matter.
 */
static void give_back(struct pl__deque_array *a)
{
	uintptr_t page = pl__page_size();
	uintptr_t begin = (uintptr_t)a->slots + page - 1;
	uintptr_t end = (uintptr_t)&a->slots[a->mask + 1] & ~(page - 1);

	begin &= ~(page - 1);
	/*
	 * In parentheses, so not the macro: this takes nothing, so it cannot
	 * fail.
	 */
	(pl__advise)((void *)begin, end - begin, MADV_DONTNEED);
}

void pl__deque_shrink(struct pl__deque *d)
{
	struct pl__deque_array *a = d->smallest;
	struct pl__deque_array *last = load_relaxed(&d->array);

	/*
	 * [deque-e] pairs with pl__deque_steal_once(): thieves have read all
	 * slots.
	 */
	d->top_seen = load_acquire(&d->top);
	PL_INJECT("deque-e");
	if (d->top_seen < load_relaxed(&d->bottom))
		return;
	while (a->larger && a->larger->mask < PL__DEQUE_KEEP)
		a = a->larger;
	/* [deque-c] pairs with pl__deque_steal_once(): as after growing. */
	store_release(&d->array, a);
	PL_INJECT("deque-c");
	for (; a != last; a = a->larger)
		give_back(a->larger);
}
