/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * join: waiting on a task's version
 *
 * The first task that joins, and has no deadline, waits in the task's place
 * for that (wait_single.h); others wait on the version in its bucket, and mark
 * the place.
 *
 *	joiner				task that ends
 *	place |= others		[join-a]	version++
 *	wait while version is ours	old = place := empty	[join-b]
 *						if (old has others)
 *							wake all
 *
 * Both change the place: either the joiner finds that the version moved, or
 * the task finds that it is joined; who is not joined wakes nobody.  The slot
 * stays for ever, so a joiner that comes late finds another version, never
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
	return ret;
}

int pl_join(pl_task_t h)
{
	return pl_join_until(h, PL_FOREVER);
}
