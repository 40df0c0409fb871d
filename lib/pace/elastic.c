/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "pace/pace.h"
#include "base/base.h"
#include "base/sys.h"
#include "pace/notify.h"
#include "queue/ready.h"

#include <string.h>

#define WAIT_NS		(100 * 1000ULL)	/* a task waits so long: too few run */
#define FAIL_NS		(1000 * 1000ULL) /* the same where fewer are tried */
#define RECENT_NS	(2 * 1000 * 1000ULL)	/* by the looks of so long */
#define STUCK_NS	(40 * 1000ULL)	/* no task taken for so long: too few */
#define INTERVAL_NS	(200 * 1000ULL)	/* of looks while tasks wait */
#define MEASURING_LOOKS	20	/* at least, in what is measured */
#define QUIET_NS	(2 * 1000 * 1000ULL)	/* of others */
#define MEASURE_NS	(10 * 1000 * 1000ULL)
#define EACH_NS		(100 * 1000ULL)	/* of that, for each worker */
#define SETTLE_NS	(2 * 1000 * 1000ULL)	/* before a trial counts */
#define GONE_NS		(100 * 1000 * 1000ULL)	/* void after such a sleep */
#define REST_FIRST_NS	(20 * 1000 * 1000ULL)	/* a verdict holds */
#define MORE_FIRST_NS	(300 * 1000 * 1000ULL)	/* the same against more */
#define REST_LAST_NS	(2 * NSEC_PER_SEC)
#define REST_TIMES	4

/* Percent. */
#define ALL		105	/* no more than all of fewer: may suffice */
#define BUSY		80	/* so much of all: more may do more */
#define LESS		99	/* of what others took: fewer */
#define LESS_CROWDED	90	/* the same beside crowded workers */
#define CROWDED		25	/* so much of all they lack a processor */
#define CHEAPER		85	/* of processor time for a task */

/* Tasks wait longer: a quarter, and what a look does not tell from nothing. */
#define LONGER		1.25
#define CLOSE_NS	2000
#define CLOSE_TASKS	0.25

/* What the workers did in a while. */
struct elastic_work {
	uint64_t	ns;		/* its length */
	uint64_t	taken;		/* tasks */
	uint32_t	nr;		/* workers, at the end */
	uint64_t	used_ns;	/* processor time, at the end */
	uint64_t	lacked_ns;	/* in a queue for one, the same */
	double		waited_ns;	/* all tasks together, by the looks */
	uint32_t	nr_looks;
	double		squares;	/* of a look's tasks, by its length */
};

/* What has changed since the last look. */
struct elastic_look {
	uint64_t	ns;
	uint64_t	waiting;	/* tasks, now */
	uint64_t	taken;		/* tasks */
};

enum elastic_phase {
	RESTS,
	MEASURES,	/* what those that run do */
	SETTLES,	/* another number runs, of which */
	TRIES,		/* it measures what these do */
};

/* A verdict against fewer, or against more. */
enum { AGAINST_FEWER, AGAINST_MORE, NR_VERDICTS };

/* One of each group.  W: sysmon's thread, and while no sysmon runs. */
static struct elastic {
	struct pl__group	*g;
	bool			is_on;
	enum elastic_phase	phase;
	uint64_t		until_ns;	/* of RESTS and SETTLES */
	uint64_t		look_ns;	/* the last look */
	uint64_t		busy_ns; /* the last at which it had tasks */
	bool			has_work;	/* tasks wait, at that look */
	uint32_t		look_taken;	/* tasks taken until then */
	bool			has_waited;	/* tasks, at the last look */
	struct elastic_work	recent;		/* a while for that */
	struct elastic_work	work;		/* in this phase */
	struct elastic_work	before;		/* the trial */
	bool			have_fewer_won;	/* no cause for more if */
	uint64_t		content_ns;	/* a task waits so long */
	uint64_t		held_until[NR_VERDICTS];
	uint64_t		hold_ns[NR_VERDICTS];	/* the next one */
	struct pl__lock		lock;	/* to change the group's `active` */
} elastics[PL_GROUPS_MAX];

static uint32_t nr_active(struct elastic *e)
{
	return load_relaxed(&e->g->active);
}

/* ---- what is seen ---- */

static uint64_t nr_waiting(struct elastic *e)
{
	uint32_t nr = load_acquire(&e->g->nr_started);
	uint64_t sum = 0;

	while (nr)
		sum += pl__nr_queued(e->g->workers[--nr]);
	return sum ? sum : 1;
}

/* Since the last call; 0 is no time. */
static uint64_t has_gone_on(uint64_t *clock_ns, uint64_t now_ns)
{
	uint64_t before_ns = *clock_ns;

	if (now_ns)
		*clock_ns = now_ns;
	return now_ns > before_ns ? now_ns - before_ns : 0;
}

/*
 * Processor time that the workers have used since the last call, and how long
 * they waited for it; but for those that compute for long, beside which others
 * run.  To ask how long takes a file, so spares and idle workers are not asked.
 */
static void read_clocks(struct elastic *e, struct elastic_work *m)
{
	uint32_t nr = load_acquire(&e->g->nr_started), i;
	uint64_t used, lacked;
	struct pl__worker *w;
	int tid;

	m->nr = nr_active(e);
	for (i = 0; i < nr; i++) {
		w = e->g->workers[i];
		tid = load_relaxed(&w->tid);
		used = has_gone_on(&w->sysmon.elastic_cpu_ns,
				   pl__tid_cpu_ns(tid));
		lacked = !used || pl__is_spare(w) ? 0 :
			 has_gone_on(&w->sysmon.elastic_lacked_ns,
				     pl__tid_lacked_ns(tid));
		if (pl__is_stalled(w))
			continue;
		m->used_ns += used;
		m->lacked_ns += lacked;
	}
}

/* ---- the number ---- */

/* The crew follows; the number is never above the target. */
static void set_active_locked(struct elastic *e, uint32_t nr, int why)
{
	uint32_t old = nr_active(e), most = load_relaxed(&e->g->target);

	if (nr > most)
		nr = most;
	if (nr == old)
		return;
	atomic_store(&e->g->active, nr);
	pl__crew_set(&e->g->lots, nr);
	PL_PROBE3(active, old, nr, why);
}

static void change_to(struct elastic *e, uint32_t nr, enum pl__elastic_why up,
		      enum pl__elastic_why down)
{
	enum pl__elastic_why why;
	uint32_t old;

	pl__lock(&e->lock);
	old = nr_active(e);
	why = nr > old ? up : down;
	set_active_locked(e, nr, (int)why);
	if (nr_active(e) != old)
		counter_inc(&e->g->nr_changes[why]);
	pl__unlock(&e->lock);
	if (nr <= old)
		return;
	pl__full_barrier();
	pl__notify_many(e->g, nr - old);
}

/* ---- trials ---- */

static void begin(struct elastic *e, enum elastic_phase phase,
		  uint64_t until_ns)
{
	e->phase = phase;
	e->until_ns = until_ns;
	memset(&e->work, 0, sizeof(e->work));
}

/*
 * Reading the clocks of all workers takes a part of it that stays small.  With
 * a quota, workers use it up, and then all of them wait for the next period;
 * the more there are the sooner.  So only whole periods tell what they do.
 */
static uint64_t measure_ns(struct elastic *e)
{
	uint64_t ns = load_relaxed(&e->g->nr_started) * EACH_NS;
	uint64_t period = pl__rt.quota_period_ns;

	if (ns < MEASURE_NS)
		ns = MEASURE_NS;
	return period ? (ns + period - 1) / period * period : ns;
}

/* Trials of fewer delay tasks: where they are longer they are rarer. */
static void hold(struct elastic *e, int verdict, uint64_t now)
{
	uint64_t ns = e->hold_ns[verdict], times = 1;

	if (verdict == AGAINST_FEWER)
		times = measure_ns(e) / MEASURE_NS;
	e->held_until[verdict] = now + ns * times;
	ns *= REST_TIMES;
	e->hold_ns[verdict] = ns < REST_LAST_NS ? ns : REST_LAST_NS;
}

/* Nothing was to do for a while: what comes may be another load.  All run. */
static void forget(struct elastic *e, uint64_t now)
{
	e->have_fewer_won = false;
	e->has_waited = false;
	memset(e->held_until, 0, sizeof(e->held_until));
	e->hold_ns[AGAINST_FEWER] = REST_FIRST_NS;
	e->hold_ns[AGAINST_MORE] = MORE_FIRST_NS;
	begin(e, RESTS, now + REST_FIRST_NS);
	change_to(e, load_relaxed(&e->g->target), PL__RAISED_BACK,
		  PL__LOWERED_BACK);
}

/* Tasks in a ns. */
static double rate_of(const struct elastic_work *m)
{
	return (double)m->taken / (double)m->ns;
}

/*
 * By how much the rate may differ from another's by chance, as a square: twice
 * the deviation of tasks that come by themselves; or three times what looks
 * differ by, where that is less, as each task waits for the one before it.
 */
static double chance(const struct elastic_work *m)
{
	double ns = (double)m->ns, rate = rate_of(m), by_looks;
	double by_itself = 4 * rate / ns;

	if (m->nr_looks < 2)
		return by_itself;
	by_looks = 9 * (m->squares - rate * rate * ns) / (m->nr_looks - 1) / ns;
	return by_looks < by_itself ? by_looks : by_itself;
}

static bool takes_less(const struct elastic_work *a,
		       const struct elastic_work *b, uint32_t percent)
{
	double x = rate_of(a), y = rate_of(b), d = y - x;

	return x * 100 < y * percent && d * d > chance(a) + chance(b);
}

static void work_add(struct elastic_work *m, const struct elastic_look *l)
{
	double taken = (double)l->taken;

	if (!l->ns)
		return;
	m->ns += l->ns;
	m->taken += l->taken;
	m->nr_looks++;
	m->squares += taken * taken / (double)l->ns;
	m->waited_ns += (double)l->waiting * (double)l->ns;
}

/* How long a task waits, by Little's law. */
static double wait_ns(const struct elastic_work *m)
{
	return m->taken ? m->waited_ns / (double)m->taken : 0;
}

static bool waits_longer(const struct elastic_work *a,
			 const struct elastic_work *b)
{
	/* How many wait at a time. */
	double x = a->waited_ns / (double)a->ns;
	double y = b->waited_ns / (double)b->ns;

	return wait_ns(a) > wait_ns(b) * LONGER + CLOSE_NS ||
	       x > y * LONGER + CLOSE_TASKS;
}

/* A task takes less processor time: caches are warm, and fewer are woken. */
static bool is_cheaper(const struct elastic_work *a,
		       const struct elastic_work *b)
{
	return (double)a->used_ns * (double)b->taken * 100 <
	       (double)b->used_ns * (double)a->taken * CHEAPER;
}

/* A worker, of the time. */
static double lacked_share(const struct elastic_work *m)
{
	return (double)m->lacked_ns / (double)m->ns / m->nr;
}

/*
 * They never sleep, and yet lack a processor, as others use it.  What comes to
 * one of them meanwhile waits in its ring, where no look sees it.
 */
static bool are_crowded(const struct elastic_work *m)
{
	double used = (double)m->used_ns / (double)m->ns / m->nr;

	return lacked_share(m) * 100 >= CROWDED &&
	       (lacked_share(m) + used) * 100 >= BUSY;
}

/* As many workers as @more do better than fewer. */
static bool are_more_better(const struct elastic_work *more,
			    const struct elastic_work *fewer)
{
	if (takes_less(more, fewer, LESS))
		return false;
	if (are_crowded(more) && lacked_share(fewer) * 2 < lacked_share(more))
		return takes_less(fewer, more, LESS_CROWDED);
	return takes_less(fewer, more, LESS) ||
	       (!is_cheaper(fewer, more) && waits_longer(fewer, more));
}

static bool is_trial_of_fewer(struct elastic *e)
{
	return e->phase >= SETTLES && nr_active(e) < e->before.nr;
}

static bool is_trial_won(struct elastic *e)
{
	return is_trial_of_fewer(e) ?
	       !are_more_better(&e->before, &e->work) :
	       are_more_better(&e->work, &e->before);
}

static void trial_end(struct elastic *e, uint64_t now, bool is_kept)
{
	bool is_more = !is_trial_of_fewer(e);

	if (is_kept) {
		e->have_fewer_won = !is_more;
		e->content_ns = (uint64_t)wait_ns(&e->work);
		hold(e, is_more ? AGAINST_FEWER : AGAINST_MORE, now);
		begin(e, MEASURES, 0);
	} else {
		hold(e, is_more ? AGAINST_MORE : AGAINST_FEWER, now);
		change_to(e, e->before.nr, PL__RAISED_BACK, PL__LOWERED_BACK);
		begin(e, RESTS, now + REST_FIRST_NS);
	}
}

/* How many would do if each were used to so many percent. */
static uint32_t nr_enough(uint64_t used_ns, uint64_t ns, uint32_t percent)
{
	uint64_t each = ns * percent / 100;

	return used_ns <= each ? 1 : (uint32_t)((used_ns + each - 1) / each);
}

static uint32_t nr_to_try(struct elastic *e, uint64_t now)
{
	uint32_t nr = nr_active(e), most = load_relaxed(&e->g->target);
	uint64_t used = e->work.used_ns, ns = e->work.ns;
	uint32_t enough = nr_enough(used, ns, ALL);

	if (enough < nr && now >= e->held_until[AGAINST_FEWER])
		return enough > nr / 2 ? enough : nr / 2;
	if (nr < most && now >= e->held_until[AGAINST_MORE] &&
	    (used * 100 >= ns * nr * BUSY || wait_ns(&e->work) >= WAIT_NS))
		return nr < most / 2 ? 2 * nr : most;
	return nr;
}

static void trial_begin(struct elastic *e, uint64_t now)
{
	uint32_t nr = nr_to_try(e, now);

	if (!e->work.taken || nr == nr_active(e)) {
		begin(e, RESTS, now + REST_FIRST_NS);
		return;
	}
	e->before = e->work;
	change_to(e, nr, PL__RAISED_TRIAL, PL__LOWERED_TRIAL);
	begin(e, SETTLES, now + SETTLE_NS);
}

static void go_on(struct elastic *e, uint64_t now)
{
	bool is_timed = e->phase == RESTS || e->phase == SETTLES;

	if (is_timed ? now < e->until_ns : e->work.ns < measure_ns(e))
		return;
	/* What ends now and what begins share this reading. */
	read_clocks(e, &e->work);
	switch (e->phase) {
	case RESTS:
		begin(e, MEASURES, 0);
		break;
	case MEASURES:
		trial_begin(e, now);
		break;
	case SETTLES:
		begin(e, TRIES, 0);
		break;
	case TRIES:
		trial_end(e, now, is_trial_won(e));
		break;
	}
}

/* ---- more at once ---- */

/*
 * It has tasks, as at the look before, and has taken none in these @ns, as the
 * one that it runs computes.
 */
static bool is_stuck(struct pl__worker *w, uint64_t ns)
{
	struct pl__sysmon_view *s = &w->sysmon;
	uint32_t tick = load_relaxed(&w->tick), before = s->elastic_tick;
	uint64_t cpu_ns = s->elastic_look_ns;

	s->elastic_tick = tick;
	s->elastic_look_ns = 0;
	if (!pl__is_running(w) ||
	    (pl__deque_empty(&w->deque) && pl__deque_empty(&w->events) &&
	     load_relaxed(&w->ring_state) != PL__ORPHAN_READY))
		return false;
	s->elastic_look_ns = pl__tid_cpu_ns(load_relaxed(&w->tid));
	return tick == before && cpu_ns &&
	       (s->elastic_look_ns - cpu_ns) * 2 >= ns;
}

static uint32_t nr_stuck(struct elastic *e, uint64_t ns)
{
	uint32_t nr = load_acquire(&e->g->nr_started), i, sum = 0;

	for (i = 0; i < nr; i++)
		sum += is_stuck(e->g->workers[i], ns);
	return sum;
}

/* Trials decide on fewer, unless tasks wait for too long. */
static bool has_tried_fewer(struct elastic *e, uint64_t *longest_ns)
{
	if (is_trial_of_fewer(e))
		*longest_ns = FAIL_NS + 2 * (uint64_t)wait_ns(&e->before);
	else if (e->have_fewer_won)
		*longest_ns = FAIL_NS + 2 * e->content_ns;
	else
		return false;
	return true;
}

/*
 * Tasks wait for long, at two looks in a row: the first may come with the
 * burst, all of which is run in a moment.  Where fewer were tried, by all looks
 * of a while, or of the quota's period, as workers may wait for a processor.
 */
static bool is_wait_long(struct elastic *e, const struct elastic_look *l)
{
	uint64_t longest_ns = WAIT_NS, taken;
	bool has_tried = has_tried_fewer(e, &longest_ns), is_long, was_long;
	struct elastic_work *m = &e->recent;

	work_add(m, l);
	if (has_tried && (m->ns < RECENT_NS || m->ns < pl__rt.quota_period_ns))
		return false;
	taken = m->taken ? m->taken : 1;
	is_long = m->waited_ns >= (double)longest_ns * (double)taken;
	memset(m, 0, sizeof(*m));
	was_long = e->has_waited;
	e->has_waited = is_long;
	return is_long && (has_tried || was_long);
}

/* More are to run: tasks wait for long, or behind one that computes. */
static uint32_t nr_more(struct elastic *e, const struct elastic_look *l,
			enum pl__elastic_why *why)
{
	uint32_t stuck = nr_stuck(e, l->ns), most = (uint32_t)l->waiting;

	if (pl__is_short(e->g))
		return 0;
	*why = PL__RAISED_STUCK;
	if (stuck && l->ns >= STUCK_NS)
		return stuck;
	if (!is_wait_long(e, l))
		return 0;
	*why = PL__RAISED_WAITS;
	return nr_active(e) < most ? nr_active(e) : most;
}

static bool elastic_grow(struct elastic *e, uint64_t now,
			 const struct elastic_look *l)
{
	uint32_t nr = nr_active(e), most = load_relaxed(&e->g->target), more;
	enum pl__elastic_why why;

	if (nr >= most)
		return false;
	more = nr_more(e, l, &why);
	if (!more)
		return false;
	e->has_waited = false;
	if (is_trial_of_fewer(e)) {
		trial_end(e, now, false);
		return true;
	}
	begin(e, RESTS, now + REST_FIRST_NS);
	change_to(e, more < most - nr ? nr + more : most, why, why);
	return true;
}

/* ---- for sysmon ---- */

static struct elastic_look look_at_workers(struct elastic *e, uint64_t now,
					   bool has_work)
{
	uint32_t taken = pl__nr_taken(e->g);
	int32_t since = (int32_t)(taken - e->look_taken);
	struct elastic_look l = {
		.ns = now - e->look_ns,
		.waiting = has_work ? nr_waiting(e) : 0,
		.taken = since > 0 ? (uint64_t)since : 0,
	};

	e->look_ns = now;
	e->look_taken = taken;
	return l;
}

bool pl__elastic_look(struct pl__group *g, uint64_t now, bool has_work)
{
	struct elastic *e = &elastics[g->index];
	struct elastic_look l;
	bool is_gone;

	if (!e->is_on)
		return false;
	l = look_at_workers(e, now, has_work);
	e->has_waited &= has_work;
	e->has_work = has_work;
	is_gone = now - e->busy_ns > GONE_NS;
	if (has_work || l.taken)
		e->busy_ns = now;
	if (l.ns > GONE_NS || (is_gone && e->busy_ns == now)) {
		forget(e, now);
		return has_work;
	}
	work_add(&e->work, &l);
	if (has_work && elastic_grow(e, now, &l))
		return true;
	go_on(e, now);
	return false;
}

uint64_t pl__elastic_interval(struct pl__group *g, uint64_t ns)
{
	struct elastic *e = &elastics[g->index];
	uint64_t most = QUIET_NS;

	if (!e->is_on)
		return ns;
	if (e->has_work && !e->have_fewer_won &&
	    nr_active(e) < load_relaxed(&g->target))
		most = INTERVAL_NS;
	else if (e->phase == MEASURES || e->phase == TRIES)
		most = measure_ns(e) / MEASURING_LOOKS;
	if (most > QUIET_NS)
		most = QUIET_NS;
	return ns < most ? ns : most;
}

void pl__elastic_follow(struct pl__group *g)
{
	struct elastic *e = &elastics[g->index];

	pl__lock(&e->lock);
	set_active_locked(e, UINT32_MAX, PL__NR_ELASTIC_WHY);
	pl__unlock(&e->lock);
}

void pl__elastic_start(struct pl__group *g, bool is_elastic)
{
	elastics[g->index] = (struct elastic){ .g = g, .is_on = is_elastic };
	store_relaxed(&g->active, 0);
	pl__elastic_follow(g);
	memset(g->nr_changes, 0, sizeof(g->nr_changes));
}
