/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "wait/wait.h"
#include "base/inject.h"

/* Once it is in its slot the task may run and end, so @arg is copied first. */
void pl__wait_single_publish(void *arg)
{
	struct pl__wait_single_args a = *(struct pl__wait_single_args *)arg;
	struct pl__wait_entry *wt = &a.t->waiter;
	uintptr_t empty = 0;

	store_before_rmw(&wt->word, pl__wait_slot_word(a.slot));
	PL_INJECT("single-a");
	/* [single-a] pairs with [single-b] in pl__wait_single_take(). */
	if (atomic_compare_exchange_strong(a.slot, &empty, (uintptr_t)wt)) {
		PL_INJECT("single-a");
		if (likely(load_acquire(a.word) == a.expected &&
			   (a.uninterruptible || !pl__is_interrupted(a.t))))
			return;
		if (pl__wait_single_withdraw(a.slot, wt, -EAGAIN))
			pl__ready(a.t);
		return;
	}
	wt->reason = -EBUSY;
	store_release(&wt->word, NULL);
	pl__ready(a.t);
}
