/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "run/worker_park.h"
#include "base/inject.h"
#include "base/probe.h"
#include "base/sys.h"
#include "ring/ring.h"
#include "pace/kept.h"
#include "run/run.h"

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
	struct pl__lots *lots = &pl__rt.lots;

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
	reason = pl__lot_park_polling(&pl__rt.lots, w->lot, fd, deadline_ns,
				      seq);
	pl__ring_polled(w->ring, reason == PL__LOT_POLLED ||
				 reason == PL__LOT_LATE);
	return reason == PL__LOT_WOKEN;
}

/* A surplus worker parks for the idle timeout at most, then checks again. */
static bool park_in_lot(struct pl__worker *w, uint32_t seq, bool *is_late)
{
	uint64_t end_ns = UINT64_MAX, kept_ns = pl__kept_until(w);
	enum pl__lot_reason reason;

	if (unlikely(pl__has_surplus_workers()) && pl__is_end_due())
		end_ns = pl__now_ns() + load_relaxed(&pl__idle_timeout_ns);
	reason = pl__lot_park(&pl__rt.lots, w->lot, &w->park,
			      end_ns < kept_ns ? end_ns : kept_ns, seq);
	*is_late = reason == PL__LOT_LATE && end_ns <= kept_ns;
	return reason == PL__LOT_WOKEN;
}

/* True: the idle timeout has passed without a notification. */
static bool worker_park(struct pl__worker *w, uint32_t seq)
{
	uint64_t since = pl__rt.spin_ns_max ? pl__now_ns() : 0;
	bool woken, is_late = false;

	while (unlikely(load_relaxed(&pl__rt.nr_notifying_all)))
		pl__sched_yield();
	counter_inc(&w->stat.parks);
	PL_PROBE1(park, w->index);
	if (pl__has_io(w))
		woken = pl__ring_way(w->ring) == PL_WAIT_PARK ?
			worker_park_polling(w, seq) : park_in_ring(w, seq);
	else
		woken = park_in_lot(w, seq, &is_late);
	w->is_searching = woken;
	PL_PROBE2(unpark, w->index, (uint32_t)woken);
	if (since)
		learn_to_spin(w, woken, pl__now_ns() - since);
	return is_late;
}

/*
 * Enough other workers run, after this one was counted as idle.  A worker that
 * was notified but is surplus leaves the tasks to the others; so it wakes
 * sysmon, as they may be blocked.
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
 * Counted as idle: rechecks every queue, and parks if there is nothing.  A
 * worker that was searching and sees something searches again, since it has to
 * notify for submitters that left their tasks to it; if another searches by
 * now, that one will.  True: the idle timeout has passed without a
 * notification.
 */
bool pl__worker_look_and_park(struct pl__worker *w, uint32_t seq)
{
	bool was_searching = w->is_searching;

	if (was_searching)
		pl__stop_searching(w);
	pl__full_barrier();
	PL_INJECT("idle-a");
	/* [aside-a] pairs with [aside-b] in pl__aside_notify(). */
	PL_INJECT("aside-a");
	if (!pl__aside_nr() &&
	    (is_enough_running(was_searching) || is_nothing_to_do()))
		return worker_park(w, seq);
	if (was_searching)
		w->is_searching = pl__search_begin();
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
	bool woken;

	if (!w)
		return pl__parker_park(s, deadline_ns);
	if (load_relaxed(&w->duty) == PL__IN_START_HOOK)
		return sleep_on_loop(w, s, deadline_ns);

	/* One worker less runs: another may have to take its place. */
	pl__worker_leaves(w, PL__SLEEPS);
	atomic_fetch_add(&pl__rt.nr_blocked, 1);
	pl__full_barrier();
	pl__notify_if_work();
	woken = sleep_on_loop(w, s, deadline_ns);
	pl__worker_runs(w);
	atomic_fetch_sub(&pl__rt.nr_blocked, 1);
	return woken;
}
