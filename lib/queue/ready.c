/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "queue/ready.h"
#include "queue/aside.h"
#include "base/inject.h"

/* ---- the queues of a worker ---- */

/* The inbox can always take what a full deque cannot. */
__pl_noinline void pl__queue_own_slow(struct pl__worker *w, struct pl__deque *d,
				      struct pl__task *t)
{
	if (!pl__deque_push(d, t))
		pl__inbox_push(w->inbox, &t->link);
}

uint32_t pl__event_mask_of(struct pl__worker *w)
{
	if (pl__deque_empty(&w->events))
		return PL__NO_EVENTS;
	return w->nr_events_ahead ? 0 : PL__EVENT_EVERY - 1;
}

void pl__queue_event(struct pl__worker *w, struct pl__task *t)
{
	pl__queue_own(w, &w->events, t);
	w->event_mask &= PL__EVENT_EVERY - 1;
}

struct pl__task *pl__next_event(struct pl__worker *w)
{
	struct pl__task *t = pl__deque_steal(&w->events);

	if (!t)
		w->nr_events_ahead = 0;
	else if (w->nr_events_ahead)
		w->nr_events_ahead--;
	w->event_mask = pl__event_mask_of(w);
	return t;
}

/* ---- a task is ready ---- */

void (*pl__ready_notify)(struct pl__group *g);

/*
 * A thread sends all tasks that it makes ready to one inbox, so that their
 * order is kept and the cache line stays near.
 */
static void send_to(struct pl__group *g, struct pl__link *newest,
		    struct pl__link *oldest)
{
	pl__inbox_push_list(pl__inbox_of(g, pl__self_number()), newest, oldest);
}

void pl__ready_chain_quietly(struct pl__link *newest, struct pl__link *oldest)
{
	send_to(&pl__rt.main, newest, oldest);
}

void pl__ready_to_group(struct pl__task *t)
{
	if (pl__is_background(t))
		pl__background_put(t);
	else
		send_to(pl__group_of(t), &t->link, &t->link);
}

/* Once the task is queued, its slot may be another's. */
__pl_noinline bool pl__ready_elsewhere(struct pl__worker *w, struct pl__task *t)
{
	struct pl__group *g = pl__group_of(t);
	bool is_own = g == pl__own_group(w);

	pl__ready_to_group(t);
	if (!is_own)
		pl__ready_notify(g);
	return is_own;
}

/* ---- all that is ready ---- */

bool pl__work_queued(struct pl__group *g)
{
	uint32_t nr = load_acquire(&g->nr_started), i;
	struct pl__worker *w;

	/* [inbox-b] pairs with [inbox-a] in ready.c: a deque, then events. */
	if (!pl__inboxes_empty(g))
		return true;
	PL_INJECT("inbox-b");
	for (i = 0; i < nr; i++) {
		w = g->workers[i];
		if (!pl__deque_empty(&w->deque) ||
		    !pl__deque_empty(&w->events) ||
		    load_relaxed(&w->ring_state) == PL__ORPHAN_READY)
			return true;
	}
	return pl__background_nr(g) && pl__nr_may_compute(g);
}

bool pl__work_anywhere(struct pl__group *g)
{
	return unlikely(pl__aside_nr(g)) || pl__work_queued(g);
}

bool pl__work_but_in(const struct pl__group *own)
{
	struct pl__group *g;
	uint32_t i;

	pl__for_each_group(g, i)
		if (g != own && pl__work_anywhere(g))
			return true;
	return false;
}

uint32_t pl__nr_ready(struct pl__group *g)
{
	uint32_t nr = load_acquire(&g->nr_started), i;
	size_t sum = pl__nr_may_compute(g) ? pl__background_nr(g) : 0;

	if (!pl__inboxes_empty(g))
		return UINT32_MAX;
	for (i = 0; i < nr; i++)
		sum += pl__nr_queued(g->workers[i]);
	return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

/* Fewer workers share one inbox; as many or more have one each. */
#define WORKERS_MIN	8

void pl__inboxes_start(struct pl__group *g, uint32_t nr_workers)
{
	uint32_t nr = nr_workers < WORKERS_MIN ? 1 : nr_workers, i;

	g->nr_inboxes = nr < PL__NR_INBOXES ? nr : PL__NR_INBOXES;
	for (i = 0; i < PL__NR_INBOXES; i++)
		store_relaxed(&g->inboxes[i].inbox.head, NULL);
}

static struct pl__link *reverse(struct pl__link *l)
{
	struct pl__link *head = NULL, *next;

	for (; l; l = next) {
		next = l->next;
		l->next = head;
		head = l;
	}
	return head;
}

/*
 * Pushes the oldest first.  Between the inbox and the event queue no thief sees
 * the tasks; so the caller notifies afterwards, unless it is one, see ready.h.
 */
__pl_noinline bool pl__inbox_drain_all_of(struct pl__worker *w,
					  struct pl__inbox *from)
{
	struct pl__link *newest = pl__inbox_take(from), *l, *next;
	bool is_one;

	if (!newest)
		return false;
	is_one = !newest->next;
	PL_INJECT("inbox-a");
	/* [inbox-a] pairs with [inbox-b] in pl__work_anywhere(). */
	for (l = reverse(newest); l; l = next) {
		next = l->next;
		pl__queue_event(w, container_of(l, struct pl__task, link));
	}
	return !is_one;
}

/* As many as run look in all of them together. */
static uint32_t nr_in_turn(struct pl__group *g)
{
	uint32_t nr = g->nr_inboxes, active = load_relaxed(&g->active);
	uint32_t each = active < 2 ? nr : nr / active + 1;

	if (each < PL__INBOXES_IN_TURN)
		each = PL__INBOXES_IN_TURN;
	return each < nr ? each : nr;
}

bool pl__inboxes_drain_in_turn(struct pl__worker *w)
{
	struct pl__group *g = w->group;
	bool several = pl__inbox_drain(w, pl__inbox_for_all(g));
	uint32_t nr = nr_in_turn(g);

	while (nr--)
		several |= pl__inbox_drain(w, pl__inbox_of(g, w->inbox_turn++));
	return several;
}
