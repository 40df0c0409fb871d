/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * timer: what callers do: reserve, arm, add, delete
 */
#include "time/timer.h"
#include "base/inject.h"
#include "time/timer_impl.h"

#define TIMERS_MAX	(1U << 26)
#define SWEEP_NR	256	/* visits of one adder, under the lock */
#define PULL_NR		4096	/* the thread pulls a longer list when it can */

void pl__timers_kick(struct pl__timers *t, uint64_t ns)
{
	uint64_t next;

	/* [timer-a], [timer-b] pair with those in timer_sleep_until(). */
	atomic_fetch_add(&t->seq, 1);
	PL_INJECT("timer-a");
	next = atomic_load(&t->next_ns);
	do {
		if (next <= ns)
			return;
		PL_INJECT("timer-b");
		/*
		 * From here on other adders need not wake the thread for a
		 * later deadline.
		 */
	} while (!atomic_compare_exchange_weak(&t->next_ns, &next, ns));
	PL_INJECT("timer-b");
	/*
	 * Again: by now the thread may have seen the first increment, fired
	 * this timer, and be about to sleep on the next_ns that was stored
	 * here.
	 */
	atomic_fetch_add(&t->seq, 1);
	pl__futex_wake(&t->seq, 1);
}

/* L */
static void bucket_append(struct bucket *b, struct pl__slab_obj *obj)
{
	obj->next = NULL;
	if (b->head)
		b->last->next = obj;
	else
		b->head = obj;
	b->last = obj;
}

static struct pl__slab_obj *detach_first(struct bucket *b)
{
	struct pl__slab_obj *obj = b->head;

	b->head = obj->next;
	return obj;
}

/*
 * L: frees the dead of the oldest timers, moves the living to the end of the
 * list.  Not more than one batch, so that what one sweep frees is taken before
 * the next: between @c and the slab nothing has to be moved.
 */
static void sweep_list(struct pl__timers *t, struct bucket *b,
		       struct pl__slab_cache *c)
{
	uint32_t i = b->nr < SWEEP_NR ? b->nr : SWEEP_NR, freed = 0;
	struct pl__slab_obj *obj;

	while (i-- && freed < PL__SLAB_BATCH) {
		obj = detach_first(b);
		if (!is_dead(container_of(obj, struct pl__timer, obj))) {
			bucket_append(b, obj);
			continue;
		}
		pl__slab_free(&t->slab, c, obj);
		freed++;
	}
	b->swept += freed;
	b->nr -= freed;
}

struct sweeper {
	struct pl__timers	*t;
	struct pl__slab_cache	*c;
};

static bool keep_living(void *ptr, void *arg)
{
	struct sweeper *s = arg;

	if (!is_dead(ptr))
		return true;
	pl__slab_free(&s->t->slab, s->c, ptr);
	return false;
}

/*
 * L: more than half are dead, so some are in the larger one of list and heap.
 * The heap is swept as a whole.
 */
static __pl_noinline void sweep(struct pl__timers *t, struct bucket *b,
				struct pl__slab_cache *c)
{
	struct sweeper s = { t, c };
	uint32_t before = b->heap.nr;

	if (before <= b->nr) {
		sweep_list(t, b, c);
		return;
	}
	pl__heap_filter(&b->heap, keep_living, &s);
	b->swept += before - b->heap.nr;
}

/* Asked before a bucket is read, which may not be in memory yet. */
static bool is_used(const struct pl__timers *t, uint32_t i)
{
	return load_relaxed(&t->used[i / 64]) & 1ULL << i % 64;
}

/* L: another is listed. */
static inline void count_listed(struct pl__timers *t, struct bucket *b,
				struct pl__slab_cache *c)
{
	counter_inc(&b->added);
	if (unlikely(2 * nr_dead(b) > (int64_t)nr_listed(b) + TIMER_DEAD_MAX))
		sweep(t, b, c);
}

/*
 * L: lists @r, which may be dead, and is freed then; returns the deadline that
 * the thread must learn of, or UINT64_MAX.
 */
static inline uint64_t enlist(struct pl__timers *t, struct bucket *b,
			      struct pl__slab_cache *c, struct pl__timer *r)
{
	uint64_t deadline_ns = r->deadline_ns, ns = UINT64_MAX;

	bucket_append(b, &r->obj);
	b->nr++;
	count_listed(t, b, c);
	if (unlikely(deadline_ns < earliest_of(b))) {
		ns = deadline_ns;
		store_relaxed(&b->earliest_plus_1, ns + 1);
	}
	/*
	 * The list is long: the thread pulls it soon, so that no pull takes
	 * long.
	 */
	if (unlikely(b->nr == PULL_NR)) {
		ns = 0;
		store_relaxed(&b->is_long, true);
	}
	return ns;
}

/* L: the same, into the heap; true: the keeper had nothing there before. */
static inline bool enlist_kept(struct pl__timers *t, struct bucket *b,
			       struct pl__slab_cache *c, struct pl__timer *r)
{
	uint64_t ns = r->deadline_ns, before = kept_of(b);

	pl__heap_push(&b->heap, ns, r);
	count_listed(t, b, c);
	if (ns < before)
		store_relaxed(&b->kept_plus_1, ns + 1);
	return before == UINT64_MAX;
}

void pl__timers_tell(struct pl__timers *t, uint32_t bucket, uint64_t ns)
{
	/*
	 * The first timer of a bucket comes here: no other is earlier, and its
	 * keeper has no room yet.
	 */
	if (!is_used(t, bucket))
		atomic_fetch_or_explicit(&t->used[bucket / 64],
					 1ULL << bucket % 64,
					 memory_order_relaxed);
	/* [timer-e] pairs with hear_of(). */
	atomic_fetch_or(&t->news[bucket / 64], 1ULL << bucket % 64);
	PL_INJECT("timer-e");
	pl__timers_kick(t, ns);
}

static pl_timer_t set(struct pl__timer *r, uint32_t bucket,
		      uint64_t deadline_ns, void (*fn)(void *arg), void *arg)
{
	uint32_t version = load_relaxed(&r->version) + LISTED;

	r->deadline_ns = deadline_ns;
	r->fn = fn;
	r->arg = arg;
	store_relaxed(&r->bucket, bucket);
	store_relaxed(&r->version, version);
	return r->obj.slot | (uint64_t)version << 32;
}

pl_timer_t pl__timer_set(struct pl__timers *t, struct pl__timer *r,
			 uint32_t bucket, uint64_t deadline_ns,
			 void (*fn)(void *arg), void *arg)
{
	if (unlikely(bucket >= t->nr_buckets))
		bucket %= t->nr_buckets;
	return set(r, bucket, deadline_ns, fn, arg);
}

void pl__timer_list(struct pl__timers *t, struct pl__slab_cache *c,
		    struct pl__timer *r)
{
	uint32_t bucket = load_relaxed(&r->bucket);
	struct bucket *b = &t->buckets[bucket];
	uint64_t news_ns;

	PL_INJECT("timer-c");
	/* Once the lock is dropped, the timer may run and be freed. */
	pl__lock(&b->lock);
	news_ns = enlist(t, b, c ? c : &b->cache, r);
	pl__unlock(&b->lock);
	if (unlikely(news_ns != UINT64_MAX))
		pl__timers_tell(t, bucket, news_ns);
}

bool pl__timer_list_kept(struct pl__timers *t, struct pl__slab_cache *c,
			 struct pl__timer *r)
{
	uint32_t bucket = load_relaxed(&r->bucket);
	struct bucket *b = &t->buckets[bucket];
	uint64_t news_ns = UINT64_MAX;
	bool has_begun = false;

	PL_INJECT("timer-c");
	pl__lock(&b->lock);
	if (likely(!pl__heap_is_full(&b->heap)))
		has_begun = enlist_kept(t, b, c, r);
	else
		news_ns = enlist(t, b, c, r);
	pl__unlock(&b->lock);
	if (unlikely(news_ns != UINT64_MAX))
		pl__timers_tell(t, bucket, news_ns);
	return has_begun;
}

int pl__timer_add(struct pl__timers *t, struct pl__slab_cache *c,
		  uint32_t bucket, uint64_t deadline_ns,
		  void (*fn)(void *arg), void *arg, pl_timer_t *out)
{
	uint64_t news_ns;
	pl_timer_t id;
	struct pl__timer *r;
	struct bucket *b;

	/* Never, but earlier than no deadline, so the thread is told. */
	if (unlikely(deadline_ns == PL_FOREVER))
		deadline_ns--;
	if (unlikely(bucket >= t->nr_buckets))
		bucket %= t->nr_buckets;
	b = &t->buckets[bucket];
	if (!c)
		c = &b->cache;

	pl__lock(&b->lock);
	/* Prefers memory that an earlier sweep has freed. */
	r = pl__timer_reserve(t, c);
	if (unlikely(!r)) {
		pl__unlock(&b->lock);
		return -ENOMEM;
	}
	id = set(r, bucket, deadline_ns, fn, arg);
	if (out)
		*out = id;
	news_ns = enlist(t, b, c, r);
	pl__unlock(&b->lock);
	if (unlikely(news_ns != UINT64_MAX))
		pl__timers_tell(t, bucket, news_ns);
	return 0;
}

static uint64_t nr_dead_in_heap(struct pl__timers *t)
{
	uint64_t nr = 0;
	uint32_t i;

	for (i = 0; i < t->nr_buckets; i++)
		if (is_used(t, i))
			nr += load_relaxed(&t->buckets[i].died_heaped);
	return nr - load_relaxed(&t->reclaimed);
}

/* Counts only now and then whether half of the heap is dead. */
static void died_heaped(struct pl__timers *t, struct bucket *b)
{
	uint64_t nr = atomic_fetch_add_explicit(&b->died_heaped, 1,
						memory_order_relaxed);
	int64_t dead;

	if (likely((nr + 1) & t->died_mask))
		return;
	dead = (int64_t)nr_dead_in_heap(t);
	if (2 * dead <= (int64_t)load_relaxed(&t->heap_nr) + TIMER_DEAD_MAX)
		return;
	store_relaxed(&t->want_compact, true);
	pl__timers_kick(t, 0);
}

int pl__timer_del(struct pl__timers *t, pl_timer_t id)
{
	struct pl__timer *r = pl__slab_get(&t->slab, (uint32_t)id);
	uint32_t listed = (uint32_t)(id >> 32), version = listed;
	struct bucket *b;

	if (!r || state_of(listed) != LISTED)
		return -ENOENT;
	/* Read before: after the change the slot may be another timer. */
	b = &t->buckets[load_relaxed(&r->bucket)];

	PL_INJECT("timer-c");
	/*
	 * [timer-c] pairs with timer_move(); [timer-d] with timer_end(),
	 * is_dead().
	 */
	while (!atomic_compare_exchange_weak_explicit(&r->version, &version,
						      (listed | STATE_MASK) + 1,
						      memory_order_acq_rel,
						      memory_order_acquire)) {
		if (version == listed + (RUNNING - LISTED))
			return -EBUSY;
		if (version != listed && version != listed + (HEAPED - LISTED))
			return -ENOENT;
		PL_INJECT("timer-c");
	}
	PL_INJECT("timer-d");
	if (version == listed)
		atomic_fetch_add_explicit(&b->died_listed, 1,
					  memory_order_relaxed);
	else
		died_heaped(t, b);
	return 0;
}

void pl__timers_remind(struct pl__timers *t, uint64_t deadline_ns,
		       void (*fn)(void))
{
	uint64_t old;

	atomic_store(&t->remind, fn);
	PL_INJECT("remind-a");
	/* [remind-a] pairs with [remind-b] in remind(). */
	pl__full_barrier();
	old = load_relaxed(&t->remind_ns);
	do {
		if (old <= deadline_ns)
			return;
	} while (!atomic_compare_exchange_weak(&t->remind_ns, &old,
					       deadline_ns));
	pl__timers_kick(t, deadline_ns);
}

/* Pages that are not touched before a bucket in them is. */
static int buckets_init(struct pl__timers *t, uint32_t nr)
{
	t->nr_buckets = nr;
	t->nr_words = (nr + 63) / 64;
	/* A deleter that sums up reads a line of each bucket. */
	t->died_mask = TIMER_DEAD_MAX - 1;
	while (2 * (t->died_mask + 1) <= nr)
		t->died_mask = 2 * t->died_mask + 1;
	t->buckets = pl__map(nr * sizeof(*t->buckets));
	return t->buckets ? 0 : -ENOMEM;
}

static void free_buckets(struct pl__timers *t)
{
	uint32_t i;

	if (!t->buckets)
		return;
	for (i = 0; i < t->nr_buckets; i++)
		if (is_used(t, i))
			pl__heap_unmap(&t->buckets[i].heap);
	pl__unmap(t->buckets, t->nr_buckets * sizeof(*t->buckets));
}

static void free_timers(struct pl__timers *t)
{
	pl__heap_fini(&t->heap);
	pl__heap_unmap(&t->taken);
	free_buckets(t);
	pl__slab_fini(&t->slab);
	pl__free(t);
}

int pl__timers_start(struct pl__timers **out, uint32_t nr_buckets,
		     void (*thread_start)(void *arg), void *arg)
{
	struct pl__timers *t;
	int ret;

	if (!nr_buckets || nr_buckets > PL__TIMER_BUCKETS_MAX)
		return -EINVAL;
	t = pl__alloc_aligned(PL_CACHELINE, sizeof(*t));
	if (!t)
		return -ENOMEM;
	ret = pl__slab_init(&t->slab, sizeof(struct pl__timer), TIMERS_MAX);
	if (ret) {
		pl__free(t);
		return ret;
	}

	/*
	 * Above the versions of a runtime before this one: those grow by 4 in
	 * 20 ns.
	 */
	t->first_version = (uint32_t)pl__now_ns() & ~STATE_MASK;
	t->thread_start = thread_start;
	t->arg = arg;
	t->pulled_ns = UINT64_MAX;
	t->left_ns = UINT64_MAX;
	store_relaxed(&t->remind_ns, UINT64_MAX);
	ret = buckets_init(t, nr_buckets);
	if (!ret)
		ret = pl__thread_start(&t->thread, pl__timers_thread, t);
	if (ret) {
		free_timers(t);
		return ret;
	}
	*out = t;
	return 0;
}

void pl__timers_batch(struct pl__timers *t, void (*fn)(void *arg),
		      void (*end)(void))
{
	t->batch_fn = fn;
	t->batch_end = end;
}

void pl__timers_halt(struct pl__timers *t)
{
	if (t->halted)
		return;
	t->halted = true;
	store_relaxed(&t->stopping, true);
	pl__timers_kick(t, 0);
	pthread_join(t->thread, NULL);
}

void pl__timers_stop(struct pl__timers *t)
{
	pl__timers_halt(t);
	free_timers(t);
}

/*
 * The compiler takes pthread_self() for const: must not be inlined in a task.
 */
__pl_noinline bool pl__timers_is_thread(struct pl__timers *t)
{
	return load_relaxed(&t->self) == pthread_self();
}

struct pl__timer *pl__timer_reserve(struct pl__timers *t,
				    struct pl__slab_cache *c)
{
	struct pl__timer *r = pl__slab_alloc(&t->slab, c);

	if (unlikely(!r))
		return NULL;
	if (unlikely(!load_relaxed(&r->version)))
		store_relaxed(&r->version, t->first_version);
	/*
	 * A slot is in the heap at most once: so there is room for all of them.
	 */
	if (likely(pl__heap_reserve(&t->heap, r->obj.slot + 1)))
		return r;
	pl__slab_free(&t->slab, c, r);
	return NULL;
}

void pl__timer_release(struct pl__timers *t, struct pl__slab_cache *c,
		       struct pl__timer *r)
{
	pl__slab_free(&t->slab, c, r);
}

static uint64_t busy_ns_of(struct pl__timers *t)
{
	uint64_t ns;

	/*
	 * The thread takes the lock before it ends, so that its clock can be
	 * read.
	 */
	pl__lock(&t->exit_lock);
	ns = t->exited ? t->busy_ns : pl__thread_cpu_ns(t->thread);
	pl__unlock(&t->exit_lock);
	return ns;
}

void pl__timers_stat(struct pl__timers *t, uint64_t *added, uint64_t *fired,
		     uint64_t *deleted, uint64_t *busy_ns, uint32_t *alive)
{
	struct bucket *b;
	uint64_t ended;
	uint32_t i;

	/*
	 * Reads ends before beginnings, of each bucket too: otherwise the
	 * number alive could be negative.
	 */
	*added = *deleted = 0;
	*fired = load_acquire(&t->fired);
	for (i = 0; i < t->nr_buckets; i++) {
		if (!is_used(t, i))
			continue;
		b = &t->buckets[i];
		*fired += load_acquire(&b->fired);
		*deleted += load_acquire(&b->died_listed) +
			    load_acquire(&b->died_heaped);
		*added += load_relaxed(&b->added);
	}
	*busy_ns = busy_ns_of(t);
	ended = *fired + *deleted;
	*alive = *added > ended ? (uint32_t)(*added - ended) : 0;
}

bool pl__timer_deadline(struct pl__timers *t, pl_timer_t id,
			uint64_t *deadline_ns)
{
	const struct pl__timer *at = pl__slab_get(&t->slab, (uint32_t)id);
	struct pl__timer r;
	uint32_t version;

	if (!id || !at || !pl__read_own_mem(&r, at, sizeof(r)))
		return false;
	version = load_relaxed(&r.version);
	*deadline_ns = r.deadline_ns;
	/* The handle has the generation, and the state LISTED. */
	return (version ^ (uint32_t)(id >> 32)) <= STATE_MASK &&
	       state_of(version) != IDLE;
}
