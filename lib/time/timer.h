/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * timer: calls a function on a thread of its own, at a deadline
 *
 * Made for deadlines that are mostly deleted: adding and deleting touch nothing
 * that all callers share.  A timer is added to one of several buckets, in O(1),
 * and deleted by one compare-and-swap.  Only if it is alive when its bucket's
 * turn comes does the thread put it in its heap.
 *
 * Dead timers are reclaimed soon, whatever their deadlines, so that the living
 * bound the memory.  Each add to a bucket ensures that at most 64 more timers
 * in it are dead than alive; the thread ensures that at most half of its heap
 * is dead, or 64 for each bucket, more if there are more than 128 buckets; and
 * it pulls a bucket that has more than about 4096 timers.
 *
 * A caller that must not fail later adds in two steps: pl__timer_reserve()
 * takes all the memory that a timer needs.
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
 * @arg:          its argument
 *
 * Return: 0, -EINVAL, -ENOMEM or -EAGAIN.
 */
int pl__timers_start(struct pl__timers **out, uint32_t nr_buckets,
		     void (*thread_start)(void *arg), void *arg);

/**
 * pl__timers_batch() - let timers that call @fn share an end
 *
 * The thread calls @end after one or a few of them in a row: before it calls
 * anything else, looks in buckets, sleeps or ends.
 *
 * Context: once, before such a timer is armed.
 */
void pl__timers_batch(struct pl__timers *t, void (*fn)(void *arg),
		      void (*end)(void));

/**
 * pl__timers_halt() - end the thread; no callback runs after the return
 *
 * Other threads may still add and delete timers, also while this runs; such
 * timers stay pending for ever.
 *
 * Context: not the timer thread; one caller at a time.
 */
void pl__timers_halt(struct pl__timers *t);

/**
 * pl__timers_stop() - pl__timers_halt(), then free everything
 *
 * Context: not the timer thread; no other thread uses @t any more.
 */
void pl__timers_stop(struct pl__timers *t);

/**
 * pl__timers_remind() - let the thread call @fn at @deadline_ns
 *
 * Takes no memory, for callers that retry when there is memory again.  There is
 * one reminder, so all callers name the same @fn; the earliest deadline stands.
 */
void pl__timers_remind(struct pl__timers *t, uint64_t deadline_ns,
		       void (*fn)(void));

/**
 * pl__timers_keep() - let keepers call @fn for timers that call the batch's
 *
 * Context: once, before such a timer is armed; after pl__timers_batch().
 */
void pl__timers_keep(struct pl__timers *t, void (*fn)(void *arg));

/** pl__timers_is_thread() - whether the caller is the timer thread */
bool pl__timers_is_thread(struct pl__timers *t);

/**
 * pl__timers_start_thread() - pl__thread_start(), by any thread
 *
 * Threads inherit the slice of their starter, and the timer thread has a short
 * one, with which it runs before all others.
 */
int pl__timers_start_thread(struct pl__timers *t, pthread_t *thread,
			    void *(*fn)(void *arg), void *arg);

/**
 * pl__timer_reserve() - take the memory that a timer needs
 * @c: the caller's cache, or NULL
 *
 * Return: a reservation, to be armed or released; NULL: no memory.
 */
struct pl__timer *pl__timer_reserve(struct pl__timers *t,
				    struct pl__slab_cache *c);

/** pl__timer_release() - give back a reservation that was not used */
void pl__timer_release(struct pl__timers *t, struct pl__slab_cache *c,
		       struct pl__timer *r);

/**
 * pl__timer_set() - the first half of pl__timer_arm(), which takes no lock
 *
 * It may be deleted from now on, but is not called before pl__timer_list().
 *
 * Return: as pl__timer_arm().
 */
pl_timer_t pl__timer_set(struct pl__timers *t, struct pl__timer *r,
			 uint32_t bucket, uint64_t deadline_ns,
			 void (*fn)(void *arg), void *arg);

/**
 * pl__timer_list() - the second half of pl__timer_arm(), once for each set
 * @c: the caller's cache, or NULL, for dead timers that are freed
 *
 * May free a number of dead timers, and wake the thread.
 */
void pl__timer_list(struct pl__timers *t, struct pl__slab_cache *c,
		    struct pl__timer *r);

/**
 * pl__timers_make_room() - let a bucket that had a timer be kept
 *
 * Context: any thread, on no small stack.
 */
void pl__timers_make_room(struct pl__timers *t, uint32_t bucket);

/**
 * pl__timer_list_kept() - as pl__timer_list(), by the keeper of a bucket
 *
 * The timer calls the batch's function, and the thread is not told: the caller
 * calls pl__timers_fire_kept() when it is due, see pl__timers_kept_until(); or
 * any thread calls pl__timers_tell_kept() before.  Without room, or with 4096
 * of them, it is pl__timer_list().
 *
 * Context: one caller at a time for a bucket.
 * Return: true: the keeper had no deadline before, and has one now.
 */
bool pl__timer_list_kept(struct pl__timers *t, struct pl__slab_cache *c,
			 struct pl__timer *r);

/**
 * pl__timers_kept_until() - the earliest deadline of which its keeper knows
 *
 * Return: PL_FOREVER: there is none.
 */
uint64_t pl__timers_kept_until(struct pl__timers *t, uint32_t bucket);

/**
 * pl__timers_fire_kept() - call what is due and kept, in order
 * @c: the caller's cache
 *
 * Context: the keeper.
 * Return: how many were called.
 */
uint32_t pl__timers_fire_kept(struct pl__timers *t, uint32_t bucket,
			      struct pl__slab_cache *c);

/**
 * pl__timers_take_kept() - in place of the keeper, call some of what is due
 * @now: the time
 * @c:   the caller's cache
 *
 * As many as are taken with the lock held once.
 *
 * Context: any worker.
 * Return: how many were called; 0 as well if another thread has the lock.
 */
uint32_t pl__timers_take_kept(struct pl__timers *t, uint32_t bucket,
			      uint64_t now, struct pl__slab_cache *c);

/** pl__timers_tell_kept() - the thread comes to what a bucket keeps */
void pl__timers_tell_kept(struct pl__timers *t, uint32_t bucket);

/**
 * pl__timer_arm() - let the thread call @fn(@arg) at @deadline_ns; cannot fail
 * @r:           a reservation; not the caller's any more
 * @bucket:      the fewer callers share one the better; taken modulo their
 *               number
 * @deadline_ns: if it has passed, the thread calls @fn as soon as possible, but
 *               never from here; PL_FOREVER: never
 *
 * Timers are called in the order of their deadlines, one at a time, never
 * early.  Only a timer that is armed more than 50 ms after its deadline may
 * have to wait for later ones, which were due 50 ms before it was armed.
 *
 * Return: the handle, not 0; good for pl__timer_del() at any time.
 */
static inline pl_timer_t pl__timer_arm(struct pl__timers *t,
				       struct pl__timer *r, uint32_t bucket,
				       uint64_t deadline_ns,
				       void (*fn)(void *arg), void *arg)
{
	pl_timer_t id = pl__timer_set(t, r, bucket, deadline_ns, fn, arg);

	pl__timer_list(t, NULL, r);
	return id;
}

/**
 * pl__timer_add() - reserve and arm in one step, with one lock
 * @c:   the caller's cache, or NULL for the bucket's own
 * @out: NULL, or where the handle is stored before @fn can run
 *
 * Return: 0, or -ENOMEM.
 */
int pl__timer_add(struct pl__timers *t, struct pl__slab_cache *c,
		  uint32_t bucket, uint64_t deadline_ns,
		  void (*fn)(void *arg), void *arg, pl_timer_t *out);

/**
 * pl__timer_del() - delete a timer
 *
 * Return: 0: it will not be called; -EBUSY: it is being called now (also from
 * its own callback); -ENOENT: it was called or deleted, and the caller sees
 * what its callback did.
 */
int pl__timer_del(struct pl__timers *t, pl_timer_t id);

/**
 * pl__timer_deadline() - the deadline of an armed timer
 *
 * For dumps of other tasks: the timer may be called or deleted meanwhile.
 *
 * Return: false: it is not armed any more.
 */
bool pl__timer_deadline(struct pl__timers *t, pl_timer_t id,
			uint64_t *deadline_ns);

/** pl__timers_stat() - counters; exact when no thread adds, deletes or fires */
void pl__timers_stat(struct pl__timers *t, uint64_t *added, uint64_t *fired,
		     uint64_t *deleted, uint64_t *busy_ns, uint32_t *alive);

#endif /* PL_TIMER_H */
