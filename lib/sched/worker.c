/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * worker: the loop of a worker, on its thread's own stack
 *
 * It is in one of three states: in the loop (looking for work, or parked), in
 * a task on a stack of its own, or in a task on the worker's stack, called by
 * the loop.  Between tasks with stacks it does not come by here.
 */
#include "sched/sched.h"
#include "base/inject.h"
#include "base/probe.h"
#include "ring/ring.h"
#include "base/sys.h"

#include <string.h>

#define SPIN_NS_MIN	(4 * 1000)
#define LOOK_NS		500		/* between looks */

/* ---- searching ---- */

/*
 *	searcher			whoever queued a task
 *	nr_searching = 0	[search-a]	queue it
 *	full barrier			full barrier
 *	look in every queue		if (nr_searching)	[search-b]
 *						leave it to that one
 */
static void stop_searching(struct pl__worker *w)
{
	w->is_searching = false;
	/* [search-a] pairs with [search-b] in pl__notify_one(). */
	atomic_fetch_sub(&pl__rt.nr_searching, 1);
	pl__full_barrier();
	PL_INJECT("search-a");
}

#define RETRY_NS	(10 * 1000 * 1000)

static void retry_deferred(void);

static void retry_deferred_in(uint64_t ns)
{
	pl__timers_remind(pl__rt.timers, pl__now_ns() + ns, retry_deferred);
}

/*
 * By the timer thread: a worker that is blocked cannot try again, and one that
 * is about to park has better to do than to give stacks back.
 */
static void retry_deferred(void)
{
	uint64_t ns;

	if (!pl__rt_enter()) {
		pl__retry_later();
		return;
	}
	if (load_relaxed(&pl__rt.stackless.nr))
		pl__stacks_retry();
	pl__notify_if_work();
	ns = pl__stacks_age(&pl__rt.stacks, pl__now_ns());
	if (ns != UINT64_MAX)
		retry_deferred_in(ns);
	pl__rt_exit();
}

void pl__retry_later(void)
{
	retry_deferred_in(RETRY_NS);
}

static struct pl__task *worker_find_task(struct pl__worker *w)
{
	struct pl__task *t;

	do {
		t = pl__next(w);
		if (!t && !pl__is_surplus())
			t = pl__steal(w, true);
	} while (t && !pl__task_prepare(w, t));

	if (t && w->is_searching) {
		stop_searching(w);
		pl__notify_if_work();
	}
	return t;
}

/* ---- duty ---- */

/* Whoever takes BLOCKED away takes the counts down, which went up before. */
void pl__unblocked(struct pl__worker *w)
{
	uint32_t blocked = PL__BLOCKED;

	if (likely(load_relaxed(&w->duty) != PL__BLOCKED))
		return;
	/* [duty-b] pairs with [duty-a] in sysmon.c. */
	if (!atomic_compare_exchange_strong(&w->duty, &blocked, PL__RUNS))
		return;
	atomic_fetch_sub(&pl__rt.nr_seen, 1);
	atomic_fetch_sub(&pl__rt.nr_blocked, 1);
}

/* To its crew it is idle all the while, even if it sleeps elsewhere. */
static void crew_set_idle(struct pl__worker *w, bool is_idle)
{
	_Atomic uint32_t *crew_word = load_relaxed(&w->crew_word);

	if (crew_word)
		store_relaxed(crew_word, is_idle);
}

void pl__worker_leaves(struct pl__worker *w, enum pl__duty duty)
{
	crew_set_idle(w, true);
	/* [duty-b] pairs with [duty-a] in sysmon.c: counted once, not twice. */
	if (likely(atomic_exchange(&w->duty, duty) != PL__BLOCKED))
		return;
	atomic_fetch_sub(&pl__rt.nr_seen, 1);
	atomic_fetch_sub(&pl__rt.nr_blocked, 1);
}

void pl__worker_runs(struct pl__worker *w)
{
	crew_set_idle(w, false);
	store_release(&w->duty, PL__RUNS);
	if (w->ring && pl__ring_is_busy(w->ring))
		pl__sysmon_notify_io();
}

/* ---- spinning ---- */

/*
 * Before it parks a worker looks for work a while longer, if that was of use
 * before: whoever queues a task meanwhile pays for no system call.  It has the
 * token all the time, so that one worker at most spins.  One that does I/O does
 * not: what it waits for comes by the kernel, and from others who need the CPU.
 */
static bool may_spin(struct pl__worker *w)
{
	uint32_t none = 0;

	if (!w->spin_ns || w->ring || pl__nr_running() > pl__rt.nr_cpus ||
	    pl__is_surplus())
		return false;
	if (w->is_searching)
		return true;
	w->is_searching = atomic_compare_exchange_strong(
				&pl__rt.nr_searching, &none, 1);
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
		if (pl__work_anywhere()) {
			t = worker_find_task(w);
			if (t)
				return t;
		}
		if (pl__lot_is_stopped(pl__lot_peek(&pl__rt.lots, w->lot)))
			break;
	}
	return NULL;
}

/*
 * Slept for less than it would take to spin: to have spun would have paid.
 * That is how the kernel's KVM sets its halt_poll_ns.
 */
static void learn_to_spin(struct pl__worker *w, uint64_t slept_ns)
{
	uint64_t ns = w->spin_ns;

	if (slept_ns > pl__rt.spin_ns_max)
		ns /= 2;
	else
		ns = ns ? ns * 2 : SPIN_NS_MIN;
	if (ns > pl__rt.spin_ns_max)
		ns = pl__rt.spin_ns_max;
	w->spin_ns = ns < SPIN_NS_MIN ? 0 : (uint32_t)ns;
}

/* ---- parking ---- */

/*
 * True: woken by a signal, and so the searcher.  Completions are left to be
 * reaped by who is neither listed nor counted as idle any more: else he would
 * call himself for help.
 */
static bool park_in_ring(struct pl__worker *w, uint32_t seq)
{
	struct pl__lots *lots = &pl__rt.lots;

	if (!pl__lot_list(lots, w->lot, &w->park, pl__ring_bell(w->ring), seq))
		return false;
	pl__ring_wait(w->ring, UINT64_MAX);
	if (pl__lot_unlist(lots, w->lot, &w->park))
		return false;
	/* Whoever took us off the list still has the sleeper in hand. */
	while (!pl__parker_is_woken(&w->park.parker))
		pl__sched_yield();
	return true;
}

/* The same, parked in the device, which polls the ring. */
static bool worker_park_polling(struct pl__worker *w, uint32_t seq)
{
	uint64_t deadline_ns = UINT64_MAX;
	int fd = pl__ring_pollfd(w->ring, &deadline_ns);
	enum pl__lot_reason reason;

	if (fd < 0)
		return false;
	reason = pl__lot_park_polling(&pl__rt.lots, w->lot, fd, deadline_ns,
				      seq);
	pl__ring_polled(w->ring, reason == PL__LOT_POLLED ||
				 reason == PL__LOT_LATE);
	return reason == PL__LOT_WOKEN;
}

/* One of too many parks for a while only; so it looks whether it still is. */
static bool park_in_lot(struct pl__worker *w, uint32_t seq, bool *is_late)
{
	uint64_t deadline_ns = UINT64_MAX;
	enum pl__lot_reason reason;

	if (unlikely(pl__has_surplus_workers()) && pl__is_end_due())
		deadline_ns = pl__now_ns() + load_relaxed(&pl__idle_timeout_ns);
	reason = pl__lot_park(&pl__rt.lots, w->lot, &w->park, deadline_ns,
			      seq);
	*is_late = reason == PL__LOT_LATE;
	return reason == PL__LOT_WOKEN;
}

/* True: nobody called for it in a long time. */
static bool worker_park(struct pl__worker *w, uint32_t seq)
{
	uint64_t since = pl__rt.spin_ns_max ? pl__now_ns() : 0;
	bool woken, is_late = false;

	while (unlikely(load_relaxed(&pl__rt.nr_notifying_all)))
		pl__sched_yield();
	counter_inc(&w->stat.parks);
	PL_PROBE1(park, w->index);
	if (w->ring && pl__ring_is_busy(w->ring))
		woken = pl__ring_way(w->ring) == PL_WAIT_PARK ?
			worker_park_polling(w, seq) : park_in_ring(w, seq);
	else
		woken = park_in_lot(w, seq, &is_late);
	w->is_searching = woken;
	PL_PROBE2(unpark, w->index, (uint32_t)woken);
	if (since)
		learn_to_spin(w, pl__now_ns() - since);
	return is_late;
}

/*
 * Of others, once we are announced as idle.  Who was called and is not needed
 * leaves what it was called for to them, and so to sysmon.
 */
static bool is_enough_running(bool was_notified)
{
	return unlikely(pl__has_surplus_workers()) && !pl__is_short() &&
	       !(was_notified && pl__sysmon_notify() && pl__is_short());
}

static bool is_nothing_to_do(void)
{
	return !pl__work_anywhere() && !pl__sysmon_clear_backlog();
}

/*
 * Announced as idle: looks once more, and parks if there is nothing.  Who had
 * the token and sees something takes it up again, since it has to call for
 * those who left their tasks to it; if another has it, that one will.  True:
 * nobody called for it in a long time.
 */
static bool look_and_park(struct pl__worker *w, uint32_t seq)
{
	bool was_searching = w->is_searching;
	uint32_t none = 0;

	if (was_searching)
		stop_searching(w);
	pl__full_barrier();
	PL_INJECT("idle-a");
	if (is_enough_running(was_searching) || is_nothing_to_do())
		return worker_park(w, seq);
	if (was_searching)
		w->is_searching = atomic_compare_exchange_strong(
					&pl__rt.nr_searching, &none, 1);
	return false;
}

/* It runs a task, or counts as idle: another one may be started in reserve. */
static void worker_started(struct pl__worker *w)
{
	w->is_starting = false;
	atomic_fetch_sub(&pl__rt.nr_starting, 1);
}

/* False: the runtime has come to its end, or the worker. */
static bool idle(struct pl__worker *w)
{
	uint32_t seq = pl__lot_peek(&pl__rt.lots, w->lot);

	if (pl__lot_is_stopped(seq))
		return false;
	if (unlikely(load_relaxed(&pl__rt.stackless.nr)))
		pl__stacks_share(w);
	if (unlikely(pl__stacks_is_trim_due(&pl__rt.stacks)))
		retry_deferred_in(PL__STACKS_AGE_NS);
	pl__deque_trim(&w->deque);

	pl__worker_leaves(w, PL__IDLE);
	/* [idle-a] pairs with [idle-b] in pl__notify_one(). */
	atomic_fetch_add(&pl__rt.nr_idle, 1);
	if (unlikely(w->is_starting))
		worker_started(w);
	if (look_and_park(w, seq) && pl__worker_end(w))
		return false;
	pl__worker_runs(w);
	atomic_fetch_sub(&pl__rt.nr_idle, 1);
	return true;
}

/* ---- running ---- */

/*
 * A task on the worker's own stack; pl_exit() jumps back here.  What it has
 * for a stack has no memory but its name's.
 */
static void run_on_loop(struct pl__worker *w, struct pl__task *t)
{
	struct pl__stack st = { .cls = PL_STACK_WORKER };
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
			worker_started(w);
		if (t)
			worker_run_task(w, t);
	} while (t || idle(w));
}

/* ---- blocking on the worker's stack ---- */

struct pl__bell *pl__sleep_bell(struct pl__worker *w)
{
	return w && w->ring && pl__ring_is_busy(w->ring) ?
	       pl__ring_bell(w->ring) : NULL;
}

static bool sleep_in_ring(struct pl__worker *w, struct pl__parker *s,
			  uint64_t deadline_ns)
{
	while (!pl__parker_is_woken(s)) {
		pl__ring_wait(w->ring, deadline_ns);
		pl__ring_poll(w->ring);
		if (pl__now_ns() >= deadline_ns)
			return pl__parker_is_woken(s);
	}
	return true;
}

static bool sleep_on_loop(struct pl__worker *w, struct pl__parker *s,
			  uint64_t deadline_ns)
{
	if (load_relaxed(&s->state) > PL__PARKER_WOKEN)
		return sleep_in_ring(w, s, deadline_ns);
	return pl__parker_park(s, deadline_ns);
}

bool pl__sleep(struct pl__worker *w, struct pl__parker *s,
	       uint64_t deadline_ns)
{
	bool woken;

	if (!w)
		return pl__parker_park(s, deadline_ns);
	if (load_relaxed(&w->duty) == PL__IN_START_HOOK)
		return sleep_on_loop(w, s, deadline_ns);

	/* One runnable worker less: another may have to take its place. */
	pl__worker_leaves(w, PL__SLEEPS);
	atomic_fetch_add(&pl__rt.nr_blocked, 1);
	pl__full_barrier();
	pl__notify_if_work();
	woken = sleep_on_loop(w, s, deadline_ns);
	pl__worker_runs(w);
	atomic_fetch_sub(&pl__rt.nr_blocked, 1);
	return woken;
}

/* ---- all of it ---- */

/*
 * Others must not wait for a search that begins only after the hook.  They do
 * not wait for whoever is in it either, which may take long; but none is
 * started in its place, who would have to get through it as well.
 */
static void enter_hook(struct pl__worker *w)
{
	if (w->is_searching)
		stop_searching(w);
	pl__worker_leaves(w, PL__IN_START_HOOK);
	/* At once, to who asks whether a start is due. */
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

static void run_start_hook(struct pl__worker *w)
{
	enter_hook(w);
	pl__rt.cfg.worker_start(pl__rt.cfg.worker_start_arg);
	pl__self_end_orphan();
	leave_hook(w);
}

void pl__worker_run(struct pl__worker *w)
{
	if (pl__rt.cfg.worker_start)
		run_start_hook(w);
	loop(w);
}
