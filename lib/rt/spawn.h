/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * spawn: in two steps, for a caller that must not fail any more after it has
 * published what the task is for
 */
#ifndef PL_SPAWN_H
#define PL_SPAWN_H

#include "rt/runtime.h"

/*
 * Does all of a spawn that can fail: 0, or what pl_spawn() returns.  The caller
 * calls one of the two functions below, without a switch or another spawn in
 * between.
 */
int pl__spawn_reserve(struct pl__task **out, void (*fn)(void *arg), void *arg,
		      const char *name);
void pl__spawn_commit(struct pl__task *t);

/*
 * The same for a task that will block its worker: it has the worker's stack,
 * and is set aside.
 */
int pl__spawn_reserve_blocking(struct pl__task **out, void (*fn)(void *arg),
			       void *arg, const char *name);
void pl__spawn_commit_blocking(struct pl__task *t);

/* Gives up what either has reserved. */
void pl__spawn_cancel(struct pl__task *t);

#endif /* PL_SPAWN_H */
