/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The engine of contend.c: actors, which are workers and other threads, cache
 * lines with owners, rounds, and events in the order of their time
 *
 * A round takes its local time, in pieces, and visits a line behind each piece
 * but the last.  Only visits cost more than that.  One thread, one simulation.
 */
#ifndef BENCH_CONTEND_H
#define BENCH_CONTEND_H

#include <stdbool.h>

#include "../lib/util.h"

#define COSTS_MAX	64
#define LINES_MAX	32
#define PATHS_MAX	32
#define VISITS_MAX	16
#define OPS_MAX		64
#define WORKERS_MAX	256
#define SHARER_WORDS	5	/* of 64: all workers, and one thread */

struct cost {
	char name[24];
	double ns;
};

enum which { OWN, ANY, ALL };

/* One cache line. */
struct copy {
	double free_at;			/* when its lock is dropped */
	unsigned int owner;		/* the last writer */
	bool was_written;
	uint64_t sharers[SHARER_WORDS];	/* a bit for each cache it is in */
};

/* What has one cache line, or several of a kind. */
struct line {
	char name[24];
	unsigned int nr;		/* of copies; 0: one a worker */
	enum which which;		/* of them a visit is to */
	double hold_ns;			/* how long a lock in it is held */
	struct copy *copies;
	unsigned int nr_copies;
	double lost_ns;			/* by all visits together */
};

struct visit {
	struct line *line;
	bool is_write;
	double times;			/* a round, on average */
};

struct path {
	char name[24];
	struct visit visits[VISITS_MAX];
	unsigned int nr;
};

struct op {
	struct line *line;
	unsigned int copy;
	bool is_write;
};

struct actor {
	unsigned int nr;
	unsigned int heap_at;
	bool is_blocked;		/* not in the heap */
	bool is_server;			/* no worker */
	double now;
	double begun;			/* the round */
	double busy_ns;			/* in all rounds */
	double local_ns;		/* of the round */
	struct op ops[OPS_MAX];		/* of the round */
	unsigned int nr_ops, at;
	void (*then)(struct actor *a);	/* what follows the round */
};

static struct {
	struct cost costs[COSTS_MAX];
	struct line lines[LINES_MAX];
	struct path paths[PATHS_MAX];
	unsigned int nr_costs, nr_lines, nr_paths;

	unsigned int nr_workers;
	unsigned int socket;		/* processors of one */
	double transfer_ns;
	uint64_t random;
	const char *with;
	bool has_own_timers;		/* each worker fires its own */
	bool has_fan;			/* thieves that find more wake two */

	struct actor *actors;		/* workers, and behind them a thread */
	unsigned int nr_actors;
	struct actor **heap;
	unsigned int nr_heap;

	double nr_done;			/* operations */
	double end_ns;			/* when the last one was */
	bool is_over;
	bool is_time;			/* end_ns is the result, no rate */
} sim;

/* ---- what was read ---- */

static inline double cost_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < sim.nr_costs; i++)
		if (!strcmp(sim.costs[i].name, name))
			return sim.costs[i].ns;
	die("no cost of '%s'", name);
}

static inline struct line *line_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < sim.nr_lines; i++)
		if (!strcmp(sim.lines[i].name, name))
			return &sim.lines[i];
	die("no line '%s'", name);
}

static inline const struct path *path_of(const char *name)
{
	struct path *p;
	unsigned int i;

	for (i = 0; i < sim.nr_paths; i++)
		if (!strcmp(sim.paths[i].name, name))
			return &sim.paths[i];
	if (sim.nr_paths == PATHS_MAX)
		die("too many paths");
	p = &sim.paths[sim.nr_paths++];
	snprintf(p->name, sizeof(p->name), "%s", name);
	return p;
}

/* A name of --with. */
static inline bool is_option(const char *name)
{
	const char *at = strstr(sim.with, name);
	size_t len = strlen(name);

	return at && (at == sim.with || at[-1] == ',') &&
	       (!at[len] || at[len] == ',');
}

/* ---- lines ---- */

static inline double transfer_ns(const struct copy *c, const struct actor *a)
{
	bool is_far = c->owner / sim.socket != a->nr / sim.socket;

	return is_far ? 3 * sim.transfer_ns : sim.transfer_ns;
}

static inline bool is_shared_by(const struct copy *c, unsigned int nr)
{
	return c->sharers[nr / 64] >> nr % 64 & 1;
}

static inline bool is_alone(const struct copy *c, unsigned int nr)
{
	unsigned int i, found = 0;

	for (i = 0; i < SHARER_WORDS; i++)
		found += (unsigned int)__builtin_popcountll(c->sharers[i]);
	return found == 1 && is_shared_by(c, nr);
}

/*
 * What it costs the actor is added to its time, and to the line's loss.  Lines
 * that are never written do not move.
 */
static inline void visit_copy(struct actor *a, struct line *l, unsigned int nr,
			      bool is_write)
{
	struct copy *c = &l->copies[nr % l->nr_copies];
	double start = a->now;

	if (c->free_at > a->now)
		a->now = c->free_at;
	if (c->was_written && (is_write ? !is_alone(c, a->nr) :
				       !is_shared_by(c, a->nr)))
		a->now += transfer_ns(c, a);
	if (is_write) {
		memset(c->sharers, 0, sizeof(c->sharers));
		c->owner = a->nr;
		c->was_written = true;
		c->free_at = a->now + l->hold_ns;
	}
	c->sharers[a->nr / 64] |= UINT64_C(1) << a->nr % 64;
	l->lost_ns += a->now - start;
}

static inline double random_part(void)
{
	sim.random = mix(sim.random);
	return (double)(sim.random >> 11) / (double)(UINT64_C(1) << 53);
}

static inline unsigned int random_below(unsigned int nr)
{
	return (unsigned int)(random_part() * nr);
}

/* ---- rounds ---- */

static inline void add_op(struct actor *a, struct line *l, unsigned int copy,
		   bool is_write)
{
	if (a->nr_ops == OPS_MAX)
		die("too many visits in a round");
	a->ops[a->nr_ops++] = (struct op) { l, copy, is_write };
}

static inline void add_visit(struct actor *a, const struct visit *v)
{
	struct line *l = v->line;
	unsigned int i, times = (unsigned int)v->times;

	times += random_part() < v->times - times;
	for (i = 0; i < times && l->which != ALL; i++)
		add_op(a, l, l->which == ANY ? random_below(l->nr_copies) :
			     a->nr, v->is_write);
	for (i = 0; times && l->which == ALL && i < l->nr_copies; i++)
		add_op(a, l, i, v->is_write);
}

static inline void add_path(struct actor *a, const struct path *p)
{
	unsigned int i;

	for (i = 0; i < p->nr; i++)
		add_visit(a, &p->visits[i]);
}

/* A round of @p that takes @ns by itself; then @then is called. */
static inline void begin(struct actor *a, const struct path *p, double ns,
	   void (*then)(struct actor *a))
{
	a->nr_ops = a->at = 0;
	add_path(a, p);
	a->local_ns = ns;
	a->then = then;
	a->begun = a->now;
}

/* One piece of a round and the visit behind it, or its last piece. */
static inline void step(struct actor *a)
{
	struct op *op;

	a->now += a->local_ns / (a->nr_ops + 1);
	if (a->at < a->nr_ops) {
		op = &a->ops[a->at++];
		visit_copy(a, op->line, op->copy, op->is_write);
		return;
	}
	a->busy_ns += a->now - a->begun;
	a->then(a);
}

/* ---- events: a heap of actors by their time, then by their number ---- */

static inline bool is_before(const struct actor *a, const struct actor *b)
{
	return a->now < b->now || (a->now == b->now && a->nr < b->nr);
}

static inline void heap_place(unsigned int i, struct actor *a)
{
	sim.heap[i] = a;
	a->heap_at = i;
}

static inline void heap_up(struct actor *a)
{
	unsigned int i = a->heap_at;

	while (i && is_before(a, sim.heap[(i - 1) / 2])) {
		heap_place(i, sim.heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_place(i, a);
}

static inline void heap_down(struct actor *a)
{
	unsigned int i = a->heap_at, child;

	while ((child = 2 * i + 1) < sim.nr_heap) {
		if (child + 1 < sim.nr_heap &&
		    is_before(sim.heap[child + 1], sim.heap[child]))
			child++;
		if (!is_before(sim.heap[child], a))
			break;
		heap_place(i, sim.heap[child]);
		i = child;
	}
	heap_place(i, a);
}

/* The actor waits until resume(). */
static inline void block(struct actor *a)
{
	struct actor *last = sim.heap[--sim.nr_heap];

	a->is_blocked = true;
	if (last == a)
		return;
	heap_place(a->heap_at, last);
	heap_up(last);
	heap_down(last);
}

/* Not before @now.  Its next round is up to @then. */
static inline void resume(struct actor *a, double now,
			  void (*then)(struct actor *a))
{
	if (a->now < now)
		a->now = now;
	a->is_blocked = false;
	a->nr_ops = a->at = 0;
	a->local_ns = 0;
	a->begun = a->now;
	a->then = then;
	heap_place(sim.nr_heap++, a);
	heap_up(a);
}

static inline void run(void)
{
	struct actor *a;

	while (sim.nr_heap && !sim.is_over) {
		a = sim.heap[0];
		step(a);
		if (!a->is_blocked)
			heap_down(a);
	}
	if (!sim.is_over)
		die("all actors wait: a fault of the simulation");
}

#endif /* BENCH_CONTEND_H */
