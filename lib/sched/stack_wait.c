/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/stack_wait.h"
#include "sched/sched.h"

static void give_stack(struct pl__task *t, struct pl__stack *st)
{
	char *base = st->base;

	pl__task_move_in(t, st);
	pl__ctx_init(&t->ctx, base, (size_t)((char *)st - base), pl__task_main,
		     t);
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
	atomic_fetch_add(&sl->nr, 1);
	st = pl__stack_get(&pl__rt.stacks, &w->stacks, t->cls);
	if (st) {
		atomic_fetch_sub(&sl->nr, 1);
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

bool pl__task_prepare(struct pl__worker *w, struct pl__task *t)
{
	struct pl__stack *st;

	if (t->stack || t->cls == PL_STACK_WORKER)
		return true;
	st = pl__stack_get(&pl__rt.stacks, &w->stacks, t->cls);
	if (unlikely(!st))
		return wait_for_stack(w, t);
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
		atomic_fetch_sub(&sl->nr, 1);
	}
	pl__unlock(&sl->lock);
	return l ? container_of(l, struct pl__task, link) : NULL;
}

/* Makes ready one task of each class for which there is a stack. */
void pl__stacks_share(struct pl__worker *w)
{
	bool had[PL__STACK_CLASSES];
	struct pl__task *t;
	uint32_t cls;

	for (cls = 0; cls < PL__STACK_CLASSES; cls++)
		had[cls] = w->stacks.nr[cls];
	pl__stack_cache_drain(&pl__rt.stacks, &w->stacks);
	for (cls = 0; cls < PL__STACK_CLASSES; cls++) {
		t = had[cls] ? take_stackless(cls) : NULL;
		if (t)
			pl__ready(t);
	}
}

void pl__stacks_retry(void)
{
	struct pl__task *t;
	struct pl__stack *st;
	uint32_t cls;

	for (cls = 0; cls < PL__STACK_CLASSES; cls++) {
		while ((t = take_stackless(cls))) {
			st = pl__stack_get(&pl__rt.stacks, NULL, cls);
			if (st)
				give_stack(t, st);
			/*
			 * Without a stack the task waits again, in
			 * pl__task_prepare().
			 */
			pl__ready(t);
			if (!st)
				break;
		}
	}
}

void pl__task_put_stack(struct pl__worker *w, struct pl__stack *st)
{
	pl__stack_put(&pl__rt.stacks, &w->stacks, st);
	if (unlikely(load_relaxed(&pl__rt.stackless.nr)))
		pl__stacks_share(w);
}
