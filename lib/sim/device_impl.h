/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* device_impl: a space of the simulated /dev/parklot, see device.h. */
#ifndef PL_SIM_DEVICE_IMPL_H
#define PL_SIM_DEVICE_IMPL_H

#include "sim/device.h"
#include "sim/sim.h"

#include <linux/parklot.h>
#include <poll.h>

#define PL__SIM_SPACES	80

/* On the stack of a thread that parks. */
struct pl__sim_parked {
	struct pl__sim_parked	*next;
	struct pl__sim_thread	*thread;
	uint64_t		nth;	/* park of the space */
	uint32_t		lot, reason;
	struct pollfd		poll;
	uint64_t		seen;	/* changes of files at the last poll */
};

struct pl__sim_space {
	bool			is_open;
	uint32_t		nr_threads;	/* in a call, or joined */
	uint64_t		nr_parks;
	dev_t			dev;		/* of its descriptors */
	ino_t			ino;
	uint32_t		nr_lots, nr_workers; /* 0 lots: no SETUP yet */
	size_t			counters_size, words_size;
	struct parklot_counters	*counters;
	struct parklot_words	*words;
	struct pl__sim_parked	*first;		/* of all lots, in order */
	/* The crew. */
	struct parklot_crew	crew;
	struct pl__sim_thread	**workers;	/* by their slots */
	uint32_t		nr_lines;
	uint64_t		call_ns, last_ns; /* next and last call */
};

extern struct pl__sim_space pl__sim_spaces[PL__SIM_SPACES];

#define pl__sim_for_each_space(s) \
	for (s = pl__sim_spaces; s < pl__sim_spaces + PL__SIM_SPACES; s++) \
		if (s->is_open)

/* Of the crew. */
static inline bool pl__sim_is_member(const struct pl__sim_space *s,
				     const struct pl__sim_parked *p)
{
	return p->thread->space == s;
}

/* Unlists the one at @at, which returns with @reason. */
struct pl__sim_parked *pl__sim_parked_take(struct pl__sim_space *s,
					   struct pl__sim_parked **at,
					   uint32_t reason);

/* If neither a descriptor nor a thread is left of it. */
void pl__sim_space_free(struct pl__sim_space *s);

/* ---- device_crew.c ---- */

/* A member stops to run, or goes on, after a sleep of this kind. */
void pl__sim_crew_stops(struct pl__sim_space *s, enum pl__sim_crew how);
void pl__sim_crew_goes_on(struct pl__sim_space *s, enum pl__sim_crew how);

/* Members may be missing. */
void pl__sim_crew_check(struct pl__sim_space *s);

/* Calls of the device. */
int pl__sim_crew_set(struct pl__sim_space *s, const struct parklot_crew *p);
int pl__sim_crew_join(struct pl__sim_space *s, const struct parklot_worker *p);
int pl__sim_crew_leave(struct pl__sim_space *s, uint32_t slot);

#endif /* PL_SIM_DEVICE_IMPL_H */
