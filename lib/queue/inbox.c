/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "queue/inbox.h"
#include "base/inject.h"
#include "queue/ready.h"

/* Fewer workers share one inbox; as many or more have one each. */
#define WORKERS_MIN	8

void pl__inboxes_start(uint32_t nr_workers)
{
	uint32_t nr = nr_workers < WORKERS_MIN ? 1 : nr_workers, i;

	pl__rt.nr_inboxes = nr < PL__NR_INBOXES ? nr : PL__NR_INBOXES;
	for (i = 0; i < PL__NR_INBOXES; i++)
		store_relaxed(&pl__rt.inboxes[i].inbox.head, NULL);
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
 * the tasks; so the caller notifies afterwards, unless it is one, see inbox.h.
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
static uint32_t nr_in_turn(void)
{
	uint32_t nr = pl__rt.nr_inboxes, active = load_relaxed(&pl__rt.active);
	uint32_t each = active < 2 ? nr : nr / active + 1;

	if (each < PL__INBOXES_IN_TURN)
		each = PL__INBOXES_IN_TURN;
	return each < nr ? each : nr;
}

bool pl__inboxes_drain_in_turn(struct pl__worker *w)
{
	bool several = pl__inbox_drain(w, pl__inbox_for_all());
	uint32_t nr = nr_in_turn();

	while (nr--)
		several |= pl__inbox_drain(w, pl__inbox_of(w->inbox_turn++));
	return several;
}
