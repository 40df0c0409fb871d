/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * mpsc: an inbox; any thread pushes, any thread takes all there is
 *
 * A stack of links that stand inside what is pushed.  Only the whole of it is
 * ever taken, by an exchange: so a push may compare the head with one that
 * was taken and pushed again meanwhile, and still be right.
 *
 *	pusher				taker
 *	fill in the entry
 *	link->next = head
 *	head = link	[mpsc-a]	list = exchange(head, NULL) [mpsc-a]
 *					look into the entries
 *
 * Each push reads what the one before it wrote, so the taker, who reads the
 * last, sees them all.  Pushing is lock-free, taking wait-free; there is no
 * moment at which the list cannot be followed.
 */
#ifndef PL_MPSC_H
#define PL_MPSC_H

#include "base/base.h"
#include "base/inject.h"

struct pl__link {
	struct pl__link		*next;
};

/* Zero-filled is empty.  Pushers and takers share its line. */
struct pl__inbox {
	_Atomic(struct pl__link *) head;
};

/**
 * pl__inbox_push_list() - push a chain of entries at once
 * @first: the newest, will be seen first
 * @last:  the oldest, to be reached from @first by next
 *
 * Return: whether the inbox was empty.
 */
static inline bool pl__inbox_push_list(struct pl__inbox *i,
				       struct pl__link *first,
				       struct pl__link *last)
{
	struct pl__link *head = load_relaxed(&i->head);

	/* [mpsc-a] pairs with pl__inbox_take(): entries come complete. */
	do {
		last->next = head;
		PL_INJECT("mpsc-a");
	} while (!atomic_compare_exchange_weak_explicit(&i->head, &head, first,
							memory_order_release,
							memory_order_relaxed));
	return !head;
}

/** pl__inbox_push() - push one entry; whether the inbox was empty */
static inline bool pl__inbox_push(struct pl__inbox *i, struct pl__link *link)
{
	return pl__inbox_push_list(i, link, link);
}

/** pl__inbox_empty() - a hint, unless the caller orders it against pushes */
static inline bool pl__inbox_empty(struct pl__inbox *i)
{
	return !load_relaxed(&i->head);
}

/** pl__inbox_take() - all entries, the newest first; NULL: there were none */
static inline struct pl__link *pl__inbox_take(struct pl__inbox *i)
{
	if (pl__inbox_empty(i))
		return NULL;
	/* [mpsc-a] pairs with pl__inbox_push_list(). */
	return atomic_exchange_explicit(&i->head, NULL, memory_order_acquire);
}

#endif /* PL_MPSC_H */
