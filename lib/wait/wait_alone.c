/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "wait/wait.h"
#include "base/inject.h"

/* Like pending_of(), but consumes nothing. */
static bool is_called(const struct pl__alone *a)
{
	return !a->uninterruptible &&
	       (atomic_load(&a->t->state) &
			(PL__TASK_CANCELLED | PL__TASK_INTERRUPTED) ||
		pl__rt_is_stopping());
}

/* Once it is in its place it may be gone, and be anywhere. */
void pl__alone_sit(void *arg)
{
	struct pl__alone a = *(struct pl__alone *)arg;
	struct pl__waiter *wt = &a.t->waiter;
	uintptr_t empty = 0;

	store_before_rmw(&wt->word, pl__alone_word(a.place));
	PL_INJECT("alone-a");
	/* [alone-a] pairs with [alone-b] in pl__alone_take(). */
	if (atomic_compare_exchange_strong(a.place, &empty, (uintptr_t)wt)) {
		PL_INJECT("alone-a");
		if (likely(load_acquire(a.word) == a.expected &&
			   !is_called(&a)))
			return;
		if (pl__alone_take_back(a.place, wt, -EAGAIN))
			pl__ready(a.t);
		return;
	}
	wt->reason = -EBUSY;
	store_release(&wt->word, NULL);
	pl__ready(a.t);
}
