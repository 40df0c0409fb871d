/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Hooks around a task's switch, for libraries that keep state for each thread.
 */
#ifndef PARKLOT_HOOK_H
#define PARKLOT_HOOK_H

#include "base.h"

PL_BEGIN_DECLS

/* The maximal number of hooks; none is ever taken away. */
#define PL_HOOKS_MAX		8

/**
 * pl_hook_add() - move what a library keeps for each thread with the task
 * @save:    returns the calling thread's state, and leaves the thread with none
 * @restore: gives the state to the calling thread, which may be another one
 * @drop:    frees the state that a task had when it ended; may be NULL
 *
 * A task begins without state.  @save is called when it waits or yields, and
 * @restore with what @save returned before it goes on.  When it ends, @save is
 * called, and @drop with what that returned.
 *
 * They run in the task, on its stack.  They must not wait, yield, throw or call
 * pl_exit().  errno is kept.  Hooks are saved in the order in which they were
 * added, and restored in the opposite one.  They are called for each switch of
 * each task from now on; without hooks a switch pays nothing.
 *
 * Context: any thread, before tasks use the library.
 * Return: 0; -EAGAIN if there are PL_HOOKS_MAX hooks; -EINVAL if @save or
 * @restore is NULL.
 */
PL_API int pl_hook_add(void *(*save)(void), void (*restore)(void *state),
		       void (*drop)(void *state));

PL_END_DECLS

#endif /* PARKLOT_HOOK_H */
