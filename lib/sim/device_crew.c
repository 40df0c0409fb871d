/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Workers of a crew: what they do, and which are called when some block. */
#include "sim/device_impl.h"
#include "sim/state.h"

#include <errno.h>

#define INTERVAL_NS	(50 * 1000)	/* between calls, as the module's */

/* ---- counters ---- */

static struct parklot_cpu_counters *line(struct pl__sim_space *s, uint32_t i)
{
	return (void *)((char *)s->counters +
			PARKLOT_CPU_OFFSET(s->nr_lots, i));
}

/* Any line: a worker leaves a state on another processor than it entered it. */
static struct parklot_cpu_counters *some_line(struct pl__sim_space *s)
{
	uint32_t i = (uint32_t)(pl__sim_random() % pl__sim.nr_cpus);

	if (i >= s->nr_lines) {
		i = s->nr_lines++;
		__atomic_store_n(&s->counters->nr_cpus, s->nr_lines,
				 __ATOMIC_SEQ_CST);
	}
	return line(s, i);
}

static uint32_t nr_running(struct pl__sim_space *s)
{
	uint32_t i, nr = 0;

	for (i = 0; i < s->nr_lines; i++)
		nr += line(s, i)->running.in - line(s, i)->running.out;
	return nr;
}

static struct parklot_state_counters *state(struct parklot_cpu_counters *c,
					    enum pl__sim_crew which)
{
	return which == PL__SIM_CREW_PARKED ? &c->parked :
	       which == PL__SIM_CREW_BLOCKED ? &c->blocked : NULL;
}

/* A member of the crew runs no more, or again; idle ones are in no state. */
void pl__sim_crew_stops(struct pl__sim_space *s, enum pl__sim_crew how)
{
	struct parklot_cpu_counters *c = some_line(s);
	struct parklot_state_counters *to = state(c, how);

	if (to)
		to->in++;
	c->running.out++;
}

void pl__sim_crew_goes_on(struct pl__sim_space *s, enum pl__sim_crew how)
{
	struct parklot_cpu_counters *c = some_line(s);
	struct parklot_state_counters *from = state(c, how);

	c->running.in++;
	if (from)
		from->out++;
}

/* ---- calls ---- */

/* The one that parked last; NULL: none is parked. */
static struct pl__sim_parked **last_parked(struct pl__sim_space *s)
{
	struct pl__sim_parked **at, **last = NULL;

	for (at = &s->first; *at; at = &(*at)->next)
		if (pl__sim_is_member(s, *at) &&
		    (!last || (*at)->nth > (*last)->nth))
			last = at;
	return last;
}

/* How many are to be called. */
static uint32_t nr_to_call(struct pl__sim_space *s)
{
	uint32_t nr = nr_running(s);

	if (!s->words->backlog || nr >= s->crew.target || !last_parked(s))
		return 0;
	return s->crew.target - nr;
}

void pl__sim_crew_check(struct pl__sim_space *s)
{
	uint64_t ns = pl__sim.now_ns + s->crew.stall_ns;

	if (!nr_to_call(s))
		s->call_ns = PL__SIM_FOREVER;
	else if (s->call_ns == PL__SIM_FOREVER)
		s->call_ns = ns > s->last_ns + INTERVAL_NS ?
			     ns : s->last_ns + INTERVAL_NS;
}

/* By a timer, at @ns. */
static void call_last_parked(struct pl__sim_space *s, uint64_t ns)
{
	struct pl__sim_parked *called =
		pl__sim_parked_take(s, last_parked(s), PARKLOT_CALLED);
	struct pl__sim_thread *t = called->thread;

	if (t->state != PL__SIM_BLOCKED || t->key != called)
		return;
	t->state = PL__SIM_RUNNABLE;
	t->timed_out = false;
	if (pl__sim_is_machine())
		pl__sim_machine_queue(t, ns > t->at_ns ? ns : t->at_ns);
}

bool pl__sim_device_run(uint64_t now_ns)
{
	struct pl__sim_space *s;
	bool any = false;
	uint64_t ns;
	uint32_t nr;

	/* At each point. */
	if (!pl__sim_has_device())
		return false;
	pl__sim_for_each_space(s) {
		ns = s->call_ns;
		if (ns > now_ns)
			continue;
		s->call_ns = PL__SIM_FOREVER;
		for (nr = nr_to_call(s); nr && last_parked(s); nr--) {
			call_last_parked(s, ns);
			s->last_ns = ns;
			any = true;
		}
		/* Those that are missing still are called later. */
		pl__sim_crew_check(s);
	}
	return any;
}

uint64_t pl__sim_device_deadline(void)
{
	uint64_t first = PL__SIM_FOREVER;
	struct pl__sim_space *s;

	if (!pl__sim_has_device())
		return first;
	pl__sim_for_each_space(s)
		first = s->call_ns < first ? s->call_ns : first;
	return first;
}

static struct parklot_worker_words *words_of(struct pl__sim_thread *t)
{
	return (void *)((char *)t->space->words +
			PARKLOT_WORKER_OFFSET(t->space->nr_lots, t->slot));
}

void pl__sim_device_blocks(void)
{
	struct pl__sim_thread *me = pl__sim_me;

	/* One that parks is parked from when it is listed. */
	if (!me->space || me->is_parking)
		return;
	me->crew_sleep = words_of(me)->state == PARKLOT_WORKER_IDLE ?
			 PL__SIM_CREW_IDLE : PL__SIM_CREW_BLOCKED;
	pl__sim_crew_stops(me->space, me->crew_sleep);
	pl__sim_crew_check(me->space);
}

void pl__sim_device_returns(void)
{
	struct pl__sim_thread *me = pl__sim_me;

	if (!me->space || me->is_parking)
		return;
	pl__sim_crew_goes_on(me->space, me->crew_sleep);
	if (!nr_to_call(me->space))
		me->space->call_ns = PL__SIM_FOREVER;
}

/* ---- members ---- */

int pl__sim_crew_set(struct pl__sim_space *s, const struct parklot_crew *p)
{
	if (!s->nr_workers || p->flags || p->target > p->max)
		return -EINVAL;
	s->crew = *p;
	s->call_ns = PL__SIM_FOREVER;
	pl__sim_crew_check(s);
	return 0;
}

int pl__sim_crew_join(struct pl__sim_space *s, const struct parklot_worker *p)
{
	struct pl__sim_thread *me = pl__sim_me;

	if (p->slot >= s->nr_workers || p->flags)
		return -EINVAL;
	if (s->workers[p->slot] || me->space)
		return -EBUSY;
	s->workers[p->slot] = me;
	s->nr_threads++;
	me->space = s;
	me->slot = p->slot;
	some_line(s)->running.in++;
	return 0;
}

int pl__sim_crew_leave(struct pl__sim_space *s, uint32_t slot)
{
	struct pl__sim_thread *me = pl__sim_me;

	if (me->space != s || me->slot != slot)
		return s->nr_workers ? -ENOENT : -EINVAL;
	some_line(s)->running.out++;
	s->workers[slot] = NULL;
	me->space = NULL;
	pl__sim_crew_check(s);
	s->nr_threads--;
	return 0;
}

void pl__sim_device_thread_ends(void)
{
	struct pl__sim_space *s = pl__sim_me->space;

	if (!s)
		return;
	pl__sim_crew_leave(s, pl__sim_me->slot);
	pl__sim_space_free(s);
}
