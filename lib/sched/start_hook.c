/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/start_hook.h"
#include "sched/sched.h"

/*
 * Submitters must not wait for a search that begins only after the hook; so the
 * worker stops searching first.  Nor does it count as running, as the hook may
 * take long.  But no worker is started to replace it, as that would have to get
 * through the hook as well.
 */
static void enter_hook(struct pl__worker *w)
{
	if (w->is_searching)
		pl__stop_searching(w);
	pl__worker_leaves(w, PL__IN_START_HOOK);
	/*
	 * Both counters change at once for a worker that reads them under this
	 * lock.
	 */
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
