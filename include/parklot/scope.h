/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Scopes: tasks that end before the block that started them does.
 */
#ifndef PARKLOT_SCOPE_H
#define PARKLOT_SCOPE_H

#include "task.h"

PL_BEGIN_DECLS

/**
 * struct pl_scope - a block of code, and the tasks that it started
 *
 * Its owner is the task or thread that enters it.  A zero-filled one is valid.
 */
struct pl_scope {
	uint64_t	reserved[16];
};

#define PL_SCOPE_INIT		{ { 0 } }

/**
 * struct pl_child - a task of a scope
 * @result: what its function returned; 0 before, and after pl_exit()
 * @task:   its handle
 *
 * Valid once the task was joined or the scope was left; until then it has to
 * stay where it is.
 */
struct pl_child {
	intptr_t	result;
	pl_task_t	task;
	uint64_t	reserved[8];
};

/* The lowest result that is an error of <errno.h>, negative; -1 the highest. */
#define PL_ERROR_MIN		(-4095)

/*
 * What cancels from outside does not reach into the scope: a cancel of the
 * owner or of a scope around this one, the stop of the runtime, interrupts.
 * They are as they were once it is left.  Its own deadline counts.
 */
#define PL_SCOPE_SHIELD		(1U << 0)

/**
 * pl_scope_enter() - begin a scope
 * @s:           zero-filled, or one that was left
 * @deadline_ns: at this time the scope is cancelled, with -ETIMEDOUT
 * @flags:       0 or PL_SCOPE_SHIELD
 *
 * The caller leaves it by pl_scope_leave(), before any scope that it entered
 * earlier; a task that returns without it ends the process.  pl_exit() cancels
 * and leaves it.
 *
 * Context: any task or thread.
 * Return: 0; -EINVAL; -ENOMEM; with a deadline, what pl_timer_add() returns.
 */
PL_API int pl_scope_enter(struct pl_scope *s, uint64_t deadline_ns,
			  uint32_t flags);

/**
 * pl_scope_spawn() - start @fn(@arg) as a task of the scope, a child
 * @s:    entered, and not left yet
 * @c:    gets the result; or NULL, then the library allocates one for itself
 * @fn:   what the child runs.  If it returns an error, PL_ERROR_MIN to -1, the
 *        child has failed, and the scope is cancelled with this error
 * @arg:  passed to @fn
 * @opts: NULL for the defaults
 *
 * Context: the owner and the children; others while they know that the owner
 * does not leave it.
 * Return: 0; -ECANCELED if the scope is cancelled; -EINVAL; -ENOMEM; what
 * pl_spawn() returns.
 */
PL_API int pl_scope_spawn(struct pl_scope *s, struct pl_child *c,
			  intptr_t (*fn)(void *arg), void *arg,
			  const struct pl_spawn_opts *opts);

/**
 * pl_scope_cancel() - cancel all that the scope contains
 * @error: what pl_scope_leave() will return: PL_ERROR_MIN to -1
 *
 * All children are cancelled, as by pl_cancel(), and so are those that start
 * later, and the scopes that they or the owner have entered meanwhile.  The
 * owner's blocking calls return -ECANCELED until it has left the scope.  Only
 * the first reason counts; a failed child and the deadline are reasons, too.
 *
 * Context: as pl_scope_spawn(); a timer's callback as well.
 * Return: 0, also if it was cancelled before; -EINVAL.
 */
PL_API int pl_scope_cancel(struct pl_scope *s, int error);

/**
 * pl_scope_error() - why the scope is cancelled
 *
 * Return: 0: it is not; else the first reason; -EINVAL: it was not entered.
 */
PL_API int pl_scope_error(struct pl_scope *s);

/**
 * pl_scope_leave() - wait until all children have ended, and end the scope
 *
 * The wait is no point of interruption or cancellation; but whatever cancels
 * the scope meanwhile cancels the children.  An interrupt stays for the next
 * blocking call.
 *
 * Context: the owner, which has left the scopes that it entered later.
 * Return: 0; the error of the first child that failed; -ETIMEDOUT: the deadline
 * came first; -ECANCELED: the owner was cancelled, or a scope around this one;
 * what pl_scope_cancel() was called with; -EINVAL: not the owner's last scope.
 */
PL_API int pl_scope_leave(struct pl_scope *s);

PL_END_DECLS

#endif /* PARKLOT_SCOPE_H */
