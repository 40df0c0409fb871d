/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A worker that is to search, and the thread of which does not run: a signal's
 * handler holds it while it is parked, and it is woken there.  On the device a
 * signal ends the park, and no waker takes such a worker; so these run on
 * futexes.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include <signal.h>

RT_FIXTURE(search)

#define NR_WORKERS	3
#define NR_LATE		5

static atomic_int nr_ran, nr_begun, is_held, may_go;
static pthread_t last_ran;

static void count(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nr_ran, 1);
}

static void __attribute__((noinline)) note_thread(void *arg)
{
	(void)arg;
	last_ran = pthread_self();
}

static void hold_thread(int sig)
{
	struct timespec ts = { .tv_nsec = 100 * NSEC_PER_USEC };

	(void)sig;
	atomic_store(&is_held, 1);
	while (!atomic_load(&may_go))
		nanosleep(&ts, NULL);
	atomic_store(&is_held, 0);
}

/* Runs on each worker; their threads block all signals. */
static void __attribute__((noinline)) begin_on_all(void *arg)
{
	sigset_t set;

	(void)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	EXPECT_EQ(0, pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	atomic_fetch_add(&nr_begun, 1);
	EXPECT_TRUE(UNTIL_BUSY(nr_begun == NR_WORKERS));
}

/* With all workers, each of which has a thread. */
static void start_to_hold(void)
{
	struct sigaction sa = { .sa_handler = hold_thread };
	static struct mixed m;

	unsetenv("PARKLOT_WATCH");
	setenv("PARKLOT_BACKEND", "futex", 1);
	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	start_with(NR_WORKERS, NR_WORKERS);
	mixed_start(&m, NR_WORKERS, 0, begin_on_all, NULL);
	mixed_join(&m);
}

/* No thread is held with the lock of a lot, which the wakers would wait for. */
static bool is_any_lot_locked(void)
{
	uint32_t i;

	for (i = 0; i < pl__rt.lots.nr; i++)
		if (atomic_load(&pl__rt.lots.lot[i].lock.state))
			return true;
	return false;
}

static bool is_all_listed(void)
{
	uint32_t nr = 0, i;

	for (i = 0; i < pl__rt.lots.nr; i++)
		nr += atomic_load(&pl__rt.lots.lot[i].nr_parked);
	return nr == NR_WORKERS && !is_any_lot_locked();
}

static bool is_ready_to_hold(void)
{
	return rt_stat().workers_parked == NR_WORKERS &&
	       !atomic_load(&pl__rt.nr_searching) && is_all_listed();
}

/* Holds the worker that parked last most likely, and so is woken next. */
static void hold_last_parked(void)
{
	ASSERT_TRUE(UNTIL(is_ready_to_hold()));
	run_in_task(note_thread, NULL);
	ASSERT_TRUE(UNTIL(is_ready_to_hold()));
	atomic_store(&may_go, 0);
	ASSERT_EQ(0, pthread_kill(last_ran, SIGUSR1));
	ASSERT_TRUE(UNTIL(is_held));
}

static void release_held(void)
{
	atomic_store(&may_go, 1);
	ASSERT_TRUE(UNTIL(!is_held));
	ASSERT_TRUE(UNTIL(is_ready_to_hold()));
}

/* One more task each time; true once the first has run. */
static bool has_run_by_more(int *nr)
{
	if (nr_ran)
		return true;
	spawn(count, NULL);
	++*nr;
	return false;
}

TEST_F_TIMEOUT(search, submitter_takes_a_late_search_over, 120)
{
	int nr, i;

	start_to_hold();
	for (i = 0; i < 1000 && pl__rt.nr_late_searches < NR_LATE; i++) {
		hold_last_parked();
		nr = 0;
		nr_ran = 0;
		ASSERT_TRUE(UNTIL(has_run_by_more(&nr)));
		ASSERT_TRUE(UNTIL(nr_ran == nr));
		EXPECT_EQ(1, is_held);
		release_held();
	}
	EXPECT_LE(NR_LATE, pl__rt.nr_late_searches);
}

TEST_F_TIMEOUT(search, sysmon_takes_a_late_search_over, 120)
{
	int i;

	start_to_hold();
	for (i = 0; i < 1000 && pl__rt.nr_late_searches < NR_LATE; i++) {
		hold_last_parked();
		nr_ran = 0;
		spawn(count, NULL);
		/* As a submitter that finds enough workers running. */
		pl__sysmon_kick();
		ASSERT_TRUE(UNTIL(nr_ran));
		EXPECT_EQ(1, is_held);
		release_held();
	}
	EXPECT_LE(NR_LATE, pl__rt.nr_late_searches);
}

TEST_HARNESS_MAIN
