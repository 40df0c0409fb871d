/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/relief.h"
#include "base/inject.h"
#include "sched/background.h"
#include "base/sys.h"
#include "sched/sched.h"
#include "sched/sysmon_asleep.h"
#include "sched/sysmon.h"

#define MANY		4	/* times the target: told */
#define WAIT_MOST	16	/* times stall_ns: between two raises */
#define CPU_PART	4	/* it sleeps if it used less than this part */
#define LEARN_PART	4	/* of stall_ns used: it computes */

/* W: sysmon's thread, and while no sysmon runs. */
static struct {
	uint64_t		since_ns; /* the limit is too low since; or 0 */
	uint64_t		wait_ns;  /* before the limit is raised */
	bool			has_printed;
} relief;

void pl__relief_recheck(void)
{
	/* [relief-a] pairs with [relief-b] in pl__nr_may_compute(). */
	pl__full_barrier();
	PL_INJECT("relief-a");
	if (pl__nr_may_compute())
		pl__notify_if_work();
}

/* ---- one worker ---- */

static bool relief_mark(struct pl__worker *w)
{
	uint32_t runs = PL__RUNS;

	atomic_fetch_add(&pl__rt.nr_stalled, 1);
	PL_INJECT("duty-a");
	/* [duty-a] pairs with [duty-b] in worker.c. */
	if (atomic_compare_exchange_strong(&w->duty, &runs, PL__STALLED)) {
		counter_inc(&pl__rt.nr_stalls);
		return true;
	}
	atomic_fetch_sub(&pl__rt.nr_stalled, 1);
	pl__relief_recheck();
	return false;
}

/* The worker has been in the same task for stall_ns. */
static bool is_long_in_task(struct pl__worker *w, uint64_t now)
{
	struct pl__sysmon_view *s = &w->sysmon;
	uint32_t tick = load_relaxed(&w->tick);

	if (!s->relief_since_ns || s->relief_tick != tick) {
		s->relief_since_ns = now;
		s->relief_tick = tick;
		s->relief_cpu_ns = 0;
		return false;
	}
	if (!s->relief_cpu_ns)
		s->relief_cpu_ns = pl__tid_cpu_ns(load_relaxed(&w->tid));
	return now - s->relief_since_ns >= pl__rt.stall_ns;
}

/* Where it got no processor that says nothing of the task. */
static bool is_to_be_learned(struct pl__worker *w)
{
	uint64_t cpu_ns = pl__tid_cpu_ns(load_relaxed(&w->tid));
	uint64_t before = w->sysmon.relief_cpu_ns;

	return cpu_ns > before &&
	       cpu_ns - before >= pl__rt.stall_ns / LEARN_PART;
}

static void note_stalled(struct pl__worker *w, uint64_t now)
{
	w->sysmon.relief_tick = load_relaxed(&w->tick);
	w->sysmon.relief_cpu_ns = pl__tid_cpu_ns(load_relaxed(&w->tid));
	w->sysmon.relief_look_ns = now;
}

/*
 * The task of a stalled worker has blocked: that is for others to count.  A
 * spare was stalled before it began its task, so that is noted first.
 */
static void look_at_stalled(struct pl__worker *w, uint64_t now)
{
	struct pl__sysmon_view *s = &w->sysmon;
	uint64_t cpu_ns = s->relief_cpu_ns, look_ns = s->relief_look_ns;
	bool is_same = s->relief_tick == load_relaxed(&w->tick);

	note_stalled(w, now);
	if (!is_same ||
	    (s->relief_cpu_ns - cpu_ns) * CPU_PART >= now - look_ns ||
	    !pl__sysmon_is_asleep(w))
		return;
	s->relief_since_ns = now;
	pl__unblocked(w);
}

/* ---- all of them ---- */

struct relief_look {
	uint32_t	nr_going;	/* workers that take tasks */
	uint32_t	nr_long;	/* stalled, not marked yet */
};

/*
 * A worker that has slept in one task for as long is neither.  Of a crew, it
 * stays PL__RUNS for us: the kernel counts it as blocked, and lets another run,
 * which may be stalled by now.
 */
static void relief_look_at_running(struct pl__worker *w, uint64_t now,
				   struct relief_look *look)
{
	if (!is_long_in_task(w, now)) {
		look->nr_going++;
	} else if (!pl__sysmon_is_asleep(w)) {
		w->sysmon.is_long = true;
		look->nr_long++;
		if (is_to_be_learned(w))
			pl__sysmon_learn(w, w->sysmon.relief_tick,
					 PL__RUN_COMPUTES);
	}
}

static void relief_look_at(struct pl__worker *w, uint64_t now,
			   struct relief_look *look)
{
	w->sysmon.is_long = false;
	switch (load_relaxed(&w->duty)) {
	case PL__RUNS:
		relief_look_at_running(w, now, look);
		break;
	case PL__STALLED:
		look_at_stalled(w, now);
		break;
	default:
		w->sysmon.relief_since_ns = 0;
	}
}

static bool can_relieve(void)
{
	return load_relaxed(&pl__rt.nr_idle) ||
	       load_relaxed(&pl__rt.nr_alive) < pl__rt.cfg.max_workers;
}

static uint32_t relief_mark_all(uint64_t now)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i, nr_marked = 0;
	struct pl__worker *w;

	for (i = 0; i < nr && can_relieve() && pl__nr_may_compute(); i++) {
		w = pl__rt.workers[i];
		if (!w->sysmon.is_long || !relief_mark(w))
			continue;
		note_stalled(w, now);
		nr_marked++;
	}
	return nr_marked;
}

/* ---- the limit ---- */

/* As many as can compute at a time. */
static uint32_t limit_first(void)
{
	uint32_t target = load_relaxed(&pl__rt.target);

	return target < pl__rt.nr_cpus ? target : pl__rt.nr_cpus;
}

static void relief_limit_reset(void)
{
	store_relaxed(&pl__rt.stalled_limit, limit_first());
	relief.wait_ns = 2 * pl__rt.stall_ns;
	relief.since_ns = 0;
}

/* Fewer are stalled than at first, which may have been raised. */
static void relief_limit_lift(void)
{
	uint32_t before = load_relaxed(&pl__rt.stalled_limit);

	relief_limit_reset();
	if (load_relaxed(&pl__rt.stalled_limit) > before)
		pl__relief_recheck();
}

static void relief_print(uint32_t nr)
{
	char text[160];
	int len;

	len = snprintf(text, sizeof(text),
		       "parklot: %u workers are in tasks that compute, and others wait: more threads than processors run\n",
		       nr);
	relief.has_printed = pl__fd_try_write(2, text, (size_t)len) != -EAGAIN;
}

/* Too many are stalled for the limit: raises it if that lasts. */
static void relief_limit_raise(uint64_t now, bool is_short)
{
	uint32_t limit = load_relaxed(&pl__rt.stalled_limit);
	uint64_t taken_ns = load_relaxed(&pl__rt.aside.compute.taken_ns);

	if (!relief.since_ns)
		relief.since_ns = now;
	if (!is_short && (int64_t)(taken_ns - relief.since_ns) > 0)
		relief.since_ns = taken_ns;
	if ((int64_t)(now - relief.since_ns) < (int64_t)relief.wait_ns ||
	    limit >= pl__rt.cfg.max_workers)
		return;
	store_relaxed(&pl__rt.stalled_limit, limit + 1);
	counter_inc(&pl__rt.nr_stalls_over);
	relief.since_ns = now;
	if (relief.wait_ns < WAIT_MOST * pl__rt.stall_ns)
		relief.wait_ns *= 2;
	if (!relief.has_printed && limit >= MANY * load_relaxed(&pl__rt.target))
		relief_print(limit);
	pl__relief_recheck();
}

bool pl__relief_is_due(void)
{
	return unlikely(load_relaxed(&pl__rt.aside.compute.nr) ||
			pl__background_nr());
}

uint32_t pl__relief_scan(uint64_t now, bool has_work)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;
	struct relief_look look = { 0, 0 };
	bool is_short;

	for (i = 0; i < nr; i++)
		relief_look_at(pl__rt.workers[i], now, &look);
	/* Where they get no relief, busy workers look at their queues. */
	store_relaxed(&pl__rt.nr_long, look.nr_long);
	if (load_relaxed(&pl__rt.nr_stalled) < limit_first())
		relief_limit_lift();
	/* A worker that starts is a relief that is under way. */
	is_short = has_work && look.nr_long &&
		   look.nr_going < load_relaxed(&pl__rt.active) &&
		   !load_relaxed(&pl__rt.nr_starting);
	if (!pl__nr_may_compute() && (is_short || pl__relief_is_due()))
		relief_limit_raise(now, is_short);
	else
		relief.since_ns = 0;
	return is_short ? relief_mark_all(now) : 0;
}

void pl__relief_reset(void)
{
	store_relaxed(&pl__rt.nr_stalls, 0);
	store_relaxed(&pl__rt.nr_stalls_over, 0);
	relief.has_printed = false;
	relief_limit_reset();
}
