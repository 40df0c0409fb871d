/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/start_hook.h"
#include "sched/sched.h"

/*
 * Others must not wait for a search that begins only after the hook.  They do
 * not wait for whoever is in it either, which may take long; but none is
 * started in its place, who would have to get through it as well.
 */
static void enter_hook(struct pl__worker *w)
{
	if (w->is_searching)
		pl__stop_searching(w);
	pl__worker_leaves(w, PL__IN_START_HOOK);
	/* At once, to who asks whether a start is due. */
	pl__lock(&pl__rt.start_lock);
	atomic_fetch_add(&pl__rt.nr_in_hook, 1);
	atomic_fetch_add(&pl__rt.nr_blocked, 1);
	pl__unlock(&pl__rt.start_lock);
	pl__full_barrier();
	pl__notify_if_work();
}

static void leave_hook(struct pl__worker *w)
{
	pl__worker_runs(w);
	pl__lock(&pl__rt.start_lock);
	atomic_fetch_sub(&pl__rt.nr_blocked, 1);
	atomic_fetch_sub(&pl__rt.nr_in_hook, 1);
	pl__unlock(&pl__rt.start_lock);
}

void pl__run_start_hook(struct pl__worker *w)
{
	enter_hook(w);
	pl__rt.cfg.worker_start(pl__rt.cfg.worker_start_arg);
	pl__self_end_orphan();
	leave_hook(w);
}
