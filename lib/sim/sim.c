/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Three strategies.  *Walk*: at one point in n another thread runs, any.  *PCT*
 * (Burckhardt and others, "A randomized scheduler with probabilistic guarantees
 * of finding bugs"): threads have random priorities, of which a few change at
 * random points; it finds a fault that needs d orders with a probability of at
 * least 1 in threads * points^(d - 1).  *Given*: another process tries all
 * schedules with at most so many preemptions, see run.c.
 */
#include "sim/device.h"
#include "sim/io.h"
#include "sim/state.h"
#include "sim/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <malloc.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_POINTS	100000000ULL
#define PCT_POINTS	1000000
#define ALONE_NS	(10 * PL__SIM_NS_PER_SEC)
#define ALONE_SLEEPS	1000

bool pl__sim_is_on;

struct pl__sim_run pl__sim;
struct pl__sim_thread pl__sim_threads[PL__SIM_MAX_THREADS];
uint32_t pl__sim_nr_threads;
__thread struct pl__sim_thread *pl__sim_me;

/* ---- the seed ---- */

uint64_t pl__sim_random(void)
{
	pl__sim.state ^= pl__sim.state << 13;
	pl__sim.state ^= pl__sim.state >> 7;
	pl__sim.state ^= pl__sim.state << 17;
	return pl__sim.state * 0x2545f4914f6cdd1dULL >> 16;
}

bool pl__sim_one_in(uint32_t n)
{
	return n && !pl__sim.choices && pl__sim_random() % n == 0;
}

/* ---- turns ---- */

static long futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	return PL__SIM_REAL(syscall)(SYS_futex, word, op | FUTEX_PRIVATE_FLAG,
				     value, NULL, NULL, 0);
}

static void turn_give(struct pl__sim_thread *t)
{
	pl__sim.running = t;
	atomic_store(&t->turn, 1);
	futex(&t->turn, FUTEX_WAKE, 1);
}

void pl__sim_await_turn(struct pl__sim_thread *t)
{
	struct pl__sim_thread *ended;

	while (!atomic_load(&t->turn))
		futex(&t->turn, FUTEX_WAIT, 0);
	atomic_store(&t->turn, 0);
	ended = pl__sim.ended;
	pl__sim.ended = NULL;
	if (ended)
		pl__sim_thread_reap(ended);
}

static void turn_to(struct pl__sim_thread *t)
{
	struct pl__sim_thread *me = pl__sim_me;
	int now = errno;

	if (t == me)
		return;
	pl__sim.nr_switches++;
	turn_give(t);
	if (me->state != PL__SIM_ENDED)
		pl__sim_await_turn(me);
	errno = now;
}

/* Ends the sleep of a thread if its time has come, or its condition is true. */
static bool can_run(struct pl__sim_thread *t)
{
	if (t->state == PL__SIM_ENDED)
		return false;
	if (t->state == PL__SIM_RUNNABLE)
		return true;
	if (t->is_ready && t->state == PL__SIM_BLOCKED && t->is_ready(t->arg)) {
		t->timed_out = false;
	} else if (t->deadline_ns <= pl__sim.now_ns) {
		t->timed_out = true;
		if (t->state == PL__SIM_COMPUTES)
			t->ran_ns += t->deadline_ns - t->since_ns;
	} else {
		return false;
	}
	t->state = PL__SIM_RUNNABLE;
	return true;
}

uint32_t pl__sim_nr_with_deadline(uint64_t *first)
{
	struct pl__sim_thread *t;
	uint32_t nr = 0;

	*first = pl__sim_uring_deadline();
	if (pl__sim_device_deadline() < *first)
		*first = pl__sim_device_deadline();
	nr += *first != PL__SIM_FOREVER;
	pl__sim_for_each(t) {
		if (t->state == PL__SIM_ENDED ||
		    t->deadline_ns == PL__SIM_FOREVER)
			continue;
		nr++;
		if (t->deadline_ns < *first)
			*first = t->deadline_ns;
	}
	return nr;
}

/*
 * All sleep, and the clock jumps.  A thread that looks again and again for what
 * no other is there to do, as all others sleep for ever, is stuck as well.
 */
static void clock_jump(void)
{
	uint64_t first;
	uint32_t nr = pl__sim_nr_with_deadline(&first);

	if (!nr)
		pl__sim_fail("DEADLOCK");
	/* That it computes, or has no processor, is no sleep. */
	if (nr > 1 || pl__sim.running->state != PL__SIM_BLOCKED) {
		pl__sim.alone = NULL;
	} else if (pl__sim.alone != pl__sim.running) {
		pl__sim.alone = pl__sim.running;
		pl__sim.alone_since_ns = pl__sim.now_ns;
		pl__sim.alone_sleeps = 0;
	} else if (++pl__sim.alone_sleeps > ALONE_SLEEPS &&
		   pl__sim.now_ns - pl__sim.alone_since_ns > ALONE_NS) {
		pl__sim_fail("LIVELOCK (one thread polls, all others sleep for ever)");
	}
	if (first > pl__sim.now_ns)
		pl__sim.now_ns = first;
	pl__sim_uring_run();
	pl__sim_device_run(pl__sim.now_ns);
}

/* The choice of a schedule that another process gave: 0 is to go on. */
static struct pl__sim_thread *choose_given(struct pl__sim_thread **can,
					   uint32_t nr)
{
	struct pl__sim_thread *running = pl__sim.running;
	struct pl__sim_choices *c = pl__sim.choices;
	uint32_t i, chosen = 0, of = nr;

	/* The running thread comes first, if it can run. */
	for (i = 1; i < nr; i++)
		if (can[i] == running) {
			memmove(can + 1, can, i * sizeof(*can));
			can[0] = running;
		}
	if (can[0] == running && c->nr_preempted == c->max_preempted)
		of = 1;
	if (of < 2)
		return can[0];
	if (c->nr == sizeof(c->at) / sizeof(*c->at))
		pl__sim_fail("too many choices to try all");
	if (c->nr < c->nr_given)
		chosen = c->at[c->nr].chosen;
	c->at[c->nr].chosen = (uint16_t)chosen;
	c->at[c->nr++].of = (uint16_t)of;
	c->nr_preempted += can[0] == running && chosen;
	return can[chosen];
}

static struct pl__sim_thread *choose(struct pl__sim_thread **can, uint32_t nr)
{
	struct pl__sim_thread *best = can[0];
	uint32_t i;

	if (pl__sim.choices)
		return choose_given(can, nr);
	/*
	 * Now and then any: a spin may wait for a thread of low priority.  For
	 * ever, where that one steals, and what it would take has changed each
	 * time: so a long run walks on.
	 */
	if (!pl__sim.is_pct || pl__sim.nr_points > PCT_POINTS ||
	    pl__sim_one_in(32))
		return can[pl__sim_random() % nr];
	for (i = 1; i < nr; i++)
		if (can[i]->prio > best->prio)
			best = can[i];
	return best;
}

static struct pl__sim_thread *next_thread(void)
{
	static struct pl__sim_thread *can[PL__SIM_MAX_THREADS];
	struct pl__sim_thread *t;
	uint32_t nr = 0;

	if (pl__sim_is_machine())
		return pl__sim_machine_next();
	for (;;) {
		pl__sim_for_each(t)
			if (can_run(t))
				can[nr++] = t;
		if (nr)
			return choose(can, nr);
		clock_jump();
	}
}

void pl__sim_switch(void)
{
	turn_to(next_thread());
}

static void must_have_turn(const char *where)
{
	bool of_fault;

	if (!pl__sim_me)
		pl__sim_fail("'%s' was called by a thread that the simulation did not start",
			     where);
	if (pl__sim_in_handler(&of_fault) || pl__sim_me != pl__sim.running)
		pl__sim_fail("'%s' was called by a signal's handler", where);
}

void pl__sim_pass(const char *where)
{
	struct pl__sim_thread *me = pl__sim_me;
	uint32_t i;

	must_have_turn(where);
	me->where = where;
	if (pl__sim_is_machine()) {
		pl__sim_machine_pass();
	} else {
		me->ran_ns += 100;
		pl__sim.now_ns += pl__sim.choices ? 100 :
				  50 + pl__sim_random() % 100;
	}
	if (++pl__sim.nr_points > MAX_POINTS)
		pl__sim_fail("LIVELOCK (too many points)");
	pl__sim_event(where);
	for (i = 0; i < pl__sim.nr_changes; i++)
		if (pl__sim.change_at[i] == pl__sim.nr_points)
			me->prio = i;
}

/* The caller does not run for @ns: it has no processor, or computes. */
static void pause_for(enum pl__sim_state state, uint64_t ns)
{
	struct pl__sim_thread *me = pl__sim_me;

	me->since_ns = pl__sim.now_ns;
	me->deadline_ns = pl__sim.now_ns + ns;
	me->state = state;
	pl__sim_switch();
	me->deadline_ns = PL__SIM_FOREVER;
}

void pl__sim_point(const char *where)
{
	bool of_fault;

	if (!pl__sim_is_on || (pl__sim_in_handler(&of_fault) && of_fault))
		return;
	pl__sim_pass(where);
	pl__sim_uring_run();
	pl__sim_device_run(pl__sim.now_ns);
	if (pl__sim_is_machine())
		pl__sim_switch();
	else if (pl__sim_one_in(pl__sim.preempt_in))
		pause_for(PL__SIM_PREEMPTED, 1000ULL << pl__sim_random() % 16);
	else if (pl__sim.choices || pl__sim.is_pct ||
		 pl__sim_one_in(pl__sim.one_in))
		pl__sim_switch();
}

void pl__sim_compute(uint64_t ns)
{
	pl__sim_pass("compute");
	if (pl__sim_is_machine())
		pl__sim_machine_compute(ns);
	else
		pause_for(PL__SIM_COMPUTES, ns);
}

void pl__sim_preempt(uint64_t ns)
{
	pl__sim_pass("preempt");
	pause_for(PL__SIM_PREEMPTED, ns);
}

bool pl__sim_sleep(const char *where, const void *key,
		   bool (*is_ready)(void *arg), void *arg,
		   uint64_t deadline_ns)
{
	struct pl__sim_thread *me = pl__sim_me;

	pl__sim_pass(where);
	if (key && !is_ready && pl__sim_one_in(pl__sim.spurious_in))
		return true;
	me->key = key;
	me->is_ready = is_ready;
	me->arg = arg;
	me->deadline_ns = deadline_ns;
	me->queued = pl__sim.nr_queued++;
	me->state = PL__SIM_BLOCKED;
	me->nr_sleeps++;
	if (me->has_work) {
		me->has_work = false;
		pl__sim_io_changed();
	}
	pl__sim_device_blocks();
	pl__sim_switch();
	pl__sim_device_returns();
	me->key = NULL;
	me->is_ready = NULL;
	me->deadline_ns = PL__SIM_FOREVER;
	return !me->timed_out;
}

/* Mostly the longest: the kernel's order, but for priorities. */
static struct pl__sim_thread *sleeper_of(const void *key)
{
	struct pl__sim_thread *t, *first = NULL;
	bool any = !pl__sim_is_machine() && pl__sim_one_in(8);

	pl__sim_for_each(t)
		if (t->state == PL__SIM_BLOCKED && t->key == key &&
		    (!first || (any ? pl__sim_random() & 1 :
				      t->queued < first->queued)))
			first = t;
	return first;
}

int pl__sim_wake(const void *key, int nr)
{
	struct pl__sim_thread *t;
	int woken = 0;

	while (woken < nr && (t = sleeper_of(key))) {
		t->state = PL__SIM_RUNNABLE;
		t->timed_out = false;
		if (pl__sim_is_machine())
			pl__sim_machine_wake(t);
		woken++;
	}
	return woken + pl__sim_uring_wake(key, nr - woken);
}

/* A look at the clock takes time, too: a loop that waits for it ends. */
uint64_t pl__sim_now(void)
{
	pl__sim_point("clock");
	return pl__sim.now_ns;
}

/* ---- the run ---- */

static void draw(struct pl__sim_run *r)
{
	static const uint32_t rates[] = { 2, 4, 8, 16, 64 };
	static const uint32_t preempts[] = { 0, 0, 300, 3000 };
	uint64_t of_seed = (r->seed + 1) * 0x9e3779b97f4a7c15ULL;
	uint32_t i;

	for (i = 0; i < 10; i++)
		pl__sim_random();
	r->one_in = rates[pl__sim_random() % 5];
	r->preempt_in = preempts[pl__sim_random() % 4];
	r->spurious_in = pl__sim_random() % 2 ? 64 : 0;
	r->nr_cpus = 2 + (uint32_t)(pl__sim_random() % 3);
	r->is_pct = pl__sim_random() % 3 == 0;
	/* Not of that: what a seed without these does is as it was. */
	r->has_uring = !(of_seed >> 63);
	r->short_in = of_seed >> 61 & 3 ? 0 : 4;
	r->interrupt_in = of_seed >> 59 & 3 ? 0 : 8;
	if (!r->is_pct)
		return;
	r->nr_changes = (uint32_t)(pl__sim_random() %
				   (PL__SIM_MAX_CHANGES + 1));
	/* Runs have some 100 to some 100,000 points. */
	for (i = 0; i < r->nr_changes; i++)
		r->change_at[i] = pl__sim_random() %
				  (256ULL << pl__sim_random() % 10);
}

/* Turns pass faster where the thread that has it need not wake a processor. */
static void stay_on_one_cpu(void)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	PL__SIM_REAL(syscall)(SYS_sched_setaffinity, 0, sizeof(one), &one);
}

/*
 * The library's descriptors have high numbers.  In a process of several threads
 * the kernel waits for all processors when the table grows, for 10 ms.
 */
static void grow_descriptors(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3072);

	if (fd >= 0)
		PL__SIM_REAL(close)(fd);
}

/* From the environment; 0: it is not set. */
static uint32_t machine_setting(const char *name, long most)
{
	const char *s = getenv(name);
	char *end;
	long nr;

	if (!s)
		return 0;
	nr = strtol(s, &end, 10);
	if (end == s || *end || nr < 1 || nr > most) {
		fprintf(stderr, "sim: %s=%s: not a number from 1 to %ld\n",
			name, s, most);
		exit(2);
	}
	return (uint32_t)nr;
}

void pl__sim_begin(uint64_t seed)
{
	uint32_t nr_cpus = machine_setting("SIM_CPUS", PL__SIM_CPUS_MAX);
	uint32_t quota = machine_setting("SIM_QUOTA", 100 * PL__SIM_CPUS_MAX);
	struct pl__sim_thread *me;

	if (pl__sim_is_on)
		return;
	if (quota && !nr_cpus) {
		fprintf(stderr, "sim: SIM_QUOTA needs SIM_CPUS\n");
		exit(2);
	}
	memset(&pl__sim, 0, sizeof(pl__sim));
	pl__sim_nr_threads = 0;
	pl__sim.seed = seed;
	pl__sim.state = (seed + 1) * 0x9e3779b97f4a7c15ULL | 1;
	pl__sim.hash = 14695981039346656037ULL;
	pl__sim.now_ns = PL__SIM_START_NS;
	draw(&pl__sim);
	if (nr_cpus) {
		pl__sim_machine_begin(nr_cpus, quota);
		pl__sim.nr_cpus = nr_cpus;
		pl__sim.is_pct = false;
		pl__sim.has_uring = true;
		pl__sim.spurious_in = pl__sim.short_in = 0;
		pl__sim.interrupt_in = 0;
	}
	stay_on_one_cpu();
	grow_descriptors();
	/* One thread runs at a time, and each page is a fault in each run. */
	mallopt(M_ARENA_MAX, 1);
	me = pl__sim_thread_add();
	me->id = pthread_self();
	me->real_tid = (int)PL__SIM_REAL(syscall)(SYS_gettid);
	pl__sim_me = pl__sim.running = me;
	pl__sim_report_begin();
	pl__sim_uring_begin();
	pl__sim_device_begin();
	pl__sim_is_on = true;
}
