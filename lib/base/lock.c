/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "base/lock.h"
#include "base/own_wait.h"
#include "base/sys.h"

#define NR_SPINS	100

void pl__lock_slow(struct pl__lock *lock)
{
	int i;

	for (i = 0; i < NR_SPINS; i++) {
		pl__cpu_relax();
		if (load_relaxed(&lock->state) == PL__LOCK_FREE &&
		    pl__trylock(lock))
			return;
	}

	/*
	 * A thread that has slept cannot tell whether others still sleep:
	 * assumes they do.
	 */
	pl__own_wait_begin();
	while (atomic_exchange_explicit(&lock->state, PL__LOCK_SLEPT_ON,
					memory_order_acquire) != PL__LOCK_FREE)
		pl__futex_wait(&lock->state, PL__LOCK_SLEPT_ON, UINT64_MAX);
	pl__own_wait_end();
}

void pl__unlock_slow(struct pl__lock *lock)
{
	pl__futex_wake(&lock->state, 1);
}
