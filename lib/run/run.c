/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "queue/aside.h"
#include "queue/ready.h"
#include "pace/kept.h"
#include "run/run.h"
#include "base/inject.h"
#include "base/base.h"
#include "ring/ring.h"
#include "base/sys.h"
#include "ctx/cxx.h"

/* ---- ready ---- */

void pl__ready_chain(struct pl__link *newest, struct pl__link *oldest)
{
	pl__ready_chain_quietly(newest, oldest);
	pl__notify_one(&pl__rt.main);
}

void pl__ready(struct pl__task *t)
{
	struct pl__worker *w = pl__self();

	if (pl__ready_quietly(w, t))
		pl__notify_one(pl__own_group(w));
}

/* ---- what next ---- */

/*
 * Makes a worker look at its ring and the inboxes, then notifies once for what
 * it does not take itself.  One that has no task submits requests with its
 * sleep.
 */
static __pl_always_inline void look_around(struct pl__worker *w, bool has_task)
{
	uint32_t nr = 0;
	bool several;

	if (w->ring) {
		w->is_reaping = true;
		nr = has_task ? pl__ring_poll(w->ring) : pl__ring_reap(w->ring);
		w->is_reaping = false;
	}
	several = has_task ? pl__inboxes_drain_some(w) : pl__inboxes_drain(w);
	pl__kept_fire(w);
	if (has_task)
		nr += pl__kept_take_late(w);
	if (w->event_mask != PL__NO_EVENTS)
		w->event_mask = pl__event_mask_of(w);
	if (several || (nr && pl__has_more_than_next(w)))
		pl__notify_one(w->group);
}

/*
 * Tasks queued behind a worker that is stuck in its task depend on this worker
 * when no thief is idle.
 */
static __pl_noinline struct pl__task *next_of_others(struct pl__worker *w)
{
	struct pl__task *t = pl__aside_take_overdue(w);

	if (!t)
		t = pl__background_take_overdue(w->group);
	if (t)
		return t;
	if (pl__background_is_held(w->group))
		pl__sysmon_notify_compute();
	return pl__steal_from_stalled(w);
}

/* Before what is in its own queues, maybe since this look: it tells of that. */
static struct pl__task *next_of_others_first(struct pl__worker *w)
{
	struct pl__task *t = next_of_others(w);

	if (t && pl__nr_queued(w))
		pl__notify_one(w->group);
	return t;
}

static void flush_unsignalled(struct pl__worker *w)
{
	uint32_t nr = w->nr_unsignalled;

	w->nr_unsignalled = 0;
	counter_inc(&w->stat.signals);
	pl__notify_many(w->group, nr);
}

/* What sysmon saw of the task that the worker leaves, or nothing. */
static enum pl__run take_back_block(struct pl__worker *w)
{
	bool was_blocked = pl__take_back(w) &&
			   !load_relaxed(&w->sysmon.is_own_wait);
	uint8_t learned = load_acquire(&w->sysmon.learned);

	if (likely(!learned))
		return was_blocked ? PL__RUN_BLOCKS : PL__RUN_SHORT;
	store_relaxed(&w->sysmon.learned, PL__RUN_SHORT);
	/* The next one may have been counted already. */
	return load_relaxed(&w->tick) - load_relaxed(&w->sysmon.learned_tick)
	       <= 1 ? (enum pl__run)learned : PL__RUN_SHORT;
}

/* The run of a task is over: the worker is neither blocked nor a spare. */
static __pl_noinline void back_from_block(struct pl__worker *w)
{
	enum pl__run run;

	if (pl__is_spare(w)) {
		pl__spare_judge(w);
		pl__duty(w, PL__IS_THROUGH);
		return;
	}
	run = take_back_block(w);
	if (run != PL__RUN_SHORT && w->current)
		w->current->score = pl__forecast_score(w->current->score, run);
}

/* A tick at which a task other than the newest of the deque may be due. */
static __pl_noinline struct pl__task *next_in_turn(struct pl__worker *w,
						   uint32_t tick)
{
	struct pl__task *t = NULL;

	if (tick % PL__FAIR_EVERY == 0) {
		back_from_block(w);
		look_around(w, true);
		if (tick % (2 * PL__FAIR_EVERY) == 0)
			t = next_of_others_first(w);
		if (!t)
			t = pl__deque_steal(&w->deque);
		return t ? t : pl__next_event(w);
	}
	return pl__next_event(w);
}

/* Newest first, except for events, tasks ahead of a yield, and the oldest. */
static __pl_always_inline struct pl__task *next_queued(struct pl__worker *w)
{
	uint32_t tick = load_relaxed(&w->tick) + 1;
	struct pl__task *t;

	store_relaxed(&w->tick, tick);
	if (unlikely(!(tick & w->event_mask))) {
		t = next_in_turn(w, tick);
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

/* A spare goes on as a spare unless too few others run. */
static bool is_surplus_now(struct pl__worker *w)
{
	if (pl__is_spare(w)) {
		pl__spare_judge(w);
		if (!pl__is_running(w) && !pl__is_short(w->group))
			return true;
	}
	back_from_block(w);
	return pl__is_surplus(w);
}

/* The deque is empty.  May find it refilled where memory is short. */
static struct pl__task *next_after_deque(struct pl__worker *w)
{
	struct pl__task *t = NULL;

	if (w->event_mask != PL__NO_EVENTS)
		t = pl__next_event(w);
	if (t)
		return t;
	look_around(w, false);
	if (w->event_mask != PL__NO_EVENTS)
		t = pl__next_event(w);
	if (!t)
		t = pl__deque_pop(&w->deque);
	if (!t)
		counter_inc(&w->stat.untaken);
	return t;
}

static __pl_always_inline struct pl__task *next_ready(struct pl__worker *w)
{
	struct pl__task *t = next_queued(w);

	return t ? t : next_after_deque(w);
}

/* Where spares may run beside this worker, it sets tasks aside for them. */
static __pl_noinline struct pl__task *next_beside_others(struct pl__worker *w)
{
	struct pl__task *t;

	if (is_surplus_now(w)) {
		if (w->ring)
			pl__ring_reap(w->ring);
		return NULL;
	}
	while ((t = next_ready(w)) && t != w->overdue && pl__aside_put(w, t))
		counter_inc(&w->stat.untaken);
	w->overdue = NULL;
	return t;
}

struct pl__task *pl__next(struct pl__worker *w)
{
	if (unlikely(w->nr_unsignalled))
		flush_unsignalled(w);
	if (unlikely(pl__has_surplus_workers(w->group)))
		return next_beside_others(w);
	return next_ready(w);
}

static void take_between_ticks(struct pl__worker *w)
{
	counter_add(&w->stat.untaken, UINT64_MAX);
}

static bool may_take_more(struct pl__worker *w)
{
	return !pl__is_spare(w) && !pl__is_surplus(w);
}

/*
 * Sets tasks aside that the victim has not looked at.  A theft brings several:
 * those come before the next theft, and before the worker may be a spare, which
 * would keep them while it is blocked.
 */
struct pl__task *pl__next_stolen(struct pl__worker *w, bool has_time)
{
	struct pl__task *t = NULL;

	while (!t && may_take_more(w)) {
		t = pl__steal(w, has_time);
		if (!t)
			break;
		if (!pl__aside_put(w, t)) {
			take_between_ticks(w);
			break;
		}
		t = pl__next(w);
	}
	return t;
}

struct pl__task *pl__next_background(struct pl__group *g)
{
	struct pl__task *t = pl__background_take(g);

	if (t)
		take_between_ticks(pl__self());
	else if (pl__background_is_held(g))
		pl__sysmon_notify_compute();
	return t;
}

struct pl__task *pl__next_prepared(struct pl__worker *w)
{
	struct pl__task *t;

	do {
		t = pl__next(w);
	} while (t && !pl__task_prepare(w, t));
	return t;
}

/* ---- switching ---- */

struct pl__worker *pl__switch_finish(void)
{
	struct pl__worker *w = pl__self();
	pl__after *after = w->after;

	if (after) {
		w->after = NULL;
		after(w, w->after_arg);
	}
	return w;
}

struct pl__ctx *pl__switch_prepare(struct pl__worker *w, struct pl__task *next,
				   pl__after *after, void *arg)
{
	PL_BUG_ON(w->after);
	PL_PROBE3(switch, w->number, w->current, next);
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

void pl__leave_slow(struct pl__worker *w, struct pl__task *t,
		    struct pl__task *next, pl__after *after, void *arg)
{
	int error = *w->errno_at;
	struct pl__hook_states states;
	struct pl__cxx cxx;

	pl__hooks_save(&states);
	pl__cxx_save(&cxx);
	pl__stack_check(t->stack);
	pl__ctx_switch(&t->ctx, pl__switch_prepare(w, next, after, arg));
	w = pl__switch_finish();
	pl__cxx_restore(&cxx);
	pl__hooks_restore(&states);
	/* A hook does not switch: this is the worker still. */
	*w->errno_at = error;
}

void pl__run(struct pl__worker *w, struct pl__task *t)
{
	pl__ctx_switch(&w->loop, pl__switch_prepare(w, t, NULL, NULL));
	pl__switch_finish();
}

static void ready_after(struct pl__worker *w, void *arg)
{
	pl__ready_quietly_by(w, arg);
	pl__notify_one(w->group);
}

static void ready_unsignalled_after(struct pl__worker *w, void *arg)
{
	pl__ready_quietly_by(w, arg);
	w->nr_unsignalled++;
}

bool pl__switch_to(struct pl__task *t, bool quietly)
{
	struct pl__worker *w = pl__self();
	struct pl__task *self = w ? w->current : NULL;

	if (!self || self->cls == PL_STACK_WORKER)
		return false;
	if (pl__task_prepare(w, t))
		pl__leave(w, self, t, quietly ? ready_unsignalled_after :
						ready_after, self);
	return true;
}

static __pl_noinline void put_events_ahead(struct pl__worker *w)
{
	w->nr_events_ahead = pl__deque_len(&w->events);
	w->event_mask = pl__event_mask_of(w);
}

/* Its worker has nothing else, but is to have, if anything comes. */
static bool is_to_be_set_aside(struct pl__worker *w, struct pl__task *t)
{
	return unlikely(pl__has_surplus_workers(w->group)) &&
	       pl__can_have_spares(w->group) &&
	       pl__forecast(t) != PL__RUN_SHORT;
}

/*
 * Tasks that are ready in this worker now run before tasks that become ready
 * later.  If its queues are empty it steals, as the owner of a task elsewhere
 * may be blocked.
 */
void pl_yield(void)
{
	struct pl__worker *w = pl__self();
	struct pl__task *t = w ? w->current : NULL, *next;

	if (!t || t->cls == PL_STACK_WORKER) {
		pl__sched_yield();
		return;
	}
	if (pl__inbox_drain(w, w->inbox))
		pl__notify_one(w->group);
	w->nr_ahead_of_yield = pl__deque_len(&w->deque);
	if (unlikely(w->event_mask != PL__NO_EVENTS))
		put_events_ahead(w);
	next = pl__next_prepared(w);
	/* A spare has nothing but its task and those that are set aside. */
	if (!next && pl__is_spare(w) && !w->nr_ahead_of_yield &&
	    !w->nr_events_ahead && !pl__aside_is_any_for(w)) {
		PL_SIM_POINT("yield");
		return;
	}
	if (!next && may_take_more(w)) {
		next = pl__next_stolen(w, false);
		if (!next && pl__is_background(t))
			next = pl__next_background(w->group);
		if (next && !pl__task_prepare(w, next))
			next = NULL;
		if (!next && may_take_more(w) && !is_to_be_set_aside(w, t))
			return;
	}
	pl__leave(w, t, next, ready_after, t);
}

static void ready_event_after(struct pl__worker *w, void *arg)
{
	pl__ready_event(w, arg);
	pl__notify_one(w->group);
}

void pl__go_behind_events(struct pl__worker *w)
{
	struct pl__task *t = w->current, *next;

	if (!t || t->cls == PL_STACK_WORKER)
		return;
	next = pl__next_prepared(w);
	if (next)
		pl__leave(w, t, next, ready_event_after, t);
}
