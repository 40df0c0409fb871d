/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sleeper: one thread asleep, and how it is woken
 *
 * On its own futex word; or, when completions must wake it too, in its ring,
 * which reads an eventfd.  Which of them the waker learns from the exchange
 * that decides the wake, so that each sleep is ended at most once.
 *
 *	sleeper				waker
 *	arm(how)			(found us, by whatever list)
 *	be found			old = state := WOKEN	[sleep-b]
 *	while (state != WOKEN)	[sleep-a]	old FUTEX: futex_wake
 *		sleep			old RING: write eventfd
 *
 * The futex compares again in the kernel; the eventfd counts.  Neither needs
 * the waker to be on time.  The state is the truth; the eventfd is only a
 * doorbell that may ring late, so its reader looks at the state.
 */
#ifndef PL_SLEEPER_H
#define PL_SLEEPER_H

#include "base.h"

enum pl__sleep {
	PL__SLEEP_NOT,
	PL__SLEEP_FUTEX,
	PL__SLEEP_RING,
	PL__SLEEP_WOKEN,
};

struct pl__sleeper {
	_Atomic uint32_t	state;		/* enum pl__sleep */
	int			eventfd;	/* by RING only */
};

static inline void pl__sleeper_arm(struct pl__sleeper *s, enum pl__sleep how)
{
	store_release(&s->state, how);
}

/* [sleep-a] pairs with [sleep-b] in pl__sleeper_wake(). */
static inline bool pl__sleeper_is_woken(struct pl__sleeper *s)
{
	return load_acquire(&s->state) == PL__SLEEP_WOKEN;
}

/* Armed with FUTEX: sleeps until woken (true) or @deadline_ns (false). */
bool pl__sleeper_sleep(struct pl__sleeper *s, uint64_t deadline_ns);

/* Once per arm. */
void pl__sleeper_wake(struct pl__sleeper *s);

#endif /* PL_SLEEPER_H */
