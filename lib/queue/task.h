/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * task: a slot of the task table, its handle, and the slot in which a thread
 * waits
 */
#ifndef PL_TASK_H
#define PL_TASK_H

#include "base/list.h"
#include "park/parker.h"
#include "base/inject.h"
#include "mem/slab.h"
#include "mem/stack.h"
#include "ctx/switch.h"
#include "ds/mpsc.h"

#include "parklot.h"

#include <string.h>

/*
 * wait_entry: a task or thread that waits on a word
 *
 * It is in the task's slot, which is never unmapped.  So a late waker (a timer,
 * an interrupt) may still read it, under the lock of the bucket that its word
 * hashes to.
 */

/* What a wait is for, as dumps show it; PL__FOR_x is among the wait's flags. */
enum pl__for {
	PL__FOR_WORD,
	PL__FOR_MUTEX,
	PL__FOR_COND,
	PL__FOR_RWLOCK,
	PL__FOR_SEM,
	PL__FOR_LATCH,
	PL__FOR_BARRIER,
	PL__FOR_ONCE,
	PL__FOR_CHAN,
	PL__FOR_QUEUE,
	PL__FOR_JOIN,
	PL__FOR_SLEEP,
	PL__FOR_SCOPE,
	PL__FOR_IO,
	PL__FOR_SPAWN,
	PL__FOR_GETADDRINFO,
	PL__FOR_GETNAMEINFO,
	PL__NR_FOR,
};

/*
 * B: the bucket's lock is held.  O: owner, the waiter, while it does not wait.
 */
struct pl__wait_entry {
	union {
		struct pl__list	list;		/* B: in its bucket */
		char		name[16]; /* O: the task's, before it runs */
	};
	/*
	 * B, A: the word waited on, or NULL; low bits: 1 a single-waiter slot,
	 * 2 or 3 wait_lone.h
	 */
	_Atomic(_Atomic uint32_t *) word;
	union {
		pl_timer_t	timer; /* B: a task's deadline, armed, or 0 */
		struct pl__parker parker;	/* used by a thread */
		uint64_t	ready_ns; /* O: spawned then, if sampled */
	};
	uint32_t		nr; /* B: number of the wait, for its timer */
	int			reason;		/* B: what pl__wait() returns */
	/* O: interrupts do not end the wait */
	bool			uninterruptible;
	bool			is_thread; /* O: a thread, asleep on parker */
	bool			is_listed; /* B: it is in its bucket's list */
	uint8_t			what;		/* O: enum pl__for */
	uint8_t			interrupts;	/* B: those it consumed last */
	/* O: the task's, for its wakers: PL__PLACE_x, and its group's index */
	uint16_t		place;
};

#define PL__PLACE_BACKGROUND	(1U << 0)	/* see aside.h */
#define PL__PLACE_GROUP_SHIFT	1

/*
 * wait_single: one task waits in a single-waiter slot until a word has changed
 *
 * Most waits, as for the end of a task, have one waiter and need no bucket and
 * no lock.  A thread that takes the waiter out of the slot wakes it, and no
 * other does: the waker, which changed the word; a thread that interrupts or
 * cancels the waiter; or the waiter itself.
 *
 *	waiter, after it switched away		waker
 *	waiter.word = slot			word = new
 *	slot = waiter		[single-a]	old = slot := 0	[single-b]
 *	if (word is new, or interrupted)	if (old)
 *		take itself out again			wake it
 *
 * Invariant: no waiter stays in the slot after the word has changed.  Both
 * sides exchange the slot, and exchanges of one word have one order: either the
 * waker's comes second and returns the waiter, or the waiter's comes second and
 * it sees the new word.  Otherwise the waiter sleeps for ever.  A thread that
 * interrupts writes the waiter's state and then reads waiter.word; the waiter
 * writes waiter.word and then reads its state.  These four accesses are
 * seq_cst.
 *
 * A slot is never freed, but another word may use it: its waiter may be woken
 * without cause, and checks its condition again.  A slot is emptied only by
 * taking the waiter out.  A second waiter that finds the slot taken marks it,
 * and waits in the word's bucket.
 */

/* The waiter, or 0; bit 0: PL__WAIT_SLOT_OTHERS. */
typedef _Atomic uintptr_t pl__wait_slot;

#define PL__WAIT_SLOT_OTHERS	1UL	/* more waiters, in the bucket */

/*
 * The slot, encoded as a word at an odd address, on which no task could wait.
 */
static inline _Atomic uint32_t *pl__wait_slot_word(pl__wait_slot *slot)
{
	return (_Atomic uint32_t *)((uintptr_t)slot | 1);
}

/* The slot that @word encodes; NULL: @word is a word, or of wait_lone.h. */
static inline pl__wait_slot *pl__wait_slot_of(_Atomic uint32_t *word)
{
	return ((uintptr_t)word & 3) == 1 ?
		(pl__wait_slot *)((uintptr_t)word & ~1UL) : NULL;
}

/* True: @wt was still in @slot; the caller has taken it out and wakes it. */
static inline bool pl__wait_single_withdraw(pl__wait_slot *slot,
					    struct pl__wait_entry *wt,
					    int reason)
{
	uintptr_t old = load_relaxed(slot);

	do {
		if ((old & ~PL__WAIT_SLOT_OTHERS) != (uintptr_t)wt)
			return false;
	} while (!atomic_compare_exchange_weak(slot, &old,
					       old & PL__WAIT_SLOT_OTHERS));
	wt->reason = reason;
	store_release(&wt->word, NULL);
	return true;
}

/* After the word has changed: the waiter to wake, and whether others wait. */
static inline struct pl__wait_entry *pl__wait_single_take(pl__wait_slot *slot,
							  bool *others)
{
	/* [single-b] pairs with [single-a] in pl__wait_single_publish(). */
	uintptr_t old = atomic_exchange(slot, 0);
	struct pl__wait_entry *wt =
		(struct pl__wait_entry *)(old & ~PL__WAIT_SLOT_OTHERS);

	PL_INJECT("single-b");
	*others = old & PL__WAIT_SLOT_OTHERS;
	if (wt) {
		wt->reason = 0;
		store_release(&wt->word, NULL);
	}
	return wt;
}

struct pl__ring;

/* Low half of task->state; the high half is the version. */
#define PL__TASK_INTERRUPTED	(1ULL << 0)	/* a blocking call clears it */
#define PL__TASK_CANCELLED	(1ULL << 1)	/* stays set */
/* It has entered scopes, of which one may be cancelled; scope.c sets both. */
#define PL__TASK_IN_SCOPE	(1ULL << 2)
#define PL__TASK_SCOPE_CANCELLED (1ULL << 3)
/* As INTERRUPTED, until the section of this number ends. */
#define PL__TASK_SECTION_INTERRUPTED (1ULL << 5)
#define PL__TASK_INTERRUPTS	(PL__TASK_INTERRUPTED | \
				 PL__TASK_SECTION_INTERRUPTED)
#define PL__TASK_SECTION_SHIFT	8
#define PL__TASK_SECTION_MAX	0xffffffULL
/* It is in a shield: of cancels, only that of a scope in it counts. */
#define PL__TASK_SHIELDED	(1ULL << 4)

/* It counts against max_tasks. */
#define PL__TASK_COUNTED	(1ULL << 6)
/* Its waiter.place is not 0. */
#define PL__TASK_PLACED		(1ULL << 7)

/*
 * Values of a task by key; the rest of the struct is in key.c.  The task calls
 * @end after its function has returned; that destroys the values.
 */
struct pl__task;
struct pl__locals {
	void			(*end)(struct pl__task *t);
};

/*
 * A slot of the task table.  The task is alive if the version is odd.  An
 * ordinary thread that waits holds a slot too, to which no handle leads.
 *
 * O: owner: the worker that runs the task, or the thread that has just taken it
 * from a queue or a waiter's list.  A: atomic.
 */
struct pl__task {
	union {
		struct pl__slab_obj obj;
		struct pl__link	link;		/* O: while it is in an inbox */
	};
	struct pl__ctx		ctx;		/* O */
	struct pl__stack	*stack;		/* O: NULL before first run */
	void			(*fn)(void *arg); /* O */
	void			*arg;		/* O */
	_Atomic uint64_t	state;		/* A: version << 32 | flags */
	_Atomic uint32_t	version; /* A: word on which joiners wait */
	uint8_t			cls;		/* O: enum pl_stack */
	bool			is_ending;	/* O: runs its destructors */
	uint8_t			score;		/* O: see aside.h */
	/* O: until it runs: on the worker's stack, if there is no other */
	bool			may_lack_stack;
	/* The spawner and the worker use the cache line up to here. */
	pl__wait_slot		joiner;		/* A: the first joiner */
	union {
		struct pl__locals *locals;	/* O: NULL until a key is set */
		/* O: its fn, before it runs; see latency.h */
		void		(*sampled_fn)(void *arg);
	};
	struct pl__wait_entry	waiter;
} __pl_cacheline;

/* A process may have millions of slots, so their size is checked. */
#if !defined(PL_ASAN) && !defined(PL_TSAN)
_Static_assert(offsetof(struct pl__task, joiner) == PL_CACHELINE, "a line");
_Static_assert(sizeof(struct pl__task) == 2 * PL_CACHELINE, "two lines");
#endif

static inline pl_task_t pl__task_handle(const struct pl__task *t)
{
	return t->obj.slot | (uint64_t)load_relaxed(&t->version) << 32;
}

/* Name of a task that cannot end while the caller reads it. */
static inline const char *pl__task_name(const struct pl__task *t)
{
	return t->stack ? t->stack->user.name : t->waiter.name;
}

/* Sets the table up, once in a process; 0 or -ENOMEM. */
int pl__tasks_init(void);

/* The runtime starts, with so many workers. */
void pl__tasks_start(uint32_t nr_workers);

/* The slot of @h, even if the task has ended; NULL: @h never was a handle. */
struct pl__task *pl__task_slot(pl_task_t h);

/* Of @h, which leads to @t and no living task: 0, or -ESRCH: to none ever. */
int pl__task_was(struct pl__task *t, pl_task_t h);

/* A: set before the version of a slot becomes 0 again: larger may be older. */
extern _Atomic bool pl__task_has_wrapped;

static inline uint32_t pl__task_version(pl_task_t h)
{
	return (uint32_t)(h >> 32);
}

/* The task that the caller runs in; NULL outside of tasks. */
struct pl__task *pl__current(void);

/* What @t was spawned with, also before it runs; see latency.h. */
void (*pl__task_fn(const struct pl__task *t))(void *arg);

/* Gives @t the stack @st, and the stack the task's name. */
static inline void pl__task_move_in(struct pl__task *t, struct pl__stack *st)
{
	memcpy(st->user.name, t->waiter.name, sizeof(st->user.name));
	st->user.exit_to = NULL;
	t->stack = st;
}

#endif /* PL_TASK_H */
