/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/aside.h"
#include "sched/background.h"
#include "base/inject.h"
#include "base/sys.h"
#include "ring/ring.h"
#include "sched/kept.h"
#include "sched/sched.h"

#include <sys/resource.h>
#include <sys/syscall.h>

/* A task that its thread left for less is not said to have blocked. */
#define BLOCKED_NS_MIN	(50 * 1000ULL)

/* Of so many taken one has not started yet, if any is there. */
#define UNSTARTED_EVERY	4

/* ---- the queue ---- */

static struct pl__aside_queue *queue_for(enum pl__run run)
{
	return run == PL__RUN_COMPUTES ? &pl__rt.aside.compute :
					 &pl__rt.aside.block;
}

static void aside_push(struct pl__task *t, enum pl__run run)
{
	struct pl__aside_queue *q = queue_for(run);

	pl__lock(&pl__rt.aside.lock);
	pl__fifo_append(t->stack ? &q->resumed : &q->unstarted, &t->link);
	if (!load_relaxed(&q->nr))
		store_relaxed(&q->taken_ns, pl__now_ns());
	atomic_fetch_add(&q->nr, 1);
	pl__unlock(&pl__rt.aside.lock);
	atomic_fetch_add_explicit(&pl__rt.aside.nr_put, 1,
				  memory_order_relaxed);
}

/*
 * Locked.  Those that were started go first, but not at each turn; nor to a
 * spare of which the last was short, against what its routine did before: the
 * others of this are, most likely, and take no turn that is worth one.
 */
static struct pl__task *aside_next(struct pl__aside_queue *q, bool was_short)
{
	bool is_started_first = !was_short && ++q->turn % UNSTARTED_EVERY;
	struct pl__fifo *first, *second;
	struct pl__link *l;

	first = is_started_first ? &q->resumed : &q->unstarted;
	second = is_started_first ? &q->unstarted : &q->resumed;
	l = pl__fifo_take(first);
	if (!l)
		l = pl__fifo_take(second);
	if (!l)
		return NULL;
	atomic_fetch_sub(&q->nr, 1);
	store_relaxed(&q->taken_ns, pl__now_ns());
	return container_of(l, struct pl__task, link);
}

/* Locked.  One that computes is counted before others may look. */
static struct pl__task *aside_next_of(enum pl__run run, bool was_short)
{
	struct pl__task *t;

	if (run == PL__RUN_BLOCKS)
		return aside_next(&pl__rt.aside.block, false);
	if (!pl__nr_may_compute())
		return NULL;
	t = aside_next(&pl__rt.aside.compute, was_short);
	if (t)
		atomic_fetch_add(&pl__rt.nr_stalled, 1);
	return t;
}

/* Of the two queues in turn. */
static struct pl__task *aside_pop(struct pl__worker *w, enum pl__run *run)
{
	struct pl__aside *a = &pl__rt.aside;
	struct pl__task *t = NULL;
	uint32_t i;

	if (!pl__aside_nr())
		return NULL;
	pl__lock(&a->lock);
	a->turn++;
	for (i = 0; i < 2 && !t; i++) {
		*run = (a->turn + i) % 2 ? PL__RUN_BLOCKS : PL__RUN_COMPUTES;
		t = aside_next_of(*run, w->spare_was_short);
	}
	pl__unlock(&a->lock);
	return t;
}

/* One more may compute: a spare takes the next soon, if any is idle. */
static void renew_compute(void)
{
	struct pl__aside *a = &pl__rt.aside;

	if (!load_relaxed(&a->compute.nr))
		return;
	pl__lock(&a->lock);
	store_relaxed(&a->compute.taken_ns, pl__now_ns());
	pl__unlock(&a->lock);
}

/* ---- spares ---- */

static uint64_t ns_of(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * NSEC_PER_SEC +
	       (uint64_t)tv->tv_usec * 1000;
}

/* How often the thread has slept; how long it has run. */
static uint64_t nr_sleeps(uint64_t *cpu_ns)
{
	struct rusage ru;

	*cpu_ns = 0;
	if (pl__syscall(SYS_getrusage, RUSAGE_THREAD, &ru))
		return 0;
	*cpu_ns = ns_of(&ru.ru_utime) + ns_of(&ru.ru_stime);
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

/* The spare counts as blocked so far; nr_stalled has it already. */
static void spare_begin_to_compute(struct pl__worker *w)
{
	/* [duty-b] pairs with [duty-a] in sysmon.c and relief.c. */
	pl__duty_uncount(atomic_exchange(&w->duty, PL__STALLED));
}

bool pl__spare_stop_to_compute(struct pl__worker *w)
{
	uint32_t duty = PL__STALLED;

	if (load_relaxed(&w->duty) != PL__STALLED)
		return false;
	renew_compute();
	atomic_fetch_add(&pl__rt.nr_blocked, 1);
	atomic_fetch_add(&pl__rt.nr_seen, 1);
	/* [duty-b] pairs with [duty-a] in sysmon.c and relief.c. */
	if (atomic_compare_exchange_strong(&w->duty, &duty, PL__BLOCKED))
		atomic_fetch_sub(&pl__rt.nr_stalled, 1);
	else
		pl__duty_uncount(PL__BLOCKED);
	/* [relief-a] pairs with [relief-b] in pl__nr_may_compute(). */
	pl__full_barrier();
	PL_INJECT("relief-a");
	return true;
}

static void spare_note(struct pl__worker *w, struct pl__task *t)
{
	w->spare_was_short = false;
	w->spare_task = t;
	w->spare_fn = pl__task_fn(t);
	w->spare_ns = pl__now_ns();
	w->spare_sleeps = nr_sleeps(&w->spare_cpu_ns);
	w->spare_own_waits = w->own_waits.nr;
}

/*
 * It computes if it used half of the time at least, where it slept.  Only
 * sysmon finds one that sleeps after all.
 */
static bool has_computed(uint64_t used_ns, uint64_t ns, bool has_slept)
{
	return used_ns >= pl__rt.stall_ns / 2 && pl__rt.has_sysmon &&
	       (!has_slept || 2 * used_ns >= ns);
}

/* False: it may have slept for a wait of the library's own, and only so. */
static bool spare_did(struct pl__worker *w, enum pl__run *run)
{
	uint64_t ns = pl__now_ns() - w->spare_ns, cpu_ns;
	bool has_slept;

	*run = PL__RUN_SHORT;
	if (ns < BLOCKED_NS_MIN)
		return true;
	has_slept = nr_sleeps(&cpu_ns) != w->spare_sleeps;
	if (has_computed(cpu_ns - w->spare_cpu_ns, ns, has_slept))
		*run = PL__RUN_COMPUTES;
	else if (has_slept)
		*run = PL__RUN_BLOCKS;
	return *run != PL__RUN_BLOCKS ||
	       w->own_waits.nr == w->spare_own_waits;
}

void pl__spare_judge(struct pl__worker *w)
{
	struct pl__task *t = w->spare_task;
	enum pl__run run;

	/* It is judged here, whatever sysmon saw. */
	store_relaxed(&w->sysmon.learned, PL__RUN_SHORT);
	if (!t)
		return;
	w->spare_task = NULL;
	if (!spare_did(w, &run))
		return;
	w->spare_was_short = run == PL__RUN_SHORT;
	pl__forecast_add(w->spare_fn, run);
	if (w->current == t)
		t->score = pl__forecast_score(t->score, run);
}

/* ---- setting aside ---- */

/*
 * Tasks of others count, too: where those are blocked and max_workers are
 * alive, this may be the last worker that runs them.  Of a crowd there are more
 * in its own queues, so it looks there first.
 */
static bool has_nothing_else(struct pl__worker *w)
{
	return !load_relaxed(&w->is_spare) && !w->nr_unsignalled &&
	       pl__deque_empty(&w->deque) && pl__deque_empty(&w->events) &&
	       !(w->ring && pl__ring_is_busy(w->ring)) &&
	       !pl__work_anywhere();
}

static void aside_queue(struct pl__worker *w, struct pl__task *t,
			enum pl__run run)
{
	aside_push(t, run);
	if (run == PL__RUN_COMPUTES)
		pl__sysmon_notify_compute();
	pl__aside_notify(w);
}

bool pl__aside_spawn(struct pl__worker *w, struct pl__task *t)
{
	if (!pl__can_have_spares())
		return false;
	t->score = pl__forecast_blocks();
	store_relaxed(&pl__forecast_has_any, true);
	aside_queue(w, t, PL__RUN_BLOCKS);
	return true;
}

/* @w has nothing else to do; false: too many compute. */
static bool run_as_spare(struct pl__worker *w, struct pl__task *t,
			 enum pl__run run)
{
	if (run == PL__RUN_COMPUTES) {
		if (!pl__nr_may_compute())
			return false;
		atomic_fetch_add(&pl__rt.nr_stalled, 1);
	}
	spare_begin_to_block(w);
	if (run == PL__RUN_COMPUTES)
		spare_begin_to_compute(w);
	spare_note(w, t);
	pl__full_barrier();
	pl__notify_if_work();
	return true;
}

/* A background task that computes waits in its own queue, not with others. */
bool pl__aside_put(struct pl__worker *w, struct pl__task *t)
{
	enum pl__run run = pl__forecast(t);

	if (run == PL__RUN_SHORT || !pl__can_have_spares() ||
	    (has_nothing_else(w) && run_as_spare(w, t, run)) ||
	    (run == PL__RUN_COMPUTES && pl__is_background(t)))
		return false;
	aside_queue(w, t, run);
	return true;
}

struct pl__task *pl__aside_take(struct pl__worker *w)
{
	bool was_spare = load_relaxed(&w->is_spare);
	enum pl__run run = PL__RUN_BLOCKS;
	struct pl__task *t;

	/* So that it may take the next one that computes. */
	if (was_spare)
		pl__spare_stop_to_compute(w);
	if (!pl__aside_nr())
		return NULL;
	if (!was_spare)
		spare_begin_to_block(w);
	t = aside_pop(w, &run);
	if (t) {
		store_relaxed(&w->tick, load_relaxed(&w->tick) + 1);
		if (run == PL__RUN_COMPUTES)
			spare_begin_to_compute(w);
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
static bool is_overdue(struct pl__aside_queue *q)
{
	return load_relaxed(&q->nr) &&
	       (int64_t)(pl__now_ns() - load_relaxed(&q->taken_ns)) >=
	       (int64_t)PL__ASIDE_OVERDUE_NS;
}

/* One that computes does not count as stalled here. */
struct pl__task *pl__aside_take_overdue(struct pl__worker *w)
{
	struct pl__aside *a = &pl__rt.aside;
	struct pl__task *t = NULL;

	if (!pl__aside_nr() || load_relaxed(&pl__rt.nr_idle) || nr_arriving())
		return NULL;
	pl__lock(&a->lock);
	if (is_overdue(&a->block))
		t = aside_next(&a->block, false);
	else if (pl__nr_may_compute() && is_overdue(&a->compute))
		t = aside_next(&a->compute, false);
	pl__unlock(&a->lock);
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
