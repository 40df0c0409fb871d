/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/rt/cpus: how many CPUs a quota amounts to, and that affinity counts.
 */
#include "kselftest_harness.h"

#include "base/base.h"
#include "rt/config.h"

#include <sched.h>

#define MACHINE		256

static struct pl__cpus limited(const char *cpu_max)
{
	struct pl__cpus cpus = { .nr = MACHINE };

	pl__cpus_limit(&cpus, cpu_max);
	return cpus;
}

static uint32_t nr_of(const char *cpu_max)
{
	struct pl__cpus cpus = limited(cpu_max);

	return pl__cpus_at_a_time(&cpus);
}

TEST(quota_is_rounded_up_to_cpus)
{
	EXPECT_EQ(1, nr_of("100000 100000\n"));
	EXPECT_EQ(2, nr_of("100001 100000\n"));
	EXPECT_EQ(2, nr_of("150000 100000\n"));
	EXPECT_EQ(2, nr_of("200000 100000"));
	EXPECT_EQ(3, nr_of("200001 100000"));
	EXPECT_EQ(64, nr_of("6400000 100000\n"));
	EXPECT_EQ(4, nr_of("20000 5000\n"));
}

TEST(quota_below_one_cpu_is_one)
{
	EXPECT_EQ(1, nr_of("1000 100000\n"));
	EXPECT_EQ(1, nr_of("1 1000000\n"));
	EXPECT_EQ(1, nr_of("0 100000\n"));
}

/* Nor one that is for more than there are, which may be more than any has. */
TEST(no_quota_is_no_limit)
{
	static const char *const texts[] = {
		"max 100000\n", "max", "", "\n", "100000", "100000 0\n",
		"nonsense 1\n", "25600000 100000\n", "4294967296 1\n",
		"18446744073709551615 1\n", "18446744073709551615 1000\n",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		EXPECT_EQ(MACHINE, nr_of(texts[i]));
		EXPECT_EQ(0, limited(texts[i]).period_ns);
	}
}

TEST(period_is_that_of_the_least_quota)
{
	struct pl__cpus cpus = limited("400000 200000");

	EXPECT_EQ(200000000, cpus.period_ns);
	pl__cpus_limit(&cpus, "300000 100000");
	EXPECT_EQ(200000000, cpus.period_ns);
	pl__cpus_limit(&cpus, "5000 10000");
	EXPECT_EQ(10000000, cpus.period_ns);
	EXPECT_EQ(1, pl__cpus_at_a_time(&cpus));
}

TEST(affinity_to_one_cpu_is_one)
{
	int cpu = sched_getcpu();
	cpu_set_t set;

	ASSERT_LE(0, cpu);
	EXPECT_LE(1, pl__cpus_usable());
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(set), &set));
	EXPECT_EQ(1, pl__cpus_usable());
}

TEST(quota_is_limited_by_affinity)
{
	cpu_set_t set;

	ASSERT_EQ(0, sched_getaffinity(0, sizeof(set), &set));
	EXPECT_GE(CPU_COUNT(&set), pl__cpus_usable());
}

TEST_HARNESS_MAIN
