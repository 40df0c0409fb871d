/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * task: a slot of the task table, its handle and the thread that waits as one
 */
#ifndef PL_TASK_H
#define PL_TASK_H

#include "sched/wait_single.h"
#include "mem/slab.h"
#include "mem/stack.h"
#include "ctx/switch.h"
#include "ds/mpsc.h"
#include "sched/wait_entry.h"

#include "parklot.h"

#include <string.h>

struct pl__ring;

/* Low half of task->state; the high half is the version. */
#define PL__TASK_INTERRUPTED	(1ULL << 0)	/* a blocking call clears it */
#define PL__TASK_CANCELLED	(1ULL << 1)	/* for good */

/*
 * What a task keeps by key; key.c has the rest of it.  @end is called in the
 * task, once that has run, and destroys it.
 */
struct pl__task;
struct pl__locals {
	void			(*end)(struct pl__task *t);
};

/*
 * A slot of the task table.  An odd version is alive, an even one is not.  An
 * ordinary thread that waits holds a slot too, but no handle leads to it.
 *
 * O: who runs it, or has it in hand.  A: atomic.
 */
struct pl__task {
	union {
		struct pl__slab_obj obj;
		struct pl__link	link;		/* O: in an inbox */
	};
	struct pl__ctx		ctx;		/* O */
	struct pl__stack	*stack;		/* O: NULL before first run */
	void			(*fn)(void *arg); /* O */
	void			*arg;		/* O */
	_Atomic uint64_t	state;		/* A: version << 32 | flags */
	_Atomic uint32_t	version;	/* A: what joiners wait on */
	uint8_t			cls;		/* O: enum pl_stack */
	bool			is_ending;	/* O: in its destructors */
	/* So far, the line of who spawns it and of who runs it. */
	pl__wait_slot		joiner;		/* A: the first */
	struct pl__locals	*locals;	/* O: NULL: no key was set */
	struct pl__wait_entry	waiter;
} __pl_cacheline;

/* There are millions of them. */
#if !defined(PL_ASAN) && !defined(PL_TSAN)
_Static_assert(offsetof(struct pl__task, joiner) == PL_CACHELINE, "a line");
_Static_assert(sizeof(struct pl__task) == 2 * PL_CACHELINE, "two lines");
#endif

static inline pl_task_t pl__task_handle(const struct pl__task *t)
{
	return t->obj.slot | (uint64_t)load_relaxed(&t->version) << 32;
}

/* Of a task that the caller keeps from ending. */
static inline const char *pl__task_name(const struct pl__task *t)
{
	return t->stack ? t->stack->user.name : t->waiter.name;
}

/* Sets the table up, once a process; -ENOMEM. */
int pl__tasks_init(void);

/* The slot of @h, whatever became of the task; NULL: never was one. */
struct pl__task *pl__task_slot(pl_task_t h);

static inline uint32_t pl__task_version(pl_task_t h)
{
	return (uint32_t)(h >> 32);
}

/* The task that the caller runs in; NULL outside. */
struct pl__task *pl__current(void);

/* The slot that the calling thread waits as, outside a task; or no memory. */
struct pl__task *pl__thread_task(void);

/* Its stack is @st from now on, with its name. */
static inline void pl__task_move_in(struct pl__task *t, struct pl__stack *st)
{
	memcpy(st->user.name, t->waiter.name, sizeof(st->user.name));
	st->user.exit_to = NULL;
	t->stack = st;
}

#endif /* PL_TASK_H */
