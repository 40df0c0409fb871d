/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * list: intrusive, doubly linked, circular around its head
 *
 * An entry that is in no list points at itself, so that list_empty() tells.
 */
#ifndef PL_LIST_H
#define PL_LIST_H

#include "base/base.h"

struct pl__list {
	struct pl__list	*next;
	struct pl__list	*prev;
};

#define PL__LIST_INIT(name)	{ &(name), &(name) }

#define list_entry(ptr, type, member)	container_of(ptr, type, member)

static inline void list_init(struct pl__list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool list_empty(const struct pl__list *head)
{
	return head->next == head;
}

static inline void list_insert(struct pl__list *l, struct pl__list *prev,
			       struct pl__list *next)
{
	l->next = next;
	l->prev = prev;
	next->prev = l;
	prev->next = l;
}

static inline void list_add(struct pl__list *l, struct pl__list *head)
{
	list_insert(l, head, head->next);
}

static inline void list_add_tail(struct pl__list *l, struct pl__list *head)
{
	list_insert(l, head->prev, head);
}

static inline void list_del_init(struct pl__list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

#define list_for_each_safe(pos, n, head)				\
	for (pos = (head)->next, n = pos->next; pos != (head);		\
	     pos = n, n = pos->next)

#endif /* PL_LIST_H */
