/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * join: waiting on a task's version
 *
 * The first task that joins, without a deadline, waits in the joined task's
 * single-waiter slot (wait_single.h).  Others wait on the version in its
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
