/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * worker_thread: how the thread of a worker begins and ends
 *
 * More are started as others are blocked.  Who has been idle for long, while
 * there are more than are wanted and one in reserve, ends.  Its slot stays,
 * with its queues, which others steal from, and its ring; the next one to be
 * started gets them.
 *
 *	worker that ends		whoever queued a task
 *	late: in no lot any more	queue it
 *	nr_alive--, nr_idle--	[end-a]	full barrier	[idle-b]
 *	full barrier			if (nr_idle) signal the lots
 *	look in every queue		else start one
 *
 * Either it sees the task, or the other does not count on it.  Whoever takes
 * it for idle wakes nobody, and so looks again.
 */
#ifndef PL_WORKER_THREAD_H
#define PL_WORKER_THREAD_H

#include "sched/worker.h"

/*
 * Another worker, as the searcher if @is_searcher; -EBUSY: there are enough, or
 * -errno: memory or threads are refused, and asked for again in a while.
 */
int pl__worker_start(bool is_searcher);
void pl__worker_join_all(void);
void pl__worker_free_all(void);

/* How long one of too many is idle before it ends. */
extern _Atomic uint64_t pl__idle_timeout_ns;

/* There are more than are wanted and one in reserve: for those that block. */
bool pl__is_end_due(void);

/*
 * The caller, @w, counted as idle, has been so for long.  True: it is no worker
 * any more, and its thread is to end.
 */
bool pl__worker_end(struct pl__worker *w);

#endif /* PL_WORKER_THREAD_H */
