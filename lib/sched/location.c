/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/location.h"
#include "sched/pin.h"

#include <string.h>

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

int pl__locations_start(void)
{
	uint32_t nr = pl__rt.cfg.max_workers, i;
	struct pl__cpu_set cpus;
	int ret;

	pl__rt.locations = pl__alloc(nr * sizeof(*pl__rt.locations));
	if (!pl__rt.locations)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		store_relaxed(&pl__rt.locations[i], PL__LOCATION_UNKNOWN);
	if (pl__affinity_get(&cpus))
		memset(&cpus, 0, sizeof(cpus));
	locations_read(&cpus);
	followed_ns = pl__now_ns();
	ret = pl__pin_start(&topology);
	if (ret)
		pl__locations_stop();
	return ret;
}

void pl__locations_stop(void)
{
	pl__pin_stop();
	pl__free(pl__rt.locations);
	pl__rt.locations = NULL;
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
	pl__pin_all(&topology);
}

uint64_t pl__location_note(struct pl__worker *w)
{
	_Atomic uint64_t *noted = &pl__rt.locations[w->index];
	uint32_t cpu = pl__cpu_now();
	uint64_t location = PL__LOCATION_UNKNOWN;

	if (cpu < PL__CPUS_MAX)
		location = load_relaxed(&topology.location[cpu]);
	if (load_relaxed(noted) != location)
		store_relaxed(noted, location);
	return location;
}
