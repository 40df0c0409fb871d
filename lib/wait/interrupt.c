/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * interrupt: ends the waits of a task, now or later: interrupts and cancels
 */
#include "wait/wait.h"
#include "base/inject.h"

/* The task waits, so it does not enter or leave a shield meanwhile. */
static bool is_immune(const struct pl__task *t)
{
	return t->waiter.uninterruptible ||
	       atomic_load(&t->state) & PL__TASK_SHIELDED;
}

static bool may_interrupt(struct pl__task *t, uint64_t version)
{
	return load_relaxed(&t->version) == version && !is_immune(t) &&
	       pl__interrupt_consume(t);
}

static bool may_cancel(struct pl__task *t, uint64_t version)
{
	return load_relaxed(&t->version) == version && !is_immune(t);
}

static bool may_stop(struct pl__task *t, uint64_t arg)
{
	(void)arg;
	return !is_immune(t);
}

static bool may_cancel_in_scope(struct pl__task *t, uint64_t arg)
{
	(void)arg;
	return !t->waiter.uninterruptible &&
	       atomic_load(&t->state) & PL__TASK_SCOPE_CANCELLED;
}

static uint32_t section_of(uint64_t state)
{
	return state >> PL__TASK_SECTION_SHIFT & PL__TASK_SECTION_MAX;
}

/*
 * Sets @flag if the task that @h names is alive, and in @section, unless that
 * is 0; 1: it has entered scopes.
 */
static int interrupt_mark(struct pl__task *t, pl_task_t h, uint64_t flag,
			  uint32_t section)
{
	uint64_t old = t ? atomic_load(&t->state) : 0;

	do {
		if (!t || old >> 32 != pl__task_version(h) ||
		    !(old >> 32 & 1) || (section && section != section_of(old)))
			return -ESRCH;
		/*
		 * [intr-b] pairs with [intr-a] in wait_link(), [scope-b] with
		 * [scope-a] in scope_list().
		 */
	} while (!atomic_compare_exchange_weak(&t->state, &old, old | flag));
	PL_INJECT("intr-b");
	return old & PL__TASK_IN_SCOPE ? 1 : 0;
}

static int interrupt_task(pl_task_t h, uint64_t flag, uint32_t section)
{
	struct pl__task *t = pl__task_slot(h);
	int ret = interrupt_mark(t, h, flag, section);

	if (ret < 0)
		return ret;
	pl__wait_abort(t, -EINTR, may_interrupt, pl__task_version(h));
	return 0;
}

int pl_interrupt(pl_task_t h)
{
	return h ? interrupt_task(h, PL__TASK_INTERRUPTED, 0) : -EINVAL;
}

/*
 * Numbers of sections are odd; an even one is the time between two.  Without an
 * interrupt for the last one.
 */
static uint32_t section_set(struct pl__task *t, bool is_begun)
{
	uint64_t old = atomic_load(&t->state), new;
	uint32_t section;

	do {
		section = section_of(old) + 1;
		if (section % 2 != is_begun)
			section++;
		section &= PL__TASK_SECTION_MAX;
		new = old & ~(PL__TASK_SECTION_MAX << PL__TASK_SECTION_SHIFT) &
		      ~PL__TASK_SECTION_INTERRUPTED;
		new |= (uint64_t)section << PL__TASK_SECTION_SHIFT;
	} while (!atomic_compare_exchange_weak(&t->state, &old, new));
	return section;
}

uint32_t pl_section_begin(void)
{
	struct pl__task *t = pl__current();

	return t ? section_set(t, true) : 0;
}

void pl_section_end(void)
{
	struct pl__task *t = pl__current();

	if (t && section_of(atomic_load(&t->state)) % 2)
		section_set(t, false);
}

int pl_section_interrupt(pl_task_t h, uint32_t section)
{
	if (!h || !section)
		return -EINVAL;
	/* The task may have this number, but between two sections. */
	if (section % 2 == 0)
		return -ESRCH;
	return interrupt_task(h, PL__TASK_SECTION_INTERRUPTED, section);
}

int pl__cancel_task(pl_task_t h)
{
	struct pl__task *t = pl__task_slot(h);
	int ret = h ? interrupt_mark(t, h, PL__TASK_CANCELLED, 0) : -EINVAL;

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
	struct pl__task *t = pl__current(), *thread;

	if (t)
		return pl__state_is_cancelled(atomic_load(&t->state));
	thread = pl__self_thread();
	return thread &&
	       atomic_load(&thread->state) & PL__TASK_SCOPE_CANCELLED;
}

void pl__wait_cancel_all(void)
{
	uint32_t nr = pl__slab_nr_slots(&pl__rt.tasks), i;

	for (i = pl__rt.first_slot; i < nr; i++)
		pl__wait_abort(pl__slab_get(&pl__rt.tasks, i), -ECANCELED,
			       may_stop, 0);
}
