/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * timer: what the thread does: pull, fire, sleep
 */
#include "time/timer_impl.h"
#include "base/inject.h"
#include "ctx/self.h"
#include "time/timer.h"

/* Timers of long ago delay a timer that is due for no longer than this. */
#define LATE_MAX_NS	(100 * 1000 * 1000)

/* Of the thread; it is the kernel's least. */
#define SLICE_NS	(100 * 1000)

/*
 * Puts @r in the heap, due at floor_ns at the earliest; frees it if it is dead.
 */
static bool to_heap(struct pl__timers *t, struct pl__timer *r)
{
	uint64_t ns = r->deadline_ns;

	if (!timer_move(r, LISTED, HEAPED)) {
		PL_BUG_ON(!is_dead(r));
		pl__slab_free(&t->slab, &t->cache, r);
		return false;
	}
	pl__heap_push(&t->heap, ns > t->floor_ns ? ns : t->floor_ns, r);
	return true;
}

/* To the heap what a bucket's list and heap had; returns how many are dead. */
static int64_t all_to_heap(struct pl__timers *t, struct pl__slab_obj *obj)
{
	struct pl__slab_obj *next;
	int64_t dead = 0;
	uint32_t i;

	for (; obj; obj = next) {
		next = obj->next;
		dead += !to_heap(t, container_of(obj, struct pl__timer, obj));
	}
	for (i = 0; i < t->taken.nr; i++)
		dead += !to_heap(t, t->taken.room->entries[i].ptr);
	t->taken.nr = 0;
	store_relaxed(&t->heap_nr, t->heap.nr);
	return dead;
}

/* Moves to the heap all of a bucket but what its keeper comes to. */
static void pull(struct pl__timers *t, uint32_t i, uint64_t now)
{
	struct bucket *b = &t->buckets[i];
	struct pl__slab_obj *obj;
	int64_t dead, known;
	uint64_t earliest;

	t->listed[i / 64] &= ~(1ULL << i % 64);
	pl__lock(&b->lock);
	obj = b->head;
	b->head = NULL;
	b->nr = 0;
	if (b->is_told) {
		pl__heap_swap(&b->heap, &t->taken);
		b->is_told = false;
		store_relaxed(&b->kept_plus_1, 0);
	}
	known = nr_dead(b);
	b->swept += (uint64_t)known;
	earliest = earliest_of(b);
	store_relaxed(&b->earliest_plus_1, 0);
	store_relaxed(&b->is_long, false);
	pl__unlock(&b->lock);

	dead = all_to_heap(t, obj);
	if (earliest > now && earliest < t->pulled_ns)
		t->pulled_ns = earliest;
	if (dead == known)
		return;
	pl__lock(&b->lock);
	b->swept += (uint64_t)(dead - known);
	pl__unlock(&b->lock);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Takes the news of 64 buckets. */
static void hear_of(struct pl__timers *t, uint32_t word)
{
	/* [timer-e] pairs with pl__timers_tell(): it sees what is new. */
	uint64_t bits = atomic_exchange(&t->news[word], 0);
	struct bucket *b;

	PL_INJECT("timer-e");
	t->listed[word] |= bits;
	for (; bits; bits &= bits - 1) {
		b = &t->buckets[64 * word + (uint32_t)__builtin_ctzll(bits)];
		t->left_ns = earlier(t->left_ns, earliest_of(b));
		t->has_long |= load_relaxed(&b->is_long);
	}
}

/* A number of a bucket above @i that is listed, or UINT32_MAX. */
static uint32_t next_listed(struct pl__timers *t, uint32_t i)
{
	uint32_t word = ++i / 64;
	uint64_t bits;

	if (word >= t->nr_words)
		return UINT32_MAX;
	bits = t->listed[word] & -(1ULL << i % 64);
	while (!bits && ++word < t->nr_words)
		bits = t->listed[word];
	return bits ? 64 * word + (uint32_t)__builtin_ctzll(bits) : UINT32_MAX;
}

/* Pulls all buckets with timers before the heap's first. */
static void pull_listed(struct pl__timers *t, uint64_t now)
{
	uint64_t ns, left = UINT64_MAX;
	uint32_t i = UINT32_MAX;

	while ((i = next_listed(t, i)) != UINT32_MAX) {
		ns = earliest_of(&t->buckets[i]);
		if (ns < pl__heap_deadline(&t->heap))
			pull(t, i, now);
		else
			left = earlier(left, ns);
	}
	t->left_ns = left;
}

/*
 * Pulls what is earlier than the heap's first, of the buckets of which there
 * are or were news; returns the earliest deadline that is left in a bucket.
 */
static uint64_t pull_early(struct pl__timers *t, uint64_t now)
{
	uint32_t word;

	for (word = 0; word < t->nr_words; word++)
		if (load_relaxed(&t->news[word]))
			hear_of(t, word);
	if (t->left_ns < pl__heap_deadline(&t->heap))
		pull_listed(t, now);
	return t->left_ns;
}

static bool is_due_by(struct bucket *b, uint64_t ns)
{
	bool is_due;

	pl__lock(&b->lock);
	is_due = earliest_of(b) <= ns;
	pl__unlock(&b->lock);
	return is_due;
}

/*
 * Raises floor_ns to a time before @now, which was read before any bucket is
 * locked.  First pulls the timers that are due by then, with their own
 * deadlines.
 */
static void raise_floor(struct pl__timers *t, uint64_t now)
{
	uint64_t floor_ns = now - LATE_MAX_NS / 2;
	uint32_t i;

	for (i = 0; i < t->nr_buckets; i++)
		if (is_due_by(&t->buckets[i], floor_ns))
			pull(t, i, now);
	t->floor_ns = floor_ns;
}

/* Old timers, which count as due at floor_ns, delay others for too long. */
static bool floor_is_low(struct pl__timers *t, uint64_t next, uint64_t now)
{
	return next < now && now - next > LATE_MAX_NS &&
	       now - t->floor_ns > LATE_MAX_NS;
}

/* Pulls one long bucket; one at a time, as a timer may be due after each. */
static bool pull_long(struct pl__timers *t, uint64_t now)
{
	uint32_t i = UINT32_MAX;

	if (likely(!t->has_long))
		return false;
	while ((i = next_listed(t, i)) != UINT32_MAX) {
		if (load_relaxed(&t->buckets[i].is_long)) {
			pull(t, i, now);
			return true;
		}
	}
	t->has_long = false;
	return false;
}

static void reclaim(struct pl__timers *t, struct pl__timer *r)
{
	counter_inc(&t->reclaimed);
	pl__slab_free(&t->slab, &t->cache, r);
}

static bool keep_alive(void *ptr, void *arg)
{
	if (!is_dead(ptr))
		return true;
	reclaim(arg, ptr);
	return false;
}

static void compact(struct pl__timers *t)
{
	store_relaxed(&t->want_compact, false);
	pl__heap_filter(&t->heap, keep_alive, t);
	store_relaxed(&t->heap_nr, t->heap.nr);
}

static void end_batch(struct pl__timers *t)
{
	if (!t->nr_batched)
		return;
	t->nr_batched = 0;
	t->batch_end();
}

static void call(struct pl__timers *t, struct pl__timer *r)
{
	bool is_batched = r->fn == t->batch_fn;

	if (!is_batched)
		end_batch(t);
	timer_call(r, r->fn);
	pl__self_end_orphan();
	if (is_batched && ++t->nr_batched == TIMER_BATCH)
		end_batch(t);
}

static void fire(struct pl__timers *t, struct pl__timer *r)
{
	store_relaxed(&t->heap_nr, t->heap.nr);
	if (!timer_move(r, HEAPED, RUNNING)) {
		PL_BUG_ON(!is_dead(r));
		reclaim(t, r);
		return;
	}
	counter_inc(&t->fired);
	call(t, r);
	timer_end(t, r, &t->cache);
}

/* Calls the reminder if it is due; returns its deadline. */
static uint64_t remind(struct pl__timers *t)
{
	uint64_t ns = atomic_load(&t->remind_ns);

	if (likely(ns == UINT64_MAX) || ns > pl__now_ns())
		return ns;
	store_relaxed(&t->remind_ns, UINT64_MAX);
	PL_INJECT("remind-b");
	/* [remind-b] pairs with [remind-a] in pl__timers_remind(). */
	pl__full_barrier();
	atomic_load(&t->remind)();
	return atomic_load(&t->remind_ns);
}

/* Fires what is due at @now and not after @left; false: seq has changed. */
static bool fire_due(struct pl__timers *t, uint32_t seq, uint64_t now,
		     uint64_t left)
{
	uint64_t next;
	bool same;

	do {
		fire(t, pl__heap_pop(&t->heap));
		/* [timer-a]: an earlier timer may have been added. */
		same = load_acquire(&t->seq) == seq;
		next = pl__heap_deadline(&t->heap);
	} while (same && next <= now && next <= left);
	end_batch(t);
	return same;
}

/*
 * Fires what is due, in order, until nothing is or seq changes.  Returns until
 * when to sleep; 0: do not sleep.
 */
static uint64_t timer_run(struct pl__timers *t, uint32_t seq)
{
	uint64_t reminder = remind(t);
	uint64_t left, next, now = pl__now_ns();

	if (load_relaxed(&t->want_compact))
		compact(t);
	for (;;) {
		left = pull_early(t, now);
		next = pl__heap_deadline(&t->heap);
		PL_INJECT("pulled");
		if (next > now) {
			now = pl__now_ns();
			/*
			 * A timer that was added before this `now' may be
			 * earlier.
			 */
			if (next <= now)
				continue;
			if (pull_long(t, now))
				return 0;
			break;
		}
		if (unlikely(floor_is_low(t, next, now))) {
			raise_floor(t, now);
			continue;
		}
		if (!fire_due(t, seq, now, left))
			return 0;
	}
	if (t->pulled_ns <= now)
		t->pulled_ns = UINT64_MAX;
	return earlier(earlier(next, t->pulled_ns), reminder);
}

static void timer_sleep_until(struct pl__timers *t, uint32_t seq, uint64_t ns)
{
	/* [timer-b] pairs with pl__timers_kick(). */
	atomic_store(&t->next_ns, ns);
	PL_INJECT("timer-b");
	if (atomic_load(&t->seq) == seq)
		pl__futex_wait(&t->seq, seq, ns);
	store_relaxed(&t->next_ns, 0);
}

int pl__timers_start_thread(struct pl__timers *t, pthread_t *thread,
			    void *(*fn)(void *arg), void *arg)
{
	bool is_short = pl__timers_is_thread(t) && t->slice_before_ns;
	int ret;

	if (is_short)
		pl__thread_slice(t->slice_before_ns);
	ret = pl__thread_start(thread, fn, arg);
	if (is_short)
		pl__thread_slice(SLICE_NS);
	return ret;
}

void *pl__timers_thread(void *arg)
{
	struct pl__timers *t = arg;
	uint64_t next;
	uint32_t seq;

	pl__thread_name("pl-timer");
	pl__thread_slack(1);
	store_relaxed(&t->self, pthread_self());
	pl__self_is_own();
	if (t->thread_start)
		t->thread_start(t->arg);
	t->slice_before_ns = pl__thread_slice(SLICE_NS);
	pl__self_end_orphan();

	for (;;) {
		/*
		 * [timer-a] pairs with pl__timers_kick(): the thread sees the
		 * adder's news.
		 */
		seq = load_acquire(&t->seq);
		PL_INJECT("timer-a");
		if (load_relaxed(&t->stopping))
			break;
		next = timer_run(t, seq);
		if (next)
			timer_sleep_until(t, seq, next);
	}

	pl__lock(&t->exit_lock);
	t->busy_ns = pl__thread_cpu_ns(pthread_self());
	t->exited = true;
	pl__unlock(&t->exit_lock);
	/* Another thread may get the number. */
	store_relaxed(&t->self, 0);
	return NULL;
}

/*
 * timer: what the keeper of a bucket calls itself, or another worker for it
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
 * A thief is another worker that pops as the keeper does, if nobody has the
 * lock.  Whoever pops calls in the order of deadlines what it has popped; there
 * is no order between a keeper, its thief and the thread.
 */

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

/* L, and unlocks: calls some that are due. */
static uint32_t fire_locked(struct pl__timers *t, struct bucket *b,
			    uint64_t now, struct pl__slab_cache *c)
{
	struct pl__slab_obj *due = NULL;

	/* Or the thread was told of it. */
	if (likely(kept_of(b) <= now))
		due = take_due(t, b, now, c);
	pl__unlock(&b->lock);
	return call_due(t, due, c);
}

uint32_t pl__timers_fire_kept(struct pl__timers *t, uint32_t bucket,
			      struct pl__slab_cache *c)
{
	struct bucket *b = &t->buckets[bucket];
	uint64_t now = pl__now_ns();
	uint32_t nr = 0;

	while (kept_of(b) <= now) {
		pl__lock(&b->lock);
		nr += fire_locked(t, b, now, c);
	}
	return nr;
}

uint32_t pl__timers_take_kept(struct pl__timers *t, uint32_t bucket,
			      uint64_t now, struct pl__slab_cache *c)
{
	struct bucket *b = &t->buckets[bucket];

	return pl__trylock(&b->lock) ? fire_locked(t, b, now, c) : 0;
}
