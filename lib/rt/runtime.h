/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * runtime: its start, its end, and its start at first use
 */
#ifndef PL_RUNTIME_H
#define PL_RUNTIME_H

#include "run/run.h"

/*
 * Lets the caller, an ordinary thread, use the runtime until pl__rt_exit(), and
 * starts the runtime if need be.  Workers need not call it.  0, -ECANCELED
 * while it stops, or what pl_runtime_start() returns.
 */
int pl__runtime_enter(void);

/* ---- group.c: groups of workers ---- */

/*
 * Sets @g, of which only index, name and numbers of workers are set, up: with
 * all but workers.  Its lots are in @backend, or AUTO.  0, -ENODEV, -ENOMEM or
 * another error of the device.
 */
int pl__group_init(struct pl__group *g, uint32_t nr_workers,
		   enum pl_backend backend);
/* The group has no worker, or none any more. */
void pl__group_fini(struct pl__group *g);

/* Starts its first workers; 0, or an error if not even one could be started. */
int pl__group_start(struct pl__group *g);

/*
 * ---- spawn.c: a spawn in two steps, for a caller that must not fail any more
 * after it has published what the task is for ----
 */

/*
 * Does all of a spawn into @g that can fail: 0, or what pl_spawn() returns.
 * The caller calls one of the two functions below, without a switch or another
 * spawn in between.
 */
int pl__spawn_reserve(struct pl__task **out, struct pl__group *g,
		      void (*fn)(void *arg), void *arg, const char *name);
void pl__spawn_commit(struct pl__task *t);

/*
 * The same for a task of the caller's group that will block its worker: it has
 * the worker's stack, and is set aside.
 */
int pl__spawn_reserve_blocking(struct pl__task **out, void (*fn)(void *arg),
			       void *arg, const char *name);
void pl__spawn_commit_blocking(struct pl__task *t);

/* Gives up what either has reserved. */
void pl__spawn_cancel(struct pl__task *t);

/* ---- the tasks that are alive, where max_tasks limits them ---- */

/* Called while no task is alive. */
void pl__task_limit_start(void);
void pl__task_limit_stop(void);

/*
 * Counts a task of @g that is to be spawned.  At a limit it returns -EAGAIN or,
 * if it @may_wait, waits, and has not counted at -ETIMEDOUT, -EINTR, -ECANCELED
 * or -ENOMEM.  After a wait the caller may be on another worker.
 */
int pl__task_limit_enter(struct pl__group *g, bool may_wait,
			 uint64_t deadline_ns);

/* A task that was counted has ended, or was not spawned. */
void pl__task_limit_leave(struct pl__group *g);

/*
 * Copies a name, or what fits; what shows it may show it to a terminal, so
 * control characters become '?'.
 */
void pl__keep_name(char *to, size_t size, const char *from);

/* ---- tells a program with ThreadSanitizer of the library for it ---- */

/* Once in a process; nothing in the library that is for ThreadSanitizer. */
void pl__sanitizer_warn(void);

#endif /* PL_RUNTIME_H */
