/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * leave: a task switches away, until another context switches back to it
 */
#ifndef PL_LEAVE_H
#define PL_LEAVE_H

#include "ctx/cxx.h"
#include "sched/sched.h"

/* Also saves the task's C++ exceptions, and calls the hooks. */
void pl__leave_slow(struct pl__worker *w, struct pl__task *t,
		    struct pl__task *next, void (*after)(void *arg), void *arg);

/*
 * Switches from @t, which runs on @w, and returns when a worker resumes @t.
 * errno goes with the task.
 */
static inline void pl__leave(struct pl__worker *w, struct pl__task *t,
			     struct pl__task *next, void (*after)(void *arg),
			     void *arg)
{
	int error = *w->errno_at;

	if (unlikely(pl__cxx_is_due())) {
		pl__leave_slow(w, t, next, after, arg);
		return;
	}
	pl__stack_check(t->stack);
	pl__ctx_switch(&t->ctx, pl__switch_prepare(w, next, after, arg));
	*pl__switch_finish()->errno_at = error;
}

/* Switches away; @after(@arg) arranges for a waker to make the caller ready. */
static inline void pl__block(void (*after)(void *arg), void *arg)
{
	struct pl__worker *w = pl__self();
	struct pl__task *t = w->current;

	pl__leave(w, t, pl__next_prepared(w), after, arg);
}

#endif /* PL_LEAVE_H */
