/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * cond: a sequence that each signal increments
 *
 *	waiter, with the mutex		signaller
 *	seq = c->seq		[cond-a]	c->seq++	[cond-b]
 *	unlock				wake one
 *	wait while c->seq is seq
 *
 * Invariant: a waiter is signalled for each change that it did not see.  The
 * waiter reads the sequence under the mutex; so a signal for a change made
 * afterwards either finds it asleep, or makes the value differ so that it does
 * not sleep.  Otherwise the waiter misses the signal.
 *
 * A broadcast wakes one waiter and moves the others to the mutex.  Each of them
 * locks it as a thread that has slept, so its unlock wakes the next.
 */
#include "sync/mutex.h"
#include "base/inject.h"

__pl_no_frame
int pl_cond_wait(struct pl_cond *c, struct pl_mutex *m)
{
	return pl_cond_wait_until(c, m, PL_FOREVER);
}

int pl_cond_wait_until(struct pl_cond *c, struct pl_mutex *m,
		       uint64_t deadline_ns)
{
	uint32_t seq;
	int ret;

	if (!c || !m)
		return -EINVAL;
	__atomic_store_n(&c->mutex, m, __ATOMIC_RELAXED);
	/* [cond-a] pairs with [cond-b] in move_on(). */
	seq = atomic_load(&c->seq.value);
	PL_INJECT("cond-a");
	pl_mutex_unlock(m);
	ret = pl__wait_pending();
	/* A caller that ignores it lets others have the mutex all the same. */
	if (unlikely(ret))
		pl_yield();
	else
		ret = pl__wait(&c->seq.value, seq, deadline_ns, PL__FOR_COND);
	/* Moved to the mutex, it may have been handed it. */
	if (ret == PL__WAIT_OWNS)
		return 0;
	while (pl__mutex_lock_contended(m, PL_FOREVER,
					PL__WAIT_UNINTERRUPTIBLE))
		pl_yield();
	return ret == -EAGAIN ? 0 : ret;
}

/* Increments the sequence; from here on a waiter may return and free *@c. */
static void move_on(struct pl_cond *c)
{
	/* [cond-b] pairs with [cond-a] in pl_cond_wait_until(). */
	atomic_fetch_add(&c->seq.value, 1);
	PL_INJECT("cond-b");
}

__pl_no_frame
void pl_cond_signal(struct pl_cond *c)
{
	move_on(c);
	pl__wake(&c->seq.value, 1);
}

__pl_no_frame
void pl_cond_broadcast(struct pl_cond *c)
{
	struct pl_mutex *m = __atomic_load_n(&c->mutex, __ATOMIC_RELAXED);

	move_on(c);
	if (m)
		pl__requeue(&c->seq.value, &m->word.value, 1, UINT32_MAX);
}
