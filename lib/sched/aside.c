/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/aside.h"
#include "base/inject.h"
#include "base/sys.h"
#include "ring/ring.h"
#include "sched/inbox.h"
#include "sched/kept.h"
#include "sched/sched.h"

#include <sys/resource.h>
#include <sys/syscall.h>

/* A task that its thread left for less is not said to have blocked. */
#define BLOCKED_NS_MIN	(50 * 1000ULL)

/* Of so many taken one has not started yet, if any is there. */
#define UNSTARTED_EVERY	4

/* ---- the queue ---- */

static void aside_push(struct pl__task *t)
{
	struct pl__aside *a = &pl__rt.aside;

	pl__lock(&a->lock);
	pl__fifo_append(t->stack ? &a->resumed : &a->unstarted, &t->link);
	if (!load_relaxed(&a->nr))
		store_relaxed(&a->taken_ns, pl__now_ns());
	atomic_fetch_add(&a->nr, 1);
	pl__unlock(&a->lock);
	atomic_fetch_add_explicit(&a->nr_put, 1, memory_order_relaxed);
}

/* Locked.  Those that were started go first, but not at each turn. */
static struct pl__link *aside_next(struct pl__aside *a)
{
	bool is_started_first = ++a->turn % UNSTARTED_EVERY;
	struct pl__fifo *first, *second;
	struct pl__link *l;

	first = is_started_first ? &a->resumed : &a->unstarted;
	second = is_started_first ? &a->unstarted : &a->resumed;
	l = pl__fifo_take(first);
	return l ? l : pl__fifo_take(second);
}

static struct pl__task *aside_pop(void)
{
	struct pl__aside *a = &pl__rt.aside;
	struct pl__link *l;

	if (!pl__aside_nr())
		return NULL;
	pl__lock(&a->lock);
	l = aside_next(a);
	if (l) {
		atomic_fetch_sub(&a->nr, 1);
		store_relaxed(&a->taken_ns, pl__now_ns());
	}
	pl__unlock(&a->lock);
	return l ? container_of(l, struct pl__task, link) : NULL;
}

/* ---- spares ---- */

static uint64_t nr_sleeps(void)
{
	struct rusage ru;

	if (pl__syscall(SYS_getrusage, RUSAGE_THREAD, &ru))
		return 0;
	return (uint64_t)ru.ru_nvcsw;
}

void pl__spare_begin(struct pl__worker *w)
{
	_Atomic uint32_t *crew_word = load_relaxed(&w->crew_word);

	store_relaxed(&w->is_spare, true);
	if (crew_word)
		store_relaxed(crew_word, 1);
	atomic_fetch_add(&pl__rt.nr_blocked, 1);
	atomic_fetch_add(&pl__rt.nr_seen, 1);
	/* [duty-b] pairs with [duty-a] in sysmon.c and relief.c. */
	pl__duty_uncount(atomic_exchange(&w->duty, PL__BLOCKED));
}

void pl__spare_end(struct pl__worker *w)
{
	_Atomic uint32_t *crew_word = load_relaxed(&w->crew_word);

	store_relaxed(&w->is_spare, false);
	pl__unblocked(w);
	if (crew_word)
		store_relaxed(crew_word, 0);
}

/* It does not come to its deadlines, either. */
static void spare_begin_to_block(struct pl__worker *w)
{
	pl__spare_begin(w);
	store_relaxed(&w->may_keep, false);
	pl__kept_give_up(w);
}

static void spare_note(struct pl__worker *w, struct pl__task *t)
{
	w->spare_task = t;
	w->spare_fn = pl__task_fn(t);
	w->spare_ns = pl__now_ns();
	w->spare_sleeps = nr_sleeps();
	w->spare_own_waits = w->own_waits.nr;
}

void pl__spare_judge(struct pl__worker *w)
{
	struct pl__task *t = w->spare_task;
	bool has_blocked;

	if (!t)
		return;
	w->spare_task = NULL;
	has_blocked = pl__now_ns() - w->spare_ns >= BLOCKED_NS_MIN &&
		      nr_sleeps() != w->spare_sleeps;
	/* It may have slept for these only. */
	if (has_blocked && w->own_waits.nr != w->spare_own_waits)
		return;
	pl__forecast_add(w->spare_fn, has_blocked);
	if (w->current == t)
		t->score = pl__forecast_score(t->score, has_blocked);
}

/* ---- setting aside ---- */

static bool has_nothing_else(struct pl__worker *w)
{
	return !load_relaxed(&w->is_spare) && !pl__aside_nr() &&
	       !w->nr_unsignalled && pl__deque_empty(&w->deque) &&
	       pl__deque_empty(&w->events) && pl__inboxes_empty() &&
	       !(w->ring && pl__ring_is_busy(w->ring));
}

static bool can_have_spares(void)
{
	return pl__rt.cfg.max_workers > load_relaxed(&pl__rt.target);
}

static void aside_queue(struct pl__worker *w, struct pl__task *t)
{
	aside_push(t);
	pl__aside_notify(w);
}

bool pl__aside_spawn(struct pl__worker *w, struct pl__task *t)
{
	if (!can_have_spares())
		return false;
	t->score = PL__FORECAST_MOST;
	store_relaxed(&pl__forecast_has_any, true);
	aside_queue(w, t);
	return true;
}

bool pl__aside_put(struct pl__worker *w, struct pl__task *t)
{
	if (!pl__forecast_blocks(t) || !can_have_spares())
		return false;
	if (has_nothing_else(w)) {
		spare_note(w, t);
		spare_begin_to_block(w);
		pl__full_barrier();
		pl__notify_if_work();
		return false;
	}
	aside_queue(w, t);
	return true;
}

struct pl__task *pl__aside_take(struct pl__worker *w)
{
	bool was_spare = load_relaxed(&w->is_spare);
	struct pl__task *t;

	if (!pl__aside_nr())
		return NULL;
	if (!was_spare)
		spare_begin_to_block(w);
	t = aside_pop();
	if (t) {
		store_relaxed(&w->tick, load_relaxed(&w->tick) + 1);
		spare_note(w, t);
	} else if (!was_spare) {
		pl__spare_end(w);
	}
	/* Others may have left a task to this worker while it ran. */
	if (!was_spare || pl__aside_nr()) {
		pl__full_barrier();
		pl__notify_if_work();
	}
	return t;
}

/* Workers that start and are not in their hook, which may take long. */
static uint32_t nr_arriving(void)
{
	uint32_t nr = load_relaxed(&pl__rt.nr_starting);
	uint32_t in_hook = load_relaxed(&pl__rt.nr_in_hook);

	return nr > in_hook ? nr - in_hook : 0;
}

/* A spare may take one after this has read the clock. */
static bool is_overdue(void)
{
	return !load_relaxed(&pl__rt.nr_idle) && !nr_arriving() &&
	       (int64_t)(pl__now_ns() - load_relaxed(&pl__rt.aside.taken_ns)) >=
	       (int64_t)PL__ASIDE_OVERDUE_NS;
}

struct pl__task *pl__aside_take_overdue(struct pl__worker *w)
{
	struct pl__task *t;

	if (!pl__aside_nr() || !is_overdue())
		return NULL;
	t = aside_pop();
	w->overdue = t;
	return t;
}

/* ---- notification ---- */

static uint32_t aside_nr_awaited(void)
{
	return load_relaxed(&pl__rt.nr_searching) +
	       load_relaxed(&pl__rt.nr_starting);
}

/* No other is started for those in their hook, but an idle one is woken. */
static uint32_t aside_nr_due(void)
{
	return load_relaxed(&pl__rt.nr_searching) + nr_arriving();
}

/*
 * A start takes a processor; more of them at a time only delay each other, and
 * the tasks that events made ready.
 */
uint32_t pl__nr_may_start(void)
{
	uint32_t nr = load_relaxed(&pl__rt.nr_starting), most;

	most = pl__rt.nr_cpus < PL__ASIDE_STARTERS ? pl__rt.nr_cpus :
						     PL__ASIDE_STARTERS;
	return nr < most ? most - nr : 0;
}

void pl__aside_notify(struct pl__worker *w)
{
	uint32_t nr, due;

	/* [aside-b] pairs with [aside-a] in worker.c and worker_park.c. */
	pl__full_barrier();
	PL_INJECT("aside-b");
	nr = pl__aside_nr();
	due = aside_nr_due();
	if (nr > due)
		pl__wake_idle(w, nr - due);
	while (pl__aside_nr() > aside_nr_awaited() && pl__nr_may_start())
		if (pl__worker_start_spare()) {
			/* It tells if no spare is ever through. */
			pl__sysmon_notify();
			break;
		}
}
