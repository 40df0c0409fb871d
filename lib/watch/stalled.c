/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "watch/watch.h"
#include "watch/since_note.h"
#include "base/inject.h"
#include "base/sys.h"
#include "pace/pace.h"
#include "ring/ring.h"

#define CPU_PART	4	/* it sleeps if it used less than this part */
#define LEARN_PART	4	/* of stall_ns used: it computes */

/* ---- one worker ---- */

static bool stalled_mark(struct pl__worker *w)
{
	if (pl__duty(w, PL__SEEN_LONG) == PL__NR_DUTIES)
		return false;
	counter_inc(&pl__rt.nr_stalls);
	return true;
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
	pl__take_back(w);
}

/* ---- all of them ---- */

struct stalled_look {
	uint32_t	nr_going;	/* workers that take tasks */
	uint32_t	nr_long;	/* stalled, not marked yet */
};

/*
 * A worker that has slept in one task for as long is neither.  Of a crew, it
 * stays PL__RUNS for us: the kernel counts it as blocked, and lets another run,
 * which may be stalled by now.
 */
static void stalled_look_at_running(struct pl__worker *w, uint64_t now,
				   struct stalled_look *look)
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

static void stalled_look_at(struct pl__worker *w, uint64_t now,
			   struct stalled_look *look)
{
	w->sysmon.is_long = false;
	if (pl__is_running(w))
		stalled_look_at_running(w, now, look);
	else if (pl__is_stalled(w))
		look_at_stalled(w, now);
	else
		w->sysmon.relief_since_ns = 0;
}

static bool can_relieve(struct pl__group *g)
{
	return load_relaxed(&g->nr_idle) ||
	       load_relaxed(&g->nr_alive) < g->max_workers;
}

static uint32_t stalled_mark_all(struct pl__group *g, uint64_t now)
{
	uint32_t nr = load_acquire(&g->nr_started), i, nr_marked = 0;
	struct pl__worker *w;

	for (i = 0; i < nr && can_relieve(g) && pl__nr_may_compute(g); i++) {
		w = g->workers[i];
		if (!w->sysmon.is_long || !stalled_mark(w))
			continue;
		note_stalled(w, now);
		nr_marked++;
	}
	return nr_marked;
}

uint32_t pl__stalled_scan(struct pl__group *g, uint64_t now, bool has_work)
{
	uint32_t nr = load_acquire(&g->nr_started), i;
	struct stalled_look look = { 0, 0 };
	bool is_short;

	for (i = 0; i < nr; i++)
		stalled_look_at(g->workers[i], now, &look);
	/* A worker that starts is a relief that is under way. */
	is_short = has_work && look.nr_long &&
		   look.nr_going < load_relaxed(&g->active) &&
		   !load_relaxed(&g->nr_starting);
	pl__relief_look(g, now, is_short);
	return is_short ? stalled_mark_all(g, now) : 0;
}

static bool is_in_task(struct pl__worker *w)
{
	uint32_t duty = load_relaxed(&w->duty);

	/* By one look: it is in a task all the time, whatever it is called. */
	return duty == PL__RUNS || duty >= PL__BLOCKED;
}

static bool is_busy(struct pl__worker *w)
{
	struct pl__ring *ring = pl__orphan_ring_of(w);

	return ring && pl__ring_is_busy(ring);
}

static bool is_at_risk(struct pl__worker *w)
{
	return is_busy(w) && is_in_task(w);
}

static bool is_stalled(struct pl__worker *w, uint64_t now)
{
	struct pl__sysmon_view *s = &w->sysmon;
	uint32_t tick = load_relaxed(&w->tick);

	if (!is_at_risk(w)) {
		s->stalled_since_ns = 0;
		return false;
	}
	if (!s->stalled_since_ns || s->stalled_tick != tick) {
		s->stalled_since_ns = now;
		s->stalled_tick = tick;
		return false;
	}
	return now - s->stalled_since_ns >= PL__STALLED_NS;
}

/* The ring is OWNED, or has got requests since it became ready. */
static bool has_more(struct pl__worker *w)
{
	return load_relaxed(&w->ring_state) == PL__OWNED ||
	       pl__ring_nr_added(pl__orphan_ring_of(w)) != w->sysmon.ready_nr;
}

/* True: the ring has become ready. */
static bool orphan_ring_look_at(struct pl__worker *w, uint64_t now)
{
	struct pl__sysmon_view *s = &w->sysmon;
	bool was_readable = s->is_readable;

	s->is_readable = false;
	if (!is_stalled(w, now)) {
		if (load_relaxed(&w->ring_state) != PL__OWNED)
			atomic_store(&w->ring_state, PL__OWNED);
		return false;
	}
	/* Its owner may hold the lock, so that a thief could do nothing. */
	if (now - s->ready_ns < PL__STALLED_NS ||
	    (!was_readable && !has_more(w)))
		return false;
	s->ready_ns = now;
	s->ready_nr = pl__ring_nr_added(pl__orphan_ring_of(w));
	return atomic_exchange(&w->ring_state,
			       PL__ORPHAN_READY) != PL__ORPHAN_READY;
}

uint32_t pl__orphan_ring_scan(struct pl__group *g, uint64_t now)
{
	uint32_t nr = load_acquire(&g->nr_started), i, nr_ready = 0;

	for (i = 0; i < nr; i++)
		nr_ready += orphan_ring_look_at(g->workers[i], now);
	return nr_ready;
}

bool pl__orphan_ring_is_due(struct pl__group *g)
{
	uint32_t nr = load_acquire(&g->nr_started), i;

	for (i = 0; i < nr; i++)
		if (is_at_risk(g->workers[i]) &&
		    has_more(g->workers[i]))
			return true;
	return false;
}

bool pl__orphan_ring_may_be_due(struct pl__group *g)
{
	uint32_t nr = load_acquire(&g->nr_started), i;

	for (i = 0; i < nr; i++)
		if (is_busy(g->workers[i]))
			return true;
	return false;
}

static uint32_t since_look(_Atomic uint64_t *seen, uint32_t key,
			   uint64_t now_ns)
{
	uint64_t old = load_relaxed(seen);

	if (!pl__since_is_of(old, key))
		atomic_compare_exchange_strong(seen, &old,
					       pl__since_note(key, now_ns));
	return pl__since_ms(old, key, now_ns);
}

__attribute__((noinline, no_sanitize_thread))
static uint32_t task_key(struct pl__worker *w)
{
	uintptr_t t = (uintptr_t)*(struct pl__task *volatile *)&w->current;

	return pl__since_task_key(load_relaxed(&w->tick), t);
}

uint32_t pl__since_task_ms(struct pl__worker *w, uint64_t now_ns)
{
	return since_look(&w->sysmon.task_since, task_key(w), now_ns);
}

uint32_t pl__since_ran_ms(struct pl__worker *w, uint64_t cpu_ns,
			  uint64_t now_ns)
{
	return since_look(&w->sysmon.ran_since, (uint32_t)cpu_ns, now_ns);
}
