/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "debug/stat.h"
#include "base/atfork.h"
#include "ring/ring.h"
#include "base/sys.h"
#include "queue/rt.h"
#include "ctx/self.h"
#include "base/base.h"

#include <string.h>

/* Counters of runtimes that ended, without gauges; under past_lock. */
static struct pl_stat past;
static struct pl__lock past_lock;

/* Under past_lock: a runtime ends, and its counters are not in `past` yet. */
static bool is_draining;

/* A child of fork() counts from 0. */
static void stat_atfork_child(void)
{
	memset(&past, 0, sizeof(past));
	past_lock = (struct pl__lock){ 0 };
	is_draining = false;
	store_relaxed(&pl__rt.spawned_past, 0);
	store_relaxed(&pl__rt.ended_past, 0);
}

PL_ATFORK_CHILD(stat_atfork_child);

static uint32_t minus(uint64_t a, uint64_t b)
{
	return a > b ? (uint32_t)(a - b) : 0;
}

static void add_worker(struct pl_stat *st, struct pl__worker *w)
{
	struct pl__ring *ring = load_acquire(&w->ring_seen);
	struct pl__ring_stat rs = { 0 };

	st->switches += load_relaxed(&w->stat.switches);
	st->steals += load_relaxed(&w->stat.steals);
	st->parks += load_relaxed(&w->stat.parks);
	st->wakes += load_relaxed(&w->stat.wakes);
	if (ring)
		pl__ring_stat(ring, &rs);
	st->io_submitted += rs.submitted;
	st->io_completed += rs.completed;
	st->io_enters += rs.enters;
	st->io_in_flight += (uint32_t)(rs.submitted - rs.completed);
}

/* By threads that are no workers, and what these took back. */
static uint64_t nr_spawned_outside(void)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < PL__NR_STRIPES; i++)
		sum += atomic_load(&pl__rt.outside[i].spawned);
	return sum;
}

uint64_t pl__stat_spawned(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;
	uint64_t sum = load_relaxed(&pl__rt.spawned_past) +
		       nr_spawned_outside();

	for (i = 0; i < nr; i++)
		sum += load_acquire(&pl__rt.workers[i]->stat.spawned);
	return sum;
}

/* Without spawns that were undone. */
static uint64_t nr_ended(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;
	uint64_t sum = load_relaxed(&pl__rt.ended_past);

	for (i = 0; i < nr; i++)
		sum += load_acquire(&pl__rt.workers[i]->stat.ended);
	return sum;
}

uint64_t pl__stat_ended(void)
{
	return nr_ended() + atomic_load(&pl__rt.ended_outside);
}

/* Reads ended before spawned, so that the difference is not negative. */
static void set_tasks(struct pl_stat *st)
{
	uint64_t back = atomic_load(&pl__rt.ended_outside);

	st->tasks_ended = nr_ended();
	st->tasks_spawned = pl__stat_spawned() - back;
	st->tasks_alive = minus(st->tasks_spawned, st->tasks_ended);
}

static void add_timers(struct pl_stat *st)
{
	uint64_t added, fired, deleted, busy_ns;

	pl__timers_stat(pl__rt.timers, &added, &fired, &deleted, &busy_ns,
			&st->timers_alive);
	st->timers_added += added;
	st->timers_fired += fired;
	st->timers_deleted += deleted;
	st->timer_busy_ns += busy_ns;
}

/* Of the number of workers that are to run, by what it was changed for. */
static void add_changes(struct pl_stat *st, struct pl__group *g)
{
	uint64_t waits = load_relaxed(&g->nr_changes[PL__RAISED_WAITS]);
	uint64_t stuck = load_relaxed(&g->nr_changes[PL__RAISED_STUCK]);
	uint64_t more = load_relaxed(&g->nr_changes[PL__RAISED_TRIAL]);
	uint64_t back = load_relaxed(&g->nr_changes[PL__RAISED_BACK]);
	uint64_t less = load_relaxed(&g->nr_changes[PL__LOWERED_BACK]);
	uint64_t fewer = load_relaxed(&g->nr_changes[PL__LOWERED_TRIAL]);

	st->active_raised += waits + stuck + more + back;
	st->active_lowered += less + fewer;
	st->raised_waits += waits;
	st->raised_stuck += stuck;
	st->raised_trial += more;
	st->raised_back += back;
	st->lowered_back += less;
	st->lowered_trial += fewer;
}

static void add_group(struct pl_stat *st, struct pl__group *g)
{
	st->wakes += atomic_load(&g->wakes_outside);
	st->wakes_empty += atomic_load(&g->lots.nr_empty);
	st->blocks += atomic_load(&g->lots.nr_called);
	st->set_aside += load_relaxed(&g->aside.nr_put);
	st->spares += load_relaxed(&g->aside.nr_spares);
	st->background_late += load_relaxed(&g->background.nr_late);
	add_changes(st, g);
	st->spawns_refused += load_relaxed(&g->task_limit.nr_refused);
	st->spawns_waited += load_relaxed(&g->task_limit.nr_waited);
}

static void add_runtime(struct pl_stat *st)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;
	struct pl__group *g;

	for (i = 0; i < nr; i++)
		add_worker(st, pl__rt.workers[i]);
	pl__for_each_group(g, i)
		add_group(st, g);
	st->all_blocked += load_relaxed(&pl__rt.nr_all_blocked);
	st->blocks += load_relaxed(&pl__rt.nr_blocks);
	st->stalls += load_relaxed(&pl__rt.nr_stalls);
	st->stalls_over += load_relaxed(&pl__rt.nr_stalls_over);
	st->spawns_refused += load_relaxed(&pl__rt.task_limit.nr_refused);
	st->spawns_waited += load_relaxed(&pl__rt.task_limit.nr_waited);
	add_timers(st);
}

/*
 * The ring of any worker that has one: all are of one kind, or are about to
 * become so.
 */
static struct pl__ring *ring_in_use(uint32_t nr)
{
	struct pl__ring *ring = NULL;
	uint32_t i;

	for (i = 0; i < nr && !ring; i++)
		ring = load_acquire(&pl__rt.workers[i]->ring_seen);
	return ring;
}

static void add_gauges(struct pl_stat *st, struct pl__group *g)
{
	st->workers += load_relaxed(&g->nr_alive);
	st->workers_parked += load_relaxed(&g->nr_idle);
	st->workers_blocked += pl__nr_blocked(g);
	st->background_ready += load_relaxed(&g->background.nr);
	st->workers_stalled += load_relaxed(&g->nr_stalled);
	st->workers_active += load_relaxed(&g->active);
}

static void set_gauges(struct pl_stat *st)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started);
	struct pl__ring *ring = ring_in_use(nr);
	struct pl__group *g;
	uint32_t i;

	st->stacks_unguarded = pl__stacks_unguarded(&pl__rt.stacks);
	st->stacks = atomic_load(&pl__rt.stacks.nr_out);
	st->backend = pl__rt.backend;
	st->max_tasks = pl__rt.cfg.max_tasks;
	st->io = ring ? pl__ring_kind(ring) : PL_IO_NONE;
	if (st->io == PL_IO_URING && pl__uring_has_failed())
		st->io = PL_IO_POLL;
	st->wait = ring ? pl__ring_way(ring) : PL_WAIT_NONE;
	pl__for_each_group(g, i)
		add_gauges(st, g);
	st->workers_running = minus(st->workers, st->workers_parked +
					(uint64_t)st->workers_blocked);
}

void pl__stat_drain(void)
{
	pl__lock(&past_lock);
	is_draining = true;
	pl__unlock(&past_lock);
}

void pl__stat_keep(void)
{
	uint64_t spawned, ended;

	pl__lock(&past_lock);
	is_draining = false;
	spawned = pl__stat_spawned();
	ended = pl__stat_ended();
	add_runtime(&past);
	past.timers_alive = 0;
	past.io_in_flight = 0;
	store_relaxed(&pl__rt.spawned_past, spawned - nr_spawned_outside());
	store_relaxed(&pl__rt.ended_past,
		      ended - atomic_load(&pl__rt.ended_outside));
	pl__unlock(&past_lock);
}

/* None may enter the runtime, or there is none. */
static void read_past(struct pl_stat *st)
{
	pl__lock(&past_lock);
	*st = past;
	if (is_draining) {
		add_runtime(st);
		set_tasks(st);
	} else {
		st->tasks_ended = load_relaxed(&pl__rt.ended_past);
		st->tasks_spawned = load_relaxed(&pl__rt.spawned_past) +
				    nr_spawned_outside() -
				    atomic_load(&pl__rt.ended_outside);
	}
	pl__unlock(&past_lock);
}

int pl_stat_read(struct pl_stat *out)
{
	bool outside = !pl__self();
	struct pl_stat st;

	if (!pl__filled_is_valid(out))
		return -EINVAL;
	if (outside && !pl__rt_enter()) {
		read_past(&st);
	} else {
		st = past;
		add_runtime(&st);
		set_gauges(&st);
		set_tasks(&st);
		if (outside)
			pl__rt_exit();
	}
	pl__fill(out, &st, sizeof(st));
	return 0;
}

uint64_t pl__worker_cpu_ns(const struct pl__worker *w)
{
	return load_relaxed(&w->stat.cpu_past_ns) +
	       pl__tid_cpu_ns(load_relaxed(&w->tid));
}

static void read_worker(struct pl_stat_worker *st, struct pl__worker *w)
{
	st->cpu_ns = pl__worker_cpu_ns(w);
	st->switches = load_relaxed(&w->stat.switches);
	st->steals = load_relaxed(&w->stat.steals);
	st->parks = load_relaxed(&w->stat.parks);
	st->signals = load_relaxed(&w->stat.signals);
	st->nosignals = load_relaxed(&w->stat.nosignals);
	st->tasks_ended = load_relaxed(&w->stat.ended);
	st->lot = w->lot;
}

int pl_stat_worker(uint32_t i, struct pl_stat_worker *out)
{
	bool outside = !pl__self();
	struct pl_stat_worker st = PL_STAT_WORKER_INIT;
	int ret = -ENOENT;

	if (!pl__filled_is_valid(out))
		return -EINVAL;
	if (outside && !pl__rt_enter())
		return -ENOENT;
	if (i < load_acquire(&pl__rt.nr_started)) {
		read_worker(&st, pl__rt.workers[i]);
		ret = 0;
	}
	if (outside)
		pl__rt_exit();
	if (ret)
		return ret;
	pl__fill(out, &st, sizeof(st));
	return 0;
}

/*
 * queue_delay: percentiles of the time from ready to run
 *
 * The caller's struct keeps what was counted at its last call, so that each
 * caller has an interval of its own, and no call writes what workers use.
 */

#define BINS	PL__LATENCY_BINS

#define SIZE_FIRST	PL__GROWN_FIRST(struct pl_queue_delay, seen)

_Static_assert(ARRAY_SIZE(((struct pl_queue_delay *)0)->seen) == BINS,
	       "one for each bin");

static void queue_delay_add(uint64_t *bin, const struct pl__latency_hist *d)
{
	uint32_t i;

	for (i = 0; i < BINS; i++)
		bin[i] += load_relaxed(&d->bin[i]);
}

static void queue_delay_sum(uint64_t *bin)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;

	for (i = 0; i < nr; i++) {
		queue_delay_add(bin, &pl__rt.workers[i]->io_latency);
		queue_delay_add(bin, &pl__rt.workers[i]->spawn_latency);
	}
}

/* The end of the bin below which @percent of all @nr are. */
static uint64_t queue_delay_below(const uint64_t *bin, uint64_t nr,
				  uint32_t percent)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < BINS - 1; i++) {
		sum += bin[i];
		if (sum * 100 >= nr * percent)
			break;
	}
	return 1ULL << (i + PL__LATENCY_SHIFT);
}

/* A runtime that was started anew counts from 0. */
static uint64_t queue_delay_since(uint64_t *bin, uint64_t *seen)
{
	uint64_t nr = 0, now;
	bool is_anew = false;
	uint32_t i;

	for (i = 0; i < BINS; i++)
		is_anew = is_anew || bin[i] < seen[i];
	for (i = 0; i < BINS; i++) {
		now = bin[i];
		bin[i] -= is_anew ? 0 : seen[i];
		seen[i] = now;
		nr += bin[i];
	}
	return nr;
}

/* Of those that are watched, the one that waits for longest. */
static uint64_t queue_delay_waiting(void)
{
	uint64_t since = UINT64_MAX, ns, now;
	uint32_t i;

	for (i = 0; i < PL__NR_STRIPES; i++) {
		ns = load_relaxed(&pl__rt.outside[i].sampled_ns);
		if (ns && ns < since)
			since = ns;
	}
	now = since == UINT64_MAX ? 0 : pl__now_ns();
	return now > since ? now - since : 0;
}

static void queue_delay_take(struct pl_queue_delay *qd, uint64_t *bin)
{
	qd->waiting_ns = queue_delay_waiting();
	qd->nr = queue_delay_since(bin, qd->seen);
	qd->p50_ns = qd->nr ? queue_delay_below(bin, qd->nr, 50) : 0;
	qd->p99_ns = qd->nr ? queue_delay_below(bin, qd->nr, 99) : 0;
}

int pl_queue_delay(struct pl_queue_delay *qd)
{
	bool outside = !pl__self();
	uint64_t bin[BINS] = { 0 };
	struct pl_queue_delay own;

	if (!pl__grown_is_valid(qd, SIZE_FIRST))
		return -EINVAL;
	if (!outside || pl__rt_enter()) {
		queue_delay_sum(bin);
		if (outside)
			pl__rt_exit();
	}
	pl__grown_read(&own, sizeof(own), qd);
	queue_delay_take(&own, bin);
	pl__grown_write(qd, &own, sizeof(own));
	return own.nr ? 0 : -ENODATA;
}
