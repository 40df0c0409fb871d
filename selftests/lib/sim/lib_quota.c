/* SPDX-License-Identifier: GPL-2.0-only */
/* A cgroup's quota: that of the simulated machine, and who runs by it. */
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

#define LONG_NS		NSEC_PER_SEC
#define NR_SERVED	(4 * NR_THREADS)

static void serve(void *end)
{
	while (pl_now() < (uintptr_t)end) {
		pl_sim_compute(100 * NSEC_PER_USEC);
		EXPECT_EQ(0, pl_sleep(200 * NSEC_PER_USEC));
	}
}

/* At most NR_SERVED tasks, for @ns, by as many workers as the quota is for. */
static void run_tasks(void (*fn)(void *end), int nr, uint64_t ns)
{
	void *end = (void *)(uintptr_t)(pl_now() + ns);
	pl_task_t t[NR_SERVED];
	int i;

	unsetenv("PARKLOT_WORKERS");
	ASSERT_EQ(0, pl_runtime_start(NULL));
	for (i = 0; i < nr; i++)
		t[i] = spawn(fn, end);
	for (i = 0; i < nr; i++)
		join(t[i]);
}

static void serve_for_long(void *arg)
{
	struct timespec ts;

	run_tasks(serve, NR_SERVED, LONG_NS);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	*took_ns = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Where one worker more uses it up, fewer are no better for that. */
TEST_F(quota, workers_use_all_of_the_quota)
{
	uint32_t percent;

	for (percent = 150; percent < 400; percent += 100) {
		set_env("SIM_QUOTA", percent);
		EXPECT_LE(percent * LONG_NS / 100 * 95 / 100,
			  run_with(4, serve_for_long, NULL));
	}
}

#define EACH_NS		(1300 * NSEC_PER_USEC)
#define NR_AT_ONCE	4

static void compute_at_once(void *end)
{
	uint64_t next;

	while (pl_now() < (uintptr_t)end) {
		next = pl_now() / EACH_NS + 1;
		EXPECT_EQ(0, pl_sleep_until(next * EACH_NS));
		pl_sim_compute(100 * NSEC_PER_USEC);
	}
}

/* Two workers do better, and each trial of one takes a period of 100 ms. */
static void compute_at_once_for_long(void *arg)
{
	uint64_t nr;

	run_tasks(compute_at_once, NR_AT_ONCE, 4 * NSEC_PER_SEC);
	nr = load_relaxed(&pl__rt.main.nr_changes[PL__LOWERED_TRIAL]);
	EXPECT_EQ(load_relaxed(&pl__rt.main.nr_changes[PL__RAISED_BACK]), nr);
	EXPECT_LT(0, nr);
	EXPECT_GE(3, nr);
}

TEST_F(quota, trials_of_fewer_become_rare)
{
	set_env("SIM_QUOTA", 150);
	run_with(2, compute_at_once_for_long, NULL);
}

TEST_HARNESS_MAIN
