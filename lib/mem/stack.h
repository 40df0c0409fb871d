/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * stack: the stacks of tasks
 *
 * Stacks of a class are cut from areas, one mapping for many, so that a million
 * of them fit the kernel's limit on mappings.  A stack in use or in a list has
 * its struct at its own upper end, in the page that its first frames touch
 * anyway.  A stack that was given back to its area is only an index there, and
 * its memory may be the kernel's again.
 *
 *	area --> a worker's cache <--> warm list --> area --> unmapped
 *
 * Below each stack lies a guard that is as wide as the stack, so that a single
 * frame of up to the stack's size cannot reach past it, however deep it begins:
 *
 *	| guard, size bytes | stack, size bytes | guard | stack | ...
 *	low                 base      struct pl__stack
 *
 * The guard is made by MADV_GUARD_INSTALL where the kernel has it, which costs
 * no mapping, and 8 bytes of page table a page; else by mprotect() as long as
 * that takes at most half of the mappings that the process may have.  Further
 * stacks have a canary instead: what would be the guard is memory without a
 * use, so that an overflow of up to its size does no harm, and its highest
 * words, which must stay zero, are checked on each switch away.  Reading them
 * costs no memory: the kernel maps its page of zeroes there, if it has one.
 */
#ifndef PL_STACK_H
#define PL_STACK_H

#include "base/base.h"
#include "base/lock.h"
#include "base/list.h"

#include <setjmp.h>

#define PL__STACK_CLASSES	3
#define PL__STACK_SIZE_MIN	(16 << 10)
#define PL__STACK_SIZE_MAX	(1UL << 30)

struct pl__stack_area;

/* O: owner: the task that runs on the stack, or the thread that took it. */
struct pl__stack_user {
	char			name[16];	/* O: name of the task */
	jmp_buf			*exit_to; /* O: target of pl_exit(), or NULL */
};

/* O: owner: the task that runs on the stack, or the thread that took it. */
struct pl__stack {
	struct pl__stack	*next; /* O: next in a cache or the warm list */
	void			*base;		/* lowest usable byte */
	size_t			size;		/* bytes */
	size_t			guard_size;	/* bytes of the guard below */
	uint32_t		cls;
	uint32_t		index;		/* number within its area */
	struct pl__stack_area	*area;
	/* words to check; NULL: it has a guard */
	const uint64_t		*canary;
	struct pl__stack_user	user;
} __pl_aligned(64);

struct pl__stack_pool;

/* The stacks of a runtime. */
struct pl__stacks {
	struct pl__stack_pool	*pools;		/* I: one for each class */
	/* aging thread: time of its next look */
	uint64_t		look_ns;
	/* that are used, or kept with their memory */
	_Atomic uint64_t	nr_out __pl_cacheline;
};

/* Used by one thread at a time; a zero-filled cache is empty. */
struct pl__stack_cache {
	struct pl__stack	*head[PL__STACK_CLASSES];
	uint32_t		nr[PL__STACK_CLASSES];
};

/* Rounds sizes up to pages; 0, -EINVAL: out of bounds, -ENOMEM. */
int pl__stacks_init(struct pl__stacks *s, const size_t size[3]);

/* After all stacks were put back and all caches drained. */
void pl__stacks_fini(struct pl__stacks *s);

/* A stack of class @cls; NULL: no memory.  @c may be NULL. */
struct pl__stack *pl__stack_get(struct pl__stacks *s,
				struct pl__stack_cache *c, uint32_t cls);
void pl__stack_put(struct pl__stacks *s, struct pl__stack_cache *c,
		   struct pl__stack *st);
void pl__stack_cache_drain(struct pl__stacks *s, struct pl__stack_cache *c);

/* True: more stacks are warm than it is worth to keep. */
bool pl__stacks_is_trim_due(struct pl__stacks *s);

/*
 * Gives back, a little at a time, stacks that no task used for a while, if
 * there are many.  Returns after how many ns to call it again; UINT64_MAX: when
 * trimming is due.  Called by one thread at a time.
 */
#define PL__STACKS_AGE_NS	(100 * 1000 * 1000ULL)
uint64_t pl__stacks_age(struct pl__stacks *s, uint64_t now_ns);

/* Gives the memory of all warm stacks back to the kernel; returns bytes. */
size_t pl__stacks_trim(struct pl__stacks *s);

/* Number of stacks without a guard. */
uint64_t pl__stacks_unguarded(struct pl__stacks *s);

#define PL__STACK_NR_CANARIES	8

void __attribute__((noreturn)) pl__stack_die(const struct pl__stack *st);
void pl__stack_check_canary(const struct pl__stack *st);

/* Called at each switch away from @st. */
static inline void pl__stack_check(const struct pl__stack *st)
{
	if (unlikely(st->canary))
		pl__stack_check_canary(st);
}

/*
 * Set by lib/queue, called in a signal handler: the stack that the thread runs
 * on, or NULL, with its task's name and handle.
 */
typedef const struct pl__stack *(*pl__stack_running_fn)(const char **name,
							uint64_t *handle);
void pl__stack_on_overflow(pl__stack_running_fn running);

/*
 * Makes a worker thread report that it hit a guard, on a signal stack of
 * its own.  Faults elsewhere go to the handler that was installed before.
 */
int pl__stack_thread_init(void **sigstack);
void pl__stack_thread_fini(void *sigstack);

/* For tests: forces a kind of guard.  Called before pl__stacks_init(). */
enum pl__stack_guard {
	PL__STACK_GUARD_BEST,
	PL__STACK_GUARD_MPROTECT,
	PL__STACK_GUARD_CANARY,
};
void pl__stack_force_guard(enum pl__stack_guard guard);

/*
 * stack_pool: stacks of one class that no task uses, and the areas of all
 */

#define PL__STACK_AT_ONCE	16		/* stacks cleaned at once */
#define PL__STACK_BYTES_AT_ONCE	(4UL << 20)	/* or stacks of so many bytes */

/* L: the pool's lock is held.  I: set at init, then read-only. */
struct pl__stack_area {
	struct pl__list		list;		/* L: in areas or full */
	char			*base;		/* I */
	/* L: a bit for each idle stack that is not being cleaned */
	uint64_t		idle;
	uint64_t		dirty;	/* L: idle stacks that have memory */
	uint64_t		guarded; /* I: stacks with a guard */
	/* I: valgrind's ids, under valgrind only */
	uint32_t		valgrind[];
};

struct pl__stack_pool {
	struct pl__lock		lock __pl_cacheline;
	struct pl__stack	*warm;		/* L: stacks, last put first */
	_Atomic uint32_t	nr_warm; /* changed under lock; read without */
	uint32_t		nr_low;	/* L: least nr_warm since last aging */
	/* aging thread: warm ones to give back */
	uint32_t		nr_unused;
	struct pl__list		areas;	/* L: with idle stacks; dirty first */
	struct pl__list		full;		/* L: without idle stacks */
	size_t			size; /* I: bytes of a stack, of its guard */
	_Atomic uint64_t	*nr_out;	/* I: of struct pl__stacks */
	uint32_t		cls;		/* I: enum pl_stack */
	uint32_t		nr_per_area;	/* I */
	/* I: most stacks in a worker's cache */
	uint32_t		nr_cached;
	/* I: with more warm stacks, aging gives some back */
	uint32_t		nr_warm_max;
	uint32_t		nr_at_once; /* I: most stacks cleaned at once */
	/* L: threads that clean stacks or unmap areas */
	uint32_t		nr_cleaning;
};

/* Of a stack with its guard, which is as wide. */
static inline size_t pl__stack_slot_size(const struct pl__stack_pool *p)
{
	return 2 * p->size;
}

/* The lowest byte of the guard of stack @i. */
static inline char *pl__stack_slot_at(const struct pl__stack_pool *p,
		     const struct pl__stack_area *a, uint32_t i)
{
	return a->base + i * pl__stack_slot_size(p);
}

static inline size_t pl__stack_area_size(const struct pl__stack_pool *p)
{
	return pl__stack_slot_size(p) * p->nr_per_area;
}

static inline uint64_t pl__stack_all_of(const struct pl__stack_pool *p)
{
	return p->nr_per_area == 64 ? UINT64_MAX :
				      (1ULL << p->nr_per_area) - 1;
}

/*
 * Under the lock: puts @a into the list of its kind.  Cleaners look for dirty
 * areas in front.
 */
void pl__stack_area_place(struct pl__stack_pool *p, struct pl__stack_area *a);

/* Unmaps an area that is in no list. */
void pl__stack_area_free(struct pl__stack_pool *p, struct pl__stack_area *a);

#endif /* PL_STACK_H */
