/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "run/task_exit.h"
#include "ctx/cxx.h"
#include "ctx/hook.h"
#include "base/inject.h"
#include "base/probe.h"
#include "base/sys.h"
#include "queue/background.h"
#include "run/run.h"

void (*pl__wake_joiners)(struct pl__task *t);
void (*pl__leave_scopes)(struct pl__task *t);
void (*pl__leave_task_limit)(void);

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
	pl__background_end(t);
	if (!(load_relaxed(&t->state) & PL__TASK_COUNTED))
		return;
	atomic_fetch_and(&t->state, ~PL__TASK_COUNTED);
	pl__leave_task_limit();
}

void pl__task_end_locals(struct pl__task *t)
{
	if (unlikely(load_relaxed(&t->state) &
		     (PL__TASK_IN_SCOPE | PL__TASK_COUNTED |
		      PL__TASK_BACKGROUND)))
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

void pl__task_free(void *arg)
{
	struct pl__worker *w = pl__self();
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
	    !(tick & w->event_mask) || pl__has_surplus_workers() ||
	    pl__is_background(joiner)) {
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
