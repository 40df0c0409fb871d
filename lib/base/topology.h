/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * topology: which CPUs share a core, a cluster and a node
 *
 * A cluster is the largest set of CPUs that share a cache and are not a whole
 * node: those of one L3 cache where a node has several of these, else those of
 * one L2 cache.
 *
 * The location of a CPU is one number: its node, its cluster and its core, 16
 * bits each, the node in the highest.  Each of the three goes by the number of
 * its first CPU.  So the exclusive or of two locations grows with the distance
 * of the CPUs; pl__level_end() says where each level ends.
 */
#ifndef PL_TOPOLOGY_H
#define PL_TOPOLOGY_H

#include "base/sys.h"

#define PL__TOPOLOGY_ROOT	"/sys/devices/system"

/* What two CPUs share, nearest first. */
enum pl__level {
	PL__SAME_CORE,
	PL__SAME_CLUSTER,
	PL__SAME_NODE,
	PL__OTHER_NODE,
	PL__NR_LEVELS,
};

#define PL__LOCATION_BITS	48
/* Of a worker that has not looked yet: far from all others. */
#define PL__LOCATION_UNKNOWN	((1ULL << PL__LOCATION_BITS) - 1)

static inline uint64_t pl__location(uint32_t node, uint32_t cluster,
				    uint32_t core)
{
	return (uint64_t)node << 32 | (uint64_t)cluster << 16 | core;
}

/* The xor of two locations of this level, or a nearer one, is less. */
static inline uint64_t pl__level_end(enum pl__level level)
{
	return 1ULL << 16 * level;
}

struct pl__cpu_place {
	uint16_t		cpu;
	uint16_t		nth;	/* of its core's CPUs */
};

/* W: the thread that calls pl__topology_read().  A: any thread reads. */
struct pl__topology {
	struct pl__cpu_set	cpus;		/* W */
	uint32_t		nr_cpus;	/* W: in cpus */
	/* W: bit n: some CPUs are at level n, and at none that is nearer */
	uint32_t		levels;
	/* W: node by node, cluster by cluster, core by core */
	struct pl__cpu_place	places[PL__CPUS_MAX];
	_Atomic uint64_t	location[PL__CPUS_MAX];	/* W writes, A */
};

/*
 * Reads the topology of @cpus below @root, which is PL__TOPOLOGY_ROOT but in
 * tests.  What cannot be read counts as one level for all: without files @t is
 * flat.  Two CPUs are flat, and cost no look.
 */
void pl__topology_read(struct pl__topology *t, const char *root,
		       const struct pl__cpu_set *cpus);

/* CPUs are at more than one level: nearer ones can be told from others. */
static inline bool pl__topology_is_flat(const struct pl__topology *t)
{
	return __builtin_popcount(t->levels) <= 1;
}

/*
 * Fills in @order, of PL__CPUS_MAX: the first CPUs of all cores, as places has
 * them, then the second ones, and so on.  So as many workers as there are cores
 * have one each.
 */
void pl__topology_order(const struct pl__topology *t, uint16_t *order);

/* Reads a list as "0-3,8" into @set; false: it is none, or has no CPU. */
bool pl__cpu_set_parse(struct pl__cpu_set *set, const char *list);

#endif /* PL_TOPOLOGY_H */
