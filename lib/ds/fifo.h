/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * fifo: links in the order in which they came, under the user's lock
 */
#ifndef PL_FIFO_H
#define PL_FIFO_H

#include "ds/mpsc.h"

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

#endif /* PL_FIFO_H */
