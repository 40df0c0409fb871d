/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * wait_impl: what the waits of tasks share, in this room alone
 *
 * A bucket has the waiters of some words, selected by address, under one lock.
 */
#ifndef PL_WAIT_IMPL_H
#define PL_WAIT_IMPL_H

#include "base/list.h"
#include "base/lock.h"
#include "pace/kept.h"
#include "queue/task.h"
#include "queue/worker.h"
#include "time/timer.h"

/* ASan's search for leaks reads all of them in each process that ends. */
#ifdef PL_ASAN
# define PL__BUCKET_BITS	10
#else
# define PL__BUCKET_BITS	16
#endif

/* 32 bytes: two in a cache line; a process touches few of them. */
struct pl__bucket {
	struct pl__lock		lock;
	struct pl__list		waiters;	/* L: longest waiting first */
} __pl_aligned(32);

extern struct pl__bucket pl__buckets[1U << PL__BUCKET_BITS];

static inline struct pl__bucket *pl__bucket_of(_Atomic uint32_t *word)
{
	uint64_t key = PL_NUMBER_OF(word) >> 2;

	return &pl__buckets[key * 0x9e3779b97f4a7c15ULL >>
			    (64 - PL__BUCKET_BITS)];
}

static inline struct pl__bucket *pl__bucket_lock(_Atomic uint32_t *word)
{
	struct pl__bucket *b = pl__bucket_of(word);

	pl__lock(&b->lock);
	if (unlikely(!b->waiters.next))
		list_init(&b->waiters);
	return b;
}

/*
 * The deadline of a task's wait
 *
 * The timer is reserved before the task switches away, and set before any other
 * thread can end the wait, so that the waiter finds it; it is listed after.
 */

/* Called by the timer thread; @arg is that of pl__wait_timer_arg(). */
void pl__wait_time_out(void *arg);

/*
 * A timer carries the slot and the number of its wait, so that it may expire
 * late without harm to a later wait.
 */
static inline void *pl__wait_timer_arg(const struct pl__task *t)
{
	uint64_t arg = t->obj.slot | (uint64_t)t->waiter.nr << 32;

	_Static_assert(sizeof(void *) == 8, "a slot and a number");
	return (void *)(uintptr_t)arg;
}

/*
 * By @w, the caller, before another thread can end the wait of @t;
 * pl__wait_timer_list() follows.
 */
static inline void pl__wait_timer_set(struct pl__worker *w, struct pl__task *t,
				      struct pl__timer *timer,
				      uint64_t deadline_ns)
{
	t->waiter.timer = pl__timer_set(pl__rt.timers, timer,
					w->number, deadline_ns,
					pl__wait_time_out,
					pl__wait_timer_arg(t));
}

static inline void pl__wait_timer_list(struct pl__worker *w,
				       struct pl__timer *timer)
{
	pl__kept_list(w, timer);
}

/* After the wait: @timer was reserved and not set, or is NULL. */
static inline void pl__wait_timer_end(struct pl__wait_entry *wt,
				      struct pl__timer *timer,
				      uint64_t deadline_ns)
{
	struct pl__worker *w = pl__self();

	if (timer)
		pl__timer_release(pl__rt.timers, &w->timers, timer);
	if (wt->timer && wt->reason != -ETIMEDOUT)
		pl__timer_del(pl__rt.timers, wt->timer);
	else if (wt->timer && !(w->nr_deadlines++ % PL__LATENCY_EVERY) &&
		 !(wt->place & PL__PLACE_BACKGROUND))
		pl__latency_hist_add(&w->deadline_latency, deadline_ns);
}

#endif /* PL_WAIT_IMPL_H */
