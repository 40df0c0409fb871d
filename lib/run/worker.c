/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * worker: the loop of a worker, on its thread's own stack
 *
 * A worker is in one of three states: in the loop (looking for work, or
 * parked), in a task on a stack of its own, or in a task on the worker's stack,
 * called by the loop.  Tasks with stacks switch to each other without the loop.
 */
#include "queue/background.h"
#include "queue/inbox.h"
#include "pace/kept.h"
#include "run/orphan_ring.h"
#include "pace/relief.h"
#include "run/run.h"
#include "run/worker_park.h"
#include "base/inject.h"
#include "ring/ring.h"
#include "base/sys.h"

#define LOOK_NS		500		/* interval between looks */

/* ---- finding a task ---- */

/*
 * Sets tasks aside that the victim has not looked at.  A theft brings several:
 * those come before the next theft, and before the worker may be a spare, which
 * would keep them while it is blocked.
 */
static struct pl__task *worker_next_or_steal(struct pl__worker *w)
{
	struct pl__task *t;

	do {
		t = pl__next(w);
		if (t || load_relaxed(&w->is_spare) || pl__is_surplus(w))
			return t;
		t = pl__steal(w, true);
	} while (t && pl__aside_put(w, t));
	return t;
}

/*
 * A surplus worker takes none of its tasks, and a spare none that it got from
 * the one it ran: they are left to the workers that run, oldest first.
 */
static void leave_tasks(struct pl__worker *w)
{
	struct pl__deque *from[] = { &w->events, &w->deque };
	struct pl__link *newest = NULL, *oldest = NULL;
	struct pl__task *t;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(from); i++) {
		while (!pl__deque_empty(from[i])) {
			t = pl__deque_steal(from[i]);
			if (!t)
				continue;
			t->link.next = newest;
			newest = &t->link;
			if (!oldest)
				oldest = newest;
		}
	}
	if (!newest)
		return;
	pl__inbox_push_list(pl__inbox_for_all(), newest, oldest);
	/* sysmon may have gone to sleep while it saw none of them. */
	pl__notify_one();
}

/* Where it would park otherwise. */
static struct pl__task *worker_take_background(struct pl__worker *w)
{
	struct pl__task *t = NULL;

	while (pl__background_nr() && !load_relaxed(&w->is_spare) &&
	       !pl__is_surplus(w)) {
		t = pl__next_background();
		if (!t || !pl__aside_put(w, t))
			break;
		t = NULL;
	}
	return t;
}

static struct pl__task *worker_find_task(struct pl__worker *w)
{
	struct pl__task *t;
	size_t nr_more;

	/* Where none is surplus pl__next() does not ask for spares. */
	if (unlikely(load_relaxed(&w->is_spare)) &&
	    !pl__has_surplus_workers()) {
		pl__spare_judge(w);
		pl__spare_end(w);
	}
	do {
		t = worker_next_or_steal(w);
		if (!t) {
			leave_tasks(w);
			t = pl__aside_take(w);
		}
		if (!t)
			t = worker_take_background(w);
	} while (t && !pl__task_prepare(w, t));

	if (t && w->is_searching) {
		nr_more = pl__nr_found(w);
		pl__stop_searching(w);
		pl__notify_found(nr_more);
	}
	return t;
}

/* ---- spinning ---- */

/*
 * Before it parks a worker looks for work a while longer, if that paid before:
 * a submitter that queues a task meanwhile needs no system call.  The worker is
 * searching all the time, so that at most one worker spins.  A worker that does
 * I/O does not spin: what it waits for comes from the kernel, and from other
 * threads that need the CPU.
 */
static bool may_spin(struct pl__worker *w)
{
	if (!w->spin_ns || w->ring || load_relaxed(&w->is_spare) ||
	    pl__nr_running() + load_relaxed(&pl__rt.nr_stalled) >
	    pl__rt.nr_cpus ||
	    pl__is_surplus(w))
		return false;
	/* Of several that were woken at once, one spins. */
	if (w->is_searching)
		return load_relaxed(&pl__rt.nr_searching) <= 1;
	w->is_searching = pl__search_begin();
	return w->is_searching;
}

static struct pl__task *worker_spin(struct pl__worker *w)
{
	uint64_t now, end, look;
	struct pl__task *t;

	if (!may_spin(w))
		return NULL;
	now = pl__now_ns();
	for (end = now + w->spin_ns; now < end;) {
		for (look = now + LOOK_NS; now < look; now = pl__now_ns())
			pl__cpu_relax();
		if (pl__work_anywhere() || pl__kept_ns(w) <= now) {
			t = worker_find_task(w);
			if (t)
				return t;
		}
		if (pl__lot_is_stopped(pl__lot_peek(&pl__rt.lots, w->lot)))
			break;
	}
	return NULL;
}

/* ---- idling ---- */

/*
 * The worker has a task or counts as idle: sysmon may start another in reserve.
 */
static void worker_started(struct pl__worker *w)
{
	w->is_starting = false;
	atomic_fetch_sub(&pl__rt.nr_starting, 1);
}

static void worker_started_to_run(struct pl__worker *w)
{
	worker_started(w);
	/* [aside-a] pairs with [aside-b] in pl__aside_notify(). */
	pl__full_barrier();
	PL_INJECT("aside-a");
	if (unlikely(pl__aside_nr()))
		pl__notify_if_work();
}

/* A spare stays counted in nr_blocked until it is counted in nr_idle. */
static void count_idle(struct pl__worker *w)
{
	bool was_spare = load_relaxed(&w->is_spare);

	if (was_spare)
		atomic_fetch_add(&pl__rt.nr_idle, 1);
	store_relaxed(&w->is_spare, false);
	pl__worker_leaves(w, PL__IDLE);
	/* [idle-a] pairs with [idle-b] in pl__notify_one(). */
	if (!was_spare)
		atomic_fetch_add(&pl__rt.nr_idle, 1);
}

/* It is woken to be a spare if the target runs, and never counts as running. */
static void count_busy(struct pl__worker *w)
{
	if (unlikely(pl__aside_nr()) && pl__has_surplus_workers() &&
	    !pl__is_short()) {
		pl__spare_begin(w);
		/* It is about to block, and wakes sysmon for I/O only. */
		pl__kept_give_up(w);
		if (pl__has_io(w))
			pl__sysmon_notify_io();
	} else {
		pl__worker_runs(w);
	}
	atomic_fetch_sub(&pl__rt.nr_idle, 1);
}

/* False: the runtime stops, or the worker has ended. */
static bool idle(struct pl__worker *w)
{
	uint32_t seq = pl__lot_peek(&pl__rt.lots, w->lot);

	if (pl__lot_is_stopped(seq))
		return false;
	if (unlikely(load_relaxed(&pl__rt.stackless.nr)))
		pl__stacks_share(w);
	if (unlikely(pl__stacks_is_trim_due(&pl__rt.stacks)))
		pl__retry_deferred_in(PL__STACKS_AGE_NS);
	pl__deque_trim(&w->deque);
	pl__deque_trim(&w->events);
	pl__ring_take_back(w);

	count_idle(w);
	/*
	 * Without a notification, which would wait for an idle worker to park;
	 * this may be the only one.  It looks for tasks set aside below.
	 */
	if (unlikely(w->is_starting))
		worker_started(w);
	if (pl__worker_look_and_park(w, seq) && pl__worker_end(w))
		return false;
	count_busy(w);
	pl__search_take_left(w);
	pl__kept_fire(w);
	return true;
}

/* ---- running ---- */

/*
 * Runs a task on the worker's own stack; pl_exit() jumps back here.  Its struct
 * pl__stack is a local variable, and of no area.
 */
static __pl_entry void run_on_loop(struct pl__worker *w, struct pl__task *t)
{
	struct pl__stack st = {
		.base = w->thread_stack.base,
		.size = w->thread_stack.size,
		.guard_size = w->thread_stack.guard,
		.cls = PL_STACK_WORKER,
	};
	struct pl__task *joiner;
	jmp_buf here;

	pl__task_move_in(t, &st);
	st.user.exit_to = &here;
	w->current = t;
	if (!setjmp(here))
		t->fn(t->arg);
	pl__self_end_orphan();
	st.user.exit_to = NULL;
	pl__task_end_locals(t);
	joiner = pl__task_end(w, t);
	w->current = NULL;
	t->stack = NULL;
	pl__task_free(t);
	if (joiner)
		pl__ready(joiner);
}

static void worker_run_task(struct pl__worker *w, struct pl__task *t)
{
	if (t->cls == PL_STACK_WORKER)
		w->for_loop = t;
	else
		pl__run(w, t);

	while (w->for_loop) {
		t = w->for_loop;
		w->for_loop = NULL;
		run_on_loop(w, t);
	}
}

static void loop(struct pl__worker *w)
{
	struct pl__task *t;

	do {
		t = worker_find_task(w);
		if (!t)
			t = worker_spin(w);
		if (t && unlikely(w->is_starting))
			worker_started_to_run(w);
		if (t)
			worker_run_task(w, t);
	} while (t || idle(w));
}

/*
 * Submitters must not wait for a search that begins only after the hook; so the
 * worker stops searching first.  Nor does it count as running, as the hook may
 * take long.  But no worker is started to replace it, as that would have to get
 * through the hook as well.
 */
static void enter_hook(struct pl__worker *w)
{
	if (w->is_searching)
		pl__stop_searching(w);
	pl__worker_leaves(w, PL__IN_START_HOOK);
	/*
	 * Both counters change at once for a worker that reads them under this
	 * lock.
	 */
	pl__lock(&pl__rt.start_lock);
	atomic_fetch_add(&pl__rt.nr_in_hook, 1);
	atomic_fetch_add(&pl__rt.nr_blocked, 1);
	pl__unlock(&pl__rt.start_lock);
	pl__full_barrier();
	pl__notify_if_work();
}

static void leave_hook(struct pl__worker *w)
{
	pl__worker_runs(w);
	pl__lock(&pl__rt.start_lock);
	atomic_fetch_sub(&pl__rt.nr_blocked, 1);
	atomic_fetch_sub(&pl__rt.nr_in_hook, 1);
	pl__unlock(&pl__rt.start_lock);
}

/* The program's function that each worker calls first. */
static void run_start_hook(struct pl__worker *w)
{
	enter_hook(w);
	pl__rt.cfg.worker_start(pl__rt.cfg.worker_start_arg);
	pl__self_end_orphan();
	leave_hook(w);
}

void pl__worker_loop(struct pl__worker *w)
{
	bool is_spare = load_relaxed(&w->is_spare);

	if (pl__rt.cfg.worker_start) {
		store_relaxed(&w->is_spare, false);
		run_start_hook(w);
		if (is_spare)
			pl__spare_begin(w);
	}
	loop(w);
}
