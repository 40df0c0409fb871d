/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The memory of a process that runs tasks, by owner, for bench/counts/sharing
 *
 * Prints "range FIRST LAST OWNER NAME" for each: the addresses of its first
 * and last byte, 16 digits each.  OWNER is a worker by its number; "timer", the
 * timer thread; "thread", one that is no worker and runs the path; "task", what
 * belongs to tasks of the path; "object", what the path itself shares; "other",
 * what belongs to further threads, and tasks of other workers; or "process".  Ranges lie in each other: the smallest names an address.  What is
 * in none is the process's.  "code FIRST LAST NAME" is a function.
 */
#ifndef BENCH_OWNERS_H
#define BENCH_OWNERS_H

#include "ctx/self.h"
#include "ring/ring.h"
#include "queue/rt.h"
#include "queue/task.h"
#include "time/timer_impl.h"
#include "wait/wait.h"

#include <malloc.h>

#include "../lib/util.h"

static inline char *put_hex(char *to, uintptr_t v)
{
	int shift;

	for (shift = 60; shift >= 0; shift -= 4)
		*to++ = "0123456789abcdef"[v >> shift & 15];
	*to++ = ' ';
	return to;
}

/* Not by printf(), of which the trace would have more than of a path. */
static inline void put_range(const void *at, size_t size, const char *owner,
			     const char *name)
{
	uintptr_t first = (uintptr_t)at;
	char text[128], *end = stpcpy(text, "range ");

	if (!size)
		return;
	end = put_hex(put_hex(end, first), first + size - 1);
	stpcpy(stpcpy(stpcpy(end, owner), " "), name);
	puts(text);
}

/* Memory of malloc(), which may have given more than was asked for. */
static inline void put_heap(void *p, const char *owner, const char *name)
{
	if (p)
		put_range(p, malloc_usable_size(p), owner, name);
}

#define PUT(s, member, owner, name) \
	put_range(&(s)->member, sizeof((s)->member), owner, name "." #member)

/* ---- workers ---- */

static inline void put_stacks(struct pl__stack *st)
{
	for (; st; st = st->next) {
		put_range(st->base, st->size, "task", "stack");
		put_range(st, sizeof(*st), "task", "stack's struct");
	}
}

static inline void put_deque(struct pl__deque *d, const char *owner)
{
	PUT(d, top, owner, "deque");
	PUT(d, bottom, owner, "deque");
	put_heap(load_relaxed(&d->array), owner, "deque.slots");
}

static inline void put_worker(struct pl__worker *w)
{
	char owner[16];
	int cls;

	snprintf(owner, sizeof(owner), "%u", w->index);
	put_range(w, sizeof(*w), owner, "worker");
	PUT(w, stat, owner, "worker");
	PUT(w, park, owner, "worker");
	PUT(w, sysmon, owner, "worker");
	put_deque(&w->deque, owner);
	put_deque(&w->events, owner);
	put_heap(w->ring, owner, "ring");
	for (cls = 0; cls < PL__STACK_CLASSES; cls++)
		put_stacks(w->stacks.head[cls]);
}

/* ---- what all share ---- */

static inline void put_counts(struct pl__rt *rt)
{
	PUT(rt, state, "process", "rt");
	PUT(rt, nr_started, "process", "rt");
	PUT(rt, sysmon, "process", "rt");
	PUT(rt, levels, "process", "rt");
	PUT(rt, outside, "process", "rt");
	PUT(rt, ended_word, "process", "rt");
	PUT(rt, ended_outside, "process", "rt");
	PUT(rt, stackless, "process", "rt");
	PUT(rt, start_lock, "process", "rt");
}

static inline void put_lots(struct pl__lots *lots)
{
	uint32_t i;

	for (i = 0; i < lots->nr; i++) {
		put_range(&lots->lot[i], sizeof(lots->lot[i]), "process",
			  "lot");
		PUT(&lots->lot[i], seq_own, "process", "lot");
		PUT(&lots->lot[i], nr_parked, "process", "lot");
		PUT(&lots->lot[i], lock, "process", "lot");
		PUT(&lots->lot[i], sleepers, "process", "lot");
	}
}

/* What the calling thread has in the runtime. */
static inline void put_stripe(const char *owner)
{
	struct pl__stripe *s = pl__stripe();

	PUT(s, inside, owner, "stripe");
	PUT(s, lock, owner, "stripe");
	PUT(s, tasks, owner, "stripe");
	PUT(s, spawned, owner, "stripe");
	PUT(s, sampled_ns, owner, "stripe");
}

/* Of its objects, called @name, it is known only that tasks use them. */
static inline void put_slab(struct pl__slab *s, const char *name,
			    const char *slab)
{
	uint32_t nr = pl__slab_nr_slots(s), slot;
	uint32_t in_chunk = 1U << s->shift;
	const size_t locked = offsetof(struct pl__slab, lock);

	put_range(&s->lock, sizeof(*s) - locked, "process", slab);
	put_range(&s->nr_slots, sizeof(s->nr_slots), "process", "slab.nr_slots");
	put_range(s->chunks, s->nr_chunks * sizeof(*s->chunks), "process",
		  "slab.chunks");
	for (slot = 0; slot < nr; slot += in_chunk)
		put_range(pl__slab_get(s, slot), s->obj_size * in_chunk,
			  "task", name);
}

/* That of a worker, or of threads. */
static inline void put_timer_bucket(struct bucket *b, const char *owner)
{
	put_range(b, sizeof(*b), owner, "timer_bucket");
	PUT(b, lock, owner, "timer_bucket");
	PUT(b, nr, owner, "timer_bucket");
	PUT(b, head, owner, "timer_bucket");
	PUT(b, last, owner, "timer_bucket");
	PUT(b, swept, owner, "timer_bucket");
	PUT(b, added, owner, "timer_bucket");
	PUT(b, cache, owner, "timer_bucket");
	PUT(b, heap, owner, "timer_bucket");
	put_heap(b->heap.room, owner, "timer_bucket.heap");
	PUT(b, died_listed, owner, "timer_bucket");
	PUT(b, died_heaped, owner, "timer_bucket");
	PUT(b, kept_plus_1, owner, "timer_bucket");
	PUT(b, fired, owner, "timer_bucket");
	PUT(b, earliest_plus_1, "process", "timer_bucket");
}

/* What is the timer thread's alone. */
static inline void put_timer_thread(struct pl__timers *t)
{
	PUT(t, fired, "timer", "timers");
	PUT(t, reclaimed, "timer", "timers");
	PUT(t, heap_nr, "timer", "timers");
	PUT(t, heap.nr, "timer", "timers");
	PUT(t, heap.room, "timer", "timers");
	put_heap(t->heap.room, "timer", "timers.heap");
	PUT(t, taken, "timer", "timers");
	put_heap(t->taken.room, "timer", "timers.taken");
	PUT(t, cache, "timer", "timers");
	PUT(t, pulled_ns, "timer", "timers");
	PUT(t, floor_ns, "timer", "timers");
	PUT(t, left_ns, "timer", "timers");
	PUT(t, listed, "timer", "timers");
	PUT(t, has_long, "timer", "timers");
	PUT(t, nr_batched, "timer", "timers");
}

static inline void put_timers(struct pl__timers *t)
{
	char owner[16];
	uint32_t i;

	put_heap(t, "process", "timers");
	PUT(t, seq, "process", "timers");
	PUT(t, next_ns, "process", "timers");
	PUT(t, news, "process", "timers");
	PUT(t, heap.size, "process", "timers");
	put_timer_thread(t);
	put_slab(&t->slab, "timer", "timers.slab");
	for (i = 0; i < t->nr_buckets; i++) {
		snprintf(owner, sizeof(owner), "%u", i);
		put_timer_bucket(&t->buckets[i],
				 i < t->nr_buckets - PL__NR_THREAD_BUCKETS ?
				 owner : "process");
	}
}

static inline void put_group(struct pl__group *g)
{
	PUT(g, nr_started, "process", "group");
	PUT(g, nr_alive, "process", "group");
	PUT(g, target, "process", "group");
	PUT(g, nr_idle, "process", "group");
	PUT(g, nr_searching, "process", "group");
	PUT(g, nr_blocked, "process", "group");
	PUT(g, nr_seen, "process", "group");
	PUT(g, nr_in_hook, "process", "group");
	PUT(g, nr_stalled, "process", "group");
	PUT(g, stalled_limit, "process", "group");
	PUT(g, nr_crew_blocked, "process", "group");
	PUT(g, nr_starting, "process", "group");
	PUT(g, nr_notifying_all, "process", "group");
	PUT(g, search_ns, "process", "group");
	PUT(g, inboxes, "process", "group");
	PUT(g, wakes_outside, "process", "group");
	PUT(g, aside, "process", "group");
	PUT(g, background, "process", "group");
	put_lots(&g->lots);
	put_heap(g->locations, "process", "group.locations");
}

static inline void put_owners(void)
{
	struct pl__rt *rt = &pl__rt;
	uint32_t i;

	for (i = 0; i < rt->nr_started; i++)
		put_worker(rt->workers[i]);
	put_counts(rt);
	put_group(&rt->main);
	put_slab(&rt->tasks, "task", "rt.tasks");
	put_heap(rt->stacks.pools, "process", "stack_pool");
	put_timers(rt->timers);
}

#endif /* BENCH_OWNERS_H */
