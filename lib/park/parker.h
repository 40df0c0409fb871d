/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * parker: one thread asleep, and how it is woken
 *
 * The thread sleeps on its own futex word; or, when completions must wake it
 * too, in its ring, which listens to a bell.  The exchange that decides the
 * wake tells the waker which of them, so that each sleep is ended at most once.
 *
 *	sleeper				waker
 *	arm(bell)			(has found the sleeper in a list)
 *	be listed			old = state := WOKEN	[parker-b]
 *	while (state != WOKEN)	[parker-a]	old FUTEX: futex_wake
 *		sleep			old a bell: ring it
 *
 * Invariant: a sleeper that was woken does not sleep on.  The kernel compares
 * the futex word again before it sleeps, and the bell counts, so a wake between
 * the sleeper's check and its sleep is not lost.  Only the state says that the
 * sleeper was woken; the bell may ring late, so a sleeper that hears it checks
 * the state.
 *
 * A ring of io_uring that fails becomes one of epoll, which waits for no futex:
 * its bell gets an eventfd.
 *
 *	owner, or thief			waker
 *	eventfd = new			set the state, or send a message
 *	full barrier	[failure-a]	nr_rung++, futex_wake
 *	check state, messages		full barrier		[failure-b]
 *	sleep in epoll			if (eventfd >= 0)
 *					    write it
 *
 * Invariant: either the waker finds the eventfd or the owner, which does not
 * sleep before, finds what the waker set; otherwise it sleeps although woken.
 */
#ifndef PL_PARKER_H
#define PL_PARKER_H

#include "base/base.h"

/*
 * The owner of the ring that listens keeps it until no thread can ring it any
 * more.
 */
struct pl__bell {
	/* or -1, and nr_rung is a futex; that changes once at most */
	_Atomic int		eventfd;
	_Atomic uint32_t	nr_rung;	/* A: times that it was rung */
};

void pl__bell_ring(struct pl__bell *b);

/* State of a parker; any other value is the address of the bell to ring. */
#define PL__PARKER_UNUSED	((uintptr_t)0)
#define PL__PARKER_FUTEX	((uintptr_t)1)
#define PL__PARKER_WOKEN	((uintptr_t)2)

struct pl__parker {
	_Atomic uintptr_t	state;
};

/*
 * @bell: the bell of the ring that it sleeps in; NULL: it sleeps on its futex.
 */
static inline void pl__parker_arm(struct pl__parker *s,
				  struct pl__bell *bell)
{
	store_release(&s->state, bell ? (uintptr_t)bell : PL__PARKER_FUTEX);
}

/* [parker-a] pairs with [parker-b] in pl__parker_unpark(). */
static inline bool pl__parker_is_woken(struct pl__parker *s)
{
	return load_acquire(&s->state) == PL__PARKER_WOKEN;
}

/*
 * Armed without a bell: sleeps until woken (true) or until @deadline_ns
 * (false).
 */
bool pl__parker_park(struct pl__parker *s, uint64_t deadline_ns);

/* Wakes the sleeper; once per arm. */
void pl__parker_unpark(struct pl__parker *s);

#endif /* PL_PARKER_H */
