/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * mutex: free, locked, perhaps waited for, or due to be handed over
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
 * Invariant: no locker sleeps on a free mutex.  Changes of one word have one
 * order: either the unlocker's comes second and finds WAITED_FOR, or the
 * locker's comes second and finds FREE.  Otherwise the locker sleeps for ever.
 *
 * A waiter that others overtake waits again, before all others.  After
 * PATIENCE_NS it leaves IMPATIENT behind, as in Go's mutex:
 *
 *	locker				unlocker, finds IMPATIENT
 *	value := IMPATIENT [mutex-c]	lock the bucket		[mutex-d]
 *	lock the bucket			if (a waiter is listed)
 *	if (value is IMPATIENT)		it owns the mutex: wake it
 *		be listed		else
 *	unlock the bucket			value := FREE
 *					unlock the bucket
 *
 * Invariant: the mutex is never free while it is handed over, so that no thread
 * overtakes; and no locker sleeps on a free mutex.  In IMPATIENT the owner
 * alone changes the word; it frees it in the bucket's lock, where a locker
 * compares the word before it is listed.  Otherwise the locker is listed after
 * the unlocker has looked, and sleeps for ever.  The word stays IMPATIENT until
 * no waiter is left, or the new owner has waited for less than PATIENCE_NS.
 */
#include "sync/mutex.h"
#include "base/inject.h"
#include "base/sys.h"

/* In this order: a locker only raises the value. */
enum { FREE, LOCKED, WAITED_FOR, IMPATIENT };

#define PATIENCE_NS	(1000 * 1000)

static bool mutex_trylock(struct pl_mutex *m)
{
	uint32_t is_free = FREE;

	PL_SIM_POINT("mutex-lock");
	return atomic_compare_exchange_strong_explicit(&m->word.value,
						       &is_free, LOCKED,
						       memory_order_acquire,
						       memory_order_relaxed);
}

/*
 * For a locker that has not slept: it locks without the mark that others wait.
 * The owner, on another processor, may be about to unlock.
 */
static bool mutex_spin(struct pl_mutex *m)
{
	uint32_t value;
	int i;

	if (!pl__may_spin())
		return false;
	for (i = 0; i < PL__NR_BACKOFFS; i++) {
		pl__back_off(i);
		value = load_relaxed(&m->word.value);
		if (value == FREE && mutex_trylock(m))
			return true;
		if (value == IMPATIENT)
			return false;
	}
	return false;
}

/* Locks a free mutex, with the mark that others wait; else leaves @mark. */
static uint32_t mutex_take_or_mark(struct pl_mutex *m, uint32_t mark)
{
	uint32_t old = load_relaxed(&m->word.value);

	/* [mutex-a] pairs with [mutex-b], [mutex-c] with [mutex-d]. */
	while (old < mark &&
	       !atomic_compare_exchange_weak_explicit(&m->word.value, &old,
						      old ? mark : WAITED_FOR,
						      memory_order_acquire,
						      memory_order_relaxed))
		;
	PL_INJECT("mutex-a");
	PL_INJECT("mutex-c");
	return old == FREE ? FREE : old < mark ? mark : old;
}

/* Waits while the word is @value, and until the mutex is locked. */
static __pl_noinline int mutex_wait(struct pl_mutex *m, uint32_t value,
				    uint64_t deadline_ns, uint32_t flags)
{
	uint64_t patient_until_ns = pl__now_ns() + PATIENCE_NS;
	uint32_t mark = WAITED_FOR;
	int ret;

	do {
		ret = pl__wait(&m->word.value, value, deadline_ns,
			      flags | PL__FOR_MUTEX);
		if (ret && ret != -EAGAIN && ret != PL__WAIT_OWNS)
			return ret;
		if (pl__now_ns() >= patient_until_ns)
			mark = IMPATIENT;
		if (ret == PL__WAIT_OWNS) {
			store_relaxed(&m->word.value, mark);
			return 0;
		}
		if (!ret)
			flags |= PL__WAIT_FIRST;
		value = mutex_take_or_mark(m, mark);
	} while (value != FREE);
	return 0;
}

int pl__mutex_lock_contended(struct pl_mutex *m, uint64_t deadline_ns,
			     uint32_t flags)
{
	uint32_t value = mutex_take_or_mark(m, WAITED_FOR);

	return value == FREE ? 0 : mutex_wait(m, value, deadline_ns, flags);
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
	if (unlikely(!m))
		return -EINVAL;
	return mutex_trylock(m) ? 0 : -EBUSY;
}

int pl_mutex_lock_until(struct pl_mutex *m, uint64_t deadline_ns)
{
	int ret = m ? pl__wait_pending() : -EINVAL;

	if (ret || mutex_trylock(m) || mutex_spin(m))
		return ret;
	return pl__mutex_lock_contended(m, deadline_ns, 0);
}

/* False: the word is not @value. */
static bool mutex_free(struct pl_mutex *m, uint32_t value)
{
	return atomic_compare_exchange_strong_explicit(&m->word.value, &value,
						       FREE,
						       memory_order_release,
						       memory_order_relaxed);
}

static __pl_noinline void mutex_unlock_contended(struct pl_mutex *m)
{
	/* [mutex-b] pairs with [mutex-a] in mutex_take_or_mark(). */
	if (!mutex_free(m, WAITED_FOR)) {
		/* [mutex-d] pairs with [mutex-c] in mutex_take_or_mark(). */
		PL_INJECT("mutex-d");
		pl__wake_owner(&m->word.value, FREE);
		return;
	}
	PL_INJECT("mutex-b");
	pl__wake(&m->word.value, 1);
}

__pl_no_frame
void pl_mutex_unlock(struct pl_mutex *m)
{
	if (unlikely(!mutex_free(m, LOCKED)))
		mutex_unlock_contended(m);
	PL_SIM_POINT("mutex-unlock");
}
