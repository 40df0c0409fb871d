/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * lock: held for a few instructions, and never across a switch
 *
 * A word: free, held, or held with sleepers.  A thread spins a little, then
 * sleeps on the futex, since the owner may have lost its CPU.  This is the
 * "mutex, take 3" of Drepper's "Futexes are tricky".
 */
#ifndef PL_LOCK_H
#define PL_LOCK_H

#include "base/base.h"

struct pl__lock {
	_Atomic uint32_t	state;
};

enum { PL__LOCK_FREE, PL__LOCK_HELD, PL__LOCK_SLEPT_ON };

void pl__lock_slow(struct pl__lock *lock);
void pl__unlock_slow(struct pl__lock *lock);

static inline bool pl__trylock(struct pl__lock *lock)
{
	uint32_t free = PL__LOCK_FREE;

	return atomic_compare_exchange_strong_explicit(&lock->state, &free,
						       PL__LOCK_HELD,
						       memory_order_acquire,
						       memory_order_relaxed);
}

static inline void pl__lock(struct pl__lock *lock)
{
	PL_SIM_POINT("lock");
	if (unlikely(!pl__trylock(lock)))
		pl__lock_slow(lock);
}

static inline void pl__unlock(struct pl__lock *lock)
{
	uint32_t old = atomic_exchange_explicit(&lock->state, PL__LOCK_FREE,
						memory_order_release);

	PL_SIM_POINT("unlock");
	if (unlikely(old == PL__LOCK_SLEPT_ON))
		pl__unlock_slow(lock);
}

/*
 * own_wait: a thread waits for the library, not for what its task calls
 *
 * A worker that sleeps until it has a lock of the library, or memory for a
 * stack, looks as if its task had blocked it.  More workers are of no use then:
 * they would wait for the same.  So such waits say so, for sysmon to see.
 * While one gets memory the page faults of others wait, too.
 */

/* Of one thread, which alone writes. */
struct pl__own_waits {
	_Atomic uint32_t	depth;	/* 0: it waits for nothing */
	_Atomic uint32_t	memory;	/* the part that is for memory */
	uint32_t		nr;	/* that have begun */
};

/* Those of the calling thread are counted in @waits, or nowhere: NULL. */
void pl__own_waits_count_in(struct pl__own_waits *waits);

/* No task is switched to in between; they may be nested. */
void pl__own_wait_begin(void);
void pl__own_wait_end(void);
void pl__memory_wait_begin(void);
void pl__memory_wait_end(void);

#endif /* PL_LOCK_H */
