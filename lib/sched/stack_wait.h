/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * stack_wait: tasks that wait for memory for their first stack
 */
#ifndef PL_STACK_WAIT_H
#define PL_STACK_WAIT_H

#include "sched/worker.h"

/* Lets those that wait for a stack have what @w keeps for itself. */
void pl__stacks_share(struct pl__worker *w);

/* Gives those that wait for a stack one of their own, if it can be had. */
void pl__stacks_retry(void);

/* Has a stack, or is given one; false: it waits for one elsewhere. */
bool pl__task_prepare(struct pl__worker *w, struct pl__task *t);

/* Of a task that has ended: others may wait for one. */
void pl__task_put_stack(struct pl__worker *w, struct pl__stack *st);

#endif /* PL_STACK_WAIT_H */
