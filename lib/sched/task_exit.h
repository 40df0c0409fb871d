/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * task_exit: the end of a task: destructors, joiners, its slot and stack
 */
#ifndef PL_TASK_EXIT_H
#define PL_TASK_EXIT_H

#include "sched/worker.h"

/* What each task with a stack of its own begins with; @arg is the task. */
void pl__task_main(void *arg);

void pl__task_end_locals(struct pl__task *t); /* calls destructors, in it */

/* Of join.c: lets all go that wait on its version. */
extern void (*pl__wake_joiners)(struct pl__task *t);

/* Marks it, lets joiners go, all but one: which is to be made ready; or NULL */
struct pl__task *pl__task_end(struct pl__worker *w, struct pl__task *t);
void pl__task_take_back(void);		/* counted as spawned, but was not */
void pl__task_free(void *t);		/* an after-switch callback */
void __attribute__((noreturn)) pl__task_exit(struct pl__task *t);

#endif /* PL_TASK_EXIT_H */
