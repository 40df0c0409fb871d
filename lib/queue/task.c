/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * task: the table of tasks: slots, handles, and the caller's own task
 *
 * The table belongs to the process, not to the runtime: a handle of a runtime
 * that was stopped is found stale in the next one.
 */
#include "queue/rt.h"
#include "base/atfork.h"

#define NR_TASKS_MAX	(1U << 26)

/* So many workers take and give back more slots at a time. */
#define WORKERS_MANY	16

/* Called from a signal handler. */
static const struct pl__stack *running(const char **name, uint64_t *handle)
{
	struct pl__task *t = pl__current();

	if (!t)
		return NULL;
	*name = pl__task_name(t);
	*handle = pl__task_handle(t);
	return t->stack;
}

static struct pl__lock init_lock;

int pl__tasks_init(void)
{
	int ret = pl__atfork_install();

	if (ret || load_acquire(&pl__rt.has_tasks))
		return ret;
	pl__lock(&init_lock);
	if (!load_relaxed(&pl__rt.has_tasks)) {
		ret = pl__slab_init(&pl__rt.tasks, sizeof(struct pl__task),
				    NR_TASKS_MAX);
		if (!ret)
			store_release(&pl__rt.has_tasks, true);
		pl__stack_on_overflow(running);
	}
	pl__unlock(&init_lock);
	return ret;
}

/* All workers, and threads outside, share the slab's lock. */
void pl__tasks_start(uint32_t nr_workers)
{
	pl__slab_set_batch(&pl__rt.tasks, nr_workers < WORKERS_MANY ?
			   PL__SLAB_BATCH : 4 * PL__SLAB_BATCH);
}

/* A handle from before the fork names no task of the child, and never will. */
static void task_atfork_child(void)
{
	init_lock = (struct pl__lock){ 0 };
	if (pl__rt.has_tasks)
		pl__rt.first_slot = pl__slab_abandon(&pl__rt.tasks);
}

PL_ATFORK_CHILD(task_atfork_child);

struct pl__task *pl__task_slot(pl_task_t h)
{
	if (!load_acquire(&pl__rt.has_tasks) ||
	    (uint32_t)h < pl__rt.first_slot)
		return NULL;
	return pl__slab_get(&pl__rt.tasks, (uint32_t)h);
}

_Atomic bool pl__task_has_wrapped;

int pl__task_was(struct pl__task *t, pl_task_t h)
{
	uint32_t version = pl__task_version(h);

	if (!(version & 1))
		return -ESRCH;
	if (!t)
		return (uint32_t)h < pl__rt.first_slot ? 0 : -ESRCH;
	/*
	 * Versions are released: behind one from after the wrap it is seen.
	 */
	if (version <= load_acquire(&t->version) ||
	    load_relaxed(&pl__task_has_wrapped))
		return 0;
	return -ESRCH;
}

struct pl__task *pl__current(void)
{
	struct pl__worker *w = pl__self();

	return w ? w->current : NULL;
}

pl_task_t pl_self(void)
{
	struct pl__task *t = pl__current();

	return t ? pl__task_handle(t) : 0;
}
