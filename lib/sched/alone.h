/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * alone: one task waits in a place of its own until a word has changed
 *
 * What most waits are, as for the end of a task, needs no bucket and no lock.
 * Who takes the waiter out of its place lets it go, and nobody else does: the
 * one that changed the word, who calls the waiter (interrupts or cancels it),
 * or itself.
 *
 *	waiter, once it has switched away	who changes the word
 *	waiter.word = place			word = new
 *	place = waiter		[alone-a]	old = place := 0 [alone-b]
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
#ifndef PL_ALONE_H
#define PL_ALONE_H

#include "base/inject.h"
#include "sched/waiter.h"

/* The waiter, or 0. */
typedef _Atomic uintptr_t pl__place;

#define PL__PLACE_OTHERS	1UL	/* wait in the bucket */

/* A place that is waited in, as a word that nobody could wait on. */
static inline _Atomic uint32_t *pl__alone_word(pl__place *place)
{
	return (_Atomic uint32_t *)((uintptr_t)place | 1);
}

/* The place that this stands for; NULL: it is a word. */
static inline pl__place *pl__alone_place(_Atomic uint32_t *word)
{
	return (uintptr_t)word & 1 ? (pl__place *)((uintptr_t)word & ~1UL) :
				     NULL;
}

/* Is it still in @place?  Then it is the caller's to let go, and why. */
static inline bool pl__alone_take_back(pl__place *place,
				       struct pl__waiter *wt, int reason)
{
	uintptr_t old = load_relaxed(place);

	do {
		if ((old & ~PL__PLACE_OTHERS) != (uintptr_t)wt)
			return false;
	} while (!atomic_compare_exchange_weak(place, &old,
					       old & PL__PLACE_OTHERS));
	wt->reason = reason;
	store_release(&wt->word, NULL);
	return true;
}

/* Once the word has changed: who is to be let go, and whether others are. */
static inline struct pl__waiter *pl__alone_take(pl__place *place, bool *others)
{
	/* [alone-b] pairs with [alone-a] in pl__alone_sit(). */
	uintptr_t old = atomic_exchange(place, 0);
	struct pl__waiter *wt = (struct pl__waiter *)(old & ~PL__PLACE_OTHERS);

	PL_INJECT("alone-b");
	*others = old & PL__PLACE_OTHERS;
	if (wt) {
		wt->reason = 0;
		store_release(&wt->word, NULL);
	}
	return wt;
}

#endif /* PL_ALONE_H */
