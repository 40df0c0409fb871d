/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "base/topology.h"
#include "base/sys.h"

#include <string.h>

#define NR_CACHES	16	/* of a CPU; their indices have no gaps */
#define LIST_MAX	4096	/* bytes: the kernel prints a page */

bool pl__cpu_set_parse(struct pl__cpu_set *set, const char *list)
{
	unsigned long first, last;
	char *end;

	memset(set, 0, sizeof(*set));
	do {
		if (*list < '0' || *list > '9')
			return false;
		first = last = strtoul(list, &end, 10);
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoul(end + 1, &end, 10);
		if (first > last || last >= PL__CPUS_MAX)
			return false;
		for (; first <= last; first++)
			pl__cpu_set_add(set, (uint32_t)first);
		list = end + 1;
	} while (*end == ',');
	return !*end || *end == '\n';
}

/* ---- files ---- */

static bool topology_list(struct pl__cpu_set *set, const char *path)
{
	char text[LIST_MAX];

	return pl__read_file(path, text, sizeof(text)) > 0 &&
	       pl__cpu_set_parse(set, text);
}

/* Sets *@node to those of @all in the node of @cpu, or in no node either. */
static void topology_node(struct pl__cpu_set *node, const char *root,
			  uint32_t cpu, const struct pl__cpu_set *all)
{
	struct pl__cpu_set online, other, rest = *all;
	uint32_t nr = PL__CPUS_MAX;
	char path[256];

	snprintf(path, sizeof(path), "%s/node/online", root);
	if (topology_list(&online, path))
		nr = pl__cpu_set_next(&online, 0);
	for (; nr < PL__CPUS_MAX; nr = pl__cpu_set_next(&online, nr + 1)) {
		snprintf(path, sizeof(path), "%s/node/node%u/cpulist", root,
			 nr);
		if (!topology_list(&other, path))
			continue;
		if (pl__cpu_set_has(&other, cpu)) {
			*node = other;
			pl__cpu_set_and(node, all);
			return;
		}
		pl__cpu_set_sub(&rest, &other);
	}
	*node = rest;
}

/* Keeps the larger of the two, unless that is the whole node. */
static void topology_keep_larger(struct pl__cpu_set *cluster,
				 struct pl__cpu_set *set,
				 const struct pl__cpu_set *node)
{
	uint32_t nr;

	pl__cpu_set_and(set, node);
	nr = pl__cpu_set_count(set);
	if (nr < pl__cpu_set_count(node) && nr > pl__cpu_set_count(cluster))
		*cluster = *set;
}

/* Those of @cluster in the core of @cpu, at least that itself. */
static void topology_core(struct pl__cpu_set *core, const char *root,
			  uint32_t cpu, const struct pl__cpu_set *cluster)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/cpu/cpu%u/topology/core_cpus_list",
		 root, cpu);
	if (!topology_list(core, path))
		memset(core, 0, sizeof(*core));
	pl__cpu_set_and(core, cluster);
	pl__cpu_set_add(core, cpu);
}

/* Those of @node that share a cache with @cpu, at least its core. */
static void topology_cluster(struct pl__cpu_set *cluster, const char *root,
			     uint32_t cpu, const struct pl__cpu_set *node)
{
	struct pl__cpu_set set;
	char path[256];
	int i;

	topology_core(cluster, root, cpu, node);
	snprintf(path, sizeof(path), "%s/cpu/cpu%u/topology/cluster_cpus_list",
		 root, cpu);
	if (topology_list(&set, path))
		topology_keep_larger(cluster, &set, node);
	for (i = 0; i < NR_CACHES; i++) {
		snprintf(path, sizeof(path),
			 "%s/cpu/cpu%u/cache/index%d/shared_cpu_list", root,
			 cpu, i);
		if (!topology_list(&set, path))
			break;
		topology_keep_larger(cluster, &set, node);
	}
	/* The file may contradict itself, or those of other CPUs. */
	pl__cpu_set_add(cluster, cpu);
}

/* ---- all of it ---- */

static void topology_add(struct pl__topology *t, uint32_t cpu, uint32_t nth,
			 uint64_t location)
{
	struct pl__cpu_place *place = &t->places[t->nr_cpus++];

	place->cpu = (uint16_t)cpu;
	place->nth = (uint16_t)nth;
	store_relaxed(&t->location[cpu], location);
}

/* Adds @core; its cluster and its node begin with the CPUs of these numbers. */
static void topology_add_core(struct pl__topology *t, uint32_t node,
			      uint32_t cluster, const struct pl__cpu_set *core)
{
	uint32_t first = pl__cpu_set_next(core, 0), cpu = first, nth;

	for (nth = 0; cpu < PL__CPUS_MAX; nth++) {
		topology_add(t, cpu, nth, pl__location(node, cluster, first));
		cpu = pl__cpu_set_next(core, cpu + 1);
	}
	t->levels |= (uint32_t)(nth > 1) << PL__SAME_CORE;
}

static void topology_add_cluster(struct pl__topology *t, const char *root,
				 uint32_t node, struct pl__cpu_set *cluster)
{
	uint32_t first = pl__cpu_set_next(cluster, 0), cpu = first;
	struct pl__cpu_set core;

	while (cpu < PL__CPUS_MAX) {
		topology_core(&core, root, cpu, cluster);
		topology_add_core(t, node, first, &core);
		pl__cpu_set_sub(cluster, &core);
		cpu = pl__cpu_set_next(cluster, cpu + 1);
		t->levels |= (uint32_t)(cpu < PL__CPUS_MAX) << PL__SAME_CLUSTER;
	}
}

static void topology_add_node(struct pl__topology *t, const char *root,
			      struct pl__cpu_set *node)
{
	uint32_t first = pl__cpu_set_next(node, 0), cpu = first;
	struct pl__cpu_set whole = *node, cluster;

	while (cpu < PL__CPUS_MAX) {
		topology_cluster(&cluster, root, cpu, &whole);
		pl__cpu_set_and(&cluster, node);
		pl__cpu_set_sub(node, &cluster);
		topology_add_cluster(t, root, first, &cluster);
		cpu = pl__cpu_set_next(node, cpu + 1);
		t->levels |= (uint32_t)(cpu < PL__CPUS_MAX) << PL__SAME_NODE;
	}
}

static void topology_add_flat(struct pl__topology *t)
{
	uint32_t cpu = pl__cpu_set_next(&t->cpus, 0), first = cpu;

	for (; cpu < PL__CPUS_MAX; cpu = pl__cpu_set_next(&t->cpus, cpu + 1))
		topology_add(t, cpu, 0, pl__location(first, cpu, cpu));
}

void pl__topology_read(struct pl__topology *t, const char *root,
		       const struct pl__cpu_set *cpus)
{
	struct pl__cpu_set left = *cpus, node;
	uint32_t cpu = pl__cpu_set_next(&left, 0);

	t->cpus = *cpus;
	t->nr_cpus = 0;
	t->levels = 0;
	if (pl__cpu_set_count(cpus) <= 2) {
		topology_add_flat(t);
		return;
	}
	while (cpu < PL__CPUS_MAX) {
		topology_node(&node, root, cpu, cpus);
		pl__cpu_set_and(&node, &left);
		pl__cpu_set_sub(&left, &node);
		topology_add_node(t, root, &node);
		cpu = pl__cpu_set_next(&left, cpu + 1);
		t->levels |= (uint32_t)(cpu < PL__CPUS_MAX) << PL__OTHER_NODE;
	}
}

void pl__topology_order(const struct pl__topology *t, uint16_t *order)
{
	uint32_t nth, i, nr = 0;

	for (nth = 0; nr < t->nr_cpus; nth++)
		for (i = 0; i < t->nr_cpus; i++)
			if (t->places[i].nth == nth)
				order[nr++] = t->places[i].cpu;
}
