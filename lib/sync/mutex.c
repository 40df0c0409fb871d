/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * mutex: free, locked, or locked and perhaps waited for
 *
 * The kernel's futexes' classic: who waits leaves "waited for" behind, and
 * whoever unlocks that wakes one.  A waker knows the word's address only, so
 * that the mutex may be freed by whoever locked it next.  Who comes running
 * may lock before the one that was woken.
 *
 *	locker				unlocker
 *	old = value := WAITED_FOR [mutex-a]	old = value := FREE [mutex-b]
 *	if (old is not FREE)		if (old is WAITED_FOR)
 *		wait while WAITED_FOR		wake one
 *
 * Exchanges of one word have one order: whichever comes second sees the first.
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
 * For who has not waited yet: it locks without the mark that others wait.
 * Whoever has it on another processor may be about to unlock.  Each time we
 * stay away twice as long, some microseconds in all, so that those who spin do
 * not take the line from who has the lock.
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
	/* No memory to wait with is no reason not to wait. */
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
