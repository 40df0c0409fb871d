/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * ready: where ready tasks wait, and how to put one there
 *
 * A worker has two queues.  What a running task spawns or wakes is in the
 * deque, and runs newest first: its data are in the caches, and a tree of tasks
 * takes little memory.  What an event makes ready (completed I/O, a timer, a
 * thread that is no worker) is in the event queue, and runs oldest first.
 *
 * Threads that are no workers use the inboxes, ready.h.  Tasks that would keep
 * their worker from others are set aside, aside.h; those of PL_SPAWN_BACKGROUND
 * wait until nothing else is ready, aside.h.
 *
 * Nothing here wakes a worker of the caller's group: who queues a task notifies
 * afterwards.  A task of another group goes to an inbox of that, which is
 * notified at once: its workers do not look in the queues of the caller's.
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
 * an event, if any is ready; parklot-scheduling(7) promises it.
 */
#define PL__EVENT_EVERY	4	/* a power of 2 */

/* event_mask of a worker without events: each 32nd tick it looks for some */
#define PL__NO_EVENTS	(PL__FAIR_EVERY - 1)

/* Queues @t in @d, a queue of @w, the caller. */
void pl__queue_own_slow(struct pl__worker *w, struct pl__deque *d,
			struct pl__task *t);
static inline void pl__queue_own(struct pl__worker *w, struct pl__deque *d,
				 struct pl__task *t)
{
	if (unlikely(!pl__deque_try_push(d, t)))
		pl__queue_own_slow(w, d, t);
}

/* Queues @t as an event of @w, the caller. */
void pl__queue_event(struct pl__worker *w, struct pl__task *t);

/* Its workers run @t. */
static inline struct pl__group *pl__group_of(const struct pl__task *t)
{
	return pl__rt.groups[t->waiter.place >> PL__PLACE_GROUP_SHIFT];
}

/* The new task @t is of that group, or background, until pl__place_end(). */
static inline void pl__place_begin(struct pl__task *t, uint16_t place)
{
	atomic_fetch_or(&t->state, PL__TASK_PLACED);
	t->waiter.place = place;
}

/* The slot of @t, which does not wait any more, is as new. */
static inline void pl__place_end(struct pl__task *t)
{
	t->waiter.place = 0;
}

/* Where @w, the caller, queues its own tasks, @t is to be queued. */
static inline bool pl__is_placed_by(const struct pl__worker *w,
				    const struct pl__task *t)
{
	return likely(t->waiter.place == w->place);
}

/*
 * Makes @t ready without notifying the group of the caller, which is @w, or
 * NULL: no worker.  False: @t is of another group, which has been notified.
 * True: after the last of these, call pl__notify_one() for the caller's.
 */
bool pl__ready_elsewhere(struct pl__worker *w, struct pl__task *t);
static inline bool pl__ready_quietly_by(struct pl__worker *w,
					struct pl__task *t)
{
	if (!pl__is_placed_by(w, t))
		return pl__ready_elsewhere(w, t);
	pl__queue_own(w, &w->deque, t);
	return true;
}

static inline bool pl__ready_quietly(struct pl__worker *w, struct pl__task *t)
{
	return w ? pl__ready_quietly_by(w, t) : pl__ready_elsewhere(w, t);
}

/* As pl__ready_quietly(), of a task that an event makes ready. */
static inline bool pl__ready_event(struct pl__worker *w, struct pl__task *t)
{
	if (!w || !pl__is_placed_by(w, t))
		return pl__ready_elsewhere(w, t);
	pl__queue_event(w, t);
	return true;
}

/* Makes @t ready, of any group, and notifies none. */
void pl__ready_to_group(struct pl__task *t);

/* Set before the first worker starts: pl__notify_one(). */
extern void (*pl__ready_notify)(struct pl__group *g);

/* As pl__ready_quietly(), by no worker, of a chain of links, newest first. */
void pl__ready_chain_quietly(struct pl__link *newest, struct pl__link *oldest);

/* The oldest event of @w, the caller; NULL: none. */
struct pl__task *pl__next_event(struct pl__worker *w);

/* What its event_mask is to be, by what is in its queues. */
uint32_t pl__event_mask_of(struct pl__worker *w);

/* Number of tasks in its own queues. */
static inline size_t pl__nr_queued(struct pl__worker *w)
{
	return pl__deque_len(&w->deque) + pl__deque_len(&w->events);
}

/* For the worker itself; it is not told of what thieves take of its events. */
static inline bool pl__has_queued(struct pl__worker *w)
{
	return w->event_mask != PL__NO_EVENTS || !pl__deque_empty(&w->deque);
}

/*
 * A task that may run now is in some worker's queue, or an orphaned ring is
 * ready.
 */
bool pl__work_queued(struct pl__group *g);

/* The same, or such a task is set aside. */
bool pl__work_anywhere(struct pl__group *g);

/* The same, of any group but @own; NULL: of any. */
bool pl__work_but_in(const struct pl__group *own);

/* About how many such tasks wait in queues.  Those of an inbox may be any. */
uint32_t pl__nr_ready(struct pl__group *g);

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

/* A worker that has tasks looks in so many at least, where there are more. */
#define PL__INBOXES_IN_TURN	8

/* The group is made, with so many workers and no task. */
void pl__inboxes_start(struct pl__group *g, uint32_t nr_workers);

/* That of a thread or a worker, by its number. */
static inline struct pl__inbox *pl__inbox_of(struct pl__group *g,
					     uint32_t number)
{
	return &g->inboxes[number % g->nr_inboxes].inbox;
}

/* The one in which each worker looks each time. */
static inline struct pl__inbox *pl__inbox_for_all(struct pl__group *g)
{
	return &g->inboxes[0].inbox;
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
	struct pl__group *g = w->group;
	bool several = pl__inbox_drain(w, w->inbox);
	uint32_t i;

	if (likely(g->nr_inboxes == 1))
		return several;
	for (i = 0; i < g->nr_inboxes; i++)
		several |= pl__inbox_drain(w, &g->inboxes[i].inbox);
	return several;
}

/* As pl__inboxes_drain(), of some where they are many; the next time others. */
bool pl__inboxes_drain_in_turn(struct pl__worker *w);

/* As pl__inboxes_drain(), by a worker that has tasks to run. */
static inline bool pl__inboxes_drain_some(struct pl__worker *w)
{
	if (unlikely(w->group->nr_inboxes > 1))
		return pl__inboxes_drain_in_turn(w);
	return pl__inbox_drain(w, pl__inbox_for_all(w->group));
}

/*
 * A hint, unless the caller orders it against pushes.  What the worker that
 * emptied an inbox did before is seen after this.
 */
static inline bool pl__inboxes_empty(struct pl__group *g)
{
	uint32_t i;

	if (load_acquire(&g->inboxes[0].inbox.head))
		return false;
	for (i = 1; unlikely(i < g->nr_inboxes); i++)
		if (load_acquire(&g->inboxes[i].inbox.head))
			return false;
	return true;
}

#endif /* PL_READY_H */
