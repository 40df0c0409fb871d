/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * pace: how many workers run, and how many are meant to
 *
 * A worker runs while it is neither idle, blocked nor stalled; `active` are
 * meant to run.  More may run after a blocked worker returns or that number is
 * lowered.  Then those with the highest indices are surplus: such a worker
 * parks at the end of its task although there is work.
 *
 *	surplus worker			worker that blocks
 *	nr_idle++		[idle-a]	nr_blocked++
 *	full barrier			full barrier	[idle-b]
 *	if (enough run)			if (there is work, too few run)
 *		park				signal the lots
 *
 * Invariant: while there is work, no fewer workers run than are meant to.  Each
 * side writes its counter before it reads the other's, so either the surplus
 * worker sees nr_blocked and stays, or the blocking worker sees nr_idle and
 * signals.  Otherwise the first parks, the second blocks, and too few run.
 * A surplus worker leaves the tasks in its queues to an inbox.
 */
#ifndef PL_PACE_H
#define PL_PACE_H

#include "queue/rt.h"
#include "ring/ring.h"
#include "base/base.h"

/* Fewer workers run than are meant to. */
static inline bool pl__is_short(struct pl__group *g)
{
	return load_relaxed(&g->nr_alive) <
	       load_relaxed(&g->active) + pl__nr_not_running(g);
}

/*
 * Blocked and stalled workers leave room for one more: those blocked now, and
 * those of the crew that were blocked for a while.  A worker in the start hook
 * leaves none, as its replacement would be blocked in the hook as well.
 */
static inline bool pl__is_start_due(struct pl__group *g)
{
	uint32_t nr = load_relaxed(&g->nr_alive);

	return nr < g->max_workers &&
	       nr + load_relaxed(&g->nr_in_hook) <
		    load_relaxed(&g->active) +
		    load_relaxed(&g->nr_blocked) +
		    load_relaxed(&g->nr_stalled) +
		    load_relaxed(&g->nr_crew_blocked);
}

/* More workers are alive than are meant to run: some may be surplus. */
static inline bool pl__has_surplus_workers(struct pl__group *g)
{
	return load_relaxed(&g->nr_alive) >
	       load_relaxed(&g->active);
}

/* As many as are meant to run have a lower index than @w. */
bool pl__is_above_active(struct pl__worker *w);

/*
 * @w, the caller, a running worker, is surplus: too many run, and it is one of
 * those with the highest indices.
 */
static inline bool pl__is_surplus(struct pl__worker *w)
{
	return unlikely(pl__has_surplus_workers(w->group)) &&
	       pl__nr_running(w->group) > load_relaxed(&w->group->active) &&
	       pl__is_above_active(w);
}

/*
 * ---- duty: what a worker does, as all others see it ----
 *
 * A worker is in one state at a time, in one word, and counted by that alone.
 * pace.c has the table of states and events, and what each state is counted in.
 * All others report events; nobody else changes the word or these counters.
 *
 *	sysmon: SEEN_ASLEEP		worker: IS_BACK
 *	nr_blocked++			if (BLOCKED to RUNS)	[duty-b]
 *	if (not RUNS to BLOCKED)	    nr_blocked--
 *		nr_blocked--	[duty-a]
 *
 * Invariant: no counter is less than the workers that are in its states.  It
 * goes up before the word changes, and the thread that changes it back lowers
 * it.  Otherwise it falls below zero, which reads as four billion.
 */
enum pl__duty_event {
	/* by the worker, or by who starts its thread */
	PL__STARTS,
	PL__STARTS_AS_SPARE,
	PL__ENDS,
	PL__PARKS,
	PL__ENTERS_HOOK,
	PL__GOES_TO_SLEEP,
	PL__RUNS_AGAIN,		/* after one of these three */
	PL__RUNS_AS_SPARE,
	PL__STANDS_IN,		/* becomes a spare, which is to block */
	PL__COMPUTES,		/* the spare; it has been counted already */
	PL__LETS_COMPUTE,	/* the spare: another may */
	PL__IS_THROUGH,		/* is no spare any more */
	/* by the worker, or by sysmon: it has a next task, or computes again */
	PL__IS_BACK,
	/* by sysmon */
	PL__SEEN_ASLEEP,
	PL__SEEN_LONG,
	PL__NR_DUTY_EVENTS,
};

/*
 * What happens to @w; returns the state in which it was, or PL__NR_DUTIES if
 * nothing changed.  Notifies where a worker computes no more, but for
 * LETS_COMPUTE: there, and where a worker leaves those that run, the caller
 * issues a full barrier and notifies.
 */
uint32_t pl__duty(struct pl__worker *w, enum pl__duty_event event);

/* IS_BACK: takes BLOCKED or STALLED back, if it is so; true: it was blocked. */
static inline bool pl__take_back(struct pl__worker *w)
{
	uint32_t duty;

	if (likely(pl__is_running(w)))
		return false;
	duty = pl__duty(w, PL__IS_BACK);
	return duty == PL__BLOCKED || duty == PL__SPARE_BLOCKED;
}

static inline bool pl__has_io(struct pl__worker *w)
{
	return w->ring && pl__ring_is_busy(w->ring);
}

/*
 * LETS_COMPUTE: the spare @w is about to block, or through with its task; true:
 * it computes no more.  The caller looks whether another task may.
 */
bool pl__spare_lets_compute(struct pl__worker *w);

/*
 * Events come to the first workers.  While one of these blocks, its I/O waits
 * for others to look in its ring, for a millisecond or two: so @w, the caller,
 * stands in where nobody else does.  Not so while it searches: others rely on
 * that.
 */
static inline bool pl__stands_in_last(struct pl__worker *w)
{
	return !w->is_searching && pl__has_io(w) &&
	       w->index < load_relaxed(&w->group->target);
}

/* RUNS_AGAIN; wakes sysmon for its I/O and deadlines. */
void pl__worker_runs(struct pl__worker *w);

/* RUNS_AS_SPARE; it is about to block, and wakes sysmon for its I/O only. */
void pl__worker_stands_in(struct pl__worker *w);

/*
 * relief: workers that run beside stalled ones, which compute for long
 *
 * No task is preempted, but the kernel shares the processors among threads.  So
 * while tasks wait, and fewer workers take tasks than are meant to run, sysmon
 * marks each worker that has been in one task for stall_ns as STALLED: it no
 * longer counts as running, and another worker, its relief, is notified or
 * started as for a blocked one.  The stalled worker takes the mark back at its
 * next task; then it may be surplus, and parks.
 *
 * A task that did so is expected to do so again, see aside.h, and is set
 * aside for a spare, which is STALLED from before it begins, see aside.h.  So a
 * pool of long computations does not take the reliefs as well.
 *
 * So many workers may be stalled as the limit says, of either kind: as many as
 * there are processors to use.  More would only take time from each other.
 * While tasks are set aside for want of that, and none is taken, or no worker
 * takes any task, the limit is raised by one, each time after twice the time.
 *
 *	worker that parks		stalled worker, next task
 *	nr_idle++	[idle-a]	nr_stalled--		[relief-a]
 *	full barrier			full barrier
 *	if (nr_stalled < limit) [relief-b]	if (nr_idle)
 *		look at those set aside		notify
 *	park
 *
 *	sysmon				worker that sets a task aside
 *	word = ASLEEP			queue it
 *	full barrier	[compute-a]	full barrier		[compute-b]
 *	if (one is set aside to compute)	if (word is ASLEEP)
 *		do not sleep			wake sysmon
 *
 * Invariant: sysmon does not sleep while such a task waits.  Otherwise the
 * limit is never raised, and the task waits until a stalled worker is through.
 *
 * Invariant: a task that may compute is not left to a parked worker.  Either
 * the worker that parks finds the lower nr_stalled and looks, or the one that
 * lowers it finds nr_idle and notifies; otherwise the task waits although too
 * few compute.  sysmon raises the limit in the same way.
 */

/* The caller lowered nr_stalled, or raised the limit: notifies if need be. */
void pl__relief_recheck(struct pl__group *g);

/*
 * sysmon, at each look: sets the limit.  @is_short: tasks wait, and workers
 * that compute are why too few take them.
 */
void pl__relief_look(struct pl__group *g, uint64_t now, bool is_short);

/* sysmon: tasks wait until one more may compute, so it has to look on. */
bool pl__relief_is_due(struct pl__group *g);

/* Before sysmon starts. */
void pl__relief_reset(struct pl__group *g);

/*
 * elastic: as many workers run as pay, up to the target
 *
 * `active` workers are meant to run: the target at first.  All else follows
 * from it: a submitter notifies while fewer run, and wakes sysmon otherwise; a
 * worker above it is surplus (pace.h).  A second worker for what one could do
 * costs a wake, a sleep and cold caches for each batch of events, and takes a
 * processor from what sends them; but a tree of tasks takes half of the time.
 * No rule tells the two apart, so sysmon tries:
 *
 *	RESTS -> MEASURES -> SETTLES -> TRIES -> RESTS
 *	         10 ms       2 ms       10 ms
 *
 * It tries half as many where these could use as much processor time, and twice
 * as many where all is used, or tasks wait for 0.1 ms.  More are kept if they
 * take more tasks; or as many, these wait shorter, and fewer would not save 15
 * percent of the processor time.  One percent is more, unless by chance: looks
 * tell by how much they differ, which is little where each request waits for
 * the answer before it.  A verdict holds for 20 ms, one against more for 0.3 s,
 * and each of the same kind for four times as long, up to 2 s.  After 0.1 s
 * with nothing to do all run again.
 *
 * Where fewer run than may, it does not wait for a trial: it raises the number
 * where tasks wait for 0.1 ms, or, if fewer have won one, for 1 ms and twice as
 * long as then; or behind a task that computes.
 */

/*
 * While no sysmon and no worker runs, and there are lots: the number is the
 * target, and stays so unless it is elastic.
 */
void pl__elastic_start(struct pl__group *g, bool is_elastic);

/* The target has changed: so many run. */
void pl__elastic_follow(struct pl__group *g);

/*
 * Tasks that workers began to run or went on with, modulo 2^32; may be one less
 * than the last time.
 */
uint32_t pl__nr_taken(struct pl__group *g);

/*
 * sysmon: sets the number; true: raised, and notified.  @has_work: tasks wait.
 */
bool pl__elastic_look(struct pl__group *g, uint64_t now, bool has_work);

/* sysmon: the time until the next look, @ns at most. */
uint64_t pl__elastic_interval(struct pl__group *g, uint64_t ns);

#endif /* PL_PACE_H */
