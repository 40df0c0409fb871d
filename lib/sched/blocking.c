/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * blocking: a function is called where it may block the worker
 */
#include "sched/sched.h"

/*
 * The worker counts as blocked before the call, as a spare does, so that
 * another one runs its queue if any task waits there.
 */
static struct pl__worker *blocking_begin(void)
{
	struct pl__worker *w = pl__self();

	if (!w || !w->current || load_relaxed(&w->is_spare))
		return NULL;
	w->nr_unsignalled = 0;
	w->spare_task = NULL;
	pl__unblocked(w);
	pl__spare_begin(w);
	pl__full_barrier();
	pl__notify_if_work();
	return w;
}

int pl_blocking(void (*fn)(void *arg), void *arg)
{
	struct pl__worker *w;

	if (!fn)
		return -EINVAL;
	w = blocking_begin();
	fn(arg);
	/* If the task waited meanwhile, its worker is no spare any more. */
	if (w && w == pl__self() && load_relaxed(&w->is_spare))
		pl__spare_end(w);
	return 0;
}
