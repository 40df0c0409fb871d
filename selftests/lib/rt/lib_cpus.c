/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/rt/cpus: how many CPUs a quota amounts to, and that affinity counts.
 */
#include "kselftest_harness.h"

#include "rt/config.h"

#include <sched.h>

TEST(quota_is_rounded_up_to_cpus)
{
	EXPECT_EQ(1, pl__cpus_parse_quota("100000 100000\n"));
	EXPECT_EQ(2, pl__cpus_parse_quota("100001 100000\n"));
	EXPECT_EQ(2, pl__cpus_parse_quota("150000 100000\n"));
	EXPECT_EQ(2, pl__cpus_parse_quota("200000 100000"));
	EXPECT_EQ(3, pl__cpus_parse_quota("200001 100000"));
	EXPECT_EQ(64, pl__cpus_parse_quota("6400000 100000\n"));
	EXPECT_EQ(4, pl__cpus_parse_quota("20000 5000\n"));
}

TEST(quota_below_one_cpu_is_one)
{
	EXPECT_EQ(1, pl__cpus_parse_quota("1000 100000\n"));
	EXPECT_EQ(1, pl__cpus_parse_quota("1 1000000\n"));
	EXPECT_EQ(1, pl__cpus_parse_quota("0 100000\n"));
}

TEST(no_quota_is_0)
{
	EXPECT_EQ(0, pl__cpus_parse_quota("max 100000\n"));
	EXPECT_EQ(0, pl__cpus_parse_quota("max"));
	EXPECT_EQ(0, pl__cpus_parse_quota(""));
	EXPECT_EQ(0, pl__cpus_parse_quota("\n"));
	EXPECT_EQ(0, pl__cpus_parse_quota("100000"));
	EXPECT_EQ(0, pl__cpus_parse_quota("100000 0\n"));
	EXPECT_EQ(0, pl__cpus_parse_quota("nonsense 1\n"));
}

/* More than any machine has, or can be counted, limits nothing. */
TEST(huge_quota_does_not_overflow)
{
	unsigned int nr;

	nr = pl__cpus_parse_quota("18446744073709551615 1\n");
	EXPECT_TRUE(!nr || nr > 1000000);
	nr = pl__cpus_parse_quota("18446744073709551615 1000\n");
	EXPECT_TRUE(!nr || nr > 1000000);
	nr = pl__cpus_parse_quota("4294967296 1\n");
	EXPECT_TRUE(!nr || nr > 1000000);
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
