/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/leave.h"
#include "ctx/hook.h"

void pl__leave_slow(struct pl__worker *w, struct pl__task *t,
		    struct pl__task *next, void (*after)(void *arg), void *arg)
{
	int error = *w->errno_at;
	struct pl__hook_states states;
	struct pl__cxx cxx;

	pl__hooks_save(&states);
	pl__cxx_save(&cxx);
	pl__stack_check(t->stack);
	pl__ctx_switch(&t->ctx, pl__switch_prepare(w, next, after, arg));
	w = pl__switch_finish();
	pl__cxx_restore(&cxx);
	pl__hooks_restore(&states);
	/* A hook does not switch: this is the worker still. */
	*w->errno_at = error;
}
