/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * worker_thread: start and end of a worker's thread
 *
 * More workers are started as others are blocked.  A worker that has been idle
 * for the idle timeout ends, if more are alive than the target and one in
 * reserve.  Its slot stays, with its queues, from which others steal, and its
 * ring; the next worker that is started gets them.
 *
 *	worker that ends		submitter
 *	timed out: in no lot any more	queue a task
 *	nr_alive--, nr_idle--	[end-a]	full barrier	[idle-b]
 *	full barrier			if (nr_idle) signal the lots
 *	look in every queue		else start a worker
 *
 * Invariant: a task is not left to a worker that ends.  Either the worker sees
 * the task, or the submitter reads the lower counters and starts a worker;
 * otherwise the task waits although too few run.  A submitter that still counts
 * the worker as idle wakes none, and so rechecks.
 */
#ifndef PL_WORKER_THREAD_H
#define PL_WORKER_THREAD_H

#include "queue/worker.h"
#include "base/base.h"

/*
 * Starts a worker, searching if @is_searcher.  -EBUSY: enough are alive;
 * another -errno: memory or threads are refused, and the start is retried after
 * a while.
 */
int pl__worker_start(struct pl__group *g, bool is_searcher);

/* Starts a spare, see aside.h; returns as pl__worker_start(). */
int pl__worker_start_spare(struct pl__group *g);

/* Set before the first: runs @w, the caller, until the runtime ends, or @w. */
extern void (*pl__worker_run)(struct pl__worker *w);

void pl__worker_join_all(struct pl__group *g);
/* The last thread that has ended before. */
void pl__worker_join_ended(void);
void pl__worker_free_all(struct pl__group *g);

/* ns: a surplus worker that is idle for so long ends. */
extern _Atomic uint64_t pl__idle_timeout_ns;

/*
 * More are alive than the target and one in reserve, which replaces a worker
 * that blocks.
 */
bool pl__is_end_due(struct pl__group *g);

/*
 * Called by @w, counted as idle, after the idle timeout.  True: @w is a worker
 * no more, and its thread is to end.
 */
bool pl__worker_end(struct pl__worker *w);

/*
 * retry: retries after a while what failed for want of memory or threads
 */

/* Memory or threads were refused: retries after a while. */
void pl__retry_later(void);

/* Also gives back stacks that no task uses: in @ns at the latest. */
void pl__retry_deferred_in(uint64_t ns);

/* Set by task_exit.c: tasks may wait for memory for stacks. */
extern void (*pl__retry_stacks)(void);

#endif /* PL_WORKER_THREAD_H */
