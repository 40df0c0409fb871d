/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Trees and ramps for contend.c: workers with queues, thieves, one searcher at
 * a time, parked workers that are notified, as docs/scheduler.md has them
 *
 * The queue of a worker is one line.  A visit by a thief costs its owner a
 * transfer, too.  A task is the depth of the tree below it.
 */
#ifndef BENCH_CONTEND_STEAL_H
#define BENCH_CONTEND_STEAL_H

#include "contend.h"

#define TREE_DEPTH	16
#define TREE2M_DEPTH	20
#define NR_TREES	4
#define QUEUE_MAX	1024U
#define STEAL_MAX	8U	/* beside the first */
#define LOOK_NS		500
#define SPIN_NS		50000
#define DEFER_NS	1500
#define NR_LONES	16
#define FAN		2U	/* woken by a thief that searched, with "fan" */

struct queue {
	uint8_t task[QUEUE_MAX];
	unsigned int top, bottom;
};

static struct queue queues[WORKERS_MAX];
static struct {
	unsigned int visited;		/* victims of this look */
	unsigned int first;		/* of them */
	uint8_t depth;			/* of the task that it runs */
	bool is_searching;
	unsigned int nr_to_wake;
	double spin_end;
	unsigned int nr_lones;
	struct {
		unsigned int victim, top, bottom;	/* as it was then */
	} lones[NR_LONES];
} state[WORKERS_MAX];
static unsigned int parked[WORKERS_MAX], nr_parked;
static unsigned int nr_searching, tree_depth;
static bool is_ramp;
static double nr_nodes_left, node_ns;
static unsigned int nr_held;

static inline unsigned int queue_len(unsigned int i)
{
	return queues[i].bottom - queues[i].top;
}

static inline void queue_push(unsigned int i, uint8_t task)
{
	if (queue_len(i) == QUEUE_MAX)
		die("a queue is full");
	queues[i].task[queues[i].bottom++ % QUEUE_MAX] = task;
}

static inline uint8_t queue_pop(unsigned int i)
{
	return queues[i].task[--queues[i].bottom % QUEUE_MAX];
}

static inline uint8_t queue_steal(unsigned int i)
{
	return queues[i].task[queues[i].top++ % QUEUE_MAX];
}

static inline void next_task(struct actor *a);
static inline void begin_search(struct actor *a);
static inline void search(struct actor *a);

/* ---- notify ---- */

static inline void wake_one(struct actor *a)
{
	struct actor *p = &sim.actors[parked[--nr_parked]];

	state[p->nr].is_searching = true;
	state[p->nr].spin_end = 0;
	visit_copy(a, line_of("parker"), p->nr, true);
	resume(p, a->now + cost_of("wake_run"), begin_search);
}

/* Others may have woken those that were parked when it began. */
static inline void notified(struct actor *a)
{
	unsigned int *nr = &state[a->nr].nr_to_wake;

	for (; *nr && nr_parked; (*nr)--)
		wake_one(a);
	nr_searching -= *nr;
	*nr = 0;
	next_task(a);
}

/* True: the next round of @a is that. */
static inline bool notify(struct actor *a, unsigned int nr)
{
	nr = nr < nr_parked ? nr : nr_parked;
	if (!nr)
		return false;
	nr_searching += nr;
	state[a->nr].nr_to_wake = nr;
	begin(a, path_of("notify"), nr * cost_of("wake_call"), notified);
	return true;
}

static inline bool notify_if_due(struct actor *a)
{
	visit_copy(a, line_of("idle"), 0, false);
	return !nr_searching && notify(a, 1);
}

static inline void stop_searching(struct actor *a)
{
	if (!state[a->nr].is_searching)
		return;
	state[a->nr].is_searching = false;
	nr_searching--;
	visit_copy(a, line_of("idle"), 0, true);
}

/* The thief has taken @more along, and left as many. */
static inline bool notify_of_theft(struct actor *a, unsigned int more)
{
	bool was_searching = state[a->nr].is_searching;
	bool has_fan = sim.has_fan || is_option("fan");

	stop_searching(a);
	if (!has_fan || !was_searching || !more || nr_parked < FAN)
		return notify_if_due(a);
	visit_copy(a, line_of("idle"), 0, false);
	return notify(a, FAN);
}

/* ---- tasks ---- */

static inline void hold(struct actor *a)
{
	sim.nr_done = ++nr_held;
	sim.end_ns = a->now;
	sim.is_over = nr_held == sim.nr_workers;
	block(a);
}

static inline void node_done(struct actor *a)
{
	unsigned int i = a->nr, nodes = (2U << tree_depth) - 1;
	uint8_t depth = state[i].depth;

	sim.nr_done++;
	sim.end_ns = a->now;
	if (depth) {
		queue_push(i, (uint8_t)(depth - 1));
		queue_push(i, (uint8_t)(depth - 1));
		visit_copy(a, line_of("queue"), i, true);
	}
	if (!--nr_nodes_left) {
		sim.is_over = sim.nr_done >= (double)NR_TREES * nodes;
		nr_nodes_left = nodes;
		queue_push(i, (uint8_t)tree_depth);
	}
	if (!depth || !notify_if_due(a))
		next_task(a);
}

static inline void run_task(struct actor *a, uint8_t depth)
{
	state[a->nr].depth = depth;
	if (is_ramp)
		hold(a);
	else
		begin(a, path_of("tree"), node_ns, node_done);
}

static inline void begin_search(struct actor *a)
{
	state[a->nr].visited = 0;
	state[a->nr].first = random_below(sim.nr_workers);
	state[a->nr].nr_lones = 0;
	begin(a, path_of("nothing"), 0, search);
}

static inline void next_task(struct actor *a)
{
	state[a->nr].spin_end = 0;
	if (queue_len(a->nr))
		run_task(a, queue_pop(a->nr));
	else
		begin_search(a);
}

/* ---- thieves ---- */

/* Half of the rest as well; then the thief notifies. */
static inline void steal(struct actor *a, unsigned int victim)
{
	unsigned int more, i;

	visit_copy(a, line_of("queue"), victim, true);
	queue_push(a->nr, queue_steal(victim));
	more = queue_len(victim) / 2;
	more = more > STEAL_MAX && !is_option("half") ? STEAL_MAX : more;
	a->now += (1 + more) * cost_of("steal");
	for (i = 0; i < more; i++)
		queue_push(a->nr, queue_steal(victim));
	if (!notify_of_theft(a, more))
		next_task(a);
}

/* The lone task of a worker that runs is left to it for a moment. */
static inline bool is_left_to_owner(struct actor *a, unsigned int victim)
{
	unsigned int nr = state[a->nr].nr_lones;

	if (queue_len(victim) != 1 || sim.actors[victim].is_blocked)
		return false;
	if (nr < NR_LONES) {
		state[a->nr].lones[nr].victim = victim;
		state[a->nr].lones[nr].top = queues[victim].top;
		state[a->nr].lones[nr].bottom = queues[victim].bottom;
		state[a->nr].nr_lones++;
	}
	return true;
}

static inline bool is_work_anywhere(struct actor *a)
{
	unsigned int i;
	bool found = false;

	for (i = 0; i < sim.nr_workers && !found; i++) {
		visit_copy(a, line_of("queue"), i, false);
		a->now += cost_of("look");
		found = queue_len(i) > 0;
	}
	return found;
}

static inline void park(struct actor *a)
{
	parked[nr_parked++] = a->nr;
	block(a);
}

/* Counted as idle it looks for the last time. */
static inline void look_and_park(struct actor *a)
{
	if (is_work_anywhere(a))
		begin_search(a);
	else
		park(a);
}

static inline void spin(struct actor *a)
{
	if (is_work_anywhere(a)) {
		begin_search(a);
	} else if (a->now >= state[a->nr].spin_end) {
		stop_searching(a);
		begin(a, path_of("park"), 0, look_and_park);
	} else {
		begin(a, path_of("nothing"), LOOK_NS, spin);
	}
}

/* It found nothing: one worker at a time goes on searching for a while. */
static inline void spin_or_park(struct actor *a)
{
	if (nr_searching > state[a->nr].is_searching) {
		stop_searching(a);
		begin(a, path_of("park"), 0, look_and_park);
		return;
	}
	if (!state[a->nr].is_searching) {
		state[a->nr].is_searching = true;
		nr_searching++;
		visit_copy(a, line_of("idle"), 0, true);
	}
	if (!state[a->nr].spin_end)
		state[a->nr].spin_end = a->now + SPIN_NS;
	begin(a, path_of("nothing"), LOOK_NS, spin);
}

/* After all others, and a moment: the first that has not changed. */
static inline void steal_lone(struct actor *a)
{
	unsigned int i, victim;

	for (i = 0; i < state[a->nr].nr_lones; i++) {
		victim = state[a->nr].lones[i].victim;
		visit_copy(a, line_of("queue"), victim, false);
		if (queues[victim].top != state[a->nr].lones[i].top ||
		    queues[victim].bottom != state[a->nr].lones[i].bottom)
			continue;
		steal(a, victim);
		return;
	}
	spin_or_park(a);
}

/* One victim. */
static inline void search(struct actor *a)
{
	unsigned int nr = state[a->nr].visited, victim;

	if (nr == sim.nr_workers) {
		if (state[a->nr].nr_lones)
			begin(a, path_of("nothing"), DEFER_NS, steal_lone);
		else
			spin_or_park(a);
		return;
	}
	victim = (state[a->nr].first + nr) % sim.nr_workers;
	if (victim != a->nr) {
		visit_copy(a, line_of("queue"), victim, false);
		if (queue_len(victim) && !is_left_to_owner(a, victim)) {
			steal(a, victim);
			return;
		}
	}
	state[a->nr].visited++;
	begin(a, path_of("nothing"), cost_of("look"), search);
}

/* ---- subjects ---- */

static inline void begin_trees(unsigned int depth)
{
	unsigned int i;

	tree_depth = depth;
	node_ns = cost_of("tree");
	nr_nodes_left = (2U << depth) - 1;
	queue_push(0, (uint8_t)depth);
	for (i = 1; i < sim.nr_workers; i++)
		parked[nr_parked++] = i;
	resume(&sim.actors[0], 0, next_task);
}

static inline void contend_trees(void)
{
	begin_trees(TREE_DEPTH);
}

static inline void contend_large_trees(void)
{
	begin_trees(TREE2M_DEPTH);
}

/* One worker queues as many tasks as there are workers. */
static inline void queue_ramp(struct actor *a)
{
	unsigned int i;

	for (i = 0; i < sim.nr_workers; i++)
		queue_push(0, 0);
	a->now += sim.nr_workers * cost_of("tree");
	while (is_option("wake") && nr_parked) {
		a->now += cost_of("wake_call");
		nr_searching++;
		wake_one(a);
	}
	if (!notify_if_due(a))
		next_task(a);
}

static inline void contend_ramp(void)
{
	unsigned int i;

	is_ramp = sim.is_time = true;
	for (i = 1; i < sim.nr_workers; i++)
		parked[nr_parked++] = i;
	resume(&sim.actors[0], 0, queue_ramp);
}

#endif /* BENCH_CONTEND_STEAL_H */
