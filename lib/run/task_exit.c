/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "run/run.h"
#include "ctx/cxx.h"
#include "base/inject.h"
#include "base/base.h"
#include "base/sys.h"
#include "queue/aside.h"

void (*pl__wake_joiners)(struct pl__task *t);
void (*pl__leave_scopes)(struct pl__task *t);
void (*pl__leave_task_limit)(struct pl__group *g);

static void notify_stopper(void)
{
	/* [stop-b] pairs with [stop-a] in runtime.c. */
	if (likely(!pl__rt_is_stopping()))
		return;
	atomic_fetch_add(&pl__rt.ended_word, 1);
	pl__futex_wake(&pl__rt.ended_word, 1);
}

void pl__task_take_back(void)
{
	atomic_fetch_add(&pl__rt.ended_outside, 1);
	notify_stopper();
}

static void __attribute__((noreturn, cold)) die_in_scope(struct pl__task *t)
{
	fprintf(stderr, "parklot: task '%s' returned inside of a scope\n",
		pl__current() ? pl__task_name(t) : "(thread)");
	abort();
}

/* A joiner that sees the end finds room for the next task. */
static __pl_noinline void end_locals_slow(struct pl__task *t)
{
	if (load_relaxed(&t->state) & PL__TASK_IN_SCOPE)
		die_in_scope(t);
	if (t->locals)
		t->locals->end(t);
	if (load_relaxed(&t->state) & PL__TASK_COUNTED) {
		atomic_fetch_and(&t->state, ~PL__TASK_COUNTED);
		pl__leave_task_limit(pl__group_of(t));
	}
	pl__place_end(t);
}

void pl__task_end_locals(struct pl__task *t)
{
	if (unlikely(load_relaxed(&t->state) &
		     (PL__TASK_IN_SCOPE | PL__TASK_COUNTED |
		      PL__TASK_PLACED)))
		end_locals_slow(t);
	else if (unlikely(t->locals))
		t->locals->end(t);
}

struct pl__task *pl__task_end(struct pl__worker *w, struct pl__task *t)
{
	uint32_t version = load_relaxed(&t->version) + 1;
	struct pl__wait_entry *joiner;
	bool others;

	if (unlikely(pl__has_hooks()))
		pl__hooks_drop();
	counter_inc_release(&w->stat.ended);
	if (unlikely(!version))
		store_relaxed(&pl__task_has_wrapped, true);
	store_release(&t->state, (uint64_t)version << 32);
	store_release(&t->version, version);
	PL_INJECT("join-b");
	/* [join-b] pairs with [join-a] in join.c. */
	joiner = pl__wait_single_take(&t->joiner, &others);
	if (unlikely(others))
		pl__wake_joiners(t);
	notify_stopper();
	return joiner ? container_of(joiner, struct pl__task, waiter) : NULL;
}

void pl__task_free(struct pl__worker *w, void *arg)
{
	struct pl__task *t = arg;
	struct pl__stack *st = t->stack;

	if (st) {
		t->stack = NULL;
		pl__ctx_fini(&t->ctx);
		pl__task_put_stack(w, st);
	}
	pl__slab_free(&pl__rt.tasks, &w->tasks, t);
}

static void __attribute__((noreturn)) leave_last(struct pl__worker *w,
						 struct pl__task *t,
						 struct pl__task *next)
{
	if (next && !pl__task_prepare(w, next))
		next = pl__next_prepared(w);
	pl__stack_check(t->stack);
	pl__ctx_switch_last(&t->ctx,
			    pl__switch_prepare(w, next, pl__task_free, t));
}

/*
 * The joiner of a task that has just ended would be the newest in the queue,
 * and so the next to run.  It bypasses the queue, unless another task is due
 * first.
 */
static struct pl__task *next_after(struct pl__worker *w,
				   struct pl__task *joiner)
{
	uint32_t tick = load_relaxed(&w->tick) + 1;

	if (!joiner)
		return pl__next(w);
	if (w->nr_unsignalled || w->nr_ahead_of_yield ||
	    !(tick & w->event_mask) || pl__has_surplus_workers(w->group) ||
	    !pl__is_placed_by(w, joiner)) {
		pl__ready(joiner);
		return pl__next(w);
	}
	store_relaxed(&w->tick, tick);
	return joiner;
}

/*
 * The function of @t has returned.  If the next task has no stack yet and wants
 * one of this class, it takes over this stack and this call, and is returned to
 * be run here.
 */
static struct pl__task *hand_over(struct pl__task *t)
{
	struct pl__worker *w;
	struct pl__task *next;

	pl__task_end_locals(t);
	w = pl__self();
	next = next_after(w, pl__task_end(w, t));
	if (!next || next->stack || next->cls != t->cls)
		leave_last(w, t, next);

	PL_PROBE3(switch, w->index, t, next);
	pl__stack_check(t->stack);
	pl__task_move_in(next, t->stack);
	next->ctx = t->ctx;
	t->stack = NULL;
	w->current = next;
	pl__slab_free(&pl__rt.tasks, &w->tasks, t);
	return next;
}

__pl_entry
void pl__task_main(void *arg)
{
	struct pl__task *t = arg;

	pl__switch_finish();
	for (;;) {
		t->fn(t->arg);
		pl__self_end_orphan();
		t = hand_over(t);
		pl__ctx_reset_fp();
	}
}

void pl__task_exit(struct pl__task *t)
{
	struct pl__worker *w;
	struct pl__task *next;
	struct pl__cxx lost;

	/* It may have left a handler, or a destructor. */
	if (pl__cxx_is_due())
		pl__cxx_save(&lost);
	if (unlikely(load_relaxed(&t->state) & PL__TASK_IN_SCOPE))
		pl__leave_scopes(t);
	if (t->stack->user.exit_to)
		longjmp(*t->stack->user.exit_to, 1);
	pl__task_end_locals(t);
	w = pl__self();
	next = next_after(w, pl__task_end(w, t));
	leave_last(w, t, next);
}

void pl_exit(void)
{
	struct pl__task *t = pl__current();

	if (t)
		pl__task_exit(t);
	pl__self_end_orphan();
}

/* ---- ordinary threads ---- */

static void thread_gone(void *arg)
{
	struct pl__task *t = arg;

	pl__task_end_locals(t);
	/*
	 * Later destructors of the thread may wait again, and get a new slot.
	 */
	pl__self_set_thread(NULL, thread_gone);
	pl__slab_free(&pl__rt.tasks, NULL, t);
}

/* An ordinary thread keeps the slot in which it waits until it ends. */
struct pl__task *pl__thread_task(void)
{
	struct pl__task *t = pl__self_thread();

	if (t)
		return t;
	if (pl__tasks_init())
		return NULL;
	t = pl__slab_alloc(&pl__rt.tasks, NULL);
	if (!t)
		return NULL;
	if (pl__self_set_thread(t, thread_gone)) {
		pl__slab_free(&pl__rt.tasks, NULL, t);
		return NULL;
	}
	return t;
}

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
