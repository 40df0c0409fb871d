/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * barrier: rounds, each of a fixed number of waiters
 *
 * One state holds the round and how many waiters have come.  So the last waiter
 * to come ends the round and opens the next in one step, and a waiter that
 * gives up takes back its coming only while its round lasts.
 *
 *	waiter				last waiter
 *	seen = word		[barrier-a]	state: next round
 *	if (the state has moved on)	word++		[barrier-b]
 *		return			wake all
 *	wait while word is seen
 *
 * Invariant: no waiter sleeps after its round is over.  The state alone tells
 * whether a round is over; waiters sleep on the word.  A waiter that has read
 * the new word reads the new state too; one that has read the old word finds it
 * changed when it goes to sleep, or is woken.  Otherwise it sleeps through the
 * end of its round.  The word belongs to no round, so a wake for one round may
 * reach waiters of the next, which check the state again.
 */
#include "wait/wait.h"
#include "base/inject.h"

static uint32_t round_of(uint64_t state)
{
	return (uint32_t)(state >> 32);
}

static uint32_t nr_come(uint64_t state)
{
	return (uint32_t)state;
}

static bool is_over(struct pl_barrier *b, uint32_t round)
{
	return round_of(__atomic_load_n(&b->state, __ATOMIC_SEQ_CST)) != round;
}

static bool barrier_cas(struct pl_barrier *b, uint64_t *from, uint64_t to)
{
	return __atomic_compare_exchange_n(&b->state, from, to, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* True: the caller is the last waiter of @round, and has ended it. */
static bool come(struct pl_barrier *b, uint32_t *round)
{
	uint64_t old = __atomic_load_n(&b->state, __ATOMIC_RELAXED), new;
	bool is_last;

	do {
		*round = round_of(old);
		is_last = nr_come(old) + 1 >= b->nr;
		new = is_last ? (uint64_t)(*round + 1) << 32 : old + 1;
	} while (!barrier_cas(b, &old, new));
	return is_last;
}

/* False: the round was over before. */
static bool take_back(struct pl_barrier *b, uint32_t round)
{
	uint64_t old = __atomic_load_n(&b->state, __ATOMIC_RELAXED);

	do {
		if (round_of(old) != round)
			return false;
	} while (!barrier_cas(b, &old, old - 1));
	return true;
}

static void barrier_wake_all(struct pl_barrier *b)
{
	/* [barrier-b] pairs with [barrier-a] in wait_for_others(). */
	atomic_fetch_add(&b->word.value, 1);
	PL_INJECT("barrier-b");
	pl__wake(&b->word.value, UINT32_MAX);
}

static int wait_for_others(struct pl_barrier *b, uint32_t round)
{
	uint32_t seen;
	int ret;

	do {
		/* [barrier-a] pairs with [barrier-b] in barrier_wake_all(). */
		seen = atomic_load(&b->word.value);
		PL_INJECT("barrier-a");
		if (is_over(b, round))
			return 0;
		ret = pl__wait(&b->word.value, seen, PL_FOREVER,
			      PL__FOR_BARRIER);
	} while (!ret || ret == -EAGAIN);

	if (take_back(b, round))
		return ret;
	pl__interrupt_restore(ret);
	return 0;
}

int pl_barrier_init(struct pl_barrier *b, uint32_t nr)
{
	if (!b || !nr)
		return -EINVAL;
	*b = (struct pl_barrier)PL_BARRIER_INIT(nr);
	return 0;
}

int pl_barrier_wait(struct pl_barrier *b)
{
	int ret = b ? pl__wait_pending() : -EINVAL;
	uint32_t round;

	if (ret)
		return ret;
	if (!come(b, &round))
		return wait_for_others(b, round);
	if (b->nr > 1)
		barrier_wake_all(b);
	return 1;
}
