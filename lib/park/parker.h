/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * parker: one thread asleep, and how it is woken
 *
 * On its own futex word; or, when completions must wake it too, in its ring,
 * which listens to a bell.  Which of them the waker learns from the exchange
 * that decides the wake, so that each sleep is ended at most once.
 *
 *	sleeper				waker
 *	arm(bell)			(found us, by whatever list)
 *	be found			old = state := WOKEN	[parker-b]
 *	while (state != WOKEN)	[parker-a]	old FUTEX: futex_wake
 *		sleep			old a bell: ring it
 *
 * The futex compares again in the kernel; the bell counts.  Neither needs the
 * waker to be on time.  The state is the truth; the bell may ring late, so who
 * hears it looks at the state.
 */
#ifndef PL_PARKER_H
#define PL_PARKER_H

#include "base/base.h"

/* Whose ring listens to it keeps it until nobody is left who could ring. */
struct pl__bell {
	int			eventfd;	/* I: -1: none, but a futex: */
	_Atomic uint32_t	nr_rung;	/* A */
};

void pl__bell_ring(struct pl__bell *b);

/* Of a sleeper; any other is the address of the bell to be rung. */
#define PL__PARKER_UNUSED	((uintptr_t)0)
#define PL__PARKER_FUTEX	((uintptr_t)1)
#define PL__PARKER_WOKEN	((uintptr_t)2)

struct pl__parker {
	_Atomic uintptr_t	state;
};

/* @bell: which its ring listens to; NULL: it sleeps on its futex. */
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

/* Armed without a bell: sleeps until woken (true) or @deadline_ns (false). */
bool pl__parker_park(struct pl__parker *s, uint64_t deadline_ns);

/* Once per arm. */
void pl__parker_unpark(struct pl__parker *s);

#endif /* PL_PARKER_H */
