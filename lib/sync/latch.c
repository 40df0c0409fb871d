/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * latch: a count, and a mark that it is waited for
 *
 *	waiter				last to be done
 *	set WAITED_FOR beside the	count and mark := 0	[latch-b]
 *	count, which is not 0	[latch-a]	if (it was marked)
 *	wait while both are unchanged		wake all
 *
 * Invariant: no waiter sleeps while the count is 0.  Changes of one word have
 * one order: either the last thread to be done sees the mark, or the waiter
 * sees the 0; otherwise the waiter sleeps for ever.  That change is the
 * thread's last access to the latch, so that a waiter may free it.
 */
#include "wait/wait.h"
#include "base/inject.h"

#define WAITED_FOR	(PL_LATCH_MAX + 1U)
#define COUNT		PL_LATCH_MAX

int pl_latch_init(struct pl_latch *l, uint32_t nr)
{
	if (!l || nr > COUNT)
		return -EINVAL;
	*l = (struct pl_latch)PL_LATCH_INIT(nr);
	return 0;
}

int pl_latch_add(struct pl_latch *l, uint32_t nr)
{
	uint32_t old;

	if (!l)
		return -EINVAL;
	old = load_relaxed(&l->word.value);
	do {
		if (nr > COUNT - (old & COUNT))
			return -EOVERFLOW;
	} while (!atomic_compare_exchange_weak_explicit(&l->word.value, &old,
							old + nr,
							memory_order_relaxed,
							memory_order_relaxed));
	return 0;
}

int pl_latch_done(struct pl_latch *l)
{
	uint32_t old, new;

	if (!l)
		return -EINVAL;
	old = load_relaxed(&l->word.value);
	do {
		if (!(old & COUNT))
			return -EINVAL;
		new = (old & COUNT) == 1 ? 0 : old - 1;
		/* [latch-b] pairs with [latch-a] in wait_for_0(). */
	} while (!atomic_compare_exchange_weak_explicit(&l->word.value, &old,
							new,
							memory_order_release,
							memory_order_relaxed));
	PL_INJECT("latch-b");
	if (old == (WAITED_FOR | 1))
		pl__wake(&l->word.value, UINT32_MAX);
	return 0;
}

static int wait_for_0(struct pl_latch *l, uint64_t deadline_ns)
{
	uint32_t v;
	int ret;

	while ((v = load_acquire(&l->word.value))) {
		/* [latch-a] pairs with [latch-b] in pl_latch_done(). */
		if (!(v & WAITED_FOR) &&
		    !atomic_compare_exchange_strong_explicit(&l->word.value,
							     &v,
							     v | WAITED_FOR,
							memory_order_relaxed,
							memory_order_relaxed))
			continue;
		PL_INJECT("latch-a");
		ret = pl__wait(&l->word.value, v | WAITED_FOR, deadline_ns,
			      PL__FOR_LATCH);
		if (ret && ret != -EAGAIN)
			return ret;
	}
	return 0;
}

int pl_latch_wait_until(struct pl_latch *l, uint64_t deadline_ns)
{
	int ret = l ? pl__wait_pending() : -EINVAL;

	return ret ? ret : wait_for_0(l, deadline_ns);
}

int pl_latch_wait(struct pl_latch *l)
{
	return pl_latch_wait_until(l, PL_FOREVER);
}
