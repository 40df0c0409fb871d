/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "queue/background.h"
#include "base/sys.h"

void pl__background_begin(struct pl__task *t)
{
	atomic_fetch_or(&t->state, PL__TASK_BACKGROUND);
	t->waiter.is_background = true;
}

void pl__background_end(struct pl__task *t)
{
	t->waiter.is_background = false;
}

void pl__background_put(struct pl__task *t)
{
	struct pl__background *b = &pl__rt.background;

	pl__lock(&b->lock);
	pl__fifo_append(&b->ready, &t->link);
	if (!load_relaxed(&b->nr))
		store_relaxed(&b->taken_ns, pl__now_ns());
	atomic_fetch_add(&b->nr, 1);
	pl__unlock(&b->lock);
}

struct pl__task *pl__background_take(void)
{
	struct pl__background *b = &pl__rt.background;
	struct pl__link *l;

	if (likely(!pl__background_nr()) || !pl__nr_may_compute())
		return NULL;
	pl__lock(&b->lock);
	l = pl__fifo_take(&b->ready);
	if (l) {
		atomic_fetch_sub(&b->nr, 1);
		store_relaxed(&b->taken_ns, pl__now_ns());
	}
	pl__unlock(&b->lock);
	return l ? container_of(l, struct pl__task, link) : NULL;
}

struct pl__task *pl__background_take_overdue(void)
{
	struct pl__background *b = &pl__rt.background;
	struct pl__task *t;

	/* Another thread may have taken one after the clock was read. */
	if (likely(!pl__background_nr()) ||
	    (int64_t)(pl__now_ns() - load_relaxed(&b->taken_ns)) <
	    (int64_t)PL__BACKGROUND_NS)
		return NULL;
	t = pl__background_take();
	if (t)
		atomic_fetch_add_explicit(&b->nr_late, 1,
					  memory_order_relaxed);
	return t;
}
