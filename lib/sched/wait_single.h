/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * wait_single: one task waits in a place of its own until a word has changed
 *
 * What most waits are, as for the end of a task, needs no bucket and no lock.
 * Who takes the waiter out of its place lets it go, and nobody else does: the
 * one that changed the word, who calls the waiter (interrupts or cancels it),
 * or itself.
 *
 *	waiter, once it has switched away	who changes the word
 *	waiter.word = place			word = new
 *	place = waiter		[single-a]	old = place := 0 [single-b]
 *	if (word is new, or it is called)	if (old)
 *		take itself out again			let it go
 *
 * The two exchange one word, and such have one order: either the second finds
 * the waiter, or the first one's new word is seen.  Who calls says so in the
 * waiter's state and then looks at waiter.word: these, and the waiter's two
 * looks the other way round, are seq_cst.
 *
 * A place is never freed, but may become another word's: who waits may be let
 * go for nothing, and looks again.  Nobody empties a place but by taking.  Who
 * finds it taken marks it, and waits in the word's bucket.
 */
#ifndef PL_WAIT_SINGLE_H
#define PL_WAIT_SINGLE_H

#include "base/inject.h"
#include "sched/wait_entry.h"

/* The waiter, or 0. */
typedef _Atomic uintptr_t pl__wait_slot;

#define PL__WAIT_SLOT_OTHERS	1UL	/* wait in the bucket */

/* A place that is waited in, as a word that nobody could wait on. */
static inline _Atomic uint32_t *pl__wait_slot_word(pl__wait_slot *slot)
{
	return (_Atomic uint32_t *)((uintptr_t)slot | 1);
}

/* The place that this stands for; NULL: it is a word. */
static inline pl__wait_slot *pl__wait_slot_of(_Atomic uint32_t *word)
{
	return (uintptr_t)word & 1 ? (pl__wait_slot *)((uintptr_t)word & ~1UL) :
				     NULL;
}

/* Is it still in @place?  Then it is the caller's to let go, and why. */
static inline bool pl__wait_single_withdraw(pl__wait_slot *slot,
					    struct pl__wait_entry *wt,
					    int reason)
{
	uintptr_t old = load_relaxed(slot);

	do {
		if ((old & ~PL__WAIT_SLOT_OTHERS) != (uintptr_t)wt)
			return false;
	} while (!atomic_compare_exchange_weak(slot, &old,
					       old & PL__WAIT_SLOT_OTHERS));
	wt->reason = reason;
	store_release(&wt->word, NULL);
	return true;
}

/* Once the word has changed: who is to be let go, and whether others are. */
static inline struct pl__wait_entry *pl__wait_single_take(pl__wait_slot *slot,
							  bool *others)
{
	/* [single-b] pairs with [single-a] in pl__wait_single_publish(). */
	uintptr_t old = atomic_exchange(slot, 0);
	struct pl__wait_entry *wt =
		(struct pl__wait_entry *)(old & ~PL__WAIT_SLOT_OTHERS);

	PL_INJECT("single-b");
	*others = old & PL__WAIT_SLOT_OTHERS;
	if (wt) {
		wt->reason = 0;
		store_release(&wt->word, NULL);
	}
	return wt;
}

#endif /* PL_WAIT_SINGLE_H */
