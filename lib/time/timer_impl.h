/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * timer: who has a timer is in its version, and a compare-and-swap decides
 *
 *	 IDLE --arm--> LISTED --pull--> HEAPED --fire--> RUNNING --> IDLE
 *			 |		  |			   next
 *			 +-------del------+-----> IDLE, next	   generation
 *
 * A handle carries the generation with LISTED.  A deleted timer stays where it
 * is, in its bucket's list or in the heap, until whoever owns that place
 * passes by and sees IDLE.
 *
 *	deleter				timer thread
 *	LISTED -> IDLE	[timer-c]	LISTED -> HEAPED	[timer-c]
 *	or HEAPED -> IDLE [timer-c]	HEAPED -> RUNNING	[timer-c]
 *					fn(arg)
 *	sees IDLE	[timer-d]	RUNNING -> IDLE		[timer-d]
 *
 * The thread must not sleep past a deadline:
 *
 *	adder				timer thread
 *	earliest_ns = n			s = seq			[timer-a]
 *	seq++		[timer-a]	pull what is earlier than the heap
 *	if (n < next_ns) [timer-b]	next_ns = what comes next [timer-b]
 *		wake			if (seq == s)		[timer-b]
 *						sleep until next_ns
 *
 * Either seq differs, and the thread looks again [timer-a]; or it does not,
 * and since each side writes its word before it reads the other's, all four
 * seq_cst [timer-b], the adder reads the thread's next_ns.  While the thread
 * is awake next_ns is 0, and nobody wakes it.  An adder whose deadline is not
 * the earliest of its bucket does none of that: whoever made it the earliest
 * did.
 *
 * After a pull the thread sleeps no longer than until the deadline it was
 * pulled for, even if that timer was deleted meanwhile.  Else one that adds
 * and deletes, and nothing more, would wake the thread each time.
 *
 * Two timers that were armed before either was due fire in the order of their
 * deadlines, however late the thread is.  Yet a callback that adds a timer due
 * at 0, whose callback adds another, must not be the earliest for ever.  So a
 * timer counts as due at floor_ns when it is pulled, if its deadline is before;
 * and when the heap's first and floor_ns are both late by LATE_MAX_NS, floor_ns
 * becomes LATE_MAX_NS / 2 ago:
 *
 *	adder				timer thread
 *					f = clock - LATE_MAX_NS / 2
 *	lock				for each bucket: lock
 *	append, earliest_ns = n		  if (earliest_ns <= f)
 *	unlock				    pull, with the old floor_ns
 *					  unlock
 *					floor_ns = f
 *
 * The thread has the lock after the adder: either it pulls the timer before
 * floor_ns is f, or n is later than f.  Or the adder has the lock after the
 * thread, and so after the thread read the clock: if n is earlier than f, the
 * timer was armed at least LATE_MAX_NS / 2 after it was due.  Only such timers
 * change places.
 */
#ifndef PL_TIMER_IMPL_H
#define PL_TIMER_IMPL_H

#include "ds/heap.h"
#include "base/lock.h"
#include "mem/slab.h"
#include "base/sys.h"

#define TIMER_DEAD_MAX	64	/* so many more than living are suffered */
#define TIMER_BATCH	16	/* the first waits for the last */

enum timer_state { IDLE, LISTED, HEAPED, RUNNING, STATE_MASK = 3 };

/*
 * R: written while reserved or by the thread while RUNNING, so by one thread.
 * One cache line.
 */
struct pl__timer {
	struct pl__slab_obj	obj;		/* next: in the bucket's list */
	_Atomic uint32_t	version;	/* generation << 2 | state */
	_Atomic uint32_t	bucket;		/* R: deleters may be late */
	uint64_t		deadline_ns;	/* R */
	void			(*fn)(void *);	/* R */
	void			*arg;		/* R */
} __pl_cacheline;

/* L: lock held.  D: added to by deleters.  A: written under the lock. */
struct bucket {
	struct pl__lock		lock __pl_cacheline;
	uint32_t		nr;		/* L: length of the list */
	struct pl__slab_obj	*head;		/* L: oldest first */
	struct pl__slab_obj	**tail;		/* L */
	uint64_t		swept;		/* L: died_listed, reclaimed */
	_Atomic uint64_t	added;		/* A */
	struct pl__slab_cache	cache;		/* L: for what is swept */

	_Atomic uint64_t	died_listed __pl_cacheline;	/* D */
	_Atomic uint64_t	died_heaped;			/* D */

	/* The thread reads these often, they seldom change. */
	_Atomic uint64_t	earliest_ns __pl_cacheline; /* A: <= all's */
	_Atomic bool		is_long;	/* A: to be pulled at leisure */
};

/* I: set at init, then read-only.  T: the timer thread.  E: exit_lock held. */
struct pl__timers {
	struct pl__slab		slab;
	struct bucket		*buckets;	/* I */
	uint32_t		nr_buckets;	/* I */
	uint32_t		first_version;	/* I: of each slot */
	pthread_t		thread;		/* I */
	void			(*thread_start)(void *);	/* I */
	void			*arg;		/* I */
	bool			halted;		/* who halts and stops */
	void			(*batch_fn)(void *);	/* I: or NULL */
	void			(*batch_end)(void);	/* I */

	struct pl__lock		exit_lock;
	bool			exited;		/* E: the thread */
	uint64_t		busy_ns;	/* E: once exited */

	/* Written by the thread and those who wake it. */
	_Atomic uint32_t	seq __pl_cacheline;
	_Atomic bool		stopping;
	_Atomic bool		want_compact;
	_Atomic uint64_t	next_ns;	/* the thread sleeps until */
	_Atomic uint64_t	remind_ns;	/* as a bucket's earliest_ns */
	_Atomic(void (*)(void))	remind;

	/* The thread's lines; atomic: others read. */
	_Atomic uint64_t	fired __pl_cacheline;
	_Atomic uint64_t	reclaimed;	/* died_heaped, reclaimed */
	_Atomic uint32_t	heap_nr;
	_Atomic(pthread_t)	self;
	struct pl__heap		heap;		/* T; reserved by anybody */
	struct pl__slab_cache	cache;		/* T */
	uint64_t		pulled_ns;	/* T: earliest pulled for */
	uint64_t		floor_ns;	/* T: of the heap's keys */
	uint32_t		nr_batched;	/* T: since batch_end() */
};

static inline enum timer_state state_of(uint32_t version)
{
	return version & STATE_MASK;
}

static inline bool is_dead(struct pl__timer *r)
{
	/* [timer-d] pairs with pl__timer_del(): it is done with r. */
	return state_of(load_acquire(&r->version)) == IDLE;
}

/* A deleter counts after the fact, so that this may be short a few; L. */
static inline int64_t nr_dead(struct bucket *b)
{
	return (int64_t)(load_relaxed(&b->died_listed) - b->swept);
}

/* Lets the thread look again; wakes it if it means to sleep past @ns. */
void pl__timers_kick(struct pl__timers *t, uint64_t ns);

/* The thread, from its start to the end. */
void *pl__timers_thread(void *arg);

#endif /* PL_TIMER_IMPL_H */
