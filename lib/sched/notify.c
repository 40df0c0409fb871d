/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * notify: a worker is called, or started, when tasks wait and too few run
 */
#include "sched/sched.h"
#include "base/inject.h"
#include "base/probe.h"

/*
 *	searcher			whoever queued a task
 *	nr_searching = 0	[search-a]	queue it
 *	full barrier			full barrier
 *	look in every queue		if (nr_searching)	[search-b]
 *						leave it to that one
 */
void pl__stop_searching(struct pl__worker *w)
{
	w->is_searching = false;
	/* [search-a] pairs with [search-b] in pl__notify_one(). */
	atomic_fetch_sub(&pl__rt.nr_searching, 1);
	pl__full_barrier();
	PL_INJECT("search-a");
}

/*
 * With nobody idle a worker can only be started, for which it does not matter
 * how many of the crew are blocked at this moment: to find that out would take
 * a look at a line for each processor, at every spawn.
 */
static bool is_notify_due(void)
{
	return load_relaxed(&pl__rt.nr_idle) ? pl__is_short() :
					       pl__is_start_due();
}

static bool notify_lot(struct pl__worker *w)
{
	uint32_t lot = w ? w->lot : pl__self_number() % pl__rt.cfg.nr_lots;

	if (!pl__lots_signal(&pl__rt.lots, lot, 1))
		return false;
	PL_PROBE1(wake, lot);
	if (w)
		counter_inc(&w->stat.wakes);
	else
		atomic_fetch_add(&pl__rt.wakes_outside, 1);
	return true;
}

/*
 * Called in vain, or was refused a start since enough ran at that moment: so
 * did somebody who then has left what he found to us, as we had the token.
 */
static bool must_notify_again(uint32_t idle, int ret)
{
	return (idle || load_relaxed(&pl__rt.nr_idle) ||
		(ret == -EBUSY && pl__is_start_due())) &&
	       is_notify_due() && pl__work_anywhere();
}

/*
 * Takes the token for whom it wakes or starts.  Where that was nobody, since
 * the idle one was not asleep yet, it lays the token down and so must look for
 * what others left to it meanwhile; and for its own, since the idle one may
 * have found something else.  A start for which there was no memory is not
 * tried again.
 */
static void notify_slow(struct pl__worker *w)
{
	uint32_t none, idle;
	int ret;

	/* One may compute by now, and be counted as blocked still. */
	if (load_relaxed(&pl__rt.nr_seen))
		pl__sysmon_notify();
	do {
		none = 0;
		if (!atomic_compare_exchange_strong(&pl__rt.nr_searching,
						    &none, 1))
			return;
		PL_INJECT("search-b");
		idle = load_relaxed(&pl__rt.nr_idle);
		if (idle)
			ret = notify_lot(w) ? 0 : -EAGAIN;
		else
			ret = pl__worker_start(true);
		if (!ret)
			return;
		atomic_fetch_sub(&pl__rt.nr_searching, 1);
		pl__full_barrier();
	} while (must_notify_again(idle, ret) ||
		 (pl__sysmon_notify() && is_notify_due()));
}

void pl__notify_one(void)
{
	/*
	 * [idle-b] pairs with [idle-a], [search-b] with [search-a];
	 * and the first with [end-a] in worker_thread.c.
	 */
	pl__full_barrier();
	PL_INJECT("idle-b");
	if (load_relaxed(&pl__rt.nr_searching))
		return;
	if (is_notify_due() || (pl__sysmon_notify() && is_notify_due()))
		notify_slow(pl__self());
}

void pl__notify_if_work(void)
{
	if (pl__work_anywhere())
		pl__notify_one();
}

/*
 * Each one that is woken has a token; all that left tasks to somebody who has
 * one may have left them to us, too.  Nobody parks meanwhile: else some would
 * be woken twice, and others not at all.
 */
void pl__notify_all(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started);

	atomic_fetch_add(&pl__rt.nr_notifying_all, 1);
	atomic_fetch_add(&pl__rt.nr_searching, nr);
	nr -= pl__lots_signal(&pl__rt.lots, 0, nr);
	atomic_fetch_sub(&pl__rt.nr_searching, nr);
	atomic_fetch_sub(&pl__rt.nr_notifying_all, 1);
	pl__full_barrier();
	pl__notify_if_work();
}
