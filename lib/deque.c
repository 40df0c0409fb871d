/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "deque.h"
#include "sys.h"

#include <string.h>

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
	store_relaxed(&d->array, a);
	return 0;
}

void pl__deque_fini(struct pl__deque *d)
{
	struct pl__deque_array *a, *older;

	for (a = load_relaxed(&d->array); a; a = older) {
		older = a->older;
		pl__free(a);
	}
	store_relaxed(&d->array, NULL);
}

bool pl__deque_grow(struct pl__deque *d, int64_t top, int64_t bottom)
{
	struct pl__deque_array *old = load_relaxed(&d->array);
	struct pl__deque_array *a = new_array(2 * (old->mask + 1));
	int64_t i;

	if (!a)
		return false;
	/* [top, ...) may be stolen meanwhile: copied for nothing, no harm. */
	for (i = top; i < bottom; i++)
		store_relaxed(&a->slots[i & a->mask],
			      load_relaxed(&old->slots[i & old->mask]));
	a->older = old;
	PL_INJECT("deque-c");
	/* [deque-c] pairs with pl__deque_steal_once(): the copies are seen. */
	store_release(&d->array, a);
	return true;
}
