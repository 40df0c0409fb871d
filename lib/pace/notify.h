/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * notify: an idle worker is made to run because there is work
 *
 *	idle worker			submitter
 *	nr_idle++		[idle-a]	queue a task
 *	nr_searching-- if it searched	full barrier	[idle-b]
 *	full barrier			if (nr_searching) return
 *	look in every queue		if (nr_idle) signal the lots
 *	park
 *
 * Invariant: a task that waits while too few run has a worker notified for it,
 * or a searcher.  Either the idle worker sees the task or the submitter sees
 * nr_idle; otherwise the worker parks, the submitter wakes none, and the task
 * waits.
 *
 * At most one worker searches; but a submitter of several tasks wakes as many
 * workers at once, and then each of these does; and a worker that found a task
 * and knows of two more wakes two.  A submitter that notifies raises
 * nr_searching for the workers that it wakes, before that, and takes it down
 * for those that did not sleep.  A submitter that sees a searcher does not
 * notify; so a worker that stops searching rechecks every queue, and notifies
 * again if there is more, on behalf of all submitters that left their tasks to
 * it.
 *
 * The thread that is to search may not run: it waits for a processor behind
 * other programs, its cgroup has used up its quota, or a debugger holds it.
 * So a search that lasts PL__SEARCH_NS is taken over: by sysmon while that is
 * awake, and else by the next submitter.  Of several searchers each that begins
 * to run, and so looks in every queue, shows that the others are not late yet,
 * for eight times as long at most.
 *
 *	late searcher			sysmon, or a submitter
 *	n = nr_searching	[late-b]	n = nr_searching
 *	if (n)				if (the search is late)
 *		nr_searching: n to n - 1	nr_searching: n to 0	[late-a]
 *	full barrier			full barrier
 *	look in every queue		look in every queue, notify
 *
 * Invariant: nr_searching is at most the number of threads that will take it
 * down and look in every queue afterwards.  Both sides change it by
 * compare-and-swap, and neither takes down what the other has; otherwise it
 * falls below 0, and is above 0 for good.  A late searcher does not know that
 * it was taken over.  So it may take down what the next one counts, and two
 * search for a moment.
 *
 * An idle worker that is not asleep cannot be woken.  Most likely it is about
 * to park, and will see the task, or was woken by another.  It may stay so for
 * long if it gets no processor, even because the submitter has it.  So after a
 * few tries the submitter leaves its search to the next worker that is not idle
 * any more; sysmon tries again at each look.
 *
 *	submitter			worker that was idle
 *	nr_searching--			nr_idle--		[left-b]
 *	is_search_left = true [left-a]	if (is_search_left)
 *	signal the lots				is_search_left = false
 *	if (none woken, nr_idle is 0)		nr_searching = 1, if it is 0
 *		notify again		look in every queue
 *
 * Invariant: tasks that were left to the submitter have another searcher, or an
 * idle worker that will be one.  Each side writes its own word before it reads
 * the other's; otherwise the submitter relies on a worker that was idle, and
 * that one takes one task and notifies for none of the others.  The signal
 * comes after nr_searching went down: otherwise the worker may have looked
 * before the last of these tasks was queued, and park.  A worker that is woken
 * by it searches, but is not counted; see above.
 */
#ifndef PL_NOTIFY_H
#define PL_NOTIFY_H

#include "base/inject.h"
#include "queue/rt.h"

/* A search that lasts so long is late; a look of sysmon's later at most. */
#define PL__SEARCH_NS	(5 * 1000 * 1000ULL)

/* Spares that are started at a time, at most: one for each processor. */
#define PL__ASIDE_STARTERS	4

/* The caller is about to search or to wake a searcher; false: there is one. */
bool pl__search_begin(struct pl__group *g);

/* As many workers as @nr are about to search, whether or not others do. */
void pl__search_begin_more(struct pl__group *g, uint32_t nr);

/*
 * As many as @nr that are counted do not search any more.  The caller issues a
 * full barrier and looks in every queue afterwards.
 */
void pl__search_end(struct pl__group *g, uint32_t nr);

/* @w counts as idle no more: it searches, if a search was left to it. */
void pl__search_take_left_slow(struct pl__worker *w);
static inline void pl__search_take_left(struct pl__worker *w)
{
	PL_INJECT("left-b");
	/* [left-b] pairs with [left-a] in search_leave(). */
	if (unlikely(atomic_load(&w->group->is_search_left)))
		pl__search_take_left_slow(w);
}

/*
 * sysmon: tasks wait; notifies if those that are to search are late, or a
 * search was left to a worker that is idle still.
 */
void pl__search_check(struct pl__group *g, uint64_t now);

/* Called after tasks of @g were queued: notifies a worker, if too few run. */
void pl__notify_one(struct pl__group *g);

/*
 * Called after @nr tasks of @g were queued: wakes as many idle workers at once,
 * if so few run.  Others, such as have no thread yet, are notified one by one.
 */
void pl__notify_many(struct pl__group *g, uint32_t nr);

/*
 * Called by a worker that found a task and has stopped searching: notifies for
 * all others.  Knows of @nr; for two or more it wakes two idle workers, if
 * processors are free for these, and so do they: n run after log2(n) wakes one
 * after the other.  While that goes on the number of searchers may not fall to
 * 0, so that a search may be taken over before it has lasted PL__SEARCH_NS.
 */
void pl__notify_found(struct pl__group *g, size_t nr);

/*
 * @w, the caller or NULL, wakes up to @nr idle workers, each of which counts in
 * nr_searching, and looks in every queue when it stops searching.
 */
struct pl__worker;
void pl__wake_idle(struct pl__group *g, struct pl__worker *w, uint32_t nr);

/*
 * Notifies if any task waits: others may have left more to the caller than it
 * takes.
 */
void pl__notify_if_work(struct pl__group *g);

/*
 * sysmon: several more workers may have to run.  Wakes as many idle ones at
 * once as are missing and as there are ready tasks; where none is idle it
 * starts some, each of which searches.
 */
void pl__notify_missing(struct pl__group *g);

/* The caller stops searching; it has to look in every queue afterwards. */
void pl__stop_searching(struct pl__worker *w);

/* Wakes all parked workers; each looks for a task, and parks again. */
void pl__notify_all(struct pl__group *g);

/* How many more workers may start at a time now. */
uint32_t pl__nr_may_start(struct pl__group *g);

/* Workers that start and are not in their hook, which may take long. */
uint32_t pl__nr_arriving(struct pl__group *g);

/* A task that is set aside is left to no worker, and one may start. */
bool pl__is_spare_due(struct pl__group *g);

/* Wakes or starts spares for tasks that are set aside, see run.h. */
void pl__aside_notify(struct pl__group *g, struct pl__worker *w);

/*
 * @w, the caller, leaves what is set aside to those that were woken or started
 * for it: each looks once it has stopped to search, or has started.
 */
bool pl__aside_is_left(struct pl__worker *w);

/*
 * sysmon_wake: makes sysmon look at the workers
 *
 * A submitter that finds enough workers running does not notify, but they may
 * be blocked: so it wakes sysmon.  The word of sysmon's state, on which it
 * sleeps, is drawn in sysmon.c.
 *
 * A futex ends its sleep; or an eventfd, the bell, if sysmon waits for rings as
 * well, by poll(2):
 *
 *	sysmon				waker
 *	is_polling = true	[orphan-c]	word = new
 *	if (word is unchanged)	[orphan-c]	if (is_polling)	[orphan-d]
 *		sleep				write the eventfd
 *
 * Invariant: sysmon does not sleep in poll() after its word has changed.  All
 * four accesses are seq_cst, so either sysmon finds the new word or the waker
 * finds is_polling; otherwise sysmon sleeps through the wakeup.
 */

/*
 * The slow path of pl__sysmon_notify(); true: recheck, as the crew had not
 * counted blocked workers yet.
 */
bool pl__sysmon_notify_slow(struct pl__group *g);

/* Makes sysmon look at the workers, though no task waits. */
void pl__sysmon_kick(void);

/*
 * A worker that parks for want of work clears the backlog; true: now there is
 * work.
 */
bool pl__sysmon_clear_backlog(struct pl__group *g);

/*
 * The submitter has queued tasks, issued a full barrier, and counted enough
 * running workers.  Wakes sysmon; true: count them again.
 */
static inline bool pl__sysmon_notify(struct pl__group *g)
{
	/* [sysmon-b] pairs with [sysmon-a], [backlog-b] with [backlog-a]. */
	return unlikely(load_relaxed(&pl__rt.sysmon) != PL__SYSMON_AWAKE) &&
	       pl__sysmon_notify_slow(g);
}

/*
 * The caller has I/O in flight and runs tasks, or is about to.  Wakes sysmon,
 * which orphans the ring if the caller stalls.
 */
static inline void pl__sysmon_notify_io(void)
{
	/* [orphan-b] pairs with [orphan-a] in sysmon.c. */
	pl__full_barrier();
	PL_INJECT("orphan-b");
	if (unlikely(load_relaxed(&pl__rt.sysmon) == PL__SYSMON_ASLEEP))
		pl__sysmon_kick();
}

/*
 * The caller has set a task aside that is to compute when others do so no more.
 * Wakes sysmon, which raises the limit in time, or finds that one of these
 * blocks.
 */
static inline void pl__sysmon_notify_compute(void)
{
	/* [compute-b] pairs with [compute-a] in sysmon.c. */
	pl__full_barrier();
	PL_INJECT("compute-b");
	if (unlikely(load_relaxed(&pl__rt.sysmon) == PL__SYSMON_ASLEEP))
		pl__sysmon_kick();
}

/* ---- for sysmon ---- */

/* Returns the old state; PL__SYSMON_OVER does not change any more. */
uint32_t pl__sysmon_set_state(uint32_t word);

/* From ASLEEP to NO_BACKLOG: it is to look, though no task waits. */
bool pl__sysmon_set_no_backlog(void);

/* Returns the old state; if that was not AWAKE, sets the crew's backlog. */
uint32_t pl__sysmon_set_awake(void);

/* The backlog of the crew follows sysmon's word. */
void pl__crew_publish_backlog(void);

/* Ends sysmon's sleep, after its word has changed. */
void pl__sysmon_end_sleep(void);

/* The descriptor to poll beside others, or -errno. */
int pl__sysmon_bell(void);

/* It is about to poll the bell; false: its word is @word no more. */
bool pl__sysmon_poll_begin(uint32_t word);
void pl__sysmon_poll_end(void);

/* While no sysmon runs. */
void pl__sysmon_bell_close(void);

#endif /* PL_NOTIFY_H */
