/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Workers that look for work a while longer before they park
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "lots.h"

RT_FIXTURE(spin)

#define NR_ROUNDS	300

#define SOON_NS		NSEC_PER_MSEC

/*
 * One at a time from here, each a little after the one before has run.  How
 * many did not come soon, where this thread had to wait for a processor?
 */
static int spawn_in_turn(int nr)
{
	int i, before = nr_ran, nr_late = 0;
	uint64_t last = pl_now(), now;

	for (i = 1; i <= nr; i++) {
		spawn(count, NULL);
		now = pl_now();
		nr_late += now - last > SOON_NS;
		last = now;
		ASSERT_TRUE(UNTIL_BUSY(nr_ran == before + i));
		spin_ns(20000);
	}
	return nr_late;
}

static void all_park(void)
{
	ASSERT_TRUE(UNTIL(is_all_parked()));
}

static void start_to_spin(const char *us)
{
	setenv("PARKLOT_SPIN_US", us, 1);
	start_with(2, 2);
}

TEST_TIMED(early_work_needs_no_wakeup,
	   "counts what the scheduler did meanwhile")
TEST_F_TIMEOUT(spin, early_work_needs_no_wakeup, 120)
{
	uint64_t before;
	int nr_late;

	/* On one a worker may not spin while another has yet to stop. */
	NEEDS_CPUS();
	/* A worker learns from short parks, as the first few are. */
	start_to_spin("60000");
	spawn_in_turn(NR_ROUNDS);
	before = rt_stat().wakes;
	nr_late = spawn_in_turn(NR_ROUNDS);
	/* Each late task may cost a wake, and one more to learn anew. */
	EXPECT_GE(NR_ROUNDS / 2 + 2 * nr_late, rt_stat().wakes - before);
}

TEST_TIMED(spin_may_be_turned_off, "counts what the scheduler did meanwhile")
TEST_F_TIMEOUT(spin, spin_may_be_turned_off, 120)
{
	int i;

	start_to_spin("0");
	for (i = 0; i < NR_ROUNDS; i++) {
		ASSERT_TRUE(UNTIL(is_all_parked() && is_all_listed()));
		spawn(count, NULL);
		ASSERT_TRUE(UNTIL(nr_ran == i + 1));
	}
	/* One that sysmon wakes as well may find the task by itself. */
	EXPECT_LE(NR_ROUNDS / 2, rt_stat().wakes);
}

static bool is_quiet(void)
{
	uint64_t before = rt_cpu_ns();

	usleep(20000);
	return rt_cpu_ns() == before;
}

TEST_TIMED(spin_without_work_ends, "processor time")
TEST_F_TIMEOUT(spin, spin_without_work_ends, 120)
{
	start_to_spin("1000");
	spawn_in_turn(NR_ROUNDS);
	all_park();
	/* A worker listed as parked may not sleep yet. */
	EXPECT_TRUE(UNTIL(is_quiet()));
}

TEST_F(spin, stop_does_not_wait_for_a_spin)
{
	start_to_spin("65000");
	spawn_in_turn(10);
	EXPECT_EQ(0, pl_runtime_stop());
}

TEST_HARNESS_MAIN
