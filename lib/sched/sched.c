/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/sched.h"
#include "base/inject.h"
#include "base/probe.h"
#include "ring/ring.h"
#include "base/sys.h"

/*
 * One task in so many is the oldest there is; completions and the inbox are
 * looked at then.  So nothing ready waits longer than the queue is long times
 * this, however fast new tasks come on top; or twice this, as each second time
 * is for what waits behind others, if there are such.  parklot(7) promises it.
 */
#define FAIR_EVERY	32	/* a power of 2 */
#define OTHERS_EVERY	(32 * FAIR_EVERY)

struct pl__rt pl__rt;
void (*pl__wake_joiners)(struct pl__task *t);

/* ---- from ordinary threads ---- */

static _Atomic uint32_t *nr_inside(void)
{
	return &pl__rt.inside[pl__self_number() % PL__NR_STRIPES].nr;
}

bool pl__rt_enter(void)
{
	uint32_t state;

	/* [inside-a] pairs with [inside-b] in wait_outside(). */
	atomic_fetch_add(nr_inside(), 1);
	PL_INJECT("inside-a");
	state = atomic_load(&pl__rt.state);
	if (likely(state == PL__RT_RUNNING || state == PL__RT_STOPPING))
		return true;
	pl__rt_exit();
	return false;
}

void pl__rt_exit(void)
{
	atomic_fetch_sub(nr_inside(), 1);
}

/* ---- ready ---- */

void pl__queue_own(struct pl__worker *w, struct pl__task *t)
{
	/* What a full deque cannot take, the inbox always can. */
	if (unlikely(!pl__deque_push(&w->deque, t)))
		pl__inbox_push(&w->inbox, &t->link);
}

/*
 * A thread sends all that it makes ready to one worker's inbox, so that the
 * order is kept and the line stays near; threads count up, so that inboxes
 * share the load.  (bthread takes a random worker each time.)
 */
static void queue_outside(struct pl__link *newest, struct pl__link *oldest)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started);
	struct pl__worker *w = pl__rt.workers[pl__self_number() % nr];

	pl__inbox_push_list(&w->inbox, newest, oldest);
}

void pl__ready_quietly(struct pl__task *t)
{
	struct pl__worker *w = pl__self();

	if (w)
		pl__queue_own(w, t);
	else
		queue_outside(&t->link, &t->link);
}

void pl__ready_chain(struct pl__link *newest, struct pl__link *oldest)
{
	queue_outside(newest, oldest);
	pl__notify_one();
}

void pl__ready(struct pl__task *t)
{
	pl__ready_quietly(t);
	pl__notify_one();
}

/* ---- what next ---- */

/*
 * Newest on top of the deque first, so that the oldest is taken first.  While
 * they are in hand nobody sees them; who looked then must be told.
 */
void pl__drain(struct pl__worker *w, struct pl__inbox *from)
{
	struct pl__link *l = pl__inbox_take(from), *next;
	bool is_one = l && !l->next;

	if (!l)
		return;
	PL_INJECT("drain");
	for (; l; l = next) {
		next = l->next;
		pl__queue_own(w, container_of(l, struct pl__task, link));
	}
	if (!is_one)
		pl__notify_one();
}

/* The caller takes one of what is ready now, and calls once for the rest. */
static void look_around(struct pl__worker *w,
			uint32_t (*look)(struct pl__ring *r))
{
	uint32_t nr = 0;

	if (w->ring) {
		w->is_reaping = true;
		nr = look(w->ring);
		w->is_reaping = false;
	}
	pl__drain(w, &w->inbox);
	if (nr && pl__deque_len(&w->deque) > 1)
		pl__notify_one();
}

/* The oldest of all that is ready, by whatever way it came. */
static struct pl__task *next_oldest(struct pl__worker *w)
{
	look_around(w, pl__ring_poll);
	return pl__deque_steal(&w->deque);
}

/* Whose worker does not come to it may wait for us, who are never idle. */
static struct pl__task *next_of_others(struct pl__worker *w)
{
	struct pl__task *t = NULL;

	if (load_relaxed(&w->tick) % OTHERS_EVERY == 0 ||
	    pl__has_surplus_workers() || pl__nr_blocked())
		t = pl__steal_from_stalled(w);
	return t ? t : next_oldest(w);
}

static void flush_unsignalled(struct pl__worker *w)
{
	w->nr_unsignalled = 0;
	counter_inc(&w->stat.signals);
	pl__notify_one();
}

/* Newest first, but for those that a yield let go first, and now and then. */
static struct pl__task *next_queued(struct pl__worker *w)
{
	uint32_t tick = load_relaxed(&w->tick) + 1;
	struct pl__task *t;

	store_relaxed(&w->tick, tick);
	if (unlikely(tick % FAIR_EVERY == 0)) {
		pl__unblocked(w);
		t = tick % (2 * FAIR_EVERY) ? next_oldest(w) :
					      next_of_others(w);
		if (t)
			return t;
	}
	if (w->nr_ahead_of_yield) {
		w->nr_ahead_of_yield--;
		t = pl__deque_steal(&w->deque);
		if (t)
			return t;
		w->nr_ahead_of_yield = 0;
	}
	return pl__deque_pop(&w->deque);
}

static bool is_surplus_now(struct pl__worker *w)
{
	pl__unblocked(w);
	return pl__is_surplus();
}

struct pl__task *pl__next(struct pl__worker *w)
{
	struct pl__task *t;

	if (unlikely(w->nr_unsignalled))
		flush_unsignalled(w);
	if (unlikely(pl__has_surplus_workers()) && is_surplus_now(w)) {
		if (w->ring)
			pl__ring_reap(w->ring);
		return NULL;
	}
	t = next_queued(w);
	if (t)
		return t;
	/* Requests are submitted by who finds nothing: with its sleep. */
	look_around(w, pl__ring_reap);
	return pl__deque_pop(&w->deque);
}

struct pl__task *pl__next_prepared(struct pl__worker *w)
{
	struct pl__task *t;

	do {
		t = pl__next(w);
	} while (t && !pl__task_prepare(w, t));
	return t;
}

/* ---- stacks of tasks ---- */

static void task_main(void *arg);

static void give_stack(struct pl__task *t, struct pl__stack *st)
{
	char *base = st->base;

	pl__task_move_in(t, st);
	pl__ctx_init(&t->ctx, base, (size_t)((char *)st - base), task_main, t);
}

/*
 * Looks once more with nr up, so that a stack put back meanwhile is seen.  One
 * that is put back at this very moment may be missed by both: then the next
 * one is noticed, or this one when its worker is idle.
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

/* One of each class that there is a stack for is ready, to be prepared. */
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
			/* Without one it waits as it did, where it looks. */
			pl__ready(t);
			if (!st)
				break;
		}
	}
}

static void put_stack(struct pl__worker *w, struct pl__stack *st)
{
	pl__stack_put(&pl__rt.stacks, &w->stacks, st);
	if (unlikely(load_relaxed(&pl__rt.stackless.nr)))
		pl__stacks_share(w);
}

/* ---- switching ---- */

void pl__switch_finish(void)
{
	struct pl__worker *w = pl__self();
	void (*after)(void *arg) = w->after;

	if (!after)
		return;
	w->after = NULL;
	after(w->after_arg);
}

struct pl__ctx *pl__switch_prepare(struct pl__worker *w, struct pl__task *next,
				   void (*after)(void *arg), void *arg)
{
	PL_BUG_ON(w->after);
	PL_PROBE3(switch, w->index, w->current, next);
	w->after = after;
	w->after_arg = arg;
	w->current = NULL;
	counter_inc(&w->stat.switches);
	if (!next)
		return &w->loop;
	if (next->cls == PL_STACK_WORKER) {
		w->for_loop = next;
		return &w->loop;
	}
	w->current = next;
	return &next->ctx;
}

void pl__run(struct pl__worker *w, struct pl__task *t)
{
	pl__ctx_switch(&w->loop, pl__switch_prepare(w, t, NULL, NULL));
	pl__switch_finish();
}

static void ready_after(void *arg)
{
	pl__ready(arg);
}

bool pl__switch_to(struct pl__task *t)
{
	struct pl__worker *w = pl__self();
	struct pl__task *self = w ? w->current : NULL;

	if (!self || self->cls == PL_STACK_WORKER)
		return false;
	if (pl__task_prepare(w, t))
		pl__leave(w, self, t, ready_after, self);
	return true;
}

/*
 * All that is ready here now will be taken before what comes after.  With
 * nothing here something elsewhere is, as its worker may be blocked.
 */
void pl_yield(void)
{
	struct pl__worker *w = pl__self();
	struct pl__task *t = w ? w->current : NULL, *next;

	if (!t || t->cls == PL_STACK_WORKER) {
		pl__sched_yield();
		return;
	}
	pl__drain(w, &w->inbox);
	w->nr_ahead_of_yield = pl__deque_len(&w->deque);
	next = pl__next_prepared(w);
	if (!next && !pl__is_surplus()) {
		next = pl__steal(w, false);
		if (next && !pl__task_prepare(w, next))
			next = NULL;
		if (!next)
			return;
	}
	pl__leave(w, t, next, ready_after, t);
}

/* ---- the end of a task ---- */

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

void pl__task_end_locals(struct pl__task *t)
{
	if (unlikely(t->locals))
		t->locals->end(t);
}

struct pl__task *pl__task_end(struct pl__worker *w, struct pl__task *t)
{
	uint32_t version = load_relaxed(&t->version) + 1;
	struct pl__wait_entry *joiner;
	bool others;

	counter_inc_release(&w->stat.ended);
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
		put_stack(w, st);
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
 * The task that waited for one that has just ended would be the newest of the
 * queue, and so the next: it need not go there, unless it is not its turn.
 */
static struct pl__task *next_after(struct pl__worker *w,
				   struct pl__task *joiner)
{
	uint32_t tick = load_relaxed(&w->tick) + 1;

	if (!joiner)
		return pl__next(w);
	if (w->nr_unsignalled || w->nr_ahead_of_yield ||
	    tick % FAIR_EVERY == 0 ||
	    pl__has_surplus_workers()) {
		pl__ready(joiner);
		return pl__next(w);
	}
	store_relaxed(&w->tick, tick);
	return joiner;
}

/*
 * @t has run.  The next task, if it has no stack yet and wants such a one, is
 * given this one as it stands, and returned to be run here.
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
	pl__task_move_in(next, t->stack);
	next->ctx = t->ctx;
	t->stack = NULL;
	w->current = next;
	pl__slab_free(&pl__rt.tasks, &w->tasks, t);
	return next;
}

static void task_main(void *arg)
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

	if (t->stack->user.exit_to)
		longjmp(*t->stack->user.exit_to, 1);
	pl__task_end_locals(t);
	w = pl__self();
	next = next_after(w, pl__task_end(w, t));
	leave_last(w, t, next);
}
