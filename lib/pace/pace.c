/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "pace/pace.h"
#include "queue/aside.h"
#include "pace/kept.h"
#include "pace/notify.h"
#include "base/inject.h"
#include "base/sys.h"

/* ---- duty ---- */

enum {
	GONE = PL__GONE, RUNS = PL__RUNS, IDLE = PL__IDLE,
	HOOK = PL__IN_START_HOOK, SLPS = PL__SLEEPS, BLKD = PL__BLOCKED,
	STLD = PL__STALLED, SPAR = PL__SPARE, SBLK = PL__SPARE_BLOCKED,
	SSTL = PL__SPARE_STALLED,
	____ = PL__NR_DUTIES,	/* stays as it is */
	XXXX,			/* cannot happen */
};

/* What a worker does after an event, by what it did: the states across. */
static const uint8_t after[PL__NR_DUTY_EVENTS][PL__NR_DUTIES] = {
/*	  GONE  RUNS  IDLE  HOOK  SLPS  BLKD  STLD  SPAR  SBLK  SSTL	*/
[PL__STARTS] =
	{ RUNS, XXXX, XXXX, XXXX, XXXX, XXXX, XXXX, XXXX, XXXX, XXXX },
[PL__STARTS_AS_SPARE] =
	{ SBLK, XXXX, XXXX, XXXX, XXXX, XXXX, XXXX, XXXX, XXXX, XXXX },
[PL__ENDS] =
	{ XXXX, GONE, GONE, XXXX, XXXX, GONE, GONE, GONE, GONE, GONE },
[PL__PARKS] =
	{ XXXX, IDLE, XXXX, XXXX, XXXX, IDLE, IDLE, IDLE, IDLE, IDLE },
[PL__ENTERS_HOOK] =
	{ XXXX, HOOK, XXXX, XXXX, XXXX, HOOK, HOOK, HOOK, HOOK, HOOK },
[PL__GOES_TO_SLEEP] =
	{ XXXX, SLPS, XXXX, XXXX, XXXX, SLPS, SLPS, SLPS, SLPS, SLPS },
[PL__RUNS_AGAIN] =
	{ XXXX, XXXX, RUNS, RUNS, RUNS, XXXX, XXXX, XXXX, XXXX, XXXX },
[PL__RUNS_AS_SPARE] =
	{ XXXX, XXXX, SBLK, SBLK, SPAR, XXXX, XXXX, XXXX, XXXX, XXXX },
[PL__STANDS_IN] =
	{ XXXX, SBLK, XXXX, XXXX, XXXX, SBLK, SBLK, XXXX, XXXX, XXXX },
[PL__COMPUTES] =
	{ XXXX, XXXX, XXXX, XXXX, XXXX, XXXX, XXXX, SSTL, SSTL, SSTL },
[PL__LETS_COMPUTE] =
	{ XXXX, XXXX, XXXX, XXXX, XXXX, XXXX, XXXX, ____, ____, SBLK },
[PL__IS_THROUGH] =
	{ XXXX, XXXX, XXXX, XXXX, XXXX, XXXX, XXXX, RUNS, RUNS, RUNS },
[PL__IS_BACK] =
	{ ____, ____, ____, ____, ____, RUNS, RUNS, ____, SPAR, SPAR },
[PL__SEEN_ASLEEP] =
	{ ____, BLKD, ____, ____, ____, ____, ____, SBLK, ____, ____ },
[PL__SEEN_LONG] =
	{ ____, STLD, ____, ____, ____, ____, ____, SSTL, ____, ____ },
};

/*
 * What a worker is counted in, by what it does; and whether the crew counts it
 * as idle, which sees by itself whether others are blocked.
 */
static const struct {
	bool	is_idle, is_blocked, is_seen, is_stalled, is_idle_in_crew;
} counted[PL__NR_DUTIES] = {
	[IDLE] = { .is_idle = true, .is_idle_in_crew = true },
	[HOOK] = { .is_blocked = true, .is_idle_in_crew = true },
	[SLPS] = { .is_blocked = true, .is_idle_in_crew = true },
	[BLKD] = { .is_blocked = true, .is_seen = true },
	[STLD] = { .is_stalled = true },
	[SPAR] = { .is_idle_in_crew = true },
	[SBLK] = { .is_blocked = true, .is_seen = true,
		   .is_idle_in_crew = true },
	[SSTL] = { .is_stalled = true, .is_idle_in_crew = true },
};

/* @by: 1 or -1. */
static __pl_always_inline void count(struct pl__group *g, uint32_t duty,
				     uint32_t by)
{
	/* Who reads both counters of the hook holds this lock. */
	if (duty == HOOK) {
		pl__lock(&pl__rt.start_lock);
		atomic_fetch_add(&g->nr_in_hook, by);
	}
	if (counted[duty].is_stalled)
		atomic_fetch_add(&g->nr_stalled, by);
	if (counted[duty].is_blocked)
		atomic_fetch_add(&g->nr_blocked, by);
	if (counted[duty].is_seen)
		atomic_fetch_add(&g->nr_seen, by);
	if (counted[duty].is_idle)
		atomic_fetch_add(&g->nr_idle, by);
	if (duty == HOOK)
		pl__unlock(&pl__rt.start_lock);
}

/*
 * The crew counts the worker as idle until it runs, even if it sleeps
 * elsewhere.
 */
static __pl_always_inline void crew_set_idle(struct pl__worker *w, bool is_idle)
{
	_Atomic uint32_t *crew_word = load_relaxed(&w->crew_word);

	if (crew_word)
		store_relaxed(crew_word, is_idle);
}

/* @w changes from @from to @to, unless it has changed meanwhile. */
static __pl_always_inline bool duty_change(struct pl__worker *w, uint32_t from,
					   uint32_t to, bool is_counted)
{
	bool is_idle = counted[to].is_idle_in_crew;
	bool is_changed = is_idle != counted[from].is_idle_in_crew;
	uint32_t was = from;

	if (is_changed && is_idle)
		crew_set_idle(w, true);
	if (!is_counted)
		count(w->group, to, 1);
	PL_INJECT("duty-a");
	/* [duty-a] pairs with [duty-b] below: counted before it is marked. */
	if (!atomic_compare_exchange_strong(&w->duty, &was, to)) {
		if (!is_counted)
			count(w->group, to, -1U);
		return false;
	}
	/* [duty-b] pairs with [duty-a]: who takes a mark back lowers it. */
	count(w->group, from, -1U);
	if (is_changed && !is_idle)
		crew_set_idle(w, false);
	return true;
}

/*
 * Sysmon changes the word only while the worker is in a task.  One that was
 * counted as stalled, if for a moment, may have kept another from it.
 */
static __pl_noinline uint32_t duty_slow(struct pl__worker *w,
					enum pl__duty_event event)
{
	bool is_counted = event == PL__COMPUTES, is_done = false;
	bool was_stalled = false;
	uint32_t from, to;

	while (!is_done) {
		from = load_relaxed(&w->duty);
		to = after[event][from];
		PL_BUG_ON(to == XXXX);
		if (to == ____)
			break;
		is_done = duty_change(w, from, to, is_counted);
		was_stalled |= is_done ? counted[from].is_stalled :
			       counted[to].is_stalled && !is_counted;
		/* What sysmon saw is no more. */
		if (event >= PL__IS_BACK)
			break;
	}
	/* Who lets another compute looks itself; an end holds start_lock. */
	if (was_stalled && event != PL__LETS_COMPUTE && event != PL__ENDS)
		pl__relief_recheck(w->group);
	return is_done ? from : PL__NR_DUTIES;
}

/* Mostly @usual, so that what is to be counted is known to the compiler. */
static __pl_always_inline uint32_t duty_mostly(struct pl__worker *w,
					       enum pl__duty_event event,
					       uint32_t usual)
{
	if (likely(load_relaxed(&w->duty) == usual) &&
	    duty_change(w, usual, after[event][usual], false))
		return usual;
	return duty_slow(w, event);
}

uint32_t pl__duty(struct pl__worker *w, enum pl__duty_event event)
{
	switch (event) {
	case PL__PARKS:
		return duty_mostly(w, PL__PARKS, RUNS);
	case PL__RUNS_AGAIN:
		return duty_mostly(w, PL__RUNS_AGAIN, IDLE);
	case PL__STANDS_IN:
		return duty_mostly(w, PL__STANDS_IN, RUNS);
	case PL__IS_THROUGH:
		return duty_mostly(w, PL__IS_THROUGH, SBLK);
	default:
		return duty_slow(w, event);
	}
}

bool pl__spare_lets_compute(struct pl__worker *w)
{
	if (!pl__is_stalled(w))
		return false;
	pl__aside_renew_compute(w->group);
	pl__duty(w, PL__LETS_COMPUTE);
	/* [relief-a] pairs with [relief-b] in pl__nr_may_compute(). */
	pl__full_barrier();
	PL_INJECT("relief-a");
	return true;
}

void pl__worker_runs(struct pl__worker *w)
{
	pl__duty(w, PL__RUNS_AGAIN);
	if (pl__has_io(w) || pl__is_keeping(w))
		pl__sysmon_notify_io();
}

void pl__worker_stands_in(struct pl__worker *w)
{
	pl__duty(w, PL__RUNS_AS_SPARE);
	if (pl__has_io(w))
		pl__sysmon_notify_io();
}

/*
 * Were the first to look the one that leaves, connections that two workers
 * share would go to and fro, and never gather at one of them.
 */
bool pl__is_above_active(struct pl__worker *w)
{
	struct pl__group *g = w->group;
	uint32_t active = load_relaxed(&g->active), nr = 0, i;

	for (i = 0; i < w->index && nr < active; i++)
		nr += pl__is_running(g->workers[i]);
	return nr >= active;
}

/* ---- what they took ---- */

uint32_t pl__nr_taken(struct pl__group *g)
{
	uint32_t nr = load_acquire(&g->nr_started), i, sum = 0;
	struct pl__worker *w;

	for (i = 0; i < nr; i++) {
		w = g->workers[i];
		sum += load_relaxed(&w->tick) -
		       (uint32_t)load_relaxed(&w->stat.untaken);
	}
	return sum;
}

/* ---- relief ---- */

#define MANY		4	/* times the target: told */
#define WAIT_MOST	16	/* times stall_ns: between two raises */

void pl__relief_recheck(struct pl__group *g)
{
	/* [relief-a] pairs with [relief-b] in pl__nr_may_compute(). */
	pl__full_barrier();
	PL_INJECT("relief-a");
	if (pl__nr_may_compute(g))
		pl__notify_if_work(g);
}

/* As many as can compute at a time. */
static uint32_t limit_first(struct pl__group *g)
{
	uint32_t target = load_relaxed(&g->target);

	return target < pl__rt.nr_cpus ? target : pl__rt.nr_cpus;
}

static void relief_limit_reset(struct pl__group *g)
{
	store_relaxed(&g->stalled_limit, limit_first(g));
	g->relief.wait_ns = 2 * pl__rt.stall_ns;
	g->relief.since_ns = 0;
}

/* Fewer are stalled than at first, which may have been raised. */
static void relief_limit_lift(struct pl__group *g)
{
	uint32_t before = load_relaxed(&g->stalled_limit);

	relief_limit_reset(g);
	if (load_relaxed(&g->stalled_limit) > before)
		pl__relief_recheck(g);
}

static void relief_print(struct pl__group *g, uint32_t nr)
{
	char text[192];
	int len;

	len = snprintf(text, sizeof(text),
		       "parklot: %u workers are in tasks that compute, and others wait: more threads than processors run%s%s\n",
		       nr, *g->name ? "; in group " : "", g->name);
	g->relief.has_printed =
		pl__fd_try_write(2, text, (size_t)len) != -EAGAIN;
}

/* Too many are stalled for the limit: raises it if that lasts. */
static void relief_limit_raise(struct pl__group *g, uint64_t now, bool is_short)
{
	uint32_t limit = load_relaxed(&g->stalled_limit);
	uint64_t taken_ns = load_relaxed(&g->aside.compute.taken_ns);

	if (!g->relief.since_ns)
		g->relief.since_ns = now;
	if (!is_short && (int64_t)(taken_ns - g->relief.since_ns) > 0)
		g->relief.since_ns = taken_ns;
	if ((int64_t)(now - g->relief.since_ns) < (int64_t)g->relief.wait_ns ||
	    limit >= g->max_workers)
		return;
	store_relaxed(&g->stalled_limit, limit + 1);
	counter_inc(&pl__rt.nr_stalls_over);
	g->relief.since_ns = now;
	if (g->relief.wait_ns < WAIT_MOST * pl__rt.stall_ns)
		g->relief.wait_ns *= 2;
	if (!g->relief.has_printed && limit >= MANY * load_relaxed(&g->target))
		relief_print(g, limit);
	pl__relief_recheck(g);
}

void pl__relief_look(struct pl__group *g, uint64_t now, bool is_short)
{
	if (load_relaxed(&g->nr_stalled) < limit_first(g))
		relief_limit_lift(g);
	if (!pl__nr_may_compute(g) && (is_short || pl__relief_is_due(g)))
		relief_limit_raise(g, now, is_short);
	else
		g->relief.since_ns = 0;
}

bool pl__relief_is_due(struct pl__group *g)
{
	return unlikely(load_relaxed(&g->aside.compute.nr) ||
			pl__background_nr(g));
}

void pl__relief_reset(struct pl__group *g)
{
	g->relief.has_printed = false;
	relief_limit_reset(g);
}
