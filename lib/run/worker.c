/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * worker: the loop of a worker, on its thread's own stack
 *
 * A worker is in one of three states: in the loop (looking for work, or
 * parked), in a task on a stack of its own, or in a task on the worker's stack,
 * called by the loop.  Tasks with stacks switch to each other without the loop.
 */
#include "queue/aside.h"
#include "queue/ready.h"
#include "pace/kept.h"
#include "run/run.h"
#include "pace/pace.h"
#include "base/inject.h"
#include "ring/ring.h"
#include "base/sys.h"
#include "base/base.h"

#define LOOK_NS		500		/* interval between looks */

/* ---- finding a task ---- */

static struct pl__task *worker_next_or_steal(struct pl__worker *w)
{
	struct pl__task *t = pl__next(w);

	return t ? t : pl__next_stolen(w, true);
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
	pl__inbox_push_list(pl__inbox_for_all(w->group), newest, oldest);
	/* sysmon may have gone to sleep while it saw none of them. */
	pl__notify_one(w->group);
}

/* Where it would park otherwise. */
static struct pl__task *worker_take_background(struct pl__worker *w)
{
	struct pl__task *t = NULL;

	while (pl__background_nr(w->group) && !pl__is_spare(w) &&
	       !pl__is_surplus(w)) {
		t = pl__next_background(w->group);
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
	if (unlikely(pl__is_spare(w)) && !pl__has_surplus_workers(w->group)) {
		pl__spare_judge(w);
		pl__duty(w, PL__IS_THROUGH);
	}
	do {
		t = worker_next_or_steal(w);
		if (!t) {
			leave_tasks(w);
			/* A spare is through with its task in any case. */
			if (unlikely(pl__is_spare(w) ||
				     pl__aside_nr(w->group)))
				t = pl__aside_take(w);
		}
		if (!t)
			t = worker_take_background(w);
	} while (t && !pl__task_prepare(w, t));

	if (t && w->is_searching) {
		nr_more = pl__nr_found(w);
		pl__stop_searching(w);
		pl__notify_found(w->group, nr_more);
	}
	return t;
}

/* ---- spinning ---- */

/*
 * Before it parks a worker looks for work a while longer, if that paid before:
 * a submitter that queues a task meanwhile needs no system call.  The worker is
 * searching all the time, so that at most one worker of a group spins.  A
 * worker that does I/O does not spin: what it waits for comes from the kernel,
 * and from other threads that need the CPU.
 */
static bool may_spin(struct pl__worker *w)
{
	struct pl__group *g = w->group;

	if (!w->spin_ns || w->ring || pl__is_spare(w) ||
	    pl__nr_running(g) + load_relaxed(&g->nr_stalled) >
	    pl__rt.nr_cpus ||
	    pl__is_surplus(w))
		return false;
	/* Of several that were woken at once, one spins. */
	if (w->is_searching)
		return load_relaxed(&g->nr_searching) <= 1;
	w->is_searching = pl__search_begin(g);
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
		if (pl__work_anywhere(w->group) || pl__kept_ns(w) <= now) {
			t = worker_find_task(w);
			if (t)
				return t;
		}
		if (pl__lot_is_stopped(pl__lot_peek(&w->group->lots, w->lot)))
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
	atomic_fetch_sub(&w->group->nr_starting, 1);
}

static void worker_started_to_run(struct pl__worker *w)
{
	worker_started(w);
	/* [aside-a] pairs with [aside-b] in pl__aside_notify(). */
	pl__full_barrier();
	PL_INJECT("aside-a");
	if (unlikely(pl__aside_nr(w->group)))
		pl__notify_if_work(w->group);
}

/* It is woken to be a spare if the target runs, and never counts as running. */
static void idle_no_more(struct pl__worker *w)
{
	struct pl__group *g = w->group;

	if (unlikely(pl__aside_nr(g)) && pl__has_surplus_workers(g) &&
	    !pl__is_short(g) && !pl__stands_in_last(w)) {
		pl__worker_stands_in(w);
		pl__kept_give_up(w);
	} else {
		pl__worker_runs(w);
	}
}

/* False: the runtime stops, or the worker has ended. */
static bool idle(struct pl__worker *w)
{
	struct pl__group *g = w->group;
	uint32_t seq = pl__lot_peek(&g->lots, w->lot);

	if (pl__lot_is_stopped(seq))
		return false;
	if (unlikely(load_relaxed(&pl__rt.stackless.nr)))
		pl__stacks_share(w);
	if (unlikely(pl__stacks_is_trim_due(&pl__rt.stacks)))
		pl__retry_deferred_in(PL__STACKS_AGE_NS);
	pl__deque_trim(&w->deque);
	pl__deque_trim(&w->events);
	pl__ring_take_back(w);

	/* [idle-a] pairs with [idle-b] in pl__notify_one(): for nr_idle. */
	pl__duty(w, PL__PARKS);
	/*
	 * Without a notification, which would wait for an idle worker to park;
	 * this may be the only one.  It looks for tasks set aside below.
	 */
	if (unlikely(w->is_starting))
		worker_started(w);
	if (pl__worker_look_and_park(w, seq) && pl__worker_end(w))
		return false;
	idle_no_more(w);
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
	pl__task_free(w, t);
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
	pl__duty(w, PL__ENTERS_HOOK);
	pl__full_barrier();
	pl__notify_if_work(w->group);
}

static void run_again(struct pl__worker *w, bool as_spare)
{
	if (as_spare)
		pl__worker_stands_in(w);
	else
		pl__worker_runs(w);
}

/* The program's function that each worker calls first. */
static void run_start_hook(struct pl__worker *w)
{
	bool is_spare = pl__is_spare(w);

	enter_hook(w);
	pl__rt.cfg.worker_start(pl__rt.cfg.worker_start_arg);
	pl__self_end_orphan();
	run_again(w, is_spare);
}

void pl__worker_loop(struct pl__worker *w)
{
	if (pl__rt.cfg.worker_start)
		run_start_hook(w);
	loop(w);
}

#define SPIN_NS_MIN	(4 * 1000)

/*
 * A sleep that a signal ended, before the spin limit, would have been saved by
 * spinning.  The kernel's KVM sets its halt_poll_ns like this.  A deadline is
 * known before, and the worker sleeps until then.
 */
static void learn_to_spin(struct pl__worker *w, bool was_woken,
			  uint64_t slept_ns)
{
	uint64_t ns = w->spin_ns;

	if (was_woken && slept_ns <= pl__rt.spin_ns_max)
		ns = ns ? ns * 2 : SPIN_NS_MIN;
	else
		ns /= 2;
	if (ns > pl__rt.spin_ns_max)
		ns = pl__rt.spin_ns_max;
	w->spin_ns = ns < SPIN_NS_MIN ? 0 : (uint32_t)ns;
}

/*
 * True: woken by a signal, and so searching.  Completions stay in the ring
 * until the worker is neither listed nor counted as idle: else it would notify
 * itself.
 */
static bool park_in_ring(struct pl__worker *w, uint32_t seq)
{
	struct pl__lots *lots = &w->group->lots;

	if (!pl__lot_list(lots, w->lot, &w->park, pl__ring_bell(w->ring), seq))
		return false;
	pl__ring_wait(w->ring, pl__kept_until(w));
	if (pl__lot_unlist(lots, w->lot, &w->park))
		return false;
	/*
	 * The waker that removed this worker from the list still uses its
	 * parker.
	 */
	while (!pl__parker_is_woken(&w->park.parker))
		pl__sched_yield();
	return true;
}

/*
 * Parks in the device, which polls the ring.  True: woken by a signal, and so
 * searching.
 */
static bool worker_park_polling(struct pl__worker *w, uint32_t seq)
{
	uint64_t deadline_ns = pl__kept_until(w);
	int fd = pl__ring_pollfd(w->ring, &deadline_ns);
	enum pl__lot_reason reason;

	if (fd < 0)
		return false;
	reason = pl__lot_park_polling(&w->group->lots, w->lot, fd, deadline_ns,
				      seq);
	pl__ring_polled(w->ring, reason == PL__LOT_POLLED ||
				 reason == PL__LOT_LATE);
	return reason == PL__LOT_WOKEN;
}

/* A surplus worker parks for the idle timeout at most, then checks again. */
static bool park_in_lot(struct pl__worker *w, uint32_t seq, bool *is_late)
{
	struct pl__group *g = w->group;
	uint64_t end_ns = UINT64_MAX, kept_ns = pl__kept_until(w);
	enum pl__lot_reason reason;

	if (unlikely(pl__has_surplus_workers(g)) && pl__is_end_due(g))
		end_ns = pl__now_ns() + load_relaxed(&pl__idle_timeout_ns);
	reason = pl__lot_park(&g->lots, w->lot, &w->park,
			      end_ns < kept_ns ? end_ns : kept_ns, seq);
	*is_late = reason == PL__LOT_LATE && end_ns <= kept_ns;
	return reason == PL__LOT_WOKEN;
}

/* True: the idle timeout has passed without a notification. */
static bool worker_park(struct pl__worker *w, uint32_t seq)
{
	struct pl__group *g = w->group;
	uint64_t since = pl__rt.spin_ns_max ? pl__now_ns() : 0;
	bool woken, is_late = false;

	while (unlikely(load_relaxed(&g->nr_notifying_all)))
		pl__sched_yield();
	counter_inc(&w->stat.parks);
	PL_PROBE1(park, w->number);
	w->park.is_last = pl__has_surplus_workers(g) &&
			  pl__stands_in_last(w);
	if (pl__has_io(w))
		woken = pl__ring_way(w->ring) == PL_WAIT_PARK ?
			worker_park_polling(w, seq) : park_in_ring(w, seq);
	else
		woken = park_in_lot(w, seq, &is_late);
	w->is_searching = woken;
	PL_PROBE2(unpark, w->number, (uint32_t)woken);
	if (since)
		learn_to_spin(w, woken, pl__now_ns() - since);
	return is_late;
}

/*
 * Enough other workers run, after this one was counted as idle.  A worker that
 * was notified but is surplus leaves the tasks to the others; so it wakes
 * sysmon, as they may be blocked.
 */
static bool is_enough_running(struct pl__group *g, bool was_notified)
{
	return unlikely(pl__has_surplus_workers(g)) && !pl__is_short(g) &&
	       !(was_notified && pl__sysmon_notify(g) && pl__is_short(g));
}

/* But for what is set aside. */
static bool is_nothing_to_do(struct pl__group *g)
{
	return !pl__work_queued(g) && !pl__sysmon_clear_backlog(g);
}

/*
 * Counted as idle: rechecks every queue, and parks if there is nothing.  A
 * worker that was searching and sees something searches again, since it has to
 * notify for submitters that left their tasks to it; if another searches by
 * now, that one will.  True: the idle timeout has passed without a
 * notification.
 */
bool pl__worker_look_and_park(struct pl__worker *w, uint32_t seq)
{
	struct pl__group *g = w->group;
	bool was_searching = w->is_searching;

	if (was_searching)
		pl__stop_searching(w);
	pl__full_barrier();
	PL_INJECT("idle-a");
	/* [aside-a] pairs with [aside-b] in pl__aside_notify(). */
	PL_INJECT("aside-a");
	if ((!pl__aside_nr(g) || pl__aside_is_left(w)) &&
	    (is_enough_running(g, was_searching) || is_nothing_to_do(g)))
		return worker_park(w, seq);
	if (was_searching)
		w->is_searching = pl__search_begin(g);
	return false;
}

/* ---- tasks on the worker's stack, and ordinary threads ---- */

struct pl__bell *pl__sleep_bell(struct pl__worker *w)
{
	return w && pl__has_io(w) ? pl__ring_bell(w->ring) : NULL;
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
	bool woken, is_spare;

	if (!w)
		return pl__parker_park(s, deadline_ns);
	if (load_relaxed(&w->duty) == PL__IN_START_HOOK)
		return sleep_on_loop(w, s, deadline_ns);

	/* One worker less runs: another may have to take its place. */
	is_spare = pl__is_spare(w);
	pl__duty(w, PL__GOES_TO_SLEEP);
	pl__full_barrier();
	pl__notify_if_work(w->group);
	woken = sleep_on_loop(w, s, deadline_ns);
	run_again(w, is_spare);
	return woken;
}
