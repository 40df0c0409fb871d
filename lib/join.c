/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * join: waiting on a task's version
 *
 *	joiner				task that ends
 *	on_end = wake_joiners	[join-a]	version++	[join-b]
 *	wait while version is ours	if (on_end)
 *						on_end: wake all
 *
 * Either the joiner finds that the version moved, or the task finds that it
 * is joined; who is not joined wakes nobody.  The slot stays for ever, so a
 * joiner that comes late finds another version, never freed memory.
 */
#include "wait.h"
#include "inject.h"

static void wake_joiners(struct pl__task *t)
{
	pl__wake(&t->version, UINT32_MAX);
}

static bool is_alive(struct pl__task *t, pl_task_t h)
{
	return t && pl__task_version(h) & 1 &&
	       atomic_load(&t->version) == pl__task_version(h);
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
	if (ret)
		return ret;

	while (is_alive(t, h)) {
		/* [join-a] pairs with [join-b] in pl__task_end(). */
		atomic_store(&t->on_end, wake_joiners);
		pl__full_barrier();
		PL_INJECT("join-a");
		ret = pl__wait(&t->version, pl__task_version(h), deadline_ns,
			       0);
		if (ret && ret != -EAGAIN)
			return ret;
	}
	return 0;
}

int pl_join(pl_task_t h)
{
	return pl_join_until(h, PL_FOREVER);
}
