/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * ready: where ready tasks wait, and how to put one there
 *
 * A worker has two queues.  What a running task spawns or wakes is in the
 * deque, and runs newest first: its data are in the caches, and a tree of tasks
 * takes little memory.  What an event makes ready (completed I/O, a timer, a
 * thread that is no worker) is in the event queue, and runs oldest first.
 *
 * Threads that are no workers use the inboxes, inbox.h.  Tasks that would keep
 * their worker from others are set aside, aside.h; those of PL_SPAWN_BACKGROUND
 * wait until nothing else is ready, background.h.
 *
 * Nothing here wakes a worker: who queues a task notifies afterwards.
 */
#ifndef PL_READY_H
#define PL_READY_H

#include "queue/rt.h"

/*
 * Every 32nd task is the oldest of the deque, after the worker has looked at
 * its completions and inboxes.  Every second of these is instead stolen
 * from a stalled worker, if there is such a task.  So a task in the deque waits
 * for at most this number, or twice this number, times the length of the deque,
 * however fast new tasks come on top.  parklot-scheduling(7) promises it.
 */
#define PL__FAIR_EVERY	32	/* a power of 2 */

/*
 * Every 4th task is the oldest event, but for the 32nd.  So of 8 tasks one is
 * an event, if any is ready; parklot-scheduling(7) promises it.  While workers
 * are blocked 3 of 4 are events: what was spawned may block one more.
 */
#define PL__EVENT_EVERY	4	/* a power of 2 */

/* event_mask of a worker without events: each 32nd tick it looks for some */
#define PL__NO_EVENTS	(PL__FAIR_EVERY - 1)

/* Makes @t ready without notifying; after the last, call pl__notify_one(). */
void pl__ready_quietly(struct pl__task *t);

/* As pl__ready_quietly(), by @w, the caller. */
void pl__ready_quietly_by(struct pl__worker *w, struct pl__task *t);

/* As pl__ready_quietly(), of a task that an event makes ready. */
void pl__ready_event(struct pl__task *t);

/* As pl__ready_quietly(), by no worker, of a chain of links, newest first. */
void pl__ready_chain_quietly(struct pl__link *newest, struct pl__link *oldest);

/* Queues @t in @d, a queue of @w, the caller. */
void pl__queue_own(struct pl__worker *w, struct pl__deque *d,
		   struct pl__task *t);

/* Queues @t as an event of @w, the caller. */
void pl__queue_event(struct pl__worker *w, struct pl__task *t);

/* The oldest event of @w, the caller; NULL: none. */
struct pl__task *pl__next_event(struct pl__worker *w);

/* What its event_mask is to be, by what is in its queues. */
uint32_t pl__event_mask_of(struct pl__worker *w);

/* Number of tasks in its own queues. */
static inline size_t pl__nr_queued(struct pl__worker *w)
{
	return pl__deque_len(&w->deque) + pl__deque_len(&w->events);
}

/*
 * A task that may run now is in some worker's queue, or an orphaned ring is
 * ready.
 */
bool pl__work_anywhere(void);

/* About how many such tasks wait in queues.  Those of an inbox may be any. */
uint32_t pl__nr_ready(void);

#endif /* PL_READY_H */
