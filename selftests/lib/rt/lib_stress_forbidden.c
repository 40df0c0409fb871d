/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls that a filter forbids, one after another, to all threads, while
 * players of lib_stress go on: no task is lost, no deadline is missed, and
 * where parklot(7) says that the library goes without the call, all works.
 *
 *	lib_stress_forbidden [--seconds N] [--seed S] [--workers W]
 *
 * or LIB_STRESS_SECONDS, LIB_STRESS_SEED and LIB_STRESS_WORKERS in the
 * environment.
 */
#include "kselftest_harness.h"

#include "manual_run.h"
#include "rt.h"

#include <sys/syscall.h>

#include "forbid.h"
#include "stress_player.h"
#include "stress_books.h"
#include "stress_trial.h"

/* Calls without which all works, but for those that forbid calls. */
static const long spare[] = {
	SYS_fcntl, SYS_io_uring_enter, SYS_io_uring_setup, SYS_madvise,
	SYS_membarrier, SYS_openat, SYS_ppoll, SYS_process_vm_readv,
	SYS_rt_sigaction,
#if !RT_ASAN && !RT_TSAN
	SYS_sched_getaffinity, SYS_sigaltstack,
#endif
};

/* New stacks, threads and rings need these; what there is goes on. */
static const long needed[] = {
	SYS_eventfd2, SYS_epoll_create1, SYS_io_uring_setup,
#if !RT_ASAN && !RT_TSAN
	SYS_clone, SYS_clone3, SYS_mprotect,
#endif
};

/* In any order, with errors of which EPERM and ENOSYS are promised for all. */
static void forbid_all(const long *calls, uint32_t nr, struct player *p,
		       uint64_t ns)
{
	uint32_t first = pick(p, nr), i;
	long call;

	for (i = 0; i < nr; i++) {
		call = calls[(first + i) % nr];
		usleep((useconds_t)(ns / nr / NSEC_PER_USEC));
		if (!forbid_call_now(call, pick(p, 2) ? EPERM : ENOSYS))
			SKIP(return, "no seccomp in this kernel");
	}
	usleep(20000);
}

static void run_spare(uint32_t nr_workers, uint64_t ns, uint64_t seed)
{
	struct player p = { seed | 1, false };

	trial.has_no_gates = true;
	begin_trial(nr_workers, seed);
	forbid_all(spare, ARRAY_SIZE(spare), &p, ns);
	end_players();
	spawn_meeting(&p, 20 * NSEC_PER_MSEC);
	expect_meeting();
	expect_all_workers();
	check_books();
}

static void run_needed(uint32_t nr_workers, uint64_t ns, uint64_t seed)
{
	struct player p = { seed | 1, false };

	trial.may_say = -EPERM;
	trial.spawn_may_say = -EPERM;
	trial.io_may_say = -EOPNOTSUPP;
	trial.has_no_gates = true;
	begin_trial(nr_workers, seed);
	forbid_all(needed, ARRAY_SIZE(needed), &p, ns);
	end_players();
	check_books();
}

static uint64_t test_ns = LOAD_NS(300 * NSEC_PER_MSEC);
static uint64_t test_seed;
static uint64_t test_workers = 4;

static uint64_t seed_of_now(void)
{
	return test_seed ? test_seed : new_seed();
}

RT_FIXTURE(stress_forbidden)

TEST_F(stress_forbidden, spare_calls_are_not_missed_by_one_worker)
{
	run_spare(1, test_ns, seed_of_now());
}

TEST_F(stress_forbidden, spare_calls_are_not_missed_by_two_workers)
{
	run_spare(2, test_ns, seed_of_now());
}

TEST_F(stress_forbidden, spare_calls_are_not_missed_by_epoll)
{
	setenv("PARKLOT_IO", "poll", 1);
	run_spare(2, test_ns, seed_of_now());
}

TEST_F(stress_forbidden, tasks_end_without_needed_calls)
{
	run_needed(2, test_ns, seed_of_now());
}

TEST_F_TIMEOUT(stress_forbidden, spare_calls_are_not_missed, 24 * 3600)
{
	run_spare((uint32_t)test_workers, test_ns, seed_of_now());
}

int main(int argc, char **argv)
{
	static const struct setting settings[] = {
		{ "--seconds", "LIB_STRESS_SECONDS", &test_ns, NSEC_PER_SEC },
		{ "--seed", "LIB_STRESS_SEED", &test_seed, 1 },
		{ "--workers", "LIB_STRESS_WORKERS", &test_workers, 1 },
	};

	return manual_run_main(argc, argv, "spare_calls_are_not_missed",
			       settings, ARRAY_SIZE(settings));
}
