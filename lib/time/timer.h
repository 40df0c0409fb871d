/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * timer: calls a function on a thread of its own, at a deadline
 *
 * Made for deadlines that are mostly taken back: adding and deleting touch
 * nothing that all callers share.  A timer is added to one of some buckets,
 * in O(1); deleted by one compare-and-swap; and only if it lives until its
 * bucket's turn comes does the thread order it in its heap.  What is dead is
 * reclaimed soon, whatever its deadline, so that memory is bounded by what
 * lives: each add to a bucket sees to it that no more than 64 more are dead
 * than living in it, the thread that no more than half its heap is, or 64 a
 * bucket; and no bucket keeps more than some 4096 that nobody sees to.
 *
 * Adding is in two steps for those who must not fail in the second:
 * pl__timer_reserve() takes all the memory there is to take.
 */
#ifndef PL_TIMER_H
#define PL_TIMER_H

#include "mem/slab.h"

#include <parklot.h>

#define PL__TIMER_BUCKETS_MAX	1024

struct pl__timers;
struct pl__timer;

/**
 * pl__timers_start() - start a timer thread
 * @nr_buckets:   1 to PL__TIMER_BUCKETS_MAX
 * @thread_start: called first in the thread, or NULL
 * @arg:          passed to it
 *
 * Return: 0, -EINVAL, -ENOMEM or -EAGAIN.
 */
int pl__timers_start(struct pl__timers **out, uint32_t nr_buckets,
		     void (*thread_start)(void *arg), void *arg);

/**
 * pl__timers_batch() - let timers that call @fn share what comes after it
 *
 * @end is called by the thread after one or a few of them in a row: before it
 * calls anything else, looks into buckets, sleeps or ends.
 *
 * Context: once, before such a timer is armed.
 */
void pl__timers_batch(struct pl__timers *t, void (*fn)(void *arg),
		      void (*end)(void));

/**
 * pl__timers_halt() - end the thread; no callback runs once this returned
 *
 * Timers may go on to be added and deleted, also while this runs; they stay
 * pending for ever.
 *
 * Context: not the timer thread; one caller at a time.
 */
void pl__timers_halt(struct pl__timers *t);

/**
 * pl__timers_stop() - pl__timers_halt(), then free everything
 *
 * Context: as above, and nobody else uses @t any more.
 */
void pl__timers_stop(struct pl__timers *t);

/**
 * pl__timers_remind() - let @fn be called by the thread at @deadline_ns
 *
 * Takes no memory, for those who have to come back when there is some.  There
 * is one reminder, so that all name the same @fn: the earliest stands.
 */
void pl__timers_remind(struct pl__timers *t, uint64_t deadline_ns,
		       void (*fn)(void));

/** pl__timers_is_thread() - whether the caller is the timer thread */
bool pl__timers_is_thread(struct pl__timers *t);

/**
 * pl__timer_reserve() - take the memory that a timer needs
 * @c: the caller's cache, or NULL
 *
 * Return: to be armed or released; NULL: no memory.
 */
struct pl__timer *pl__timer_reserve(struct pl__timers *t,
				    struct pl__slab_cache *c);

/** pl__timer_release() - give back a reservation that was not used */
void pl__timer_release(struct pl__timers *t, struct pl__slab_cache *c,
		       struct pl__timer *r);

/**
 * pl__timer_arm() - let @fn(@arg) be called at @deadline_ns; cannot fail
 * @r:           a reservation; not the caller's any more
 * @bucket:      the fewer callers share one the better; taken modulo their
 *               number
 * @deadline_ns: if it has passed, @fn is called as soon as may be, but never
 *               from here; PL_FOREVER: never
 *
 * Timers are called in the order of their deadlines, one at a time, never
 * early.  Only a timer that is armed more than 50 ms after its deadline may
 * have to wait for later ones, which were due 50 ms before it was armed.
 *
 * Return: the handle, not 0; good for pl__timer_del() at any time.
 */
pl_timer_t pl__timer_arm(struct pl__timers *t, struct pl__timer *r,
			 uint32_t bucket, uint64_t deadline_ns,
			 void (*fn)(void *arg), void *arg);

/**
 * pl__timer_add() - reserve and arm in one step, with one lock
 *
 * Return: as pl__timer_arm(); 0: no memory.
 */
pl_timer_t pl__timer_add(struct pl__timers *t, uint32_t bucket,
			 uint64_t deadline_ns, void (*fn)(void *arg),
			 void *arg);

/**
 * pl__timer_del() - take a timer back
 *
 * Return: 0: it will not be called; -EBUSY: it is being called now (also when
 * asked from its own callback); -ENOENT: it was called or deleted, and what
 * its callback did is seen.
 */
int pl__timer_del(struct pl__timers *t, pl_timer_t id);

/**
 * pl__timer_deadline() - when a timer that was armed would be called
 *
 * For who looks at others: it may be called or deleted meanwhile.
 *
 * Return: false: it is no more.
 */
bool pl__timer_deadline(struct pl__timers *t, pl_timer_t id,
			uint64_t *deadline_ns);

/** pl__timers_stat() - counters; exact when nobody adds, deletes or fires */
void pl__timers_stat(struct pl__timers *t, uint64_t *added, uint64_t *fired,
		     uint64_t *deleted, uint64_t *busy_ns, uint32_t *alive);

#endif /* PL_TIMER_H */
