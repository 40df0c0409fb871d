/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * join: waiting on a task's version
 *
 * The first task that joins, without a deadline, waits in the joined task's
 * single-waiter slot (task.h).  Others wait on the version in its
 * bucket, and mark the slot.
 *
 *	joiner				task that ends
 *	slot |= others		[join-a]	version++
 *	wait while version is old	old = slot := empty	[join-b]
 *						if (old has others)
 *							wake all
 *
 * Invariant: no joiner waits for a task that has ended.  Both sides change the
 * slot, and such changes have one order: either the joiner's comes second and
 * it sees the new version, or the task's comes second and it sees the mark;
 * otherwise the joiner sleeps for ever.  A task without joiners wakes none.
 * The task's slot stays mapped, so a late joiner finds another version, never
 * freed memory.
 */
#include "base/inject.h"
#include "wait/wait.h"
#include "base/sys.h"
#include "wait/wait_lone.h"

static void wake_joiners(struct pl__task *t)
{
	pl__wake(&t->version, UINT32_MAX);
}

static void __attribute__((constructor)) hook_in(void)
{
	pl__wake_joiners = wake_joiners;
}

static bool is_alive(struct pl__task *t, pl_task_t h)
{
	return t && pl__task_version(h) & 1 &&
	       atomic_load(&t->version) == pl__task_version(h);
}

static int wait_with_others(struct pl__task *t, uint32_t version,
			    uint64_t deadline_ns)
{
	/* [join-a] pairs with [join-b] in pl__task_end(). */
	atomic_fetch_or(&t->joiner, PL__WAIT_SLOT_OTHERS);
	PL_INJECT("join-a");
	return pl__wait(&t->version, version, deadline_ns, PL__FOR_JOIN);
}

static inline int join_wait_once(struct pl__task *t, uint32_t version,
				 uint64_t deadline_ns)
{
	int ret = -EBUSY;

	if (deadline_ns == PL_FOREVER)
		ret = pl__wait_single(pl__current(), &t->joiner, &t->version,
				      version);
	return ret == -EBUSY ? wait_with_others(t, version, deadline_ns) : ret;
}

int pl_join_until(pl_task_t h, uint64_t deadline_ns)
{
	struct pl__task *t = pl__task_slot(h);
	int ret;

	if (!h)
		return -EINVAL;
	if (h == pl_self())
		return -EDEADLK;
	ret = pl__wait_pending();
	while (!ret && is_alive(t, h)) {
		ret = join_wait_once(t, pl__task_version(h), deadline_ns);
		if (ret == -EAGAIN)
			ret = is_alive(t, h) ? pl__wait_pending() : 0;
	}
	return ret ? ret : pl__task_was(t, h);
}

int pl_join(pl_task_t h)
{
	return pl_join_until(h, PL_FOREVER);
}

/*
 * sleep: waiting until a deadline, for nothing else
 */

uint64_t pl_now(void)
{
	return pl__now_ns();
}

int pl_sleep_until(uint64_t deadline_ns)
{
	_Atomic uint32_t never = 0;
	struct pl__task *t;
	int ret = pl__wait_pending();

	if (ret)
		return ret;
	t = pl__wait_lone_begin(&never);
	/*
	 * A late wake for a word that was at this address before is not the
	 * deadline, nor is an old timer.
	 */
	do {
		ret = t ? pl__wait_lone(t, deadline_ns, PL__FOR_SLEEP) :
			  pl__wait(&never, 0, deadline_ns, PL__FOR_SLEEP);
	} while (!ret || ret == -EAGAIN);
	if (t)
		pl__wait_lone_end(t);
	return ret == -ETIMEDOUT ? 0 : ret;
}

int pl_sleep(uint64_t ns)
{
	uint64_t now = pl__now_ns();

	return pl_sleep_until(ns < PL_FOREVER - now ? now + ns : PL_FOREVER);
}

int pl_word_wait(struct pl_word *w, uint32_t expected, uint64_t deadline_ns)
{
	int ret = w ? pl__wait_pending() : -EINVAL;

	return ret ? ret : pl__wait(&w->value, expected, deadline_ns,
				   PL__FOR_WORD);
}

__pl_no_frame
int pl_word_wake(struct pl_word *w, uint32_t nr)
{
	return w ? (int)pl__wake(&w->value, nr) : -EINVAL;
}

int pl_word_requeue(struct pl_word *from, struct pl_word *to, uint32_t nr_wake,
		    uint32_t nr_move)
{
	if (!from || !to || from == to)
		return -EINVAL;
	return (int)pl__requeue(&from->value, &to->value, nr_wake, nr_move);
}
