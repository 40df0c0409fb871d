/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "pace/duty.h"
#include "queue/aside.h"
#include "pace/kept.h"
#include "pace/pace.h"
#include "pace/relief.h"
#include "pace/sysmon_wake.h"
#include "base/inject.h"

/*
 * The thread that takes BLOCKED or STALLED back lowers the counters, which went
 * up before.
 */
void pl__duty_uncount(uint32_t duty)
{
	if (duty == PL__STALLED) {
		atomic_fetch_sub(&pl__rt.nr_stalled, 1);
		pl__relief_recheck();
	} else if (duty == PL__BLOCKED) {
		atomic_fetch_sub(&pl__rt.nr_seen, 1);
		atomic_fetch_sub(&pl__rt.nr_blocked, 1);
	}
}

bool pl__unblocked(struct pl__worker *w)
{
	uint32_t duty = load_relaxed(&w->duty);

	if (likely(duty != PL__BLOCKED && duty != PL__STALLED))
		return false;
	/* [duty-b] pairs with [duty-a] in sysmon.c and stalled.c. */
	if (!atomic_compare_exchange_strong(&w->duty, &duty, PL__RUNS))
		return false;
	pl__duty_uncount(duty);
	return duty == PL__BLOCKED;
}

/*
 * The crew counts the worker as idle until it runs, even if it sleeps
 * elsewhere.
 */
static void crew_set_idle(struct pl__worker *w, bool is_idle)
{
	_Atomic uint32_t *crew_word = load_relaxed(&w->crew_word);

	if (crew_word)
		store_relaxed(crew_word, is_idle);
}

void pl__worker_leaves(struct pl__worker *w, enum pl__duty duty)
{
	crew_set_idle(w, true);
	/*
	 * [duty-b] pairs with [duty-a] in sysmon.c: otherwise the worker would
	 * be counted as blocked twice.
	 */
	pl__duty_uncount(atomic_exchange(&w->duty, duty));
}

void pl__worker_runs(struct pl__worker *w)
{
	crew_set_idle(w, false);
	store_release(&w->duty, PL__RUNS);
	if (pl__has_io(w) || pl__is_keeping(w))
		pl__sysmon_notify_io();
}

/*
 * Were the first to look the one that leaves, connections that two workers
 * share would go to and fro, and never gather at one of them.
 */
bool pl__is_above_active(uint32_t index)
{
	uint32_t active = load_relaxed(&pl__rt.active), nr = 0, i;

	for (i = 0; i < index && nr < active; i++)
		nr += load_relaxed(&pl__rt.workers[i]->duty) == PL__RUNS;
	return nr >= active;
}

/* ---- spares ---- */

void pl__spare_begin(struct pl__worker *w)
{
	store_relaxed(&w->is_spare, true);
	crew_set_idle(w, true);
	atomic_fetch_add(&pl__rt.nr_blocked, 1);
	atomic_fetch_add(&pl__rt.nr_seen, 1);
	/* [duty-b] pairs with [duty-a] in sysmon.c and stalled.c. */
	pl__duty_uncount(atomic_exchange(&w->duty, PL__BLOCKED));
}

void pl__spare_end(struct pl__worker *w)
{
	store_relaxed(&w->is_spare, false);
	pl__unblocked(w);
	crew_set_idle(w, false);
}

void pl__spare_begin_to_compute(struct pl__worker *w)
{
	/* [duty-b] pairs with [duty-a] in sysmon.c and stalled.c. */
	pl__duty_uncount(atomic_exchange(&w->duty, PL__STALLED));
}

bool pl__spare_stop_to_compute(struct pl__worker *w)
{
	uint32_t duty = PL__STALLED;

	if (load_relaxed(&w->duty) != PL__STALLED)
		return false;
	pl__aside_renew_compute();
	atomic_fetch_add(&pl__rt.nr_blocked, 1);
	atomic_fetch_add(&pl__rt.nr_seen, 1);
	/* [duty-b] pairs with [duty-a] in sysmon.c and stalled.c. */
	if (atomic_compare_exchange_strong(&w->duty, &duty, PL__BLOCKED))
		atomic_fetch_sub(&pl__rt.nr_stalled, 1);
	else
		pl__duty_uncount(PL__BLOCKED);
	/* [relief-a] pairs with [relief-b] in pl__nr_may_compute(). */
	pl__full_barrier();
	PL_INJECT("relief-a");
	return true;
}
