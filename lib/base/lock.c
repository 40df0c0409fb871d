/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "base/lock.h"
#include "base/sys.h"
#include "base/atfork.h"

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

static __thread struct pl__own_waits *own_waits PL_TLS_EARLY;

__pl_noinline void pl__own_waits_count_in(struct pl__own_waits *waits)
{
	own_waits = waits;
}

static void add(_Atomic uint32_t *counter, uint32_t nr)
{
	store_relaxed(counter, load_relaxed(counter) + nr);
}

__pl_noinline void pl__own_wait_begin(void)
{
	struct pl__own_waits *o = own_waits;

	if (!o)
		return;
	add(&o->depth, 1);
	o->nr++;
}

__pl_noinline void pl__own_wait_end(void)
{
	struct pl__own_waits *o = own_waits;

	if (o)
		add(&o->depth, -1U);
}

__pl_noinline void pl__memory_wait_begin(void)
{
	pl__own_wait_begin();
	if (own_waits)
		add(&own_waits->memory, 1);
}

__pl_noinline void pl__memory_wait_end(void)
{
	if (own_waits)
		add(&own_waits->memory, -1U);
	pl__own_wait_end();
}

static void own_wait_atfork_child(void)
{
	own_waits = NULL;
}

PL_ATFORK_CHILD(own_wait_atfork_child);
