/* SPDX-License-Identifier: GPL-2.0-only */
/* A cgroup's quota, of the simulated machine. */
#define SIM_ITSELF
#include "machine.h"

MACHINE_FIXTURE(quota)

/* 80 ms of work, of which 25 may be done in 100: in the fourth it ends. */
TEST_F(quota, threads_share_the_quota)
{
	uint64_t ns;

	set_env("SIM_QUOTA", 25);
	ns = run_with(NR_THREADS, compute_in_threads, NULL);
	EXPECT_LE(300 * NSEC_PER_MSEC, ns);
	EXPECT_GE(310 * NSEC_PER_MSEC, ns);
	set_env("SIM_QUOTA", 100);
	EXPECT_GE(WORK_NS + NSEC_PER_MSEC,
		  run_with(NR_THREADS, compute_in_threads, NULL));
}

/* What is left of a period's quota does not go to the next. */
static void sleep_and_compute_in_threads(void *arg)
{
	usleep(250000);
	compute_in_threads(arg);
}

TEST_F(quota, rest_of_a_period_is_not_saved_up)
{
	set_env("SIM_QUOTA", 25);
	EXPECT_LE(250 * NSEC_PER_MSEC,
		  run_with(NR_THREADS, sleep_and_compute_in_threads, NULL));
}

TEST_HARNESS_MAIN
