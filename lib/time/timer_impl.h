/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * timer: its version says which thread owns a timer; a compare-and-swap decides
 *
 *	 IDLE --arm--> LISTED --pull--> HEAPED --fire--> RUNNING --> IDLE
 *			 |		  |			   next
 *			 +-------del------+-----> IDLE, next	   generation
 *
 * A handle carries the generation with LISTED.  A deleted timer stays where it
 * is, in its bucket's list or in the heap, until the owner of the list or heap
 * visits it and finds IDLE.  It may even be deleted before it is put in that
 * list: a waiter's timer is LISTED when the waiter is, and put there later.  A
 * bucket has a heap beside the list, see timer_thread.c; those in it are
 * LISTED.
 *
 *	deleter				timer thread
 *	LISTED -> IDLE	[timer-c]	LISTED -> HEAPED	[timer-c]
 *	or HEAPED -> IDLE [timer-c]	HEAPED -> RUNNING	[timer-c]
 *					fn(arg)
 *	sees IDLE	[timer-d]	RUNNING -> IDLE		[timer-d]
 *
 * Invariant: after its deletion returned 0 a timer is not called.  Both sides
 * change the version by compare-and-swap, and one of them fails [timer-c];
 * otherwise fn runs after its argument was freed.  A deleter that sees IDLE
 * sees what fn did [timer-d].
 *
 * The thread must not sleep past a deadline:
 *
 *	adder				timer thread
 *	earliest = n			s = seq			[timer-a]
 *	news |= bucket	[timer-e]	listed |= news, news = 0 [timer-e]
 *	seq++		[timer-a]	pull of listed what is earlier than
 *	if (n < next_ns) [timer-b]	the heap
 *		wake			next_ns = what comes next [timer-b]
 *					if (seq == s)		[timer-b]
 *						sleep until next_ns
 *
 * Either the thread finds seq changed and looks again [timer-a]; or it finds it
 * unchanged, and since each side writes its word before it reads the other's,
 * all four seq_cst [timer-b], the adder reads the thread's next_ns and wakes
 * it.  Otherwise the thread sleeps past n.  While the thread is awake next_ns
 * is 0, and no adder wakes it.  An adder with a deadline that is not the
 * earliest of its bucket skips all this: the adder of the earliest one did it.
 *
 * There may be a bucket for each worker, most of them empty.  So the thread
 * looks only into those of which it has heard [timer-e]: a bit of `news' is set
 * after the bucket's earliest deadline, and before seq; the thread takes the
 * bit before it reads the deadline.  Otherwise it takes the bit, finds nothing,
 * and sleeps past n.  It takes the news after it has read the clock, as
 * everything that was armed before that has to be in order.
 *
 * After a pull the thread sleeps no longer than until the deadline for which it
 * pulled, even if that timer was deleted meanwhile.  Otherwise a caller that
 * only adds and deletes would wake the thread each time.
 *
 * The reminder, for callers that have work for its function to find:
 *
 *	caller				timer thread
 *	list the work			remind_ns = none
 *	barrier		[remind-a]	barrier			[remind-b]
 *	if (remind_ns is not earlier)	fn() looks for work
 *		remind_ns = deadline
 *
 * Either the caller finds that there is no reminder, or the function finds the
 * work.  Without either barrier the caller may read the reminder that is being
 * taken, and fn not see the work, which then waits for ever.
 *
 * Two timers that were armed before either was due fire in the order of their
 * deadlines, however late the thread is.  Yet a callback that adds a timer due
 * at 0, which does the same, must not keep out all others.  So a timer with a
 * deadline before floor_ns counts as due at floor_ns when it is pulled; and
 * when the heap's first and floor_ns are both late by LATE_MAX_NS, floor_ns
 * becomes LATE_MAX_NS / 2 ago:
 *
 *	adder				timer thread
 *					f = clock - LATE_MAX_NS / 2
 *	lock				for each bucket: lock
 *	append, earliest = n		  if (earliest <= f)
 *	unlock				    pull, with the old floor_ns
 *					  unlock
 *					floor_ns = f
 *
 * If the thread has the lock after the adder, either it pulls the timer before
 * floor_ns is f, or n is later than f.  If the adder has the lock after the
 * thread, it has it after the thread read the clock: if n is earlier than f,
 * the timer was armed at least LATE_MAX_NS / 2 after it was due.  Only such
 * timers change places.
 */
#ifndef PL_TIMER_IMPL_H
#define PL_TIMER_IMPL_H

#include "ds/heap.h"
#include "base/inject.h"
#include "base/lock.h"
#include "base/base.h"
#include "mem/slab.h"
#include "base/sys.h"
#include "time/timer.h"

#define TIMER_DEAD_MAX	64	/* dead timers allowed beyond the living */
#define TIMER_BATCH	16	/* timers before batch_end() at most */
#define PL__TIMERS_KEPT_MAX	4096	/* in the heap of a bucket */
#define NR_WORDS	(PL__TIMER_BUCKETS_MAX / 64)

enum timer_state { IDLE, LISTED, HEAPED, RUNNING, STATE_MASK = 3 };

/*
 * R: written while reserved, or by the thread while RUNNING, so by one thread.
 * One cache line.
 */
struct pl__timer {
	struct pl__slab_obj	obj;		/* next: in the bucket's list */
	_Atomic uint32_t	version;	/* generation << 2 | state */
	_Atomic uint32_t	bucket;		/* R: late deleters read it */
	uint64_t		deadline_ns;	/* R */
	void			(*fn)(void *);	/* R */
	void			*arg;		/* R */
} __pl_cacheline;

/*
 * L: lock is held.  D: added to by deleters.  A: written under the lock, read
 * without.  An empty bucket is all zeroes, so one that is never used takes no
 * memory.
 */
struct bucket {
	struct pl__lock		lock __pl_cacheline;
	uint32_t		nr;		/* L: length of the list */
	struct pl__slab_obj	*head;		/* L: oldest first */
	struct pl__slab_obj	*last;		/* L: newest, if there is one */
	uint64_t		swept;	/* L: of died_listed, those freed */
	_Atomic uint64_t	added;		/* A */
	struct pl__slab_cache	cache;	/* L: of callers that have none */

	_Atomic uint64_t	died_listed __pl_cacheline;	/* D */
	_Atomic uint64_t	died_heaped;			/* D */
	_Atomic uint64_t	fired;		/* A: of those that were kept */

	/* Others read this line often; it seldom changes. */
	/*
	 * A: at most the earliest deadline of the list, and of a heap of which
	 * the thread was told, and 1; 0: none
	 */
	_Atomic uint64_t	earliest_plus_1 __pl_cacheline;
	/* A: at most what the keeper comes to first, and 1; 0: nothing */
	_Atomic uint64_t	kept_plus_1;
	_Atomic bool		is_long; /* A: the thread should pull it soon */
	bool			is_told; /* L: the thread is to take the heap */

	struct pl__heap		heap;	/* L: the keeper's, timer_thread.c */
};

/* I: set at init, then read-only.  T: the timer thread.  E: exit_lock held. */
struct pl__timers {
	struct pl__slab		slab;
	struct bucket		*buckets;	/* I */
	uint32_t		nr_buckets;	/* I */
	/* I: first version of each slot */
	uint32_t		first_version;
	uint32_t		nr_words; /* I: of news, used and listed */
	uint32_t		died_mask; /* I: how often deleters sum up */
	pthread_t		thread;		/* I */
	void			(*thread_start)(void *);	/* I */
	void			*arg;		/* I */
	bool			halted;		/* the thread has been joined */
	/* I: function of the batch, or NULL */
	void			(*batch_fn)(void *);
	void			(*batch_end)(void);	/* I */
	void			(*kept_fn)(void *); /* I: for it, by keepers */

	struct pl__lock		exit_lock;
	bool			exited;		/* E: the thread has ended */
	uint64_t		busy_ns;	/* E: CPU time, once exited */

	/* Written by the thread and by threads that wake it. */
	_Atomic uint32_t	seq __pl_cacheline;
	_Atomic bool		stopping;
	_Atomic bool		want_compact;
	_Atomic uint64_t	next_ns; /* the thread sleeps until then */
	_Atomic uint64_t	remind_ns;	/* deadline of the reminder */
	_Atomic(void (*)(void))	remind;
	/* A bit of each bucket that has an earlier deadline than before. */
	_Atomic uint64_t	news[NR_WORDS];
	/* A bit of each bucket that ever had a timer. */
	_Atomic uint64_t	used[NR_WORDS];

	/* The thread's cache lines; atomic, as other threads read them. */
	_Atomic uint64_t	fired __pl_cacheline;
	_Atomic uint64_t	reclaimed; /* of died_heaped, those freed */
	_Atomic uint32_t	heap_nr;
	_Atomic(pthread_t)	self;
	uint64_t		slice_before_ns; /* T: 0: it has that slice */
	struct pl__heap		heap;	/* T; any thread reserves room */
	struct pl__heap		taken;	/* T: out of a bucket */
	struct pl__slab_cache	cache;		/* T */
	/* T: deadline of the earliest pull */
	uint64_t		pulled_ns;
	uint64_t		floor_ns;	/* T: least key in the heap */
	/* T: at most the earliest deadline of those listed */
	uint64_t		left_ns;
	uint64_t		listed[NR_WORDS];	/* T: not pulled */
	bool			has_long;	/* T: of those listed */
	uint32_t		nr_batched; /* T: timers since batch_end() */
};

static inline enum timer_state state_of(uint32_t version)
{
	return version & STATE_MASK;
}

static inline bool is_dead(struct pl__timer *r)
{
	/*
	 * [timer-d] pairs with pl__timer_del(): the deleter does not access r
	 * any more.
	 */
	return state_of(load_acquire(&r->version)) == IDLE;
}

/*
 * Moves the timer to a later state.  False: a deleter was first, and does not
 * access @r any more.
 */
static inline bool timer_move(struct pl__timer *r, enum timer_state from,
			      enum timer_state to)
{
	/* [timer-d] pairs with pl__timer_del(): so that @r may be freed. */
	uint32_t version = load_acquire(&r->version);

	if (state_of(version) != from)
		return false;
	PL_INJECT("timer-c");
	/*
	 * [timer-c] pairs with pl__timer_del(): only one of the two succeeds.
	 */
	return atomic_compare_exchange_strong(&r->version, &version,
					      version + (to - from));
}

/* @r is RUNNING.  @fn: its own, or what stands for that. */
static inline void timer_call(struct pl__timer *r, void (*fn)(void *arg))
{
	PL_PROBE3(timer, r->fn, r->arg, r->deadline_ns);
	fn(r->arg);
}

/* @r was called.  @c: the caller's. */
static inline void timer_end(struct pl__timers *t, struct pl__timer *r,
			     struct pl__slab_cache *c)
{
	PL_INJECT("timer-d");
	/*
	 * [timer-d] pairs with pl__timer_del(): the deleter sees what the
	 * function did.
	 */
	store_release(&r->version, load_relaxed(&r->version) + 1);
	pl__slab_free(&t->slab, c, r);
}

/* L: timers that are LISTED, dead ones as well. */
static inline uint32_t nr_listed(const struct bucket *b)
{
	return b->nr + b->heap.nr;
}

/*
 * L: the dead of these.  A deleter counts afterwards, so a few may lack.
 */
static inline int64_t nr_dead(struct bucket *b)
{
	return (int64_t)(load_relaxed(&b->died_listed) - b->swept);
}

/* The deadline up to which the thread may leave the list alone. */
static inline uint64_t earliest_of(struct bucket *b)
{
	return load_relaxed(&b->earliest_plus_1) - 1;
}

/* The deadline up to which nobody but the keeper need come to the heap. */
static inline uint64_t kept_of(struct bucket *b)
{
	return load_relaxed(&b->kept_plus_1) - 1;
}

/* Makes the thread look again; wakes it if it would sleep past @ns. */
void pl__timers_kick(struct pl__timers *t, uint64_t ns);

/* The same, and into the bucket; what it finds there is set. */
void pl__timers_tell(struct pl__timers *t, uint32_t bucket, uint64_t ns);

/* Main function of the timer thread. */
void *pl__timers_thread(void *arg);

#endif /* PL_TIMER_IMPL_H */
