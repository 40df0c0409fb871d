/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/held.h"
#include "sched/sysmon.h"
#include "base/sys.h"

void pl__held_put(struct pl__task *t)
{
	struct pl__held *h = &pl__rt.held;

	pl__lock(&h->lock);
	pl__fifo_append(&h->tasks, &t->link);
	atomic_fetch_add(&h->nr, 1);
	pl__unlock(&h->lock);
}

/* [relief-a] pairs with itself here, see held.h. */
void pl__held_notify(void)
{
	pl__sysmon_notify_held();
	pl__relief_recheck();
}

struct pl__task *pl__held_take(void)
{
	struct pl__held *h = &pl__rt.held;
	struct pl__link *l;

	if (likely(!pl__held_is_ready()))
		return NULL;
	pl__lock(&h->lock);
	l = pl__fifo_take(&h->tasks);
	if (l)
		atomic_fetch_sub(&h->nr, 1);
	pl__unlock(&h->lock);
	return l ? container_of(l, struct pl__task, link) : NULL;
}
