/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* state: of the simulation, for the thread that has the turn. */
#ifndef PL_SIM_STATE_H
#define PL_SIM_STATE_H

#include "sim/sim.h"

#define PL__SIM_MAX_THREADS	1024
#define PL__SIM_MAX_CHANGES	8	/* of priorities, in a run */
#define PL__SIM_START_NS	(1000 * PL__SIM_NS_PER_SEC)

/* Decisions of a run: those that another one made, then its own. */
struct pl__sim_choices {
	bool		is_given;
	uint32_t	nr;		/* made */
	uint32_t	nr_given;	/* the first ones are these */
	uint32_t	max_preempted, nr_preempted;
	struct {
		uint16_t	chosen, of;
	}		at[1U << 16];
};

#define PL__SIM_PAIRS		(1U << 16)

/* Memory that a run shares with the process that started it. */
struct pl__sim_shared {
	uint64_t		hash;
	/* By hash: a point of one thread came right after one of another. */
	uint64_t		pairs[PL__SIM_PAIRS / 64];
	struct pl__sim_choices	choices;
};

/* Zeroed, or NULL. */
struct pl__sim_shared *pl__sim_shared_map(void);
/* Writes to @to what @nr runs, which had these hashes, did in @s seconds. */
void pl__sim_say(const struct pl__sim_shared *shared, uint64_t *hashes,
		 uint64_t nr, double s, char *to, size_t size);

struct pl__sim_run {
	struct pl__sim_thread	*running;
	struct pl__sim_thread	*ended;		/* its exit is waited for */
	uint64_t		seed, state, now_ns, hash, nr_points;
	uint64_t		nr_switches, nr_queued;
	uint32_t		nr_cpus;
	/* Drawn from the seed, for the whole run. */
	uint32_t		one_in, preempt_in, spurious_in, short_in;
	uint32_t		interrupt_in;
	bool			is_pct;
	bool			has_uring;
	uint64_t		change_at[PL__SIM_MAX_CHANGES];
	uint32_t		nr_changes;
	/* A single thread that has slept again and again, and no other. */
	struct pl__sim_thread	*alone;
	uint64_t		alone_since_ns, alone_sleeps;
	struct pl__sim_choices	*choices;	/* or NULL: the seed's */
	struct pl__sim_shared	*shared;	/* or NULL */
};

extern struct pl__sim_run pl__sim;
/* Those that have started, in order; ended ones leave their places. */
extern struct pl__sim_thread pl__sim_threads[PL__SIM_MAX_THREADS];
extern uint32_t pl__sim_nr_threads;
/* The calling thread; NULL: the simulation did not start it. */
extern __thread struct pl__sim_thread *pl__sim_me
	__attribute__((tls_model("initial-exec")));

#define pl__sim_for_each(t) \
	for (t = pl__sim_threads; t < pl__sim_threads + pl__sim_nr_threads; t++)

/* Notes what the running thread does, and adds it to the hash of the run. */
void pl__sim_event(const char *what);
/* Milliseconds of the real clock between two looks for a stuck thread. */
extern uint32_t pl__sim_tick_ms;
/* Begins to watch the real clock, for a thread that passes no point. */
void pl__sim_report_begin(void);

/* After a thread gave away its last turn. */
void pl__sim_thread_reap(struct pl__sim_thread *t);

/* How many sleep until a deadline, and the first one. */
uint32_t pl__sim_nr_with_deadline(uint64_t *first);

/* A machine of processors, if there is one: see machine.c. */
#define PL__SIM_CPUS_MAX	64
/* Quota: of one processor's time; 0: no limit. */
void pl__sim_machine_begin(uint32_t nr_cpus, uint32_t quota_percent);
bool pl__sim_is_machine(void);
void pl__sim_machine_pass(void);
void pl__sim_machine_queue(struct pl__sim_thread *t, uint64_t since_ns);
void pl__sim_machine_wake(struct pl__sim_thread *t);
void pl__sim_machine_add(struct pl__sim_thread *t);
void pl__sim_machine_compute(uint64_t ns);
struct pl__sim_thread *pl__sim_machine_next(void);

/* Gives the turn to a thread that the seed chooses, perhaps the caller. */
void pl__sim_switch(void);
void pl__sim_await_turn(struct pl__sim_thread *t);
/* A point at which no other thread runs. */
void pl__sim_pass(const char *where);

#endif /* PL_SIM_STATE_H */
