/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * interrupt: ends the waits of a task, now or later: interrupts and cancels
 */
#include "wait/wait.h"
#include "base/inject.h"

static bool may_interrupt(struct pl__task *t, uint64_t version)
{
	return load_relaxed(&t->version) == version &&
	       !t->waiter.uninterruptible && pl__interrupt_consume(t);
}

static bool may_cancel(struct pl__task *t, uint64_t version)
{
	return load_relaxed(&t->version) == version &&
	       !t->waiter.uninterruptible;
}

static bool may_stop(struct pl__task *t, uint64_t arg)
{
	(void)arg;
	return !t->waiter.uninterruptible;
}

static bool may_cancel_in_scope(struct pl__task *t, uint64_t arg)
{
	(void)arg;
	return !t->waiter.uninterruptible &&
	       atomic_load(&t->state) & PL__TASK_SCOPE_CANCELLED;
}

/* Sets @flag if the task that @h names is alive; 1: it has entered scopes. */
static int interrupt_mark(struct pl__task *t, pl_task_t h, uint64_t flag)
{
	uint64_t old = t ? atomic_load(&t->state) : 0;

	do {
		if (!t || old >> 32 != pl__task_version(h) || !(old >> 32 & 1))
			return -ESRCH;
		/*
		 * [intr-b] pairs with [intr-a] in wait_link(), [scope-b] with
		 * [scope-a] in scope_list().
		 */
	} while (!atomic_compare_exchange_weak(&t->state, &old, old | flag));
	PL_INJECT("intr-b");
	return old & PL__TASK_IN_SCOPE ? 1 : 0;
}

int pl_interrupt(pl_task_t h)
{
	struct pl__task *t = pl__task_slot(h);
	int ret = h ? interrupt_mark(t, h, PL__TASK_INTERRUPTED) : -EINVAL;

	if (ret < 0)
		return ret;
	pl__wait_abort(t, -EINTR, may_interrupt, pl__task_version(h));
	return 0;
}

int pl__cancel_task(pl_task_t h)
{
	struct pl__task *t = pl__task_slot(h);
	int ret = h ? interrupt_mark(t, h, PL__TASK_CANCELLED) : -EINVAL;

	PL_INJECT("scope-b");
	if (ret >= 0)
		pl__wait_abort(t, -ECANCELED, may_cancel, pl__task_version(h));
	return ret;
}

void (*pl__cancel_scopes)(pl_task_t h);

int pl_cancel(pl_task_t h)
{
	int ret = pl__cancel_task(h);

	if (ret > 0)
		pl__cancel_scopes(h);
	return ret < 0 ? ret : 0;
}

void pl__wait_cancel_in_scope(struct pl__task *t)
{
	pl__wait_abort(t, -ECANCELED, may_cancel_in_scope, 0);
}

bool pl_cancelled(void)
{
	struct pl__task *t = pl__current();

	if (!t)
		t = pl__self_thread();
	return t && (atomic_load(&t->state) &
			(PL__TASK_CANCELLED | PL__TASK_SCOPE_CANCELLED) ||
		     (pl__current() && pl__rt_is_stopping()));
}

void pl__wait_cancel_all(void)
{
	uint32_t nr = pl__slab_nr_slots(&pl__rt.tasks), i;

	for (i = pl__rt.first_slot; i < nr; i++)
		pl__wait_abort(pl__slab_get(&pl__rt.tasks, i), -ECANCELED,
			       may_stop, 0);
}
