/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * mutex: free, locked, or locked and perhaps waited for
 *
 * The classic of the kernel's futexes: a waiter leaves WAITED_FOR behind, and
 * the unlocker that finds it wakes one waiter.  The unlocker then knows the
 * word only by its address, so the next thread that locks the mutex may free
 * it.  A thread that does not sleep may lock it before the waiter that was
 * woken.
 *
 *	locker				unlocker
 *	old = value := WAITED_FOR [mutex-a]	old = value := FREE [mutex-b]
 *	if (old is not FREE)		if (old is WAITED_FOR)
 *		wait while WAITED_FOR		wake one
 *
 * Invariant: no locker sleeps on a free mutex.  Exchanges of one word have one
 * order: either the unlocker's comes second and returns WAITED_FOR, or the
 * locker's comes second and returns FREE.  Otherwise the locker sleeps for
 * ever.
 */
#include "sync/mutex.h"
#include "base/inject.h"
#include "base/sys.h"

enum { FREE, LOCKED, WAITED_FOR };

#define NR_BACKOFFS	8

static bool mutex_trylock(struct pl_mutex *m)
{
	uint32_t is_free = FREE;

	return atomic_compare_exchange_strong_explicit(&m->word.value,
						       &is_free, LOCKED,
						       memory_order_acquire,
						       memory_order_relaxed);
}

/*
 * For a locker that has not slept: it locks without the mark that others wait.
 * The owner, on another processor, may be about to unlock.  The pauses double,
 * some microseconds in all, so that spinners do not take the cache line from
 * the owner.
 */
static bool mutex_spin(struct pl_mutex *m)
{
	int i, k;

	if (pl__self() && load_relaxed(&pl__rt.nr_alive) < 2)
		return false;
	for (i = 0; i < NR_BACKOFFS; i++) {
		for (k = 0; k < 1 << i; k++)
			pl__cpu_relax();
		if (load_relaxed(&m->word.value) == FREE && mutex_trylock(m))
			return true;
	}
	return false;
}

int pl__mutex_lock_contended(struct pl_mutex *m, uint64_t deadline_ns,
			     uint32_t flags)
{
	int ret;

	/* [mutex-a] pairs with [mutex-b] in pl_mutex_unlock(). */
	while (atomic_exchange_explicit(&m->word.value, WAITED_FOR,
					memory_order_acquire) != FREE) {
		PL_INJECT("mutex-a");
		ret = pl__wait(&m->word.value, WAITED_FOR, deadline_ns,
			      flags | PL__FOR_MUTEX);
		if (ret && ret != -EAGAIN)
			return ret;
	}
	return 0;
}

void pl_mutex_lock(struct pl_mutex *m)
{
	if (likely(mutex_trylock(m)) || mutex_spin(m))
		return;
	/* The lock cannot fail for want of memory to wait with: try again. */
	while (pl__mutex_lock_contended(m, PL_FOREVER,
					PL__WAIT_UNINTERRUPTIBLE))
		pl_yield();
}

int pl_mutex_trylock(struct pl_mutex *m)
{
	return mutex_trylock(m) ? 0 : -EBUSY;
}

int pl_mutex_lock_until(struct pl_mutex *m, uint64_t deadline_ns)
{
	int ret = pl__wait_pending();

	if (ret || mutex_trylock(m) || mutex_spin(m))
		return ret;
	return pl__mutex_lock_contended(m, deadline_ns, 0);
}

void pl_mutex_unlock(struct pl_mutex *m)
{
	/* [mutex-b] pairs with [mutex-a] in pl__mutex_lock_contended(). */
	uint32_t old = atomic_exchange_explicit(&m->word.value, FREE,
						memory_order_release);

	PL_INJECT("mutex-b");
	if (old == WAITED_FOR)
		pl__wake(&m->word.value, 1);
}
