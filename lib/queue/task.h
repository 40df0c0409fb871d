/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * task: a slot of the task table, its handle, and the slot in which a thread
 * waits
 */
#ifndef PL_TASK_H
#define PL_TASK_H

#include "queue/wait_single.h"
#include "mem/slab.h"
#include "mem/stack.h"
#include "ctx/switch.h"
#include "ds/mpsc.h"
#include "queue/wait_entry.h"

#include "parklot.h"

#include <string.h>

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
/* It runs when nothing else is ready, see background.h. */
#define PL__TASK_BACKGROUND	(1ULL << 7)

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
	uint8_t			score;		/* O: see forecast.h */
	/* O: until it runs: on the worker's stack, if there is no other */
	bool			may_lack_stack;
	/* The spawner and the worker use the cache line up to here. */
	pl__wait_slot		joiner;		/* A: the first joiner */
	union {
		struct pl__locals *locals;	/* O: NULL until a key is set */
		/* O: its fn, before it runs; see spawn_sample.h */
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

/* What @t was spawned with, also before it runs; see spawn_sample.h. */
void (*pl__task_fn(const struct pl__task *t))(void *arg);

/* Gives @t the stack @st, and the stack the task's name. */
static inline void pl__task_move_in(struct pl__task *t, struct pl__stack *st)
{
	memcpy(st->user.name, t->waiter.name, sizeof(st->user.name));
	st->user.exit_to = NULL;
	t->stack = st;
}

#endif /* PL_TASK_H */
