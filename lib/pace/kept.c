/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "pace/kept.h"
#include "base/inject.h"
#include "base/sys.h"
#include "pace/notify.h"
#include "pace/pace.h"
#include "queue/aside.h"

#define SOON_NS		(5 * 1000 * 1000ULL)	/* others follow as soon */
#define LATE_NS		(200 * 1000ULL)	/* of a worker that takes tasks */

/* Those that have a bucket to themselves, among workers. */
void pl__kept_start(void)
{
	uint32_t nr = pl__rt.cfg.nr_timer_buckets;

	nr = nr > PL__NR_THREAD_BUCKETS ? nr - PL__NR_THREAD_BUCKETS : 0;
	pl__rt.nr_keepers = pl__rt.has_sysmon ? nr : 0;
}

/*
 * Sysmon sleeps.  It is woken for a deadline that comes soon, as most likely
 * others follow: then it stays awake, while the timer thread would wake for
 * each of them.
 */
static __pl_noinline void keep_unwatched(struct pl__worker *w)
{
	if (pl__kept_ns(w) < pl__now_ns() + SOON_NS)
		pl__sysmon_kick();
	else
		pl__kept_give_up(w);
}

void pl__kept_list(struct pl__worker *w, struct pl__timer *timer)
{
	if (!load_relaxed(&w->may_keep) || w->number >= pl__rt.nr_keepers) {
		pl__timer_list(pl__rt.timers, &w->timers, timer);
		return;
	}
	if (!pl__timer_list_kept(pl__rt.timers, &w->timers, timer))
		return;
	/* [kept-b] pairs with [kept-a] in sysmon.c. */
	pl__full_barrier();
	PL_INJECT("kept-b");
	if (load_relaxed(&pl__rt.sysmon) == PL__SYSMON_ASLEEP)
		keep_unwatched(w);
}

static void kept_allow(struct pl__worker *w)
{
	store_relaxed(&w->may_keep, true);
	pl__timers_make_room(pl__rt.timers, w->number);
}

uint64_t pl__kept_until(struct pl__worker *w)
{
	if (w->number >= pl__rt.nr_keepers)
		return PL_FOREVER;
	kept_allow(w);
	return pl__kept_ns(w);
}

/* What it takes next is all that there is, unless others are to run. */
static bool takes_all(struct pl__worker *w)
{
	return pl__nr_queued(w) && !pl__has_more_than_next(w) &&
	       !pl__is_spare(w) && !pl__is_surplus(w);
}

void pl__kept_fire_slow(struct pl__worker *w)
{
	if (pl__timers_fire_kept(pl__rt.timers, w->number, &w->timers) &&
	    !takes_all(w))
		pl__notify_one(w->group);
}

/*
 * Of the next one in turn, what should have been called @late_ns ago; reads the
 * clock into @now, unless it is there.
 */
static uint32_t take_from_next(struct pl__worker *w, uint64_t *now,
			       uint64_t late_ns)
{
	struct pl__group *g = w->group;
	uint32_t nr = load_acquire(&g->nr_started), i = w->next_late + 1;
	struct pl__worker *v;

	w->next_late = i = i < nr ? i : 0;
	v = g->workers[i];
	if (v == w || !pl__is_keeping(v))
		return 0;
	if (!*now)
		*now = pl__now_ns();
	if (pl__kept_ns(v) > *now - late_ns)
		return 0;
	return pl__timers_take_kept(pl__rt.timers, v->number, *now,
				    &w->timers);
}

uint32_t pl__kept_take_late(struct pl__worker *w)
{
	uint64_t now = 0;

	return take_from_next(w, &now, LATE_NS);
}

bool pl__kept_steal(struct pl__worker *w)
{
	uint32_t nr = load_relaxed(&w->group->nr_started), i, found = 0;
	uint64_t now = 0;

	for (i = 0; i < nr && !found; i++)
		found = take_from_next(w, &now, 0);
	if (found && !takes_all(w))
		pl__notify_one(w->group);
	return found;
}

static void tell_of(struct pl__worker *w)
{
	if (load_relaxed(&w->duty) == PL__IDLE || !pl__is_keeping(w))
		return;
	store_relaxed(&w->may_keep, false);
	pl__timers_tell_kept(pl__rt.timers, w->number);
}

void pl__kept_tell(struct pl__group *g)
{
	uint32_t nr = load_acquire(&g->nr_started), i;

	for (i = 0; i < nr; i++)
		tell_of(g->workers[i]);
}

static bool has_taken_a_task(struct pl__worker *w)
{
	uint32_t tick = load_relaxed(&w->tick), before = w->sysmon.kept_tick;

	w->sysmon.kept_tick = tick;
	return tick != before;
}

/* A spare blocks, and does not look for events. */
static void kept_look_at(struct pl__worker *w, uint64_t now)
{
	if (!has_taken_a_task(w) || pl__kept_ns(w) < now - LATE_NS)
		tell_of(w);
	else if (w->number < pl__rt.nr_keepers && !load_relaxed(&w->may_keep) &&
		 load_relaxed(&w->duty) == PL__RUNS)
		kept_allow(w);
}

void pl__kept_look(struct pl__group *g)
{
	uint32_t nr = load_acquire(&g->nr_started), i;
	uint64_t now = pl__now_ns();

	for (i = 0; i < nr; i++)
		kept_look_at(g->workers[i], now);
}

void pl__kept_give_up(struct pl__worker *w)
{
	if (pl__is_keeping(w))
		pl__timers_tell_kept(pl__rt.timers, w->number);
}
