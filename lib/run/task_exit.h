/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * task_exit: the end of a task: destructors, joiners, its slot and stack
 */
#ifndef PL_TASK_EXIT_H
#define PL_TASK_EXIT_H

#include "queue/worker.h"

/* First function on each task's own stack; @arg is the task. */
void pl__task_main(void *arg);

/* The task calls its destructors. */
void pl__task_end_locals(struct pl__task *t);

/* Set by join.c: wakes all that wait on the version of @t. */
extern void (*pl__wake_joiners)(struct pl__task *t);

/* Set by scope.c: cancels and leaves the scopes that @t has entered. */
extern void (*pl__leave_scopes)(struct pl__task *t);

/* Set by task_limit.c: one task less counts against the limit. */
extern void (*pl__leave_task_limit)(void);

/* Ends @t: wakes its joiners, but returns one to be made ready, or NULL. */
struct pl__task *pl__task_end(struct pl__worker *w, struct pl__task *t);

/* Undoes the count of a spawn that failed. */
void pl__task_take_back(void);

/* An after-switch callback: frees the slot and the stack of @t. */
void pl__task_free(void *t);
void __attribute__((noreturn)) pl__task_exit(struct pl__task *t);

/*
 * The slot in which the calling thread waits outside of a task; NULL: no
 * memory.
 */
struct pl__task *pl__thread_task(void);

#endif /* PL_TASK_EXIT_H */
