/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * wait_single: one task waits in a single-waiter slot until a word has changed
 *
 * Most waits, as for the end of a task, have one waiter and need no bucket and
 * no lock.  A thread that takes the waiter out of the slot wakes it, and no
 * other does: the waker, which changed the word; a thread that interrupts or
 * cancels the waiter; or the waiter itself.
 *
 *	waiter, after it switched away		waker
 *	waiter.word = slot			word = new
 *	slot = waiter		[single-a]	old = slot := 0	[single-b]
 *	if (word is new, or interrupted)	if (old)
 *		take itself out again			wake it
 *
 * Invariant: no waiter stays in the slot after the word has changed.  Both
 * sides exchange the slot, and exchanges of one word have one order: either the
 * waker's comes second and returns the waiter, or the waiter's comes second and
 * it sees the new word.  Otherwise the waiter sleeps for ever.  A thread that
 * interrupts writes the waiter's state and then reads waiter.word; the waiter
 * writes waiter.word and then reads its state.  These four accesses are
 * seq_cst.
 *
 * A slot is never freed, but another word may use it: its waiter may be woken
 * without cause, and checks its condition again.  A slot is emptied only by
 * taking the waiter out.  A second waiter that finds the slot taken marks it,
 * and waits in the word's bucket.
 */
#ifndef PL_WAIT_SINGLE_H
#define PL_WAIT_SINGLE_H

#include "base/inject.h"
#include "queue/wait_entry.h"

/* The waiter, or 0; bit 0: PL__WAIT_SLOT_OTHERS. */
typedef _Atomic uintptr_t pl__wait_slot;

#define PL__WAIT_SLOT_OTHERS	1UL	/* more waiters, in the bucket */

/*
 * The slot, encoded as a word at an odd address, on which no task could wait.
 */
static inline _Atomic uint32_t *pl__wait_slot_word(pl__wait_slot *slot)
{
	return (_Atomic uint32_t *)((uintptr_t)slot | 1);
}

/* The slot that @word encodes; NULL: @word is a word, or of wait_lone.h. */
static inline pl__wait_slot *pl__wait_slot_of(_Atomic uint32_t *word)
{
	return ((uintptr_t)word & 3) == 1 ?
		(pl__wait_slot *)((uintptr_t)word & ~1UL) : NULL;
}

/* True: @wt was still in @slot; the caller has taken it out and wakes it. */
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

/* After the word has changed: the waiter to wake, and whether others wait. */
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
