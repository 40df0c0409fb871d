/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * task_limit: the tasks that are alive, where max_tasks limits them
 *
 * Each spawn takes the count up by one compare-and-swap, so that it is never
 * above the limit; the end of a task takes it down.  A spawner that waits waits
 * on the count.
 *
 *	spawner that waits			task that ends
 *	nr_waiting++		[limit-a]	nr--		[limit-b]
 *	until it has taken nr up		if (nr_waiting)
 *		wait while nr is the limit		wake one
 *
 * Invariant: no spawner sleeps while fewer tasks are alive than the limit and
 * no wake is due.  Each side writes its word before it reads the other's:
 * either the task that ends sees nr_waiting, or the spawner sees the lower nr
 * and does not wait; otherwise the spawner sleeps although it may spawn, for
 * ever if that was the last task.
 *
 * A spawner that does not wait may be first after the wake.  The one that was
 * woken finds the limit reached then, and waits again as the first; the task
 * that overtook it wakes it at its end.  A wait that ends for another reason
 * was not woken, so it takes no wake along.
 *
 * The library's own tasks, of queues and of the I/O of threads, neither count
 * nor wait: a push or a read is no spawn.
 *
 * A group may have a limit of its own beside that of the runtime.
 */
#include "base/inject.h"
#include "rt/runtime.h"
#include "wait/wait.h"

static bool task_limit_take(struct pl__task_limit *l)
{
	uint32_t nr = load_relaxed(&l->nr);

	do {
		if (nr >= l->max)
			return false;
	} while (!atomic_compare_exchange_weak(&l->nr, &nr, nr + 1));
	return true;
}

static int task_limit_wait(struct pl__task_limit *l, uint64_t deadline_ns)
{
	uint32_t flags = PL__FOR_SPAWN;
	int ret;

	while (!task_limit_take(l)) {
		ret = pl__wait(&l->nr, l->max, deadline_ns, flags);
		if (ret && ret != -EAGAIN)
			return ret;
		if (!ret)
			flags |= PL__WAIT_FIRST;
	}
	return 0;
}

static int task_limit_enter(struct pl__task_limit *l, struct pl__group *g,
			    bool may_wait, uint64_t deadline_ns)
{
	int ret;

	if (!l->max || task_limit_take(l))
		return 0;
	if (!may_wait) {
		atomic_fetch_add(&l->nr_refused, 1);
		return -EAGAIN;
	}
	ret = pl__wait_pending();
	if (ret)
		return ret;
	/* What the caller has spawned quietly may have to end first. */
	pl_flush();
	if (!pl__self())
		pl__notify_one(g);
	atomic_fetch_add(&l->nr_waited, 1);
	/* [limit-a] pairs with [limit-b] in task_limit_leave(). */
	atomic_fetch_add(&l->nr_waiting, 1);
	PL_INJECT("limit-a");
	ret = task_limit_wait(l, deadline_ns);
	atomic_fetch_sub(&l->nr_waiting, 1);
	return ret;
}

static void task_limit_leave(struct pl__task_limit *l)
{
	if (!l->max)
		return;
	/* [limit-b] pairs with [limit-a] in task_limit_enter(). */
	atomic_fetch_sub(&l->nr, 1);
	PL_INJECT("limit-b");
	if (atomic_load(&l->nr_waiting))
		pl__wake(&l->nr, 1);
}

/* The group's first: what waits for that keeps nothing from other groups. */
int pl__task_limit_enter(struct pl__group *g, bool may_wait,
			 uint64_t deadline_ns)
{
	int ret = task_limit_enter(&g->task_limit, g, may_wait, deadline_ns);

	if (ret)
		return ret;
	ret = task_limit_enter(&pl__rt.task_limit, g, may_wait, deadline_ns);
	if (ret)
		task_limit_leave(&g->task_limit);
	return ret;
}

void pl__task_limit_leave(struct pl__group *g)
{
	task_limit_leave(&pl__rt.task_limit);
	task_limit_leave(&g->task_limit);
}

static void __attribute__((constructor)) task_limit_hook_in(void)
{
	pl__leave_task_limit = pl__task_limit_leave;
}

void pl__task_limit_start(void)
{
	pl__rt.task_limit.max = pl__rt.cfg.max_tasks;
	store_relaxed(&pl__rt.gates, pl__rt.cfg.max_tasks ?
		      PL__GATE_TASK_LIMIT : 0);
}

void pl__task_limit_stop(void)
{
	store_relaxed(&pl__rt.gates, 0);
	store_relaxed(&pl__rt.task_limit.nr_refused, 0);
	store_relaxed(&pl__rt.task_limit.nr_waited, 0);
}
