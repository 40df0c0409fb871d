/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/elastic.h"
#include "base/inject.h"
#include "base/probe.h"
#include "base/sys.h"
#include "sched/sched.h"

#include <string.h>

#define WAIT_NS		(100 * 1000ULL)	/* a task waits so long: too few run */
#define STUCK_NS	(40 * 1000ULL)	/* no task taken for so long: too few */
#define INTERVAL_NS	(200 * 1000ULL)	/* of looks while more may run */
#define QUIET_NS	(2 * 1000 * 1000ULL) /* if none waits, or no more pay */
#define WINDOW_NS	(5 * 1000 * 1000ULL)	/* to judge from */
#define EACH_NS		(50 * 1000ULL)	/* of a window, for each worker */
#define GONE_NS		(100 * 1000 * 1000ULL)	/* void after such a sleep */
#define HOLD_FIRST_NS	(20 * 1000 * 1000ULL)	/* a judgement holds */
#define HOLD_LAST_NS	(2 * NSEC_PER_SEC)

/* Percent. */
#define ROOM		60	/* so much of fewer is used: fewer suffice */
#define ALL		105	/* no more than all of fewer: may suffice */
#define SAME		95	/* at least so much of before: as good */

/* Batches: how sure it is that a batch needs more workers. */
#define BATCH_SURE	2
#define BATCH_MOST	3

/* What the workers did in a while. */
struct elastic_work {
	uint64_t	us;		/* its length */
	uint64_t	used_us;	/* processor time */
	uint32_t	taken;		/* tasks */
	bool		is_saturated;	/* tasks waited at all looks */
};

/* W: sysmon's thread, and while no sysmon runs. */
static struct {
	bool			is_on;
	uint64_t		look_ns;	/* the last look */
	uint32_t		look_ticks;	/* tasks taken until then */
	uint64_t		since_ns;	/* the window, to judge by */
	uint32_t		since_ticks;
	bool			is_saturated;
	bool			has_waited;	/* tasks, at the last look */
	uint32_t		nr_untried;	/* before a trial, or 0 */
	struct elastic_work	before;		/* that trial, with those */
	uint64_t		refused_until; /* more do not pay */
	uint64_t		refuse_ns;
	uint64_t		paid_until; /* fewer do not pay */
	uint64_t		paid_ns;
} elastic;

/* L: lock is held. */
static struct {
	struct pl__lock		lock;	/* to change pl__rt.active */
	_Atomic bool		has_batch;	/* since sysmon looked */
	_Atomic bool		has_raised;	/* such a batch did */
	_Atomic uint32_t	sure;	/* 0 to BATCH_MOST; sysmon writes */
} batch;

static uint64_t double_hold(uint64_t ns)
{
	return ns * 2 < HOLD_LAST_NS ? ns * 2 : HOLD_LAST_NS;
}

static uint32_t nr_active(void)
{
	return load_relaxed(&pl__rt.active);
}

/* ---- what is seen ---- */

uint32_t pl__nr_ticks(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i, sum = 0;

	for (i = 0; i < nr; i++)
		sum += load_relaxed(&pl__rt.workers[i]->tick);
	return sum;
}

static uint64_t nr_waiting(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;
	uint64_t sum = 0;

	for (i = 0; i < nr; i++)
		sum += pl__deque_len(&pl__rt.workers[i]->deque) +
		       pl__deque_len(&pl__rt.workers[i]->events);
	return sum ? sum : 1;
}

/* Processor time that the workers have used since the last call. */
static uint64_t cpu_used(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;
	uint64_t sum = 0, ns;
	struct pl__worker *w;
	int tid;

	for (i = 0; i < nr; i++) {
		w = pl__rt.workers[i];
		tid = load_relaxed(&w->tid);
		ns = tid ? pl__tid_cpu_ns(tid) : 0;
		if (ns > w->sysmon.elastic_cpu_ns)
			sum += ns - w->sysmon.elastic_cpu_ns;
		w->sysmon.elastic_cpu_ns = ns;
	}
	return sum;
}

static void window_begin(uint64_t now, uint32_t ticks)
{
	elastic.since_ns = now;
	elastic.since_ticks = ticks;
	elastic.is_saturated = true;
}

/* ---- the number ---- */

/* The crew follows; the number is never above the target. */
static void set_active_locked(uint32_t nr, int why)
{
	uint32_t old = nr_active(), most = load_relaxed(&pl__rt.target);

	if (nr > most)
		nr = most;
	if (nr == old)
		return;
	atomic_store(&pl__rt.active, nr);
	pl__crew_set(&pl__rt.lots, nr);
	PL_PROBE3(active, old, nr, why);
}

/* Another thread may have raised it further meanwhile: that stands. */
static void set_active(uint32_t nr, enum pl__elastic_why why)
{
	uint32_t old;

	pl__lock(&batch.lock);
	old = nr_active();
	if (nr > old || why >= PL__LOWERED_UNUSED)
		set_active_locked(nr, (int)why);
	if (nr_active() != old)
		counter_inc(&pl__rt.nr_changes[why]);
	pl__unlock(&batch.lock);
}

static void raise_to(uint32_t nr, enum pl__elastic_why why)
{
	uint32_t old = nr_active();

	if (nr <= old)
		return;
	set_active(nr, why);
	pl__full_barrier();
	pl__notify_more(nr - old);
}

/* ---- batches ---- */

void pl__elastic_batch(uint32_t nr)
{
	uint32_t old = nr_active(), most = load_relaxed(&pl__rt.target);

	if (old >= most || nr <= old)
		return;
	store_relaxed(&batch.has_batch, true);
	if (load_relaxed(&batch.sure) < BATCH_SURE)
		return;
	store_relaxed(&batch.has_raised, true);
	set_active(nr < most - old ? old + nr : most, PL__RAISED_BATCH);
	/* [elastic-b] pairs with [elastic-a] in sysmon.c. */
	pl__full_barrier();
	PL_INJECT("elastic-b");
	if (load_relaxed(&pl__rt.sysmon) == PL__SYSMON_ASLEEP)
		pl__sysmon_kick();
}

static void batch_learn(bool has_needed)
{
	uint32_t sure = load_relaxed(&batch.sure);

	if (has_needed && sure < BATCH_MOST)
		store_relaxed(&batch.sure, sure + 1);
	else if (!has_needed && sure)
		store_relaxed(&batch.sure, sure - 1);
}

/* More workers run, as tasks wait. */
static void batch_grown(void)
{
	if (!load_relaxed(&batch.has_batch))
		return;
	store_relaxed(&batch.has_batch, false);
	batch_learn(true);
}

/* A window ends: a batch has needed no more, or not those that it has got. */
static void batch_window_end(const struct elastic_work *m)
{
	bool has_raised = load_relaxed(&batch.has_raised);

	if (!load_relaxed(&batch.has_batch))
		return;
	store_relaxed(&batch.has_batch, false);
	store_relaxed(&batch.has_raised, false);
	if (!has_raised || m->used_us < m->us / 2)
		batch_learn(false);
}

/* ---- more ---- */

/* It has tasks, and has taken none since the last look. */
static bool is_stuck(struct pl__worker *w)
{
	uint32_t tick = load_relaxed(&w->tick);
	bool is_same = tick == w->sysmon.elastic_tick;

	w->sysmon.elastic_tick = tick;
	return is_same && load_relaxed(&w->duty) == PL__RUNS &&
	       (!pl__deque_empty(&w->deque) || !pl__deque_empty(&w->events) ||
		load_relaxed(&w->ring_state) == PL__ORPHAN_READY);
}

static uint32_t nr_stuck(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i, sum = 0;

	for (i = 0; i < nr; i++)
		sum += is_stuck(pl__rt.workers[i]);
	return sum;
}

/*
 * Tasks wait for long, by Little's law, at two looks in a row.  The first may
 * come with the burst, all of which is run in a moment.
 */
static bool is_wait_long(uint64_t ns, uint64_t waiting, uint32_t taken)
{
	bool has_waited = elastic.has_waited;

	elastic.has_waited = waiting * ns / taken >= WAIT_NS;
	return has_waited && elastic.has_waited;
}

/*
 * How many more are to run: tasks wait for long, or behind one that computes.
 * The latter ends a trial.
 */
static uint32_t nr_more(uint64_t now, uint32_t ticks,
			enum pl__elastic_why *why)
{
	uint64_t ns = now - elastic.look_ns, waiting = nr_waiting();
	uint32_t taken = ticks - elastic.look_ticks, stuck = nr_stuck();

	if (pl__is_short())
		return 0;
	*why = PL__RAISED_STUCK;
	if (!taken || stuck)
		return ns < STUCK_NS ? 0 : taken ? stuck : (uint32_t)waiting;
	if (elastic.nr_untried || now < elastic.refused_until ||
	    !is_wait_long(ns, waiting, taken))
		return 0;
	*why = PL__RAISED_WAITS;
	return nr_active() < waiting ? nr_active() : (uint32_t)waiting;
}

static bool elastic_grow(uint64_t now, uint32_t ticks)
{
	uint32_t nr = nr_active(), most = load_relaxed(&pl__rt.target), more;
	enum pl__elastic_why why;

	if (nr >= most)
		return false;
	more = nr_more(now, ticks, &why);
	if (!more)
		return false;
	elastic.has_waited = false;
	elastic.nr_untried = 0;
	batch_grown();
	cpu_used();
	window_begin(now, ticks);
	raise_to(more < most - nr ? nr + more : most, why);
	return true;
}

/* ---- does it pay? ---- */

/*
 * As many tasks are taken, or as much processor time is got: then the others
 * only waited for processors.
 */
static bool is_as_good(const struct elastic_work *few,
		       const struct elastic_work *many)
{
	return !few->is_saturated ||
	       few->taken * many->us * 100 >= many->taken * few->us * SAME ||
	       few->used_us * many->us * 100 >= many->used_us * few->us * SAME;
}

/* A window with fewer workers than before is over. */
static void end_trial(uint64_t now, const struct elastic_work *few)
{
	uint32_t nr = elastic.nr_untried;

	elastic.nr_untried = 0;
	if (is_as_good(few, &elastic.before)) {
		elastic.refused_until = now + elastic.refuse_ns;
		elastic.refuse_ns = double_hold(elastic.refuse_ns);
		elastic.paid_ns = HOLD_FIRST_NS;
	} else {
		elastic.paid_until = now + elastic.paid_ns;
		elastic.paid_ns = double_hold(elastic.paid_ns);
		elastic.refuse_ns = HOLD_FIRST_NS;
		raise_to(nr, PL__RAISED_BACK);
	}
}

/* How many would do if each were used to so many percent. */
static uint32_t nr_enough(const struct elastic_work *m, uint32_t percent)
{
	uint64_t each = m->us * percent / 100;

	return m->used_us <= each ? 1 :
	       (uint32_t)((m->used_us + each - 1) / each);
}

/* Tries fewer where the workers had no more than these can use. */
static void shrink(uint64_t now, const struct elastic_work *m)
{
	uint32_t nr = nr_active(), enough = nr_enough(m, ROOM);

	/* The load has gone that more workers were of no use for. */
	if (!m->is_saturated && m->used_us * 100 < m->us * ROOM)
		elastic.refused_until = 0;
	if (nr <= 1)
		return;
	if (!m->is_saturated && enough < nr) {
		set_active(enough, PL__LOWERED_UNUSED);
		return;
	}
	enough = nr_enough(m, ALL);
	if (enough >= nr || now < elastic.paid_until)
		return;
	elastic.nr_untried = nr;
	elastic.before = *m;
	set_active(enough, PL__LOWERED_TRIAL);
}

static void window_end(uint64_t now, uint32_t ticks)
{
	struct elastic_work m = {
		.us = (now - elastic.since_ns) / 1000,
		.used_us = cpu_used() / 1000,
		.taken = ticks - elastic.since_ticks,
		.is_saturated = elastic.is_saturated,
	};

	batch_window_end(&m);
	if (elastic.nr_untried)
		end_trial(now, &m);
	else
		shrink(now, &m);
	window_begin(now, ticks);
}

/* ---- for sysmon ---- */

/* Reading the clocks of all workers takes a part of it that stays small. */
static uint64_t window_ns(void)
{
	uint64_t ns = load_relaxed(&pl__rt.nr_started) * EACH_NS;

	return ns > WINDOW_NS ? ns : WINDOW_NS;
}

bool pl__elastic_look(uint64_t now, bool has_work)
{
	uint32_t ticks;
	bool is_raised;

	if (!elastic.is_on)
		return false;
	ticks = pl__nr_ticks();
	if (now - elastic.look_ns > GONE_NS) {
		elastic.nr_untried = 0;
		cpu_used();
		window_begin(now, ticks);
		elastic.look_ns = now;
		elastic.look_ticks = ticks;
	}
	elastic.is_saturated &= has_work;
	elastic.has_waited &= has_work;
	is_raised = has_work && elastic_grow(now, ticks);
	if (!is_raised && now - elastic.since_ns >= window_ns())
		window_end(now, ticks);
	elastic.look_ns = now;
	elastic.look_ticks = ticks;
	return is_raised;
}

uint64_t pl__elastic_interval(uint64_t ns, bool has_work)
{
	uint64_t most = INTERVAL_NS;

	if (!elastic.is_on || nr_active() >= load_relaxed(&pl__rt.target))
		return ns;
	if (!has_work || elastic.nr_untried ||
	    elastic.look_ns < elastic.refused_until)
		most = QUIET_NS;
	return ns < most ? ns : most;
}

uint64_t pl__elastic_deadline(uint64_t now, uint64_t deadline_ns)
{
	uint64_t lower_ns = now + HOLD_FIRST_NS;

	return elastic.is_on && nr_active() > 1 && lower_ns < deadline_ns ?
	       lower_ns : deadline_ns;
}

void pl__elastic_follow(void)
{
	pl__lock(&batch.lock);
	set_active_locked(elastic.is_on ? nr_active() : UINT32_MAX,
			  PL__NR_ELASTIC_WHY);
	pl__unlock(&batch.lock);
}

void pl__elastic_start(bool is_elastic)
{
	int why;

	memset(&elastic, 0, sizeof(elastic));
	memset(&batch, 0, sizeof(batch));
	elastic.is_on = is_elastic;
	elastic.refuse_ns = elastic.paid_ns = HOLD_FIRST_NS;
	store_relaxed(&pl__rt.active, 0);
	pl__lock(&batch.lock);
	set_active_locked(is_elastic ? 1 : UINT32_MAX, PL__NR_ELASTIC_WHY);
	pl__unlock(&batch.lock);
	for (why = 0; why < PL__NR_ELASTIC_WHY; why++)
		store_relaxed(&pl__rt.nr_changes[why], 0);
}
