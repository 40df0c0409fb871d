/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * notify: a worker is woken, or started, when tasks wait and too few run
 */
#include "pace/notify.h"
#include "queue/aside.h"
#include "pace/pace.h"
#include "queue/ready.h"
#include "pace/worker_thread.h"
#include "base/inject.h"
#include "base/base.h"
#include "base/sys.h"

/* An idle worker is asleep, or not idle any more, after fewer if it runs. */
#define NOTIFY_TRIES	16

/* Idle workers that one wakes which found more than it can run. */
#define FAN		2

/* How often others move the time at which a search began, at most. */
#define SEARCH_MOVES	7ULL

/* ---- the search ---- */

static void search_began(struct pl__group *g)
{
	store_relaxed(&g->search_ns, pl__now_ns() & ~SEARCH_MOVES);
}

bool pl__search_begin(struct pl__group *g)
{
	uint32_t none = 0;

	if (!atomic_compare_exchange_strong(&g->nr_searching, &none, 1))
		return false;
	search_began(g);
	return true;
}

void pl__search_begin_more(struct pl__group *g, uint32_t nr)
{
	if (!atomic_fetch_add(&g->nr_searching, nr))
		search_began(g);
}

/* See [late-a] and [left-a] in notify.h: fewer may be left. */
void pl__search_end(struct pl__group *g, uint32_t nr)
{
	uint32_t old = load_relaxed(&g->nr_searching);

	/* [late-b] pairs with [late-a] in search_take_over(). */
	while (old && !atomic_compare_exchange_weak(&g->nr_searching, &old,
						    old > nr ? old - nr : 0))
		;
	PL_INJECT("late-b");
}

/*
 * True: the search was late, and nr_searching is 0 now.  The caller notifies,
 * on behalf of all that left their tasks to the searcher.
 */
static bool search_take_over(struct pl__group *g, uint64_t now)
{
	uint32_t nr = load_relaxed(&g->nr_searching);

	/* Another thread may have begun to search after @now was read. */
	if (!nr || (int64_t)(now - load_relaxed(&g->search_ns)) <
		   (int64_t)PL__SEARCH_NS)
		return false;
	PL_INJECT("late-a");
	/* [late-a] pairs with [late-b] in pl__search_end(). */
	if (!atomic_compare_exchange_strong(&g->nr_searching, &nr, 0))
		return false;
	pl__full_barrier();
	atomic_fetch_add(&pl__rt.nr_late_searches, 1);
	return true;
}

void pl__search_check(struct pl__group *g, uint64_t now)
{
	if (search_take_over(g, now) || load_relaxed(&g->is_search_left))
		pl__notify_if_work(g);
}

/* False: the search was late, and sysmon sleeps, or there is none. */
static __pl_noinline bool is_left_to_searcher(struct pl__group *g)
{
	return (pl__rt.has_sysmon &&
		load_relaxed(&pl__rt.sysmon) != PL__SYSMON_ASLEEP) ||
	       !search_take_over(g, pl__now_ns());
}

/*
 * Of many that were woken at once the last is not late yet; but it may be one
 * that gets no processor while others go on to be woken.  So the low bits of
 * search_ns count how often it was moved.  Another thread may have begun to
 * search after @now was read.
 */
static void search_goes_on(struct pl__group *g, uint64_t now)
{
	uint64_t old = load_relaxed(&g->search_ns);

	if ((int64_t)(now - old) >= (int64_t)PL__SEARCH_NS / 2 &&
	    (old & SEARCH_MOVES) != SEARCH_MOVES)
		atomic_compare_exchange_strong(&g->search_ns, &old,
					       (now & ~SEARCH_MOVES) |
					       ((old & SEARCH_MOVES) + 1));
}

/*
 *	searcher			submitter
 *	nr_searching = 0	[search-a]	queue a task
 *	full barrier			full barrier
 *	look in every queue		if (nr_searching)	[search-b]
 *						leave it to the searcher
 *
 * Invariant: no task is left to a worker that stopped searching before it
 * looked.  Either the searcher finds the task or the submitter finds no
 * searcher and notifies; otherwise the task waits although workers are idle.
 */
void pl__stop_searching(struct pl__worker *w)
{
	struct pl__group *g = w->group;

	w->is_searching = false;
	w->has_left_half = false;
	/* [search-a] pairs with [search-b] in pl__notify_one(). */
	pl__search_end(g, 1);
	if (unlikely(load_relaxed(&g->nr_searching)))
		search_goes_on(g, pl__now_ns());
	pl__full_barrier();
	PL_INJECT("search-a");
}

void pl__search_take_left_slow(struct pl__worker *w)
{
	if (atomic_exchange(&w->group->is_search_left, false) &&
	    !w->is_searching)
		w->is_searching = pl__search_begin(w->group);
}

/* ---- spares for tasks that are set aside ---- */

uint32_t pl__nr_arriving(struct pl__group *g)
{
	uint32_t nr = load_relaxed(&g->nr_starting);
	uint32_t in_hook = load_relaxed(&g->nr_in_hook);

	return nr > in_hook ? nr - in_hook : 0;
}

static uint32_t aside_nr_awaited(struct pl__group *g)
{
	return load_relaxed(&g->nr_searching) +
	       load_relaxed(&g->nr_starting);
}

/* No other is started for those in their hook, but an idle one is woken. */
static uint32_t aside_nr_due(struct pl__group *g)
{
	return load_relaxed(&g->nr_searching) + pl__nr_arriving(g);
}

/*
 * A start takes a processor; more of them at a time only delay each other, and
 * the tasks that events made ready.
 */
uint32_t pl__nr_may_start(struct pl__group *g)
{
	uint32_t nr = load_relaxed(&g->nr_starting), most;

	most = pl__rt.nr_cpus < PL__ASIDE_STARTERS ? pl__rt.nr_cpus :
						     PL__ASIDE_STARTERS;
	return nr < most ? most - nr : 0;
}

bool pl__is_spare_due(struct pl__group *g)
{
	return pl__aside_nr(g) > aside_nr_awaited(g) && pl__nr_may_start(g);
}

static void start_spares(struct pl__group *g)
{
	while (pl__is_spare_due(g))
		if (pl__worker_start_spare(g)) {
			/* It tells if no spare is ever through. */
			pl__sysmon_notify(g);
			break;
		}
}

/* ---- notifications ---- */

/*
 * With no worker idle one can only be started.  For that the number that is
 * blocked in the crew at this moment does not matter; to read it costs a look
 * at a cache line for each processor, at every spawn.
 */
static bool is_notify_due(struct pl__group *g)
{
	return load_relaxed(&g->nr_idle) ? pl__is_short(g) :
					       pl__is_start_due(g);
}

/* The caller, if it is a worker of @g. */
static struct pl__worker *self_in(struct pl__group *g)
{
	struct pl__worker *w = pl__self();

	return w && w->group == g ? w : NULL;
}

/* Returns how many of @nr it has woken. */
static uint32_t notify_lot(struct pl__group *g, struct pl__worker *w,
			   uint32_t nr)
{
	uint32_t lot = w ? w->lot : pl__self_number() % g->lots.nr;
	uint32_t woken = pl__lots_signal(&g->lots, lot, nr);

	if (!woken)
		return 0;
	PL_PROBE1(wake, lot);
	if (w)
		counter_add(&w->stat.wakes, woken);
	else
		atomic_fetch_add(&g->wakes_outside, woken);
	return woken;
}

/*
 * Tasks were left to the caller, which counts as searching no more.  A worker
 * that looked before they were queued looks again after the signal, or is
 * woken.  False: no worker counts as idle any more, so the caller has to notify
 * again.
 */
static bool search_leave(struct pl__group *g, struct pl__worker *w)
{
	/* [left-a] pairs with [left-b] in pl__search_take_left(). */
	atomic_store(&g->is_search_left, true);
	PL_INJECT("left-a");
	return notify_lot(g, w, 1) || atomic_load(&g->nr_idle);
}

/*
 * No idle worker was asleep, or a start was refused since enough ran at that
 * moment.  Another submitter may have left its task to this one meanwhile,
 * which counted as the searcher; so recheck.
 */
static bool must_notify_again(struct pl__group *g, uint32_t idle, int ret)
{
	return (idle || load_relaxed(&g->nr_idle) ||
		(ret == -EBUSY && pl__is_start_due(g))) &&
	       is_notify_due(g) && pl__work_anywhere(g);
}

/* Others may have left such tasks to the caller, too, and idle workers park. */
static bool must_wake_spare(struct pl__group *g)
{
	return unlikely(pl__aside_nr(g)) && load_relaxed(&g->nr_idle);
}

/*
 * Counts in nr_searching the worker that it wakes or starts.  If it wakes none,
 * since the idle worker was not asleep yet, it stops searching and rechecks for
 * tasks that others left to it, and for its own, since the idle worker may have
 * found another task.  A worker that gets no processor may be idle and awake
 * for long; so after a few tries the search is left to that.  A start that
 * failed for want of memory is not retried here.
 */
static __pl_noinline void notify_slow(struct pl__group *g, struct pl__worker *w)
{
	uint32_t idle, nr_tries = 0;
	int ret;

	/* A worker that counts as blocked may compute by now. */
	if (load_relaxed(&g->nr_seen))
		pl__sysmon_notify(g);
	do {
		if (!pl__search_begin(g))
			return;
		PL_INJECT("search-b");
		idle = load_relaxed(&g->nr_idle);
		if (idle)
			ret = notify_lot(g, w, 1) ? 0 : -EAGAIN;
		else
			ret = pl__worker_start(g, true);
		if (!ret)
			return;
		pl__search_end(g, 1);
		pl__full_barrier();
	} while (((must_notify_again(g, idle, ret) || must_wake_spare(g)) &&
		  (++nr_tries < NOTIFY_TRIES || !search_leave(g, w))) ||
		 (pl__sysmon_notify(g) && is_notify_due(g)));
	if (unlikely(pl__aside_nr(g)))
		start_spares(g);
}

void pl__notify_one(struct pl__group *g)
{
	/*
	 * [idle-b] pairs with [idle-a], [search-b] with [search-a]; [idle-b]
	 * also pairs with [end-a] in worker_thread.c.
	 */
	pl__full_barrier();
	PL_INJECT("idle-b");
	if (load_relaxed(&g->nr_searching) && is_left_to_searcher(g))
		return;
	if (is_notify_due(g) || (pl__sysmon_notify(g) && is_notify_due(g)))
		notify_slow(g, self_in(g));
}

void pl__wake_idle(struct pl__group *g, struct pl__worker *w, uint32_t nr)
{
	uint32_t idle = load_relaxed(&g->nr_idle), woken;

	if (nr > idle)
		nr = idle;
	if (!nr)
		return;
	pl__search_begin_more(g, nr);
	woken = notify_lot(g, w, nr);
	if (woken == nr)
		return;
	/* [search-a] pairs with [search-b] in pl__notify_one(). */
	pl__search_end(g, nr - woken);
	pl__full_barrier();
	if (pl__work_anywhere(g))
		pl__notify_one(g);
	if (must_wake_spare(g))
		notify_slow(g, w);
}

/* How many idle workers may run; those that search run soon. */
static uint32_t nr_missing(struct pl__group *g)
{
	uint32_t others = load_relaxed(&g->active) + pl__nr_not_running(g);
	uint32_t nr = load_relaxed(&g->nr_alive) +
		      load_relaxed(&g->nr_searching);

	return others > nr ? others - nr : 0;
}

static __pl_noinline void notify_several(struct pl__group *g, uint32_t nr)
{
	uint32_t missing;

	/* [idle-b] pairs with [idle-a]: for nr_idle. */
	pl__full_barrier();
	PL_INJECT("idle-b");
	missing = load_relaxed(&g->nr_idle) ? nr_missing(g) : 0;
	pl__wake_idle(g, self_in(g), nr < missing ? nr : missing);
}

void pl__notify_many(struct pl__group *g, uint32_t nr)
{
	if (nr > 1)
		notify_several(g, nr);
	pl__notify_one(g);
}

void pl__notify_if_work(struct pl__group *g)
{
	if (!pl__work_anywhere(g))
		return;
	pl__notify_one(g);
	if (unlikely(pl__aside_nr(g)))
		pl__aside_notify(g, self_in(g));
}

/* Workers that are to search will run, too; those that compute do. */
static bool has_cpus_for(struct pl__group *g, uint32_t nr)
{
	return pl__nr_running(g) + load_relaxed(&g->nr_stalled) +
	       load_relaxed(&g->nr_searching) + nr <= pl__rt.nr_cpus;
}

void pl__notify_found(struct pl__group *g, size_t nr)
{
	if (nr >= FAN && load_relaxed(&g->nr_idle) >= FAN &&
	    nr_missing(g) >= FAN && has_cpus_for(g, FAN))
		notify_several(g, FAN);
	pl__notify_if_work(g);
}

/* Counts all in nr_searching first: the first to search leaves the rest. */
static void start_several(struct pl__group *g, uint32_t nr)
{
	uint32_t most = pl__nr_may_start(g), i;

	if (nr > most)
		nr = most;
	if (!nr || !pl__is_start_due(g))
		return;
	pl__search_begin_more(g, nr);
	for (i = 0; i < nr && !pl__worker_start(g, true); i++)
		;
	/* The caller looks in every queue afterwards. */
	pl__search_end(g, nr - i);
	pl__full_barrier();
}

void pl__notify_missing(struct pl__group *g)
{
	uint32_t nr = pl__nr_ready(g), searching;

	if (nr > 1)
		notify_several(g, nr);
	searching = load_relaxed(&g->nr_searching);
	if (nr > 1 && nr > searching && !load_relaxed(&g->nr_idle))
		start_several(g, nr - searching);
	pl__full_barrier();
	pl__notify_if_work(g);
}

/*
 * Each woken worker counts in nr_searching; submitters that saw a searcher may
 * have left their tasks to this one, too.  No worker parks meanwhile: otherwise
 * some would be woken twice, and others not at all.
 */
void pl__notify_all(struct pl__group *g)
{
	uint32_t nr = load_acquire(&g->nr_started);

	atomic_fetch_add(&g->nr_notifying_all, 1);
	pl__search_begin_more(g, nr);
	nr -= pl__lots_signal(&g->lots, 0, nr);
	pl__search_end(g, nr);
	atomic_fetch_sub(&g->nr_notifying_all, 1);
	pl__full_barrier();
	pl__notify_if_work(g);
}

void pl__aside_notify(struct pl__group *g, struct pl__worker *w)
{
	uint32_t nr, due;

	/* [aside-b] pairs with [aside-a] in worker.c, worker.c. */
	pl__full_barrier();
	PL_INJECT("aside-b");
	nr = pl__aside_nr(g);
	due = aside_nr_due(g);
	if (nr > due)
		pl__wake_idle(g, w, nr - due);
	start_spares(g);
}

bool pl__aside_is_left(struct pl__worker *w)
{
	return pl__stands_in_last(w) && aside_nr_due(w->group);
}
