/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The topology, read from directories that are made like the kernel's: which
 * CPUs are near each other, and in which order workers are pinned to them.
 */
#include "kselftest_harness.h"

#include "base/topology.h"

#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FIXTURE(topology) { char root[64]; };

static struct pl__topology topology;
static uint16_t order[PL__CPUS_MAX];

FIXTURE_SETUP(topology)
{
	strcpy(self->root, "/tmp/lib_topology.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->root));
	memset(&topology, 0xa5, sizeof(topology));
}

FIXTURE_TEARDOWN(topology)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", self->root);
	EXPECT_EQ(0, system(command));
}

/* ---- a machine ---- */

/* Writes @text to the file below @root that the rest says, as printf() does. */
__attribute__((format(printf, 3, 4)))
static void put(const char *root, const char *text, const char *format, ...)
{
	char path[256], *slash;
	va_list args;
	size_t len;
	FILE *f;

	len = (size_t)snprintf(path, sizeof(path), "%s/", root);
	va_start(args, format);
	vsnprintf(path + len, sizeof(path) - len, format, args);
	va_end(args);
	for (slash = path + len; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	f = fopen(path, "w");
	if (!f)
		abort();
	fprintf(f, "%s\n", text);
	fclose(f);
}

static void put_core(const char *root, int cpu, const char *cpus)
{
	put(root, cpus, "cpu/cpu%d/topology/core_cpus_list", cpu);
}

static void put_cache(const char *root, int cpu, int index, const char *cpus)
{
	put(root, cpus, "cpu/cpu%d/cache/index%d/shared_cpu_list", cpu, index);
}

/*
 * 2 nodes of 4 cores of 2 threads: node 0 has 0 to 3 and their siblings 8 to
 * 11.  Pairs of cores share a cache, and each node another.
 */
static void put_machine(const char *root)
{
	char text[64];
	int cpu, core, pair, node;

	put(root, "0-1", "node/online");
	put(root, "0-3,8-11", "node/node0/cpulist");
	put(root, "4-7,12-15", "node/node1/cpulist");
	for (cpu = 0; cpu < 16; cpu++) {
		core = cpu % 8;
		pair = core / 2 * 2;
		node = core / 4 * 4;
		snprintf(text, sizeof(text), "%d,%d", core, core + 8);
		put_core(root, cpu, text);
		put_cache(root, cpu, 0, text);
		snprintf(text, sizeof(text), "%d-%d,%d-%d", pair, pair + 1,
			 pair + 8, pair + 9);
		put_cache(root, cpu, 1, text);
		snprintf(text, sizeof(text), "%d-%d,%d-%d", node, node + 3,
			 node + 8, node + 11);
		put_cache(root, cpu, 2, text);
	}
}

static void read_of(const char *root, const char *list)
{
	struct pl__cpu_set cpus;

	if (!pl__cpu_set_parse(&cpus, list))
		abort();
	pl__topology_read(&topology, root, &cpus);
}

static enum pl__level level_of(int a, int b)
{
	uint64_t diff = topology.location[a] ^ topology.location[b];
	int level = PL__SAME_CORE;

	while (diff >= pl__level_end(level))
		level++;
	return level;
}

/* The order for pins, as "0 1 2 ". */
static const char *order_text(void)
{
	static char text[256];
	size_t len = 0;
	uint32_t i;

	pl__topology_order(&topology, order);
	text[0] = '\0';
	for (i = 0; i < topology.nr_cpus; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%d ",
					order[i]);
	return text;
}

/* ---- lists ---- */

static int nr_in(const char *list)
{
	struct pl__cpu_set set;

	return pl__cpu_set_parse(&set, list) ? (int)pl__cpu_set_count(&set) :
					       -1;
}

TEST(list_of_cpus_is_read)
{
	struct pl__cpu_set set;

	EXPECT_TRUE(pl__cpu_set_parse(&set, "0-2,64,8191\n"));
	EXPECT_EQ(5, pl__cpu_set_count(&set));
	EXPECT_TRUE(pl__cpu_set_has(&set, 2));
	EXPECT_FALSE(pl__cpu_set_has(&set, 3));
	EXPECT_EQ(64, pl__cpu_set_next(&set, 3));
	EXPECT_EQ(8191, pl__cpu_set_next(&set, 65));
	EXPECT_EQ(PL__CPUS_MAX, pl__cpu_set_next(&set, 8192));
	EXPECT_EQ(8192, nr_in("0-8191"));
	EXPECT_EQ(1, nr_in("7"));
}

TEST(list_that_is_none_is_refused)
{
	EXPECT_EQ(-1, nr_in(""));
	EXPECT_EQ(-1, nr_in("\n"));
	EXPECT_EQ(-1, nr_in("-1"));
	EXPECT_EQ(-1, nr_in("3-1"));
	EXPECT_EQ(-1, nr_in("1-"));
	EXPECT_EQ(-1, nr_in("1,"));
	EXPECT_EQ(-1, nr_in("0-8192"));
	EXPECT_EQ(-1, nr_in("99999999999999999999"));
	EXPECT_EQ(-1, nr_in("0 1"));
	EXPECT_EQ(-1, nr_in("nodes"));
}

/* ---- locations ---- */

TEST_F(topology, levels_of_two_nodes_are_found)
{
	put_machine(self->root);
	read_of(self->root, "0-15");
	EXPECT_EQ(16, topology.nr_cpus);
	EXPECT_FALSE(pl__topology_is_flat(&topology));
	EXPECT_EQ(0xf, topology.levels);
	EXPECT_EQ(PL__SAME_CORE, level_of(3, 11));
	EXPECT_EQ(PL__SAME_CLUSTER, level_of(0, 1));
	EXPECT_EQ(PL__SAME_CLUSTER, level_of(8, 1));
	EXPECT_EQ(PL__SAME_NODE, level_of(1, 2));
	EXPECT_EQ(PL__SAME_NODE, level_of(9, 3));
	EXPECT_EQ(PL__OTHER_NODE, level_of(3, 4));
	EXPECT_EQ(PL__OTHER_NODE, level_of(8, 15));
}

TEST_F(topology, order_has_each_core_once_then_siblings)
{
	put_machine(self->root);
	read_of(self->root, "0-15");
	EXPECT_STREQ("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 ", order_text());
	/* Siblings side by side. */
	put_core(self->root, 0, "0-1");
	put_core(self->root, 2, "2-3");
	read_of(self->root, "0-3");
	EXPECT_STREQ("0 2 1 3 ", order_text());
}

/* CPUs that are offline, or not in the cpuset, are in the files or not. */
TEST_F(topology, only_allowed_cpus_are_located)
{
	put_machine(self->root);
	put_core(self->root, 3, "3");
	read_of(self->root, "1-3,8,13-14");
	EXPECT_EQ(6, topology.nr_cpus);
	EXPECT_STREQ("1 8 2 3 13 14 ", order_text());
	EXPECT_EQ(PL__SAME_CLUSTER, level_of(1, 8));
	EXPECT_EQ(PL__SAME_NODE, level_of(1, 2));
	EXPECT_EQ(PL__OTHER_NODE, level_of(3, 13));
	EXPECT_EQ(0xf & ~(1 << PL__SAME_CORE), topology.levels);
}

TEST_F(topology, cache_of_whole_node_is_no_cluster)
{
	int cpu;

	put(self->root, "0", "node/online");
	put(self->root, "0-7", "node/node0/cpulist");
	for (cpu = 0; cpu < 8; cpu++) {
		put_core(self->root, cpu, "99");
		put_cache(self->root, cpu, 0, "0-7");
	}
	read_of(self->root, "0-7");
	EXPECT_EQ(1 << PL__SAME_NODE, topology.levels);
	EXPECT_TRUE(pl__topology_is_flat(&topology));
}

/* As on arm64, where clusters share what the cache directories do not have. */
TEST_F(topology, cluster_is_found_without_caches)
{
	int cpu;

	for (cpu = 0; cpu < 8; cpu++)
		put(self->root, cpu < 4 ? "0-3" : "4-7",
		    "cpu/cpu%d/topology/cluster_cpus_list", cpu);
	read_of(self->root, "0-7");
	EXPECT_EQ(PL__SAME_CLUSTER, level_of(0, 3));
	EXPECT_EQ(PL__SAME_NODE, level_of(3, 4));
	EXPECT_FALSE(pl__topology_is_flat(&topology));
}

TEST_F(topology, missing_files_are_one_flat_level)
{
	read_of(self->root, "0-7");
	EXPECT_EQ(8, topology.nr_cpus);
	EXPECT_TRUE(pl__topology_is_flat(&topology));
	EXPECT_EQ(level_of(0, 1), level_of(0, 7));
	EXPECT_STREQ("0 1 2 3 4 5 6 7 ", order_text());
}

TEST_F(topology, missing_nodes_leave_cores_and_clusters)
{
	char command[128];

	put_machine(self->root);
	snprintf(command, sizeof(command), "rm -r %s/node", self->root);
	ASSERT_EQ(0, system(command));
	read_of(self->root, "0-15");
	EXPECT_EQ(PL__SAME_CORE, level_of(3, 11));
	/* What shares the last cache is the cluster then. */
	EXPECT_EQ(PL__SAME_CLUSTER, level_of(0, 3));
	EXPECT_EQ(PL__SAME_NODE, level_of(3, 4));
}

TEST_F(topology, cpu_of_no_node_is_far_from_the_others)
{
	put_machine(self->root);
	read_of(self->root, "0-3,20");
	EXPECT_EQ(5, topology.nr_cpus);
	EXPECT_EQ(PL__OTHER_NODE, level_of(0, 20));
}

/* Each CPU is there once, whatever the files say. */
TEST_F(topology, files_that_contradict_lose_no_cpu)
{
	unsigned int seen = 0;
	int i;

	put_machine(self->root);
	put(self->root, "0-15", "node/node1/cpulist");
	put_core(self->root, 1, "2");
	put_core(self->root, 2, "nonsense");
	put_cache(self->root, 4, 0, "1-2");
	put_cache(self->root, 5, 2, "");
	put_cache(self->root, 6, 2, "0-16000");
	read_of(self->root, "0-15");
	EXPECT_EQ(16, topology.nr_cpus);
	pl__topology_order(&topology, order);
	for (i = 0; i < 16; i++)
		seen |= 1U << order[i];
	EXPECT_EQ(0xffff, seen);
}

TEST_F(topology, two_cpus_are_flat_whatever_the_files_say)
{
	put_machine(self->root);
	read_of(self->root, "3-4");
	EXPECT_EQ(2, topology.nr_cpus);
	EXPECT_TRUE(pl__topology_is_flat(&topology));
	EXPECT_STREQ("3 4 ", order_text());
}

TEST(topology_of_this_machine_has_its_cpus)
{
	char list[] = "0-0";
	long nr = sysconf(_SC_NPROCESSORS_ONLN);

	if (nr > 9)
		nr = 9;
	list[2] = (char)('0' + nr - 1);
	read_of(PL__TOPOLOGY_ROOT, list);
	EXPECT_EQ(nr, topology.nr_cpus);
}

TEST_HARNESS_MAIN
