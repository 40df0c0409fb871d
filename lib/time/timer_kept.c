/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * timer: what the keeper of a bucket calls itself
 *
 * A worker that has nothing else to do sleeps until its earliest deadline
 * itself, and one that is busy looks at the clock between two tasks; both call
 * what is due.  To wake the thread for that, twice, would take longer than most
 * tasks, and one thread for all workers would be their limit.  So the keeper of
 * a bucket puts a timer into a heap of the bucket's, of which the thread knows
 * nothing.  Somebody else looks after keepers that may not come to it, and
 * tells the thread in time.
 *
 *	keeper: lock			teller: lock
 *	push, kept = earliest		ns = kept, kept = none, is_told
 *	unlock				earliest of the list = ns
 *					unlock
 *	keeper: lock			news |= bucket	[timer-e], seq++ ...
 *	pop what is due
 *	kept = next			thread: lock
 *	unlock, call			if (is_told) take the heap, kept = none
 *
 * Invariant: for each timer in the heap either kept is its deadline or one
 * before that, and the keeper comes to it; or the thread was told of such a
 * deadline, and takes the heap by then.  All change under the lock: to add
 * lowers kept, to take out what was due raises it.  The keeper may find what
 * the thread was told of, and calls it if it comes first.
 *
 * Each calls in the order of deadlines what it has; there is no order between a
 * keeper and the thread, or another keeper.
 */
#include "time/timer.h"
#include "time/timer_impl.h"

#define DUE_MAX	64	/* timers taken at a time, under the lock */

void pl__timers_keep(struct pl__timers *t, void (*fn)(void *arg))
{
	t->kept_fn = fn;
}

void pl__timers_make_room(struct pl__timers *t, uint32_t bucket)
{
	struct bucket *b = &t->buckets[bucket];

	if (load_relaxed(&b->heap.size) || !load_relaxed(&b->added))
		return;
	pl__lock(&b->lock);
	if (!b->heap.room)
		pl__heap_map(&b->heap, PL__TIMERS_KEPT_MAX);
	pl__unlock(&b->lock);
}

uint64_t pl__timers_kept_until(struct pl__timers *t, uint32_t bucket)
{
	return kept_of(&t->buckets[bucket]);
}

void pl__timers_tell_kept(struct pl__timers *t, uint32_t bucket)
{
	struct bucket *b = &t->buckets[bucket];
	uint64_t ns;

	pl__lock(&b->lock);
	ns = kept_of(b);
	store_relaxed(&b->kept_plus_1, 0);
	b->is_told |= ns != UINT64_MAX;
	if (ns < earliest_of(b))
		store_relaxed(&b->earliest_plus_1, ns + 1);
	pl__unlock(&b->lock);
	if (ns != UINT64_MAX)
		pl__timers_tell(t, bucket, ns);
}

/* ---- firing ---- */

/* L: the heap's first goes: the keeper does not sleep for a dead one. */
static bool first_goes(struct bucket *b, uint64_t now)
{
	return b->heap.nr && (pl__heap_deadline(&b->heap) <= now ||
			      is_dead(pl__heap_first(&b->heap)));
}

/* L: takes out some that are due, in order; frees the dead before the rest. */
static struct pl__slab_obj *take_due(struct pl__timers *t, struct bucket *b,
				     uint64_t now, struct pl__slab_cache *c)
{
	struct pl__slab_obj *due = NULL, **end = &due;
	struct pl__timer *r;
	uint32_t i;

	for (i = 0; i < DUE_MAX && first_goes(b, now); i++) {
		r = pl__heap_pop(&b->heap);
		if (timer_move(r, LISTED, RUNNING)) {
			counter_inc(&b->fired);
			*end = &r->obj;
			end = &r->obj.next;
		} else {
			pl__slab_free(&t->slab, c, r);
			b->swept++;
		}
	}
	*end = NULL;
	store_relaxed(&b->kept_plus_1, pl__heap_deadline(&b->heap) + 1);
	return due;
}

static uint32_t call_due(struct pl__timers *t, struct pl__slab_obj *due,
			 struct pl__slab_cache *c)
{
	struct pl__timer *r;
	uint32_t nr = 0;

	while (due) {
		r = container_of(due, struct pl__timer, obj);
		due = due->next;
		timer_call(r, t->kept_fn);
		timer_end(t, r, c);
		nr++;
	}
	return nr;
}

uint32_t pl__timers_fire_kept(struct pl__timers *t, uint32_t bucket,
			      struct pl__slab_cache *c)
{
	struct bucket *b = &t->buckets[bucket];
	uint64_t now = pl__now_ns();
	struct pl__slab_obj *due;
	uint32_t nr = 0;

	while (kept_of(b) <= now) {
		due = NULL;
		pl__lock(&b->lock);
		/* Or the thread was told of it. */
		if (likely(kept_of(b) <= now))
			due = take_due(t, b, now, c);
		pl__unlock(&b->lock);
		nr += call_due(t, due, c);
	}
	return nr;
}
