/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * wait: waiting on a word, from tasks and threads alike
 *
 * Waiters are found by the word's address, in a table of buckets as the kernel
 * keeps for futexes; the word itself holds only its value.  So whoever wakes
 * never touches the word, which a waiter that came through may have freed.
 *
 *	waiter, in its bucket's lock	waker
 *	if (word != expected)		word = new
 *		go on			lock the bucket		[word-b]
 *	be listed		[word-a]	take waiters off
 *	unlock				unlock, make them ready
 *
 * The waker's look comes after its change of the word, so it may come when the
 * waiter is long gone and another waits at the same address: 0 from pl__wait()
 * says that somebody woke this address, no more.  Callers look again.
 *
 * Either the waiter has the lock first, and is found; or the waker has, and
 * the waiter, who takes the lock after it, sees the new value.
 *
 * Why a wait ends is decided by who takes the waiter off the list, under the
 * lock: once, and so for one reason.  Those who would interrupt do it thus:
 *
 *	waiter				interrupter
 *	waiter.word = word	[intr-a]	state |= INTERRUPTED	[intr-b]
 *	lock its bucket			if (waiter.word)
 *	if (state & INTERRUPTED)		lock its bucket
 *		go on				if it is listed
 *	be listed					take it off
 *
 * All four are seq_cst, the lock's being what makes the first one so: one of
 * the two sees the other.  An interrupter that comes before it is listed had
 * the lock first, and so is seen.
 */
#ifndef PL_WAIT_H
#define PL_WAIT_H

#include "sched/wait_single.h"
#include "sched/sched.h"

/* Flags: one enum pl__for, and */
#define PL__WAIT_FOR			0xffU
/* neither interrupted nor cancelled. */
#define PL__WAIT_UNINTERRUPTIBLE	(1U << 8)

/* As the runtime starts: the deadlines of waits are @t's. */
void pl__wait_start(struct pl__timers *t);

/*
 * Waits while *@word is @expected: 0 once woken, -EAGAIN if it differs,
 * -ETIMEDOUT, -EINTR, -ECANCELED, -ENOMEM if there is no timer to be had.
 */
int pl__wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns,
	     uint32_t flags);

/* Wakes up to @nr waiters, longest waiting first: how many. */
uint32_t pl__wake(_Atomic uint32_t *word, uint32_t nr);

/* One, by a worker, which calls for help for it if it has to. */
void pl__wake_quietly(_Atomic uint32_t *word);

/* Wakes @nr_wake of @from, moves @nr_move to @to: how many in all. */
uint32_t pl__requeue(_Atomic uint32_t *from, _Atomic uint32_t *to,
		     uint32_t nr_wake, uint32_t nr_move);

/* How many wait on it at this moment. */
uint32_t pl__nr_waiting(_Atomic uint32_t *word);

/*
 * What a blocking call does first: 0, or -ECANCELED, or -EINTR, which is
 * thereby consumed.
 */
int pl__wait_pending(void);

/* Puts back an interrupt that a call has consumed but did not report. */
void pl__interrupt_restore(int reason);

/* Lets whoever waits now go with -ECANCELED, as the runtime stops. */
void pl__wait_cancel_all(void);

/* Alone: see wait_single.h. */
struct pl__wait_single_args {
	struct pl__task		*t;
	pl__wait_slot		*slot;
	_Atomic uint32_t	*word;
	uint32_t		expected;
	bool			uninterruptible;
};

/* An after-switch callback, of a struct pl__wait_single_args. */
void pl__wait_single_publish(void *arg);

/*
 * Waits while *@word is @expected: 0 once taken, -EAGAIN to look again, -EINTR,
 * -ECANCELED; -EBUSY if @place is taken, or the caller cannot switch away.
 * Inlined: each return from a function that has switched is mispredicted.
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
	/* A timer of an earlier wait that comes late is not for this one. */
	t->waiter.nr++;
	pl__block(pl__wait_single_publish, &args);
	return t->waiter.reason;
}

#endif /* PL_WAIT_H */
