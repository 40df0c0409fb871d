/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Execution queues: any thread pushes items, one task at a time executes them.
 */
#ifndef PARKLOT_QUEUE_H
#define PARKLOT_QUEUE_H

#include "base.h"

PL_BEGIN_DECLS

/** struct pl_queue - an execution queue; made by pl_queue_create() */
struct pl_queue;

/**
 * pl_queue_create() - a queue of items that @fn executes
 * @out: where to put it
 * @fn:  called with @nr items, one at least, in the order in which they were
 *       pushed; @batch is its own until it returns
 * @arg: passed to it
 *
 * @fn runs in a task, which is spawned when there are items and ends when the
 * queue is empty.  No two calls of it overlap, and each sees the effects of
 * those before it.  It may do everything that a task may do, push included;
 * pl_exit() returns from it.
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
PL_API int pl_queue_create(struct pl_queue **out,
			   void (*fn)(void **batch, size_t nr, void *arg),
			   void *arg);

/**
 * pl_queue_push() - let @item, which may be NULL, be executed
 *
 * Does not wait, neither for @fn nor for other pushes.  If this returns 0, the
 * item will be executed, whatever comes; otherwise it will not.
 *
 * Context: any thread.
 * Return: 0; -EPIPE if the queue is closed; -ENOMEM; what pl_spawn() returns,
 * if a task would have to be spawned and cannot: -EAGAIN; -ECANCELED from
 * outside tasks while the runtime stops; -EINVAL for no queue.
 */
PL_API int pl_queue_push(struct pl_queue *q, void *item);

/**
 * pl_queue_push_urgent() - as pl_queue_push(), before all that is not urgent
 *
 * Items that were passed to @fn already go first.  Urgent items are executed
 * in the order in which they were pushed.
 */
PL_API int pl_queue_push_urgent(struct pl_queue *q, void *item);

/**
 * pl_queue_close() - refuse to push from now on
 *
 * Items that were pushed before are still executed.  Does not wait.
 *
 * Return: 0; -EPIPE if it was closed before; -EINVAL for no queue.
 */
PL_API int pl_queue_close(struct pl_queue *q);

/**
 * pl_queue_join() - wait until it is closed and all was executed; free it
 *
 * To be called once with success.  All calls that push or close must have
 * returned when this does.
 *
 * Return: 0, and the queue is gone; or it is not: -EINTR, -ECANCELED, -ENOMEM;
 * -EDEADLK from within the queue's own @fn; -EINVAL for no queue.
 */
PL_API int pl_queue_join(struct pl_queue *q);

PL_END_DECLS

#endif /* PARKLOT_QUEUE_H */
