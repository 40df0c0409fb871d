/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "queue/aside.h"
#include "base/sys.h"

/* Of so many taken one has not started yet, if any is there. */
#define UNSTARTED_EVERY	4

static struct pl__aside_queue *queue_for(enum pl__run run)
{
	return run == PL__RUN_COMPUTES ? &pl__rt.aside.compute :
					 &pl__rt.aside.block;
}

void pl__aside_push(struct pl__task *t, enum pl__run run)
{
	struct pl__aside_queue *q = queue_for(run);

	pl__lock(&pl__rt.aside.lock);
	pl__fifo_append(t->stack ? &q->resumed : &q->unstarted, &t->link);
	if (!load_relaxed(&q->nr))
		store_relaxed(&q->taken_ns, pl__now_ns());
	atomic_fetch_add(&q->nr, 1);
	pl__unlock(&pl__rt.aside.lock);
	atomic_fetch_add_explicit(&pl__rt.aside.nr_put, 1,
				  memory_order_relaxed);
}

/*
 * Locked.  Those that were started go first, but not at each turn; nor to a
 * spare of which the last was short, against what its routine did before: the
 * others of this are, most likely, and take no turn that is worth one.
 */
static struct pl__task *aside_next(struct pl__aside_queue *q, bool was_short)
{
	bool is_started_first = !was_short && ++q->turn % UNSTARTED_EVERY;
	struct pl__fifo *first, *second;
	struct pl__link *l;

	first = is_started_first ? &q->resumed : &q->unstarted;
	second = is_started_first ? &q->unstarted : &q->resumed;
	l = pl__fifo_take(first);
	if (!l)
		l = pl__fifo_take(second);
	if (!l)
		return NULL;
	atomic_fetch_sub(&q->nr, 1);
	store_relaxed(&q->taken_ns, pl__now_ns());
	return container_of(l, struct pl__task, link);
}

/* Locked.  One that computes is counted before others may look. */
static struct pl__task *aside_next_of(enum pl__run run, bool was_short)
{
	struct pl__task *t;

	if (run == PL__RUN_BLOCKS)
		return aside_next(&pl__rt.aside.block, false);
	if (!pl__nr_may_compute())
		return NULL;
	t = aside_next(&pl__rt.aside.compute, was_short);
	if (t)
		atomic_fetch_add(&pl__rt.nr_stalled, 1);
	return t;
}

/* Of the two queues in turn. */
struct pl__task *pl__aside_pop(bool was_short, enum pl__run *run)
{
	struct pl__aside *a = &pl__rt.aside;
	struct pl__task *t = NULL;
	uint32_t i;

	if (!pl__aside_nr())
		return NULL;
	pl__lock(&a->lock);
	a->turn++;
	for (i = 0; i < 2 && !t; i++) {
		*run = (a->turn + i) % 2 ? PL__RUN_BLOCKS : PL__RUN_COMPUTES;
		t = aside_next_of(*run, was_short);
	}
	pl__unlock(&a->lock);
	return t;
}

void pl__aside_renew_compute(void)
{
	struct pl__aside *a = &pl__rt.aside;

	if (!load_relaxed(&a->compute.nr))
		return;
	pl__lock(&a->lock);
	store_relaxed(&a->compute.taken_ns, pl__now_ns());
	pl__unlock(&a->lock);
}

/* A spare may take one after this has read the clock. */
static bool is_overdue(struct pl__aside_queue *q)
{
	return load_relaxed(&q->nr) &&
	       (int64_t)(pl__now_ns() - load_relaxed(&q->taken_ns)) >=
	       (int64_t)PL__ASIDE_OVERDUE_NS;
}

struct pl__task *pl__aside_pop_overdue(void)
{
	struct pl__aside *a = &pl__rt.aside;
	struct pl__task *t = NULL;

	pl__lock(&a->lock);
	if (is_overdue(&a->block))
		t = aside_next(&a->block, false);
	else if (pl__nr_may_compute() && is_overdue(&a->compute))
		t = aside_next(&a->compute, false);
	pl__unlock(&a->lock);
	return t;
}
