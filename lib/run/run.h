/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * run: the next task of a worker, and the switch to it
 *
 * Each task runs on a stack of its own.  A task that blocks switches straight
 * to the next ready task or, if there is none, to the worker's loop (worker.c),
 * which steals, polls and parks.  The loop itself runs a task that asked for
 * the worker's own stack.
 *
 * A task may be made ready only after its context has been saved.  So a task
 * that switches away names an *after-switch callback*, which the next context
 * calls first (bthread's "remained").  The callback may make a task ready,
 * unlock or free; it does not switch, allocate or fail.
 */
#ifndef PL_RUN_H
#define PL_RUN_H

#include "queue/aside.h"
#include "queue/ready.h"
#include "queue/rt.h"
#include "queue/task.h"
#include "queue/worker.h"
#include "pace/pace.h"
#include "pace/notify.h"
#include "pace/worker_thread.h"
#include "ctx/cxx.h"
#include "ctx/self.h"
#include "base/inject.h"

/* Makes @t ready, and notifies. */
void pl__ready(struct pl__task *t);

/*
 * For a thread that is no worker: makes a chain of links ready, newest first.
 */
void pl__ready_chain(struct pl__link *newest, struct pl__link *oldest);

/* The loop of @w, the caller, until the runtime ends, or the worker. */
void pl__worker_loop(struct pl__worker *w);

/* The next ready task of worker @w itself; NULL: none, or @w is surplus. */
struct pl__task *pl__next(struct pl__worker *w);

/*
 * A task of others that @w is to run, or its next own one after a theft.  NULL:
 * none, or @w is a spare or surplus.  @has_time: see pl__steal().
 */
struct pl__task *pl__next_stolen(struct pl__worker *w, bool has_time);

/*
 * The oldest background task; where none may run sysmon is to see to it that
 * one does.  NULL: none.
 */
struct pl__task *pl__next_background(struct pl__group *g);

/*
 * The loop runs @t, which is prepared, until a task switches back to the loop.
 */
void pl__run(struct pl__worker *w, struct pl__task *t);

/* The next ready task of @w that has a stack. */
struct pl__task *pl__next_prepared(struct pl__worker *w);

/* Every context calls it first after a switch to it.  Returns the worker. */
struct pl__worker *pl__switch_finish(void);

/* The context that runs @next, or the loop; it calls @after(@arg) first. */
struct pl__ctx *pl__switch_prepare(struct pl__worker *w, struct pl__task *next,
				   pl__after *after, void *arg);

/*
 * Makes the caller ready, @quietly as unsignalled, and runs the new task @t
 * now, or lets @t wait for a stack.  False, with nothing done: the caller
 * cannot switch away.
 */
bool pl__switch_to(struct pl__task *t, bool quietly);

/*
 * Another task that is ready on @w, the caller's worker, runs first; the caller
 * does as if an event had made it ready now.
 */
void pl__go_behind_events(struct pl__worker *w);

/* Also saves the task's C++ exceptions, and calls the hooks. */
void pl__leave_slow(struct pl__worker *w, struct pl__task *t,
		    struct pl__task *next, pl__after *after, void *arg);

/*
 * Switches from @t, which runs on @w, and returns when a worker resumes @t.
 * errno goes with the task.
 */
static inline void pl__leave(struct pl__worker *w, struct pl__task *t,
			     struct pl__task *next, pl__after *after, void *arg)
{
	int error = *w->errno_at;

	if (unlikely(pl__cxx_is_due())) {
		pl__leave_slow(w, t, next, after, arg);
		return;
	}
	pl__stack_check(t->stack);
	pl__ctx_switch(&t->ctx, pl__switch_prepare(w, next, after, arg));
	*pl__switch_finish()->errno_at = error;
}

/* Switches away; @after(@arg) arranges for a waker to make the caller ready. */
static inline void pl__block(pl__after *after, void *arg)
{
	struct pl__worker *w = pl__self();
	struct pl__task *t = w->current;

	pl__leave(w, t, pl__next_prepared(w), after, arg);
}

/*
 * worker_park: an idle worker parks in its lot, in its ring or in the device; a
 * task on its stack sleeps there, too
 */

/*
 * Counted as idle: rechecks every queue, and parks unless the sequence of its
 * lot differs from @seq.  True: the idle timeout has passed without a
 * notification.
 */
bool pl__worker_look_and_park(struct pl__worker *w, uint32_t seq);

/*
 * Blocks a task on the worker's stack, or a thread that is no worker, until a
 * waker wakes @s (true) or @deadline_ns (false).  The caller has armed @s with
 * the bell that pl__sleep_bell() returns.
 */
struct pl__bell *pl__sleep_bell(struct pl__worker *w);
bool pl__sleep(struct pl__worker *w, struct pl__parker *s,
	       uint64_t deadline_ns);

/*
 * steal: tasks from another worker's queues
 */

/*
 * A task from another worker's queues, or NULL.  With @has_time the thief
 * defers the steal of a lone task that its running owner is about to take.
 */
struct pl__task *pl__steal(struct pl__worker *w, bool has_time);

/*
 * A task from one worker that took none since the previous call, as it is in a
 * long task, blocked or surplus.  Each call looks at the next worker in turn.
 */
struct pl__task *pl__steal_from_stalled(struct pl__worker *w);

/*
 * @w has searched and found a task: of how many more it knows.  These are in
 * its own queues; and as many in the victim's, if it took up to half of that.
 */
size_t pl__nr_found(struct pl__worker *w);

/*
 * orphan_ring: rings of stalled workers, polled by thieves
 *
 * The owner of a ring sees completions between two tasks.  If a task blocks it,
 * or computes for long, other workers look in its place.  So while a worker
 * with I/O in flight runs tasks, sysmon checks whether it comes to the next
 * task; if not, sysmon orphans its ring.  Thieves then poll the ring like one
 * more queue: at once, as there may be requests that were not submitted, and
 * again whenever the kernel reports a completion, for which sysmon waits.
 *
 *	OWNED --stalled--> ORPHAN_READY --polled by a thief--> ORPHANED
 *	 ^                  |        ^                          |  |
 *	 +-- next task, park +       +-------- readable --------+  |
 *	 +--- next task -------------------------------------------+
 *
 * Only sysmon sets ORPHAN_READY, and OWNED when the owner comes to its next
 * task.  The owner itself does so before it parks, as no worker parks while a
 * ring is ready: alone it would look on until sysmon's next look.  And a
 * thief that finds the ring's lock taken, most likely by the owner that has
 * returned, sets OWNED: a request that the owner is about to add may already be
 * in the count that sysmon took, so sysmon has to look again.
 *
 * Sysmon sleeps without a deadline only if no stalled worker has a ring that is
 * OWNED, or has got requests since it became ready:
 *
 *	sysmon				worker
 *	word = ASLEEP		[orphan-a]	RUNS, or I/O in flight
 *	full barrier			full barrier		[orphan-b]
 *	look for such a worker		if (word is ASLEEP)
 *	if (there is none)		    word = NO_BACKLOG, wake it
 *		sleep
 *
 * Either sysmon sees the worker's I/O or the worker sees ASLEEP; otherwise
 * completions in the ring of a worker that stalls wait until its task ends.
 */

/*
 * A worker in one task for so long is stalled; also the least interval between
 * two times that its ring becomes ready.
 */
#define PL__STALLED_NS	(1000 * 1000ULL)

static inline struct pl__ring *pl__orphan_ring_of(struct pl__worker *w)
{
	return load_acquire(&w->ring_seen);
}

/*
 * @w, the caller, is about to park, and looks for completions itself: its ring
 * is no work for others any more.
 */
void pl__ring_take_back(struct pl__worker *w);

/* @w, the caller, polls the ring of @victim, if that is ORPHAN_READY. */
void pl__ring_reap_orphan(struct pl__worker *w, struct pl__worker *victim);

/*
 * spare: workers that run what is set aside
 *
 * A *spare* takes a task that is set aside (aside.h): it counts as blocked, or
 * as stalled, from before it begins the task, so that as many others run beside
 * it whatever the task does.  A worker becomes a spare if it finds nothing else
 * to do.  Spares are woken, or started, as tasks are set aside; a few at a time
 * are started, and each of these starts the next.  So many may block as there
 * are workers, but only so many may compute as pace.h says.
 *
 *	worker that sets aside		idle worker
 *	queue the task			nr_idle++
 *	full barrier	[aside-b]	full barrier		[aside-a]
 *	if (nr_idle) signal		if (a task is set aside)
 *	else if (few are starting)		take it
 *		start a spare		else park
 *
 *					spare that starts
 *					take a task, or nr_idle++
 *					nr_starting--		[aside-a]
 *					full barrier
 *					if (a task is set aside)
 *						notify as on the left
 *
 * Invariant: a task that is set aside is not left while a worker may be woken
 * or started.  The submitter that finds an idle, searching or starting worker
 * leaves the task to it only if that worker looks in the queue later on: each
 * side writes its own word before it reads the other's.  Otherwise the task
 * waits although workers are idle.  A thread that counts as the searcher while
 * it notifies looks there, too, once it has woken none.
 *
 * A worker in its start hook starts, but is not waited for: an idle one is
 * woken beside it.
 *
 * If max_workers are alive the task waits for the next spare that is through.
 * If none has been taken for a while, the workers that run others take one.
 */

static inline bool pl__can_have_spares(struct pl__group *g)
{
	return g->max_workers > load_relaxed(&g->target);
}

/*
 * Sets the new task @t aside, by worker @w or, NULL, by another thread, as one
 * that blocked before.  False: there can be no spare.
 */
bool pl__aside_spawn(struct pl__worker *w, struct pl__task *t);

/*
 * Sets @t aside if it is expected to keep its worker from others.  False: it is
 * not, or no other task waits and @w is now the spare that runs it.
 */
bool pl__aside_put(struct pl__worker *w, struct pl__task *t);

/* A task that was set aside, for @w, which is now a spare; NULL: none. */
struct pl__task *pl__aside_take(struct pl__worker *w);

/* As pl__aside_take(), if none has been taken for long; @w is no spare. */
struct pl__task *pl__aside_take_overdue(struct pl__worker *w);

/* The spare @w is through with its task: notes what that did. */
void pl__spare_judge(struct pl__worker *w);

/*
 * task_exit: the end of a task: destructors, joiners, its slot and stack
 */

/* First function on each task's own stack; @arg is the task. */
void pl__task_main(void *arg);

/* The task calls its destructors. */
void pl__task_end_locals(struct pl__task *t);

/* Set by join.c: wakes all that wait on the version of @t. */
extern void (*pl__wake_joiners)(struct pl__task *t);

/* Set by scope.c: cancels and leaves the scopes that @t has entered. */
extern void (*pl__leave_scopes)(struct pl__task *t);

/* Set by task_limit.c: one task less of @g counts against the limits. */
extern void (*pl__leave_task_limit)(struct pl__group *g);

/* Ends @t: wakes its joiners, but returns one to be made ready, or NULL. */
struct pl__task *pl__task_end(struct pl__worker *w, struct pl__task *t);

/* Undoes the count of a spawn that failed. */
void pl__task_take_back(void);

/* An after-switch callback: frees the slot and the stack of @t. */
void pl__task_free(struct pl__worker *w, void *t);
void __attribute__((noreturn)) pl__task_exit(struct pl__task *t);

/*
 * The slot in which the calling thread waits outside of a task; NULL: no
 * memory.
 */
struct pl__task *pl__thread_task(void);

/*
 * stack_wait: tasks that wait for memory for their first stack
 */

/* Gives the stacks in the cache of @w to tasks that wait for one. */
void pl__stacks_share(struct pl__worker *w);

/* Gives @t a stack, if it has none; false: @t waits for one elsewhere. */
bool pl__task_prepare(struct pl__worker *w, struct pl__task *t);

/*
 * Puts back the stack of a task that has ended; a task that waits may get it.
 */
void pl__task_put_stack(struct pl__worker *w, struct pl__stack *st);

#endif /* PL_RUN_H */
