/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "pace/pace.h"
#include "queue/aside.h"
#include "pace/kept.h"
#include "pace/notify.h"
#include "base/inject.h"
#include "base/sys.h"

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

#define MANY		4	/* times the target: told */
#define WAIT_MOST	16	/* times stall_ns: between two raises */

/* W: sysmon's thread, and while no sysmon runs. */
static struct {
	uint64_t		since_ns; /* the limit is too low since; or 0 */
	uint64_t		wait_ns;  /* before the limit is raised */
	bool			has_printed;
} relief;

void pl__relief_recheck(void)
{
	/* [relief-a] pairs with [relief-b] in pl__nr_may_compute(). */
	pl__full_barrier();
	PL_INJECT("relief-a");
	if (pl__nr_may_compute())
		pl__notify_if_work();
}

/* As many as can compute at a time. */
static uint32_t limit_first(void)
{
	uint32_t target = load_relaxed(&pl__rt.target);

	return target < pl__rt.nr_cpus ? target : pl__rt.nr_cpus;
}

static void relief_limit_reset(void)
{
	store_relaxed(&pl__rt.stalled_limit, limit_first());
	relief.wait_ns = 2 * pl__rt.stall_ns;
	relief.since_ns = 0;
}

/* Fewer are stalled than at first, which may have been raised. */
static void relief_limit_lift(void)
{
	uint32_t before = load_relaxed(&pl__rt.stalled_limit);

	relief_limit_reset();
	if (load_relaxed(&pl__rt.stalled_limit) > before)
		pl__relief_recheck();
}

static void relief_print(uint32_t nr)
{
	char text[160];
	int len;

	len = snprintf(text, sizeof(text),
		       "parklot: %u workers are in tasks that compute, and others wait: more threads than processors run\n",
		       nr);
	relief.has_printed = pl__fd_try_write(2, text, (size_t)len) != -EAGAIN;
}

/* Too many are stalled for the limit: raises it if that lasts. */
static void relief_limit_raise(uint64_t now, bool is_short)
{
	uint32_t limit = load_relaxed(&pl__rt.stalled_limit);
	uint64_t taken_ns = load_relaxed(&pl__rt.aside.compute.taken_ns);

	if (!relief.since_ns)
		relief.since_ns = now;
	if (!is_short && (int64_t)(taken_ns - relief.since_ns) > 0)
		relief.since_ns = taken_ns;
	if ((int64_t)(now - relief.since_ns) < (int64_t)relief.wait_ns ||
	    limit >= pl__rt.cfg.max_workers)
		return;
	store_relaxed(&pl__rt.stalled_limit, limit + 1);
	counter_inc(&pl__rt.nr_stalls_over);
	relief.since_ns = now;
	if (relief.wait_ns < WAIT_MOST * pl__rt.stall_ns)
		relief.wait_ns *= 2;
	if (!relief.has_printed && limit >= MANY * load_relaxed(&pl__rt.target))
		relief_print(limit);
	pl__relief_recheck();
}

void pl__relief_look(uint64_t now, bool is_short)
{
	if (load_relaxed(&pl__rt.nr_stalled) < limit_first())
		relief_limit_lift();
	if (!pl__nr_may_compute() && (is_short || pl__relief_is_due()))
		relief_limit_raise(now, is_short);
	else
		relief.since_ns = 0;
}

bool pl__relief_is_due(void)
{
	return unlikely(load_relaxed(&pl__rt.aside.compute.nr) ||
			pl__background_nr());
}

void pl__relief_reset(void)
{
	store_relaxed(&pl__rt.nr_stalls, 0);
	store_relaxed(&pl__rt.nr_stalls_over, 0);
	relief.has_printed = false;
	relief_limit_reset();
}
