/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * mpsc: an inbox; any thread pushes entries, any thread takes all of them
 *
 * A stack of links inside the entries.  A taker always takes the whole stack,
 * by an exchange: so a pusher's compare-and-swap of the head is right even if
 * that head was taken and pushed again meanwhile.
 *
 *	pusher				taker
 *	fill in the entry
 *	link->next = head
 *	head = link	[mpsc-a]	list = exchange(head, NULL) [mpsc-a]
 *					read the entries
 *
 * Invariant: the taker sees every entry complete.  Each pusher reads the head
 * that the previous one released, and the taker acquires the last; otherwise it
 * reads an entry before its pusher has filled it in.  Pushing is lock-free,
 * taking is wait-free, and the list can be followed at any moment.
 */
#ifndef PL_MPSC_H
#define PL_MPSC_H

#include "base/base.h"
#include "base/inject.h"

struct pl__link {
	struct pl__link		*next;
};

/* A zero-filled inbox is empty.  Pushers and takers share its cache line. */
struct pl__inbox {
	_Atomic(struct pl__link *) head;
};

/**
 * pl__inbox_push_list() - push a chain of entries in one step
 * @first: the newest, which the taker finds first
 * @last:  the oldest, at the end of the links from @first
 *
 * Return: whether the inbox was empty.
 */
static inline bool pl__inbox_push_list(struct pl__inbox *i,
				       struct pl__link *first,
				       struct pl__link *last)
{
	struct pl__link *head = load_relaxed(&i->head);

	/* [mpsc-a] pairs with pl__inbox_take(): entries are complete. */
	do {
		last->next = head;
		PL_INJECT("mpsc-a");
	} while (!atomic_compare_exchange_weak_explicit(&i->head, &head, first,
							memory_order_release,
							memory_order_relaxed));
	return !head;
}

/** pl__inbox_push() - push one entry; returns whether the inbox was empty */
static inline bool pl__inbox_push(struct pl__inbox *i, struct pl__link *link)
{
	return pl__inbox_push_list(i, link, link);
}

/** pl__inbox_empty() - a hint, unless the caller orders it against pushes */
static inline bool pl__inbox_empty(struct pl__inbox *i)
{
	return !load_relaxed(&i->head);
}

/**
 * pl__inbox_take() - all entries, the newest first; NULL: none
 *
 * A release, too: a thread that acquires the head of an empty inbox sees what
 * the taker did before.
 */
static inline struct pl__link *pl__inbox_take(struct pl__inbox *i)
{
	if (pl__inbox_empty(i))
		return NULL;
	/* [mpsc-a] pairs with pl__inbox_push_list(). */
	return atomic_exchange_explicit(&i->head, NULL, memory_order_acq_rel);
}

/*
 * fifo: links in the order in which they came, under the user's lock
 */

struct pl__fifo {
	struct pl__link		*first;		/* the oldest */
	struct pl__link		*last;		/* the newest */
};

static inline void pl__fifo_append(struct pl__fifo *f, struct pl__link *l)
{
	l->next = NULL;
	if (f->last)
		f->last->next = l;
	else
		f->first = l;
	f->last = l;
}

/* The oldest; NULL: there is none. */
static inline struct pl__link *pl__fifo_take(struct pl__fifo *f)
{
	struct pl__link *l = f->first;

	if (l)
		f->first = l->next;
	if (!f->first)
		f->last = NULL;
	return l;
}

#endif /* PL_MPSC_H */
