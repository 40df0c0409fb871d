/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * worker_sleep: sleeps of a task on the worker's stack, and of ordinary threads
 */
#include "sched/worker.h"
#include "base/sys.h"
#include "ring/ring.h"
#include "sched/sched.h"

struct pl__bell *pl__sleep_bell(struct pl__worker *w)
{
	return w && w->ring && pl__ring_is_busy(w->ring) ?
	       pl__ring_bell(w->ring) : NULL;
}

static bool sleep_in_ring(struct pl__worker *w, struct pl__parker *s,
			  uint64_t deadline_ns)
{
	while (!pl__parker_is_woken(s)) {
		pl__ring_wait(w->ring, deadline_ns);
		pl__ring_poll(w->ring);
		if (pl__now_ns() >= deadline_ns)
			return pl__parker_is_woken(s);
	}
	return true;
}

static bool sleep_on_loop(struct pl__worker *w, struct pl__parker *s,
			  uint64_t deadline_ns)
{
	if (load_relaxed(&s->state) > PL__PARKER_WOKEN)
		return sleep_in_ring(w, s, deadline_ns);
	return pl__parker_park(s, deadline_ns);
}

bool pl__sleep(struct pl__worker *w, struct pl__parker *s,
	       uint64_t deadline_ns)
{
	bool woken;

	if (!w)
		return pl__parker_park(s, deadline_ns);
	if (load_relaxed(&w->duty) == PL__IN_START_HOOK)
		return sleep_on_loop(w, s, deadline_ns);

	/* One worker less runs: another may have to take its place. */
	pl__worker_leaves(w, PL__SLEEPS);
	atomic_fetch_add(&pl__rt.nr_blocked, 1);
	pl__full_barrier();
	pl__notify_if_work();
	woken = sleep_on_loop(w, s, deadline_ns);
	pl__worker_runs(w);
	atomic_fetch_sub(&pl__rt.nr_blocked, 1);
	return woken;
}
