/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits that come and go while players of lib_stress go on: memory,
 * descriptors, threads.  A call may say so, but no task is lost, and once the
 * limits are gone all is as before.
 *
 *	lib_stress_limits [--seconds N] [--seed S] [--workers W]
 *
 * or LIB_STRESS_SECONDS, LIB_STRESS_SEED and LIB_STRESS_WORKERS in the
 * environment.
 */
#include "kselftest_harness.h"

#include "manual_run.h"
#include "nobody.h"
#include "rt.h"
#include "base/inject.h"

#include <fcntl.h>

#include "stress_player.h"
#include "stress_books.h"
#include "stress_trial.h"

#define NR_MEETINGS	6

/* ---- what comes and goes ---- */

static void set_limit(int which, rlim_t nr)
{
	struct rlimit limit;

	ASSERT_EQ(0, getrlimit(which, &limit));
	limit.rlim_cur = nr < limit.rlim_max ? nr : limit.rlim_max;
	ASSERT_EQ(0, setrlimit(which, &limit));
}

static int statm;

#if !RT_ASAN && !RT_TSAN
/* By system calls alone: there may be no memory for a stream. */
static unsigned long count_pages(void)
{
	char text[32] = "";

	ASSERT_LT(0, pread(statm, text, sizeof(text) - 1, 0));
	return strtoul(text, NULL, 10);
}

/* Up to 4 MiB more than there is, or none at all. */
static void take_memory(struct player *p)
{
	rlim_t nr = 0;

	if (pick(p, 2))
		nr = count_pages() * (rlim_t)sysconf(_SC_PAGESIZE) +
		     pick(p, 4 << 20);
	set_limit(RLIMIT_AS, nr);
}

static void give_memory(void)
{
	set_limit(RLIMIT_AS, RLIM_INFINITY);
}
#endif

#ifdef PL_TEST_FAULT
/* As if: a sanitizer needs its memory. */
static void take_some(struct player *p)
{
	pl__fault_plan(PL__FAULT_ONE_IN, 1 + pick(p, 20),
		       next_random(&p->seed));
}

static void give_all(void)
{
	pl__fault_plan(PL__FAULT_NONE, 0, 0);
}
#endif

static struct rlimit files, threads;

static void take_files(struct player *p)
{
	set_limit(RLIMIT_NOFILE, pick(p, 2) ? 16 : pick(p, 64));
}

static void give_files(void)
{
	set_limit(RLIMIT_NOFILE, files.rlim_cur);
}

static void take_threads(struct player *p)
{
	set_limit(RLIMIT_NPROC, pick(p, 4));
}

static void give_threads(void)
{
	set_limit(RLIMIT_NPROC, threads.rlim_cur);
}

static const struct limit {
	void	(*take)(struct player *p);
	void	(*give)(void);
} limits[] = {
#if !RT_ASAN && !RT_TSAN
	{ take_memory, give_memory },
#endif
#ifdef PL_TEST_FAULT
	{ take_some, give_all },
#endif
	{ take_files, give_files },
	{ take_threads, give_threads },
};

/* ---- trials ---- */

static void wait_up_to(struct player *p, uint32_t us)
{
	usleep(pick(p, us));
}

static void come_and_go(struct player *p)
{
	const struct limit *l = &limits[pick(p, ARRAY_SIZE(limits))];
	const struct limit *and = &limits[pick(p, ARRAY_SIZE(limits))];

	l->take(p);
	wait_up_to(p, 20000);
	and->take(p);
	wait_up_to(p, 20000);
	l->give();
	wait_up_to(p, 2000);
	and->give();
	wait_up_to(p, 20000);
}

/*
 * Tasks that are spawned in need, when no old stacks are in the pool, start
 * once it is over; or the stop ends them before.
 */
static void meet_after_need(struct player *p)
{
	const struct limit *l = &limits[pick(p, ARRAY_SIZE(limits))];
	bool is_stopped = pick(p, 2);

	start_with(trial_workers, trial_workers + 4);
	run_in_task(probe_io, NULL);
	l->take(p);
	spawn_meeting(p, 20 * NSEC_PER_MSEC);
	if (is_stopped)
		stop_by_deadline();
	l->give();
	if (is_stopped)
		return;
	expect_meeting();
	expect_all_workers();
	stop_by_deadline();
}

static void run_trial(uint32_t nr_workers, uint64_t ns, uint64_t seed)
{
	struct player p = { seed | 1, false };
	uint64_t end;
	int i;

	statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, statm);
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &files));
	ASSERT_EQ(0, getrlimit(RLIMIT_NPROC, &threads));
	if (!become_nobody())
		SKIP(return, "threads cannot be limited here");
	trial.may_say = -ENOMEM;
	begin_trial(nr_workers, seed);
	end = pl_now() + ns;
	while (pl_now() < end)
		come_and_go(&p);
	end_players();
	expect_all_workers();
	check_books();
	for (i = 0; i < NR_MEETINGS; i++)
		meet_after_need(&p);
}

static uint64_t test_ns = LOAD_NS(500 * NSEC_PER_MSEC);
static uint64_t test_seed;
static uint64_t test_workers = 4;

static uint64_t seed_of_now(void)
{
	return test_seed ? test_seed : new_seed();
}

RT_FIXTURE(stress_limits)

TEST_F(stress_limits, tasks_of_one_worker_end_all)
{
	run_trial(1, test_ns, seed_of_now());
}

TEST_F(stress_limits, tasks_of_two_workers_end_all)
{
	run_trial(2, test_ns, seed_of_now());
}

TEST_F(stress_limits, tasks_without_io_uring_end_all)
{
	setenv("PARKLOT_IO", "poll", 1);
	run_trial(2, test_ns, seed_of_now());
}

TEST_F_TIMEOUT(stress_limits, tasks_end_all, 24 * 3600)
{
	run_trial((uint32_t)test_workers, test_ns, seed_of_now());
}

int main(int argc, char **argv)
{
	static const struct setting settings[] = {
		{ "--seconds", "LIB_STRESS_SECONDS", &test_ns, NSEC_PER_SEC },
		{ "--seed", "LIB_STRESS_SEED", &test_seed, 1 },
		{ "--workers", "LIB_STRESS_WORKERS", &test_workers, 1 },
	};

	return manual_run_main(argc, argv, "tasks_end_all", settings,
			       ARRAY_SIZE(settings));
}
