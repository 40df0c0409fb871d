/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * wait: waiting on a word, from tasks and threads alike
 *
 * Waiters are found by the word's address, in a table of buckets like that of
 * the kernel's futexes; the word holds only its value.  So a waker does not
 * touch the word after it has changed it; a waiter that saw the change may have
 * freed it.
 *
 *	waiter, in its bucket's lock	waker
 *	if (word != expected)		word = new
 *		return			lock the bucket		[word-b]
 *	be listed		[word-a]	take waiters off
 *	unlock				unlock, make them ready
 *
 * Invariant: no waiter is listed after the waker has looked, unless it saw the
 * new value.  Either the waiter has the lock first, and the waker finds it; or
 * the waker has it first, and the waiter, which takes it later, reads the new
 * value.  Otherwise the wake is lost and the waiter sleeps on.
 *
 * The waker looks after it has changed the word.  By then the waiter may be
 * gone, and another may wait at the same address: so 0 from pl__wait() means
 * only that some waker woke this address.  Callers check their condition again.
 *
 * The thread that removes the waiter from the list, under the lock, decides why
 * the wait ends: once, and so for one reason.  An interrupter does this:
 *
 *	waiter				interrupter
 *	waiter.word = word	[intr-a]	state |= INTERRUPTED	[intr-b]
 *	lock its bucket			if (waiter.word)
 *	if (state & INTERRUPTED)		lock its bucket
 *		return				if it is listed
 *	be listed					take it off
 *
 * Invariant: an interrupt that finds no waiter listed is seen before the task
 * sleeps.  All four accesses are seq_cst; the lock makes the first one so.
 * Either the waiter sees INTERRUPTED, or the interrupter sees waiter.word and
 * takes the lock: before the waiter does, so that the waiter sees INTERRUPTED
 * under it, or after, so that it finds the waiter listed.  Otherwise the task
 * sleeps although it was interrupted.
 */
#ifndef PL_WAIT_H
#define PL_WAIT_H

#include "queue/task.h"
#include "run/run.h"

/* Flags: one enum pl__for, and PL__WAIT_UNINTERRUPTIBLE or not. */
#define PL__WAIT_FOR			0xffU
/* Neither an interrupt nor a cancel ends the wait. */
#define PL__WAIT_UNINTERRUPTIBLE	(1U << 8)
/* Is woken before all that wait for the word by now. */
#define PL__WAIT_FIRST			(1U << 9)

/* The reason of a wait that pl__wake_owner() has ended. */
#define PL__WAIT_OWNS			1

/* Called as the runtime starts: waits have their deadlines in @t. */
void pl__wait_start(struct pl__timers *t);

/*
 * Waits while *@word is @expected.  0 once woken, -EAGAIN if the value differs,
 * -ETIMEDOUT, -EINTR, -ECANCELED; -ENOMEM if a timer cannot be allocated.
 * PL__WAIT_OWNS where wakers call pl__wake_owner().
 */
int pl__wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns,
	     uint32_t flags);

/*
 * For a wait with a deadline in the past: -ETIMEDOUT.  Yields now and then: a
 * task that waits like that in a loop never switches away otherwise, so that
 * the task that would end its wait does not run.
 */
int pl__wait_expired(void);

/* Wakes up to @nr waiters, longest waiting first; returns how many. */
uint32_t pl__wake(_Atomic uint32_t *word, uint32_t nr);

/*
 * Wakes the first waiter, with the reason PL__WAIT_OWNS and the word as it is;
 * if there is none, sets *@word to @unowned.  No other thread may change *@word
 * meanwhile: the caller owns what it stands for.
 */
void pl__wake_owner(_Atomic uint32_t *word, uint32_t unowned);

/*
 * Wakes one waiter by an event.  A worker may be @quiet, and notify for it
 * later if it has to.
 */
void pl__wake_by_event(_Atomic uint32_t *word, bool quiet);

/* Wakes @nr_wake waiters of @from, moves @nr_move to @to; returns the sum. */
uint32_t pl__requeue(_Atomic uint32_t *from, _Atomic uint32_t *to,
		     uint32_t nr_wake, uint32_t nr_move);

/* The number of waiters of @word at this moment. */
uint32_t pl__nr_waiting(_Atomic uint32_t *word);

/*
 * The first step of a blocking call: 0, -ECANCELED, or -EINTR, which consumes
 * the interrupt.
 */
int pl__wait_pending(void);

/* The same for @t, which does not run. */
int pl__wait_pending_of(struct pl__task *t);

/* Blocking calls of a task, or thread, with this state return -ECANCELED. */
static inline bool pl__state_is_cancelled(uint64_t state)
{
	if (unlikely(state & PL__TASK_SHIELDED))
		return state & PL__TASK_SCOPE_CANCELLED;
	return state & (PL__TASK_CANCELLED | PL__TASK_SCOPE_CANCELLED) ||
	       pl__rt_is_stopping();
}

/* Blocking calls return -EINTR, once. */
static inline bool pl__state_is_interrupted(uint64_t state)
{
	return state & PL__TASK_INTERRUPTS && !(state & PL__TASK_SHIELDED);
}

/* A blocking call of @t would end; consumes nothing. */
static inline bool pl__is_interrupted(struct pl__task *t)
{
	uint64_t state = atomic_load(&t->state);

	return pl__state_is_cancelled(state) ||
	       pl__state_is_interrupted(state);
}

/* True: the task was interrupted, and no longer is. */
static inline bool pl__interrupt_consume(struct pl__task *t)
{
	t->waiter.interrupts = (uint8_t)
		(atomic_fetch_and(&t->state, ~PL__TASK_INTERRUPTS) &
		 PL__TASK_INTERRUPTS);
	return t->waiter.interrupts;
}

/* Puts back an interrupt that a call has consumed but did not report. */
void pl__interrupt_restore(int reason);

/*
 * Ends the wait of @t with @reason, if @may, called under the lock, allows it.
 */
typedef bool pl__wait_may_fn(struct pl__task *t, uint64_t arg);
void pl__wait_abort(struct pl__task *t, int reason, pl__wait_may_fn *may,
		    uint64_t arg);

/* Ends all waits that may be interrupted, with -ECANCELED, at the stop. */
void pl__wait_cancel_all(void);

/*
 * Cancels the task that @h names, and not the scopes that it has entered; 1: it
 * has entered some; 0; -ESRCH, -EINVAL.
 */
int pl__cancel_task(pl_task_t h);

/* Set by scope.c: cancels the scopes that the task has entered. */
extern void (*pl__cancel_scopes)(pl_task_t h);

/* Ends the wait of @t, the owner of a scope that was cancelled. */
void pl__wait_cancel_in_scope(struct pl__task *t);

/* Arguments of a wait in a single-waiter slot, see task.h. */
struct pl__wait_single_args {
	struct pl__task		*t;
	pl__wait_slot		*slot;
	_Atomic uint32_t	*word;
	uint32_t		expected;
	bool			uninterruptible;
};

/* An after-switch callback; @arg is a struct pl__wait_single_args. */
void pl__wait_single_publish(struct pl__worker *w, void *arg);

/*
 * Waits in @slot while *@word is @expected.  0 once taken out, -EAGAIN to check
 * again, -EINTR, -ECANCELED; -EBUSY if the slot is taken or the caller cannot
 * switch away.  Inlined, as each return from a function that has switched is
 * mispredicted.
 */
static inline int pl__wait_single(struct pl__task *t, pl__wait_slot *slot,
				  _Atomic uint32_t *word, uint32_t expected)
{
	struct pl__wait_single_args args = { t, slot, word, expected, false };

	if (!t || t->cls == PL_STACK_WORKER || load_relaxed(slot))
		return -EBUSY;
	if (load_acquire(word) != expected)
		return -EAGAIN;
	t->waiter.is_thread = false;
	t->waiter.uninterruptible = args.uninterruptible = t->is_ending;
	/*
	 * A timer of an earlier wait that expires late does not end this one.
	 */
	t->waiter.nr++;
	pl__block(pl__wait_single_publish, &args);
	return t->waiter.reason;
}

#endif /* PL_WAIT_H */
