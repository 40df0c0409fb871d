/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * spawn: in two steps, for who must not fail any more once he has let others
 * see what the task is for
 */
#ifndef PL_SPAWN_H
#define PL_SPAWN_H

#include "rt/runtime.h"

/*
 * All of a spawn that can fail: 0, or what pl_spawn() says.  Of the two below
 * one has to follow, and no switch nor other spawn in between.
 */
int pl__spawn_reserve(struct pl__task **out, void (*fn)(void *arg), void *arg,
		      const char *name);
void pl__spawn_commit(struct pl__task *t);
void pl__spawn_cancel(struct pl__task *t);

#endif /* PL_SPAWN_H */
