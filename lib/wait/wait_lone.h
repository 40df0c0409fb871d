/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * wait_lone: a task waits for what no other waits for: its request, a deadline
 *
 * A request's completion knows the task that waits for it, and a sleep ends by
 * its deadline.  Neither needs a bucket, nor its lock.  All is decided in
 * waiter.word, which lies in the task's slot and so is never unmapped: it has
 * the address of the waiter's word, for dumps, and in its low bits whether the
 * waiter sleeps.  What is waited for is done once it is NULL.
 *
 *	 AWAKE --switched away--> ASLEEP
 *	   ^			   |
 *	   +------taken out--------+
 *
 *	waiter				completion
 *	waiter.word = AWAKE
 *	submit the request
 *	switch away			write the result
 *	AWAKE -> ASLEEP	[lone-a]	old = waiter.word := NULL [lone-b]
 *	if (it was NULL)		if (old is ASLEEP)
 *		go on				wake the waiter
 *
 * Invariant: a waiter does not sleep once its request is done.  Both sides
 * change one word by an atomic exchange, and such changes have one order:
 * either the completion's comes second and finds ASLEEP, or the waiter's comes
 * second, finds NULL and fails.  Otherwise the waiter sleeps for ever.
 *
 * A deadline, an interrupt and a cancel change ASLEEP to AWAKE.  That succeeds
 * once for each sleep, and not after the completion, so one thread wakes the
 * waiter.  It may be an old timer that does so; the waiter then finds -EAGAIN
 * and waits again.  An interrupter writes the waiter's state and then reads its
 * word; the waiter becomes ASLEEP and then reads its state: [intr-a], [intr-b]
 * as in wait.h.
 *
 * A request has one completion, and its waiter does not return before.  So the
 * completion cannot hit a later wait: that is begun when the word is NULL.
 */
#ifndef PL_WAIT_LONE_H
#define PL_WAIT_LONE_H

#include "base/inject.h"
#include "wait/wait.h"

#define PL__WAIT_AWAKE	2UL	/* alone; has not switched away, or woken */
#define PL__WAIT_ASLEEP	3UL	/* alone; the thread that changes it wakes */
#define PL__WAIT_BITS	3UL

static inline uintptr_t pl__wait_bits(_Atomic uint32_t *word)
{
	return (uintptr_t)word & PL__WAIT_BITS;
}

static inline bool pl__wait_is_lone(_Atomic uint32_t *word)
{
	return (uintptr_t)word & PL__WAIT_AWAKE;
}

/* Neither alone nor in a single-waiter slot. */
static inline bool pl__wait_has_bucket(_Atomic uint32_t *word)
{
	return !pl__wait_bits(word);
}

static inline _Atomic uint32_t *pl__wait_with_bits(_Atomic uint32_t *word,
						   uintptr_t bits)
{
	return (_Atomic uint32_t *)(((uintptr_t)word & ~PL__WAIT_BITS) | bits);
}

/*
 * The caller, if it can wait alone: a task that can switch away.  NULL: it has
 * to wait on @word.  Until the wait is done, or ended, it must not wait for
 * anything else.
 */
static inline struct pl__task *pl__wait_lone_begin(_Atomic uint32_t *word)
{
	struct pl__task *t = pl__current();

	if (unlikely(!t || t->cls == PL_STACK_WORKER))
		return NULL;
	store_release(&t->waiter.word, pl__wait_with_bits(word,
							  PL__WAIT_AWAKE));
	return t;
}

/* What @t began will not be done: no thread calls pl__wait_lone_done(). */
static inline void pl__wait_lone_end(struct pl__task *t)
{
	store_relaxed(&t->waiter.word, NULL);
}

static inline bool pl__wait_lone_is_done(struct pl__task *t)
{
	return !load_acquire(&t->waiter.word);
}

/* Once for each wait that was begun; true: the caller makes @t ready. */
static inline bool pl__wait_lone_done(struct pl__task *t)
{
	_Atomic uint32_t *old;

	PL_INJECT("lone-b");
	/* [lone-b] pairs with [lone-a] in pl__wait_lone_sleep(). */
	old = atomic_exchange(&t->waiter.word, NULL);
	return pl__wait_bits(old) == PL__WAIT_ASLEEP;
}

/* True: the waiter, which slept at @word, is awake, and the caller wakes it. */
static inline bool pl__wait_lone_take(struct pl__wait_entry *wt,
				       _Atomic uint32_t *word)
{
	if (pl__wait_bits(word) != PL__WAIT_ASLEEP ||
	    !atomic_compare_exchange_strong(&wt->word, &word,
					    pl__wait_with_bits(word,
							PL__WAIT_AWAKE)))
		return false;
	wt->reason = -EAGAIN;
	return true;
}

/* Arguments of pl__wait_lone_sleep(). */
struct pl__wait_lone_args {
	struct pl__task		*t;
	struct pl__timer	*timer;	/* reserved; NULL: none, or it is set */
	uint64_t		deadline_ns;
};

/* An after-switch callback; @arg is a struct pl__wait_lone_args. */
void pl__wait_lone_sleep(struct pl__worker *w, void *arg);

/* As pl__wait_lone(), with a deadline. */
int pl__wait_lone_until(struct pl__task *t, uint64_t deadline_ns,
			 uint32_t flags);

static inline void pl__wait_lone_prepare(struct pl__task *t, uint32_t flags)
{
	struct pl__wait_entry *wt = &t->waiter;

	wt->uninterruptible = flags & PL__WAIT_UNINTERRUPTIBLE || t->is_ending;
	wt->what = flags & PL__WAIT_FOR;
	wt->is_thread = false;
	wt->timer = 0;
	wt->reason = 0;
	wt->nr++;
}

/*
 * Waits until what the caller, @t, began is done, which it asks then.  Returns
 * why it no longer waits: 0, -EAGAIN to look again, -ETIMEDOUT, -EINTR,
 * -ECANCELED; -ENOMEM if a timer cannot be allocated.  Inlined, as
 * pl__wait_single() is.
 */
static inline int pl__wait_lone(struct pl__task *t, uint64_t deadline_ns,
				 uint32_t flags)
{
	struct pl__wait_lone_args args = { t, NULL, PL_FOREVER };

	if (pl__wait_lone_is_done(t))
		return 0;
	if (deadline_ns != PL_FOREVER)
		return pl__wait_lone_until(t, deadline_ns, flags);
	pl__wait_lone_prepare(t, flags);
	pl__block(pl__wait_lone_sleep, &args);
	return t->waiter.reason;
}

#endif /* PL_WAIT_LONE_H */
