/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * stack_wait: tasks that wait for memory for their first stack
 */
#ifndef PL_STACK_WAIT_H
#define PL_STACK_WAIT_H

#include "queue/worker.h"

/* Gives the stacks in the cache of @w to tasks that wait for one. */
void pl__stacks_share(struct pl__worker *w);

/* Gives @t a stack, if it has none; false: @t waits for one elsewhere. */
bool pl__task_prepare(struct pl__worker *w, struct pl__task *t);

/*
 * Puts back the stack of a task that has ended; a task that waits may get it.
 */
void pl__task_put_stack(struct pl__worker *w, struct pl__stack *st);

#endif /* PL_STACK_WAIT_H */
