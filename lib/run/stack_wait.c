/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "run/stack_wait.h"
#include "run/run.h"

#define LOOP_STACK_SIZE	(8UL << 20)	/* of a worker's thread, by default */

static void give_stack(struct pl__task *t, struct pl__stack *st)
{
	char *base = st->base;

	pl__task_move_in(t, st);
	pl__ctx_init(&t->ctx, base, (size_t)((char *)st - base), pl__task_main,
		     t);
}

/*
 * Under the lock: @diff more tasks wait, and spawns are refused or not.  Once
 * the number shows that a task waits, no spawn that begins then passes.
 */
static void stackless_count(struct pl__stackless *sl, int diff)
{
	uint32_t nr = load_relaxed(&sl->nr) + (uint32_t)diff;

	if (nr)
		atomic_fetch_or(&pl__rt.gates, PL__GATE_STACKLESS);
	atomic_store(&sl->nr, nr);
	if (!nr)
		atomic_fetch_and(&pl__rt.gates, ~PL__GATE_STACKLESS);
}

/*
 * Tries once more after nr has gone up, so that a stack put back before that is
 * found.  Both sides may miss each other at the same moment: then the next
 * stack that is put back goes to the task, or this one when its worker is idle.
 */
static bool wait_for_stack(struct pl__worker *w, struct pl__task *t)
{
	struct pl__stackless *sl = &pl__rt.stackless;
	struct pl__stack *st;

	pl__lock(&sl->lock);
	stackless_count(sl, 1);
	st = pl__stack_get(&pl__rt.stacks, &w->stacks, t->cls);
	if (st) {
		stackless_count(sl, -1);
	} else {
		t->link.next = sl->head[t->cls];
		sl->head[t->cls] = &t->link;
	}
	pl__unlock(&sl->lock);
	if (st)
		give_stack(t, st);
	else
		pl__retry_later();
	return st;
}

/*
 * The stop waits for tasks that have not started.  Those for which there is no
 * memory then run on the worker's stack, if that is as large: their calls do
 * not block any more.
 */
static bool may_stop_on_loop(uint32_t cls)
{
	return pl__rt_is_stopping() &&
	       pl__rt.cfg.stack_size[cls] <= LOOP_STACK_SIZE;
}

static bool run_without(struct pl__task *t)
{
	bool may = t->may_lack_stack || may_stop_on_loop(t->cls);

	if (may)
		t->cls = PL_STACK_WORKER;
	return may;
}

/* Apart from its caller, which then needs no frame where there is a stack. */
static __pl_noinline bool prepare_without(struct pl__worker *w,
					  struct pl__task *t)
{
	return run_without(t) || wait_for_stack(w, t);
}

bool pl__task_prepare(struct pl__worker *w, struct pl__task *t)
{
	struct pl__stack *st;

	if (t->stack || t->cls == PL_STACK_WORKER)
		return true;
	st = pl__stack_get(&pl__rt.stacks, &w->stacks, t->cls);
	if (unlikely(!st))
		return prepare_without(w, t);
	give_stack(t, st);
	return true;
}

static struct pl__task *take_stackless(uint32_t cls)
{
	struct pl__stackless *sl = &pl__rt.stackless;
	struct pl__link *l;

	pl__lock(&sl->lock);
	l = sl->head[cls];
	if (l) {
		sl->head[cls] = l->next;
		stackless_count(sl, -1);
	}
	pl__unlock(&sl->lock);
	return l ? container_of(l, struct pl__task, link) : NULL;
}

/* Makes ready as many tasks of each class as there are stacks in the cache. */
void pl__stacks_share(struct pl__worker *w)
{
	uint32_t had[PL__STACK_CLASSES];
	struct pl__task *t;
	uint32_t cls;

	for (cls = 0; cls < PL__STACK_CLASSES; cls++)
		had[cls] = w->stacks.nr[cls];
	pl__stack_cache_drain(&pl__rt.stacks, &w->stacks);
	for (cls = 0; cls < PL__STACK_CLASSES; cls++) {
		while (had[cls]-- && (t = take_stackless(cls)))
			pl__ready(t);
	}
}

/*
 * Without a stack a task is made ready all the same: its worker may have one.
 * During the stop the others follow, see may_stop_on_loop().
 */
static bool retry_one(struct pl__task *t, uint32_t cls)
{
	struct pl__stack *st = pl__stack_get(&pl__rt.stacks, NULL, cls);

	if (st)
		give_stack(t, st);
	pl__ready(t);
	return st || may_stop_on_loop(cls);
}

/* Allocates stacks for tasks that wait for one, as far as memory allows. */
static void stacks_retry(void)
{
	struct pl__task *t;
	uint32_t cls;

	if (!load_relaxed(&pl__rt.stackless.nr))
		return;

	for (cls = 0; cls < PL__STACK_CLASSES; cls++) {
		do {
			t = take_stackless(cls);
		} while (t && retry_one(t, cls));
	}
	/*
	 * The task that found none may be handed the stack of one that ends, so
	 * that it does not come back to ask for the next retry.
	 */
	if (load_relaxed(&pl__rt.stackless.nr))
		pl__retry_later();
}

void pl__task_put_stack(struct pl__worker *w, struct pl__stack *st)
{
	pl__stack_put(&pl__rt.stacks, &w->stacks, st);
	if (unlikely(load_relaxed(&pl__rt.stackless.nr)))
		pl__stacks_share(w);
}

static void __attribute__((constructor)) stack_wait_hook_in(void)
{
	pl__retry_stacks = stacks_retry;
}
