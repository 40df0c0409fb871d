/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "run/run.h"
#include "queue/aside.h"
#include "base/inject.h"
#include "base/sys.h"
#include "pace/kept.h"

#include <sys/resource.h>
#include <sys/syscall.h>

/* A task that its thread left for less is not said to have blocked. */
#define BLOCKED_NS_MIN	(50 * 1000ULL)

/* ---- what it did ---- */

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

/* It does not come to its deadlines, either. */
static void spare_begin_to_block(struct pl__worker *w)
{
	pl__duty(w, PL__STANDS_IN);
	store_relaxed(&w->may_keep, false);
	pl__kept_give_up(w);
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
	return !pl__is_spare(w) && !w->nr_unsignalled &&
	       pl__deque_empty(&w->deque) && pl__deque_empty(&w->events) &&
	       !pl__has_io(w) &&
	       !pl__work_anywhere(w->group);
}

/* By worker @w of its group or, NULL, by another thread. */
static void aside_queue(struct pl__worker *w, struct pl__task *t,
			enum pl__run run)
{
	/* Once it is queued the task may end, and its slot be another's. */
	struct pl__group *g = pl__group_of(t);

	pl__aside_push(t, run);
	if (run == PL__RUN_COMPUTES)
		pl__sysmon_notify_compute();
	pl__aside_notify(g, w);
}

bool pl__aside_spawn(struct pl__worker *w, struct pl__task *t)
{
	if (!pl__can_have_spares(pl__group_of(t)))
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
	struct pl__group *g = w->group;

	if (run == PL__RUN_COMPUTES) {
		if (!pl__nr_may_compute(g))
			return false;
		atomic_fetch_add(&g->nr_stalled, 1);
	}
	spare_begin_to_block(w);
	if (run == PL__RUN_COMPUTES)
		pl__duty(w, PL__COMPUTES);
	spare_note(w, t);
	pl__full_barrier();
	pl__notify_if_work(g);
	return true;
}

/* A background task that computes waits in its own queue, not with others. */
bool pl__aside_put(struct pl__worker *w, struct pl__task *t)
{
	enum pl__run run = pl__forecast(t);

	if (run == PL__RUN_SHORT || !pl__can_have_spares(w->group) ||
	    (has_nothing_else(w) && run_as_spare(w, t, run)) ||
	    (run == PL__RUN_COMPUTES && pl__is_background(t)))
		return false;
	aside_queue(w, t, run);
	return true;
}

struct pl__task *pl__aside_take(struct pl__worker *w)
{
	struct pl__group *g = w->group;
	bool was_spare = pl__is_spare(w);
	enum pl__run run = PL__RUN_BLOCKS;
	struct pl__task *t;

	/* So that it may take the next one that computes. */
	if (was_spare)
		pl__spare_lets_compute(w);
	if (!pl__aside_nr(g))
		return NULL;
	if (!was_spare && pl__stands_in_last(w)) {
		pl__aside_notify(g, w);
		if (pl__aside_is_left(w))
			return NULL;
	}
	if (!was_spare)
		spare_begin_to_block(w);
	t = pl__aside_pop(g, w->spare_was_short, &run);
	if (t) {
		store_relaxed(&w->tick, load_relaxed(&w->tick) + 1);
		if (run == PL__RUN_COMPUTES)
			pl__duty(w, PL__COMPUTES);
		spare_note(w, t);
	} else if (!was_spare) {
		pl__duty(w, PL__IS_THROUGH);
	}
	/* Others may have left a task to this worker while it ran. */
	if (!was_spare || pl__aside_nr(g)) {
		pl__full_barrier();
		pl__notify_if_work(g);
	}
	return t;
}

/* One that computes does not count as stalled here. */
struct pl__task *pl__aside_take_overdue(struct pl__worker *w)
{
	struct pl__group *g = w->group;

	if (!pl__aside_nr(g) || load_relaxed(&g->nr_idle) ||
	    pl__nr_arriving(g))
		return NULL;
	w->overdue = pl__aside_pop_overdue(g);
	return w->overdue;
}

/* ---- pl_blocking() ---- */

/*
 * The call takes one worker from those that run, so one is notified.  Only
 * tasks that the caller spawned without a signal may want more at once.
 */
static void blocking_notify(struct pl__worker *w)
{
	uint32_t nr = w->nr_unsignalled;

	w->nr_unsignalled = 0;
	if (nr > 1)
		pl__notify_many(w->group, nr);
	pl__full_barrier();
	pl__notify_if_work(w->group);
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
	if (pl__is_spare(w)) {
		if (pl__spare_lets_compute(w) || w->nr_unsignalled)
			blocking_notify(w);
		return NULL;
	}
	w->spare_task = NULL;
	pl__duty(w, PL__STANDS_IN);
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
	if (w && w == pl__self() && pl__is_spare(w))
		pl__duty(w, PL__IS_THROUGH);
	return 0;
}
