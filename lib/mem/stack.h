/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * stack: what tasks run on
 *
 * Stacks of a class are cut from areas, one mapping for many, so that a
 * million of them fit the kernel's limit on mappings.  A stack in use or in a
 * list has its struct at its own upper end, in the page that its first frames
 * touch anyway.  One that was given back to its area is only an index there,
 * and its memory may be the kernel's again.
 *
 *	area --> a worker's cache <--> warm list --> area --> unmapped
 *
 * The lowest page is a guard: by MADV_GUARD_INSTALL where the kernel has it,
 * which costs no mapping; else by mprotect() as long as that takes no more
 * than half the mappings there may be.  Beyond that it is a page that nobody
 * uses, so that a small overflow does no harm, and its highest words, which
 * must stay zero, are looked at on each switch away.  To read them costs no
 * memory: the kernel's page of zeroes stands there.
 */
#ifndef PL_STACK_H
#define PL_STACK_H

#include "base/base.h"
#include "base/lock.h"

#include <setjmp.h>

#define PL__STACK_CLASSES	3
#define PL__STACK_SIZE_MIN	(16 << 10)
#define PL__STACK_SIZE_MAX	(1UL << 30)

struct pl__stack_area;

/* O: who has it in hand. */
struct pl__stack_user {
	char			name[16];	/* O: of the task */
	jmp_buf			*exit_to;	/* O: for pl_exit(), or NULL */
};

/* The same. */
struct pl__stack {
	struct pl__stack	*next;		/* O: in a list */
	void			*base;		/* lowest byte to be used */
	size_t			size;		/* its class's, guard and all */
	uint32_t		cls;
	uint32_t		index;		/* in its area */
	struct pl__stack_area	*area;
	const uint64_t		*canary;	/* NULL: a guard instead */
	struct pl__stack_user	user;
} __pl_aligned(64);

struct pl__stack_pool;

/* One a runtime. */
struct pl__stacks {
	struct pl__stack_pool	*pools;		/* I: one a class */
	uint64_t		look_ns;	/* who ages: looks then */
};

/* Used by one thread at a time; zero-filled is empty. */
struct pl__stack_cache {
	struct pl__stack	*head[PL__STACK_CLASSES];
	uint32_t		nr[PL__STACK_CLASSES];
};

/* Sizes are rounded up to pages; -EINVAL out of bounds, -ENOMEM. */
int pl__stacks_init(struct pl__stacks *s, const size_t size[3]);

/* All stacks are back, and caches drained. */
void pl__stacks_fini(struct pl__stacks *s);

/* NULL: no memory.  @c may be NULL. */
struct pl__stack *pl__stack_get(struct pl__stacks *s,
				struct pl__stack_cache *c, uint32_t cls);
void pl__stack_put(struct pl__stacks *s, struct pl__stack_cache *c,
		   struct pl__stack *st);
void pl__stack_cache_drain(struct pl__stacks *s, struct pl__stack_cache *c);

/* Whether more are warm than it is worth to keep, if nobody uses them. */
bool pl__stacks_is_trim_due(struct pl__stacks *s);

/*
 * Gives back, a little each time, what nobody has used for a while, when there
 * is much of it: how many ns until it is to be called again; UINT64_MAX: until
 * trimming is due.  By one thread at a time.
 */
#define PL__STACKS_AGE_NS	(100 * 1000 * 1000ULL)
uint64_t pl__stacks_age(struct pl__stacks *s, uint64_t now_ns);

/* Gives the memory of all warm stacks back to the kernel: how many bytes. */
size_t pl__stacks_trim(struct pl__stacks *s);

/* How many have no guard page. */
uint64_t pl__stacks_unguarded(struct pl__stacks *s);

#define PL__STACK_NR_CANARIES	8

void __attribute__((noreturn)) pl__stack_die(const struct pl__stack *st);
void pl__stack_check_canary(const struct pl__stack *st);

/* At each switch away from @st. */
static inline void pl__stack_check(const struct pl__stack *st)
{
	if (unlikely(st->canary))
		pl__stack_check_canary(st);
}

/*
 * Who runs here: the upper room says, from a signal handler.  The stack, or
 * NULL, and its task's name and handle.
 */
typedef const struct pl__stack *(*pl__stack_running_fn)(const char **name,
							uint64_t *handle);
void pl__stack_on_overflow(pl__stack_running_fn running);

/*
 * A worker thread: lets it say so when it hits a guard, on a signal stack of
 * its own.  Faults that are no guard's go to whoever handled them before.
 */
int pl__stack_thread_init(void **sigstack);
void pl__stack_thread_fini(void *sigstack);

/* For tests: what to make do with.  Before pl__stacks_init(). */
enum pl__stack_guard {
	PL__STACK_GUARD_BEST,
	PL__STACK_GUARD_MPROTECT,
	PL__STACK_GUARD_CANARY,
};
void pl__stack_force_guard(enum pl__stack_guard guard);

#endif /* PL_STACK_H */
