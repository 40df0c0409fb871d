/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * inbox: tasks that threads other than workers have made ready
 *
 * They belong to no worker.  Every worker looks in the inboxes between two
 * tasks at times, in 8 of them in turn, or in so many that all workers that run
 * look in all; and in all when it has nothing else.  So no task waits there for
 * a worker that sleeps, or that is in a long task.  A
 * thread uses one inbox, so that the order of its tasks is kept; there are as
 * many as workers where these are 8 or more, as there will be many threads.
 * What a worker takes becomes its events, oldest first.
 *
 * A push is followed by the full barrier of pl__notify_one(), [idle-b] in
 * notify.h, and an inbox is one of the queues in which an idle worker looks.
 * The worker that takes a lone task may have an older one of its deque to run
 * first:
 *
 *	worker				idle worker, about to park
 *	list = exchange(inbox, NULL)	if (inbox) stay		[inbox-b]
 *	events = list	[inbox-a]	if (deque) stay
 *	take one of the deque		if (events) stay
 *
 * Invariant: no worker parks while a task is in the events of one that runs
 * another, unless it is notified for it.  If the idle worker finds the inbox
 * emptied it finds what those had before that; or that has been taken, and
 * it finds the events, in which it looks last.  Otherwise the task waits for
 * the other one although a worker is idle.  Both of several tasks cannot be
 * found by one look, so for these the worker notifies.
 */
#ifndef PL_INBOX_H
#define PL_INBOX_H

#include "queue/rt.h"

/* A worker that has tasks looks in so many at least, where there are more. */
#define PL__INBOXES_IN_TURN	8

/* The runtime starts, with so many workers and no task. */
void pl__inboxes_start(uint32_t nr_workers);

/* That of a thread or a worker, by its number. */
static inline struct pl__inbox *pl__inbox_of(uint32_t number)
{
	return &pl__rt.inboxes[number % pl__rt.nr_inboxes].inbox;
}

/* The one in which each worker looks each time. */
static inline struct pl__inbox *pl__inbox_for_all(void)
{
	return &pl__rt.inboxes[0].inbox;
}

/* The slow path of pl__inbox_drain(). */
bool pl__inbox_drain_all_of(struct pl__worker *w, struct pl__inbox *from);

/*
 * Moves all of inbox @from to the events of @w, the caller.  True: these are
 * several, so the caller notifies.
 */
static inline bool pl__inbox_drain(struct pl__worker *w, struct pl__inbox *from)
{
	return !pl__inbox_empty(from) && pl__inbox_drain_all_of(w, from);
}

/* As pl__inbox_drain(), of each; most runtimes have one. */
static inline bool pl__inboxes_drain(struct pl__worker *w)
{
	bool several = pl__inbox_drain(w, &pl__rt.inboxes[0].inbox);
	uint32_t i;

	for (i = 1; unlikely(i < pl__rt.nr_inboxes); i++)
		several |= pl__inbox_drain(w, &pl__rt.inboxes[i].inbox);
	return several;
}

/* As pl__inboxes_drain(), of some where they are many; the next time others. */
bool pl__inboxes_drain_in_turn(struct pl__worker *w);

/* As pl__inboxes_drain(), by a worker that has tasks to run. */
static inline bool pl__inboxes_drain_some(struct pl__worker *w)
{
	if (unlikely(pl__rt.nr_inboxes > 1))
		return pl__inboxes_drain_in_turn(w);
	return pl__inbox_drain(w, pl__inbox_for_all());
}

/*
 * A hint, unless the caller orders it against pushes.  What the worker that
 * emptied an inbox did before is seen after this.
 */
static inline bool pl__inboxes_empty(void)
{
	uint32_t i;

	if (load_acquire(&pl__rt.inboxes[0].inbox.head))
		return false;
	for (i = 1; unlikely(i < pl__rt.nr_inboxes); i++)
		if (load_acquire(&pl__rt.inboxes[i].inbox.head))
			return false;
	return true;
}

#endif /* PL_INBOX_H */
