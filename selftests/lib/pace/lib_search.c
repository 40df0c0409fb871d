/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A worker that is to search, and the thread of which does not run: a signal's
 * handler holds it while it is parked, and it is woken there.  On the device a
 * signal ends the park, and no waker takes such a worker; so these run on
 * futexes.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "thread.h"

#include <signal.h>

RT_FIXTURE(search)

#define NR_WORKERS	3
#define NR_LATE		5

static int nr_workers = NR_WORKERS;
static bool is_without_sysmon;
static atomic_int nr_begun, is_held, may_go;
static pthread_t last_ran;
static int last_tid;

static void __attribute__((noinline)) note_thread(void *arg)
{
	last_ran = pthread_self();
	last_tid = gettid();
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

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	EXPECT_EQ(0, pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	atomic_fetch_add(&nr_begun, 1);
	EXPECT_TRUE(UNTIL_BUSY(nr_begun == nr_workers));
}

/* With all workers, each of which has a thread. */
static void start_to_hold(void)
{
	struct sigaction sa = { .sa_handler = hold_thread };
	static struct mixed m;

	if (is_without_sysmon)
		setenv("PARKLOT_WATCH", "0", 1);
	else
		unsetenv("PARKLOT_WATCH");
	setenv("PARKLOT_BACKEND", "futex", 1);
	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	start_with((uint32_t)nr_workers, (uint32_t)nr_workers);
	mixed_start(&m, nr_workers, 0, begin_on_all, NULL);
	mixed_join(&m);
}

/* No thread is held with the lock of a lot, which the wakers would wait for. */
static bool is_any_lot_locked(void)
{
	uint32_t i;

	for (i = 0; i < pl__rt.main.lots.nr; i++)
		if (atomic_load(&pl__rt.main.lots.lot[i].lock.state))
			return true;
	return false;
}

static bool is_all_listed(void)
{
	uint32_t nr = 0, i;

	for (i = 0; i < pl__rt.main.lots.nr; i++)
		nr += atomic_load(&pl__rt.main.lots.lot[i].nr_parked);
	return nr == (uint32_t)nr_workers && !is_any_lot_locked();
}

static bool is_ready_to_hold(void)
{
	return rt_stat().workers_parked == (uint32_t)nr_workers &&
	       !atomic_load(&pl__rt.main.nr_searching) && is_all_listed();
}

/*
 * TSan delivers a signal late: at the end of the system call that it ends, but
 * not before the next one begins.
 */
static bool is_ready_and_asleep(void)
{
	return is_ready_to_hold() && thread_is_asleep(last_tid);
}

/* Holds the worker that parked last most likely, and so is woken next. */
static void hold_last_parked(void)
{
	ASSERT_TRUE(UNTIL(is_ready_to_hold()));
	run_in_task(note_thread, NULL);
	ASSERT_TRUE(UNTIL(is_ready_and_asleep()));
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

static void check_take_over_by_submitter(void)
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

TEST_TIMED(submitter_takes_a_late_search_over,
	   "both ends of a race must be seen; one of several tries")
TEST_REAL(search, "signal handlers are not simulated")
TEST_F_TIMEOUT(search, submitter_takes_a_late_search_over, 120)
{
	check_take_over_by_submitter();
}

TEST_F_TIMEOUT(search, submitter_takes_over_where_there_is_no_sysmon, 120)
{
	is_without_sysmon = true;
	check_take_over_by_submitter();
}

TEST_TIMED(sysmon_takes_a_late_search_over,
	   "both ends of a race must be seen; one of several tries")
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

/* ---- no other worker ---- */

static atomic_int nr_spawned, has_returned;

static bool is_search_late(void)
{
	spawn(count, NULL);
	atomic_fetch_add(&nr_spawned, 1);
	return pl__rt.nr_late_searches;
}

/* The last of them takes the search over. */
static void *spawn_until_late(void *arg)
{
	EXPECT_TRUE(UNTIL(is_search_late()));
	atomic_store(&has_returned, 1);
	return arg;
}

/* It counts as idle, but is awake, so the submitter has none to wake. */
TEST_F_TIMEOUT(search, submitter_does_not_wait_for_the_only_worker, 120)
{
	pthread_t thread;

	nr_workers = 1;
	start_to_hold();
	hold_last_parked();
	ASSERT_TRUE(UNTIL(atomic_load(&pl__rt.sysmon) == PL__SYSMON_ASLEEP));
	ASSERT_EQ(0, pthread_create(&thread, NULL, spawn_until_late, NULL));
	EXPECT_TRUE(UNTIL(has_returned));
	EXPECT_EQ(0, nr_ran);
	EXPECT_EQ(1, is_held);
	release_held();
	pthread_join(thread, NULL);
	EXPECT_TRUE(UNTIL(nr_ran == nr_spawned));
}

static int tid_of_sysmon(void)
{
	DIR *dir = opendir("/proc/self/task");
	char name[32] = "";
	struct dirent *e;
	int tid = 0;

	ASSERT_NE(NULL, dir);
	while (strncmp(name, "pl-sysmon", 9) && (e = readdir(dir))) {
		tid = atoi(e->d_name);
		if (!tid || !thread_read(tid, "comm", name, sizeof(name) - 1))
			name[0] = '\0';
	}
	closedir(dir);
	return tid;
}

TEST_F_TIMEOUT(search, sysmon_does_not_wait_for_the_only_worker, 120)
{
	nr_workers = 1;
	start_to_hold();
	hold_last_parked();
	spawn(count, NULL);
	pl__sysmon_kick();
	ASSERT_TRUE(UNTIL(pl__rt.nr_late_searches));
	EXPECT_TRUE(UNTIL(thread_is_asleep(tid_of_sysmon())));
	EXPECT_EQ(0, nr_ran);
	EXPECT_EQ(1, is_held);
	release_held();
	EXPECT_TRUE(UNTIL(nr_ran == 1));
}

/* ---- several ---- */

/*
 * Many are woken at once, and begin to run one after another; the last of them
 * is not late because the first was woken long ago.
 */
TEST_F(search, searcher_that_runs_shows_that_the_others_are_not_late)
{
	static struct pl__worker w = { .group = &pl__rt.main };

	setenv("PARKLOT_WATCH", "0", 1);
	start_with(1, 1);
	run_in_task(count, NULL);
	ASSERT_TRUE(UNTIL(rt_stat().workers_parked == 1 &&
			  !atomic_load(&pl__rt.main.nr_searching)));
	/* Another has begun since this one read the clock. */
	pl__search_begin_more(&pl__rt.main, 3);
	store_relaxed(&pl__rt.main.search_ns, in_ms(3600 * 1000));
	pl__stop_searching(&w);
	EXPECT_LT(in_ms(1800 * 1000), pl__rt.main.search_ns);
	/* Long ago. */
	store_relaxed(&pl__rt.main.search_ns, 0);
	pl__stop_searching(&w);
	EXPECT_EQ(1, (int)pl__rt.main.nr_searching);
	EXPECT_LT(0, pl__rt.main.search_ns);
	store_relaxed(&pl__rt.main.search_ns, 0);
	pl__search_check(&pl__rt.main, pl__now_ns());
	EXPECT_EQ(0, (int)pl__rt.main.nr_searching);
	EXPECT_EQ(1, (int)pl__rt.nr_late_searches);
}

TEST_HARNESS_MAIN
