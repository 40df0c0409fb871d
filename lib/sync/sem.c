/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sem: units, and a mark that a taker may wait for one
 *
 *	taker				poster
 *	no unit: set WAITED_FOR	[sem-a]	add units, clear it	[sem-b]
 *	wait while the word is only	if (it was set)
 *		WAITED_FOR			wake as many
 *
 * Invariant: no taker sleeps while there are units and no wake is due.  Changes
 * of one word have one order: either the poster sees the mark, or the taker
 * sees the unit.  Otherwise the taker sleeps although a unit is there.  The
 * poster's change is its last access to the semaphore, which the taker of the
 * unit may free.
 *
 * A poster clears the mark of all takers but wakes only some, so the next
 * poster may find no mark though takers wait.  A taker that was woken makes up
 * for it: it leaves the mark as it takes a unit, or as it finds none and waits
 * again; and if it leaves units, it wakes one more.
 */
#include "wait/wait.h"
#include "base/inject.h"

#define WAITED_FOR	(PL_SEM_MAX + 1U)
#define UNITS		PL_SEM_MAX

/* Takes a unit and leaves @mark; false: there is none. */
static bool sem_take(struct pl_sem *s, uint32_t mark)
{
	uint32_t old = load_relaxed(&s->word.value);

	do {
		if (!(old & UNITS))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&s->word.value, &old,
							(old - 1) | mark,
							memory_order_acquire,
							memory_order_relaxed));
	PL_INJECT("sem-a");
	if (mark && (old & UNITS) > 1)
		pl__wake(&s->word.value, 1);
	return true;
}

/* Leaves the mark that a taker waits; false: there are units. */
static bool mark_waited_for(struct pl_sem *s)
{
	uint32_t old = 0;

	/* [sem-a] pairs with [sem-b] in pl_sem_post(). */
	return atomic_compare_exchange_strong_explicit(&s->word.value, &old,
						       WAITED_FOR,
						       memory_order_relaxed,
						       memory_order_relaxed) ||
	       old == WAITED_FOR;
}

static int take_or_wait(struct pl_sem *s, uint64_t deadline_ns)
{
	uint32_t mark = 0, flags = PL__FOR_SEM;
	int ret;

	while (!sem_take(s, mark)) {
		if (!mark_waited_for(s))
			continue;
		PL_INJECT("sem-a");
		ret = pl__wait(&s->word.value, WAITED_FOR, deadline_ns, flags);
		if (ret && ret != -EAGAIN)
			return ret;
		if (ret)
			continue;
		/* Another took its unit; those that came later stay behind. */
		mark = WAITED_FOR;
		flags |= PL__WAIT_FIRST;
	}
	return 0;
}

int pl_sem_init(struct pl_sem *s, uint32_t nr)
{
	if (!s || nr > UNITS)
		return -EINVAL;
	*s = (struct pl_sem)PL_SEM_INIT(nr);
	return 0;
}

int pl_sem_trywait(struct pl_sem *s)
{
	if (!s)
		return -EINVAL;
	return sem_take(s, 0) ? 0 : -EAGAIN;
}

int pl_sem_wait_until(struct pl_sem *s, uint64_t deadline_ns)
{
	int ret = s ? pl__wait_pending() : -EINVAL;

	return ret ? ret : take_or_wait(s, deadline_ns);
}

int pl_sem_wait(struct pl_sem *s)
{
	return pl_sem_wait_until(s, PL_FOREVER);
}

int pl_sem_post(struct pl_sem *s, uint32_t nr)
{
	uint32_t old;

	if (!s || nr > UNITS)
		return -EINVAL;
	if (!nr)
		return 0;
	old = load_relaxed(&s->word.value);
	do {
		if (nr > UNITS - (old & UNITS))
			return -EOVERFLOW;
		/* [sem-b] pairs with [sem-a] in mark_waited_for(). */
	} while (!atomic_compare_exchange_weak_explicit(&s->word.value, &old,
							(old & UNITS) + nr,
							memory_order_release,
							memory_order_relaxed));
	PL_INJECT("sem-b");
	if (old & WAITED_FOR)
		pl__wake(&s->word.value, nr);
	return 0;
}
