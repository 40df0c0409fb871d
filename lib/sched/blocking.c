/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * blocking: a function is called where it may block the worker
 */
#include "sched/sched.h"

/*
 * The call takes one worker from those that run, so one is notified.  Only
 * tasks that the caller spawned without a signal may want more at once.
 */
static void blocking_notify(struct pl__worker *w)
{
	uint32_t nr = w->nr_unsignalled;

	w->nr_unsignalled = 0;
	if (nr > 1)
		pl__notify_many(nr);
	pl__full_barrier();
	pl__notify_if_work();
}

/*
 * The worker counts as blocked before the call, as a spare does, so that
 * another one runs its queue if any task waits there.
 */
static struct pl__worker *blocking_begin(void)
{
	struct pl__worker *w = pl__self();

	if (!w || !w->current)
		return NULL;
	if (load_relaxed(&w->is_spare)) {
		if (pl__spare_stop_to_compute(w) || w->nr_unsignalled)
			blocking_notify(w);
		return NULL;
	}
	w->spare_task = NULL;
	pl__unblocked(w);
	pl__spare_begin(w);
	blocking_notify(w);
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
