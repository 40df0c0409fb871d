/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A machine of processors, for figures: how late, how often, how long.  Each
 * thread that has a processor has a time of its own, and the one that is the
 * furthest behind runs; so they go on side by side.  The others queue, first
 * come, first served.  Nothing is random: a figure is exact, and a change of
 * one per cent is one.
 *
 * The costs are those of a server's processor, rounded.  What is compared is
 * compared on this machine, not with a real one.
 *
 * A quota is a cgroup's: what all threads may take together in a period.  Then
 * none of them runs until the next one; what they took too much is taken off.
 */
#include "sim/device.h"
#include "sim/state.h"
#include "sim/uring.h"

#include <stdio.h>

#define POINT_NS	30		/* of work, up to the next point */
#define WAKE_NS		5000		/* a sleeper, to an idle one */
#define WAKER_NS	2000		/* for its waker meanwhile */
#define SWITCH_NS	1500		/* from one thread to the next */
#define SLICE_NS	3000000		/* while others queue */
#define PERIOD_NS	100000000	/* of the quota */

static struct {
	uint32_t	nr_cpus;	/* 0: no machine */
	uint32_t	nr_busy;
	uint64_t	nr_queued;
	int64_t		quota_ns;	/* of a period; 0: no limit */
	int64_t		left_ns;	/* of the quota */
	uint64_t	period_end_ns;
} machine;

void pl__sim_machine_begin(uint32_t nr_cpus, uint32_t quota_percent)
{
	machine.nr_cpus = nr_cpus;
	machine.nr_busy = 0;
	machine.quota_ns = (int64_t)quota_percent * (PERIOD_NS / 100);
	machine.left_ns = machine.quota_ns;
	machine.period_end_ns = pl__sim.now_ns + PERIOD_NS;
}

bool pl__sim_is_machine(void)
{
	return machine.nr_cpus;
}

bool pl__sim_machine_cpu_max(char *text, size_t size)
{
	if (!machine.quota_ns)
		return false;
	snprintf(text, size, "%lld %d\n", (long long)machine.quota_ns / 1000,
		 PERIOD_NS / 1000);
	return true;
}

static void machine_work(uint64_t ns)
{
	pl__sim_me->at_ns += ns;
	pl__sim_me->ran_ns += ns;
	machine.left_ns -= (int64_t)ns;
}

void pl__sim_machine_pass(void)
{
	machine_work(POINT_NS);
	pl__sim.now_ns = pl__sim_me->at_ns;
}

void pl__sim_machine_queue(struct pl__sim_thread *t, uint64_t since_ns)
{
	t->at_ns = t->wanted_ns = since_ns;
	t->queued = machine.nr_queued++;
}

/* By the caller, which that takes a while. */
void pl__sim_machine_wake(struct pl__sim_thread *t)
{
	pl__sim_machine_queue(t, pl__sim.now_ns);
	if (pl__sim_me->has_cpu)
		machine_work(WAKER_NS);
}

/* The caller, or one that it starts as another would be woken. */
void pl__sim_machine_add(struct pl__sim_thread *t)
{
	t->has_cpu = false;
	pl__sim_machine_queue(t, pl__sim.now_ns);
}

static void cpu_take(struct pl__sim_thread *t, uint64_t cost_ns)
{
	t->has_cpu = true;
	t->at_ns += cost_ns;
	t->lacked_ns += t->at_ns - t->wanted_ns;
	t->slice_end_ns = t->at_ns + SLICE_NS;
	machine.nr_busy++;
}

static void cpu_leave(struct pl__sim_thread *t)
{
	t->has_cpu = false;
	machine.nr_busy--;
}

static bool is_quota_used(void)
{
	return machine.quota_ns && machine.left_ns <= 0;
}

static struct pl__sim_thread *queue_first(void)
{
	struct pl__sim_thread *t, *first = NULL;

	if (is_quota_used())
		return NULL;
	pl__sim_for_each(t)
		if (t->state == PL__SIM_RUNNABLE && !t->has_cpu &&
		    (!first || t->queued < first->queued))
			first = t;
	return first;
}

/* Those that sleep, or have ended, leave their processors to the queue. */
static void cpus_give(void)
{
	struct pl__sim_thread *t, *next;
	uint64_t free_ns;

	pl__sim_for_each(t) {
		if (!t->has_cpu || t->state == PL__SIM_RUNNABLE)
			continue;
		cpu_leave(t);
		free_ns = t->at_ns;
		next = queue_first();
		if (!next)
			continue;
		if (next->at_ns < free_ns)
			next->at_ns = free_ns;
		cpu_take(next, SWITCH_NS);
	}
	while (machine.nr_busy < machine.nr_cpus && (next = queue_first()))
		cpu_take(next, WAKE_NS);
}

static struct pl__sim_thread *furthest_behind(void)
{
	struct pl__sim_thread *t, *last = NULL;

	pl__sim_for_each(t)
		if (t->has_cpu && (!last || t->at_ns < last->at_ns))
			last = t;
	return last;
}

/* It has had its slice, and others wait: it queues behind them. */
static bool is_preempted(struct pl__sim_thread *t)
{
	struct pl__sim_thread *next;
	uint64_t at_ns = t->at_ns;

	if (at_ns < t->slice_end_ns)
		return false;
	t->slice_end_ns = at_ns + SLICE_NS;
	next = queue_first();
	if (!next || next->at_ns > at_ns)
		return false;
	cpu_leave(t);
	pl__sim_machine_queue(t, at_ns);
	next->at_ns = at_ns;
	cpu_take(next, SWITCH_NS);
	return true;
}

/* All of its program's quota is used: it waits for the next period. */
static bool is_throttled(struct pl__sim_thread *t)
{
	if (!is_quota_used())
		return false;
	cpu_leave(t);
	pl__sim_machine_queue(t, t->at_ns);
	return true;
}

/* Begins the next period if it is due; then the quota is there again. */
static bool period_begins(uint64_t now_ns)
{
	struct pl__sim_thread *t;
	uint64_t begin_ns = machine.period_end_ns;

	if (!machine.quota_ns || now_ns < begin_ns)
		return false;
	if (is_quota_used())
		pl__sim_for_each(t)
			if (!t->has_cpu && t->at_ns < begin_ns)
				t->at_ns = begin_ns;
	machine.period_end_ns += PERIOD_NS;
	machine.left_ns += machine.quota_ns;
	if (machine.left_ns > machine.quota_ns)
		machine.left_ns = machine.quota_ns;
	return true;
}

/* Where none has a processor: until the next period, if one waits for that. */
static uint64_t next_ns(void)
{
	struct pl__sim_thread *t;
	uint64_t first;

	pl__sim_for_each(t)
		if (t->state == PL__SIM_RUNNABLE)
			return machine.period_end_ns;
	if (!pl__sim_nr_with_deadline(&first))
		pl__sim_fail("DEADLOCK");
	return first;
}

/* Ends the sleeps that end by now; false: none is left that would end. */
static bool sleepers_wake(uint64_t now_ns)
{
	struct pl__sim_thread *t;
	bool any = false;

	pl__sim_for_each(t) {
		if (t->state != PL__SIM_BLOCKED)
			continue;
		if (t->is_ready && t->is_ready(t->arg)) {
			t->timed_out = false;
			pl__sim_machine_wake(t);
		} else if (t->deadline_ns <= now_ns) {
			t->timed_out = true;
			pl__sim_machine_queue(t, t->deadline_ns > t->at_ns ?
					      t->deadline_ns : t->at_ns);
		} else {
			continue;
		}
		t->state = PL__SIM_RUNNABLE;
		any = true;
	}
	return any;
}

struct pl__sim_thread *pl__sim_machine_next(void)
{
	struct pl__sim_thread *t;
	uint64_t now_ns;

	for (;;) {
		cpus_give();
		t = furthest_behind();
		now_ns = t ? t->at_ns : pl__sim.now_ns;
		if (period_begins(now_ns) || sleepers_wake(now_ns) ||
		    pl__sim_device_run(now_ns))
			continue;
		if (t && (is_throttled(t) || is_preempted(t)))
			continue;
		if (t) {
			pl__sim.now_ns = t->at_ns;
			return t;
		}
		now_ns = next_ns();
		if (now_ns > pl__sim.now_ns)
			pl__sim.now_ns = now_ns;
		pl__sim_uring_run();
	}
}

/* In slices, of which others may have some in between. */
void pl__sim_machine_compute(uint64_t ns)
{
	struct pl__sim_thread *me = pl__sim_me;
	uint64_t part;

	while (ns) {
		part = me->slice_end_ns > me->at_ns ?
		       me->slice_end_ns - me->at_ns : SLICE_NS;
		if (part > ns)
			part = ns;
		machine_work(part);
		ns -= part;
		pl__sim_switch();
	}
}
