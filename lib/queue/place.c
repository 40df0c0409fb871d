/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "queue/place.h"
#include "base/atfork.h"

#include <string.h>

/* ---- pinning ---- */

/* The only instance.  S: start_lock held, or the runtime starts. */
static struct {
	struct pl__cpu_set	cpus;			/* S */
	_Atomic uint32_t	nr_cpus;		/* S writes: in cpus */
	uint16_t		order[PL__CPUS_MAX];	/* S */
} pin;

static void pin_set(const struct pl__topology *t)
{
	pin.cpus = t->cpus;
	store_relaxed(&pin.nr_cpus, t->nr_cpus);
	pl__topology_order(t, pin.order);
}

/*
 * A CPU may have gone offline since: then the kernel refuses the set or runs
 * the thread elsewhere, and sysmon sees other CPUs at its next look.
 */
void pl__pin_worker(struct pl__worker *w)
{
	struct pl__cpu_set one;
	int tid = load_relaxed(&w->tid);

	if (!pl__rt.cfg.pin_workers || !tid)
		return;
	if (w->group->index || w->index >= load_relaxed(&pin.nr_cpus)) {
		pl__affinity_set(tid, &pin.cpus);
		return;
	}
	memset(&one, 0, sizeof(one));
	pl__cpu_set_add(&one, pin.order[w->index]);
	pl__affinity_set(tid, &one);
}

/* 0, or -errno: the kernel lets no thread be bound. */
static int pin_start(const struct pl__topology *t)
{
	int ret;

	if (!pl__rt.cfg.pin_workers)
		return 0;
	ret = pl__affinity_probe();
	if (!ret)
		pin_set(t);
	return ret;
}

static void pin_stop(void)
{
	store_relaxed(&pin.nr_cpus, 0);
}

/* All workers that have a thread. */
static void pin_all(const struct pl__topology *t)
{
	uint32_t nr, i;

	if (!pl__rt.cfg.pin_workers)
		return;
	pl__lock(&pl__rt.start_lock);
	pin_set(t);
	nr = load_relaxed(&pl__rt.nr_started);
	for (i = 0; i < nr; i++)
		pl__pin_worker(pl__rt.workers[i]);
	pl__unlock(&pl__rt.start_lock);
}

uint32_t pl__pin_nr_cpus(void)
{
	return load_relaxed(&pin.nr_cpus);
}

PL_ATFORK_CHILD(pin_stop);

/* ---- locations ---- */

#define FOLLOW_NS	NSEC_PER_SEC

/*
 * The only instance.  Written while the runtime starts, then by sysmon; its
 * `location` is read by all workers.
 */
static struct pl__topology topology;
static uint64_t followed_ns;	/* when the set of CPUs was last asked for */

static void locations_read(const struct pl__cpu_set *cpus)
{
	pl__topology_read(&topology, PL__TOPOLOGY_ROOT, cpus);
	store_relaxed(&pl__rt.levels, pl__topology_is_flat(&topology) ?
				      0 : topology.levels);
}

_Atomic uint64_t *pl__locations_new(uint32_t nr)
{
	_Atomic uint64_t *locations = pl__alloc(nr * sizeof(*locations));
	uint32_t i;

	for (i = 0; locations && i < nr; i++)
		store_relaxed(&locations[i], PL__LOCATION_UNKNOWN);
	return locations;
}

int pl__locations_start(void)
{
	struct pl__cpu_set cpus;

	if (pl__affinity_get(&cpus))
		memset(&cpus, 0, sizeof(cpus));
	locations_read(&cpus);
	followed_ns = pl__now_ns();
	return pin_start(&topology);
}

void pl__locations_stop(void)
{
	pin_stop();
}

void pl__locations_follow(uint64_t now)
{
	struct pl__cpu_set cpus;

	if (now - followed_ns < FOLLOW_NS)
		return;
	followed_ns = now;
	if (!pl__affinity_get(&cpus) &&
	    memcmp(&cpus, &topology.cpus, sizeof(cpus)))
		locations_read(&cpus);
	/*
	 * Also without a change: what bound sysmon's thread to other CPUs may
	 * have come to a worker's after that was pinned anew.
	 */
	pin_all(&topology);
}

uint64_t pl__location_note(struct pl__worker *w)
{
	_Atomic uint64_t *noted = &w->group->locations[w->index];
	uint32_t cpu = pl__cpu_now();
	uint64_t location = PL__LOCATION_UNKNOWN;

	if (cpu < PL__CPUS_MAX)
		location = load_relaxed(&topology.location[cpu]);
	if (load_relaxed(noted) != location)
		store_relaxed(noted, location);
	return location;
}

/* ---- visits ---- */

/* A level that the machine lacks is passed with the next. */
static bool victims_next_level(struct pl__victims *v)
{
	uint32_t level;

	if (!v->levels)
		return false;
	level = (uint32_t)__builtin_ctz(v->levels);
	v->levels &= v->levels - 1;
	v->from = v->end;
	v->end = pl__level_end(level);
	v->left = v->nr;
	return true;
}

void pl__victims_begin(struct pl__victims *v, struct pl__worker *thief,
		       uint64_t at, uint32_t nr, uint32_t first)
{
	v->locations = thief->group->locations;
	v->at = at;
	v->end = 0;
	v->levels = load_relaxed(&pl__rt.levels) | 1U << PL__OTHER_NODE;
	v->thief = thief->index;
	v->nr = nr;
	v->next = first % nr;
	victims_next_level(v);
}

uint32_t pl__victims_next(struct pl__victims *v)
{
	uint64_t distance;
	uint32_t i;

	do {
		while (v->left) {
			v->left--;
			i = v->next;
			v->next = i + 1 < v->nr ? i + 1 : 0;
			distance = load_relaxed(&v->locations[i]) ^ v->at;
			if (distance >= v->from && distance < v->end &&
			    i != v->thief)
				return i;
		}
	} while (victims_next_level(v));
	return PL__NO_VICTIM;
}
