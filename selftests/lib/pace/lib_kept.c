/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Deadlines that workers keep themselves: a task is woken in time though its
 * worker computes, blocks, ends or is another's spare by then; and the timer
 * thread sleeps while a worker can do without it.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"
#include "switches.h"
#include "pace/kept.h"
#include "time/timer_impl.h"

#include <sys/socket.h>

BLOCKED_FIXTURE(kept)

#define NR_VALID	3	/* rounds in which the deadline was kept */
#define MAX_ROUNDS	300

/* With workers that are old the same one may take a task in each round. */
static void renew_workers(int round)
{
	if (round % 10)
		return;
	if (round)
		EXPECT_EQ(0, pl_runtime_stop());
	start_fixed(2, 0);
}

/* Where sysmon is too early in all rounds nothing is kept. */
#define SYSMON_MAY_BE_EARLY \
	"counts what the scheduler did meanwhile; one of several tries"

static atomic_int nr_asleep, nr_back, nr_early;
static atomic_uint index_of_sleeper;

/* A task may go on in another thread, so these are no part of its function. */
static __attribute__((noinline)) uint32_t own_index(void)
{
	return pl__self()->index;
}

static __attribute__((noinline)) bool keeps_for_sleeper(void)
{
	return own_index() == index_of_sleeper && pl__is_keeping(pl__self());
}

static void sleep_for(void *arg)
{
	uint64_t ns = (uintptr_t)arg, end = pl_now() + ns;

	index_of_sleeper = own_index();
	nr_asleep++;
	EXPECT_EQ(0, pl_sleep(ns));
	nr_early += pl_now() < end;
	nr_back++;
}

/*
 * By its first look sysmon may end the keeping; the next comes later, as tasks
 * are taken meanwhile.
 */
static void kick_sysmon(void)
{
	uint64_t end = pl_now() + 200 * NSEC_PER_USEC;

	pl__sysmon_kick();
	while (pl_now() < end)
		pl_yield();
}

/* ---- a worker that does not sleep ---- */

static struct round {
	void		(*stay)(struct round *r); /* on the worker, for long */
	bool		is_asleep;	/* sysmon */
	bool		is_valid;
	uint64_t	ns;		/* the sleep */
	pl_task_t	sleeper;
} a_round;

/* The sleeper starts here, and this task goes on when it sleeps. */
static void start_sleeper(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	struct round *r = arg;

	if (!r->is_asleep)
		kick_sysmon();
	opts.flags = PL_SPAWN_URGENT;
	EXPECT_EQ(0, pl_spawn(&r->sleeper, sleep_for,
			      (void *)(uintptr_t)r->ns, &opts));
	r->is_valid = r->is_asleep ? own_index() == index_of_sleeper :
				     keeps_for_sleeper();
	r->stay(r);
}

static void compute(struct round *r)
{
	(void)r;
	EXPECT_TRUE(UNTIL_BUSY(nr_back));
}

static void yield_all_the_time(struct round *r)
{
	struct patience p = { 0, 0 };

	(void)r;
	while (!nr_back && is_patient(&p))
		pl_yield();
	EXPECT_EQ(1, nr_back);
}

static void block(struct round *r)
{
	char c;

	(void)r;
	EXPECT_EQ(1, read(pipes[0][0], &c, 1));
}

/* The task that stays ends only once the sleeper has run. */
static void check_staying(void (*stay)(struct round *r), bool is_asleep)
{
	struct round *r = &a_round;
	int i, nr_valid = 0;
	pl_task_t t;

	*r = (struct round){ .stay = stay, .is_asleep = is_asleep };
	ASSERT_EQ(0, pipe2(pipes[0], O_CLOEXEC));
	for (i = 0; i < MAX_ROUNDS && nr_valid < NR_VALID; i++) {
		nr_back = 0;
		renew_workers(i);
		r->ns = (i % 2 ? 2 : 8) * NSEC_PER_MSEC;
		ASSERT_TRUE(UNTIL(is_all_parked()));
		if (is_asleep)
			ASSERT_TRUE(UNTIL(is_sysmon_asleep()));
		t = spawn(start_sleeper, r);
		ASSERT_TRUE(UNTIL(nr_back));
		if (stay == block)
			EXPECT_EQ(1, write(pipes[0][1], "x", 1));
		join(t);
		join(r->sleeper);
		nr_valid += r->is_valid;
	}
	EXPECT_EQ(0, nr_early);
	EXPECT_EQ(NR_VALID, nr_valid);
}

TEST_TIMED(task_wakes_while_its_worker_computes, SYSMON_MAY_BE_EARLY)
TEST_F(kept, task_wakes_while_its_worker_computes)
{
	check_staying(compute, false);
}

TEST_TIMED(task_wakes_while_its_worker_is_blocked, SYSMON_MAY_BE_EARLY)
TEST_F(kept, task_wakes_while_its_worker_is_blocked)
{
	check_staying(block, false);
}

TEST_TIMED(task_wakes_while_its_worker_runs_others, SYSMON_MAY_BE_EARLY)
TEST_F(kept, task_wakes_while_its_worker_runs_others)
{
	check_staying(yield_all_the_time, false);
}

TEST_TIMED(task_wakes_while_its_worker_computes_and_sysmon_slept,
	   SYSMON_MAY_BE_EARLY)
TEST_F(kept, task_wakes_while_its_worker_computes_and_sysmon_slept)
{
	check_staying(compute, true);
}

TEST_TIMED(task_wakes_while_its_worker_is_blocked_and_sysmon_slept,
	   SYSMON_MAY_BE_EARLY)
TEST_F(kept, task_wakes_while_its_worker_is_blocked_and_sysmon_slept)
{
	check_staying(block, true);
}

/* ---- a worker without tasks ---- */

static atomic_int nr_taken;

/* Beside the one that computes: as one does that finds no task to steal. */
static void take_when_due(void *arg)
{
	struct pl__worker *v;

	if (!UNTIL_BUSY(nr_asleep || nr_back))
		return;
	v = pl__rt.main.workers[index_of_sleeper];
	while (!nr_back && pl__kept_ns(v) >= pl_now())
		pl__cpu_relax();
	nr_taken += pl__kept_steal(pl__self());
}

TEST_TIMED(due_deadline_is_taken_by_a_worker_without_tasks, SYSMON_MAY_BE_EARLY)
TEST_F(kept, due_deadline_is_taken_by_a_worker_without_tasks)
{
	struct round *r = &a_round;
	pl_task_t t[2];
	int i;

	*r = (struct round){ .stay = compute, .ns = 50 * NSEC_PER_USEC };
	start_fixed(2, 0);
	for (i = 0; i < MAX_ROUNDS && nr_taken < NR_VALID; i++) {
		nr_back = nr_asleep = 0;
		ASSERT_TRUE(UNTIL(is_all_parked()));
		t[0] = spawn(take_when_due, NULL);
		t[1] = spawn(start_sleeper, r);
		join(t[0]);
		join(t[1]);
		join(r->sleeper);
	}
	EXPECT_EQ(0, nr_early);
	EXPECT_LE(NR_VALID, nr_taken);
}

/* ---- an idle worker that is woken for something else ---- */

static void kick_and_sleep(void *arg)
{
	kick_sysmon();
	sleep_for(arg);
}

/* Its worker keeps the deadline, and sysmon sleeps; or it has woken. */
static pl_task_t start_idle_sleeper(uint64_t ns)
{
	pl_task_t t;

	nr_asleep = nr_back = 0;
	t = spawn(kick_and_sleep, (void *)(uintptr_t)ns);
	EXPECT_TRUE(UNTIL(nr_asleep && (nr_back || is_all_parked())));
	EXPECT_TRUE(UNTIL(nr_back || is_sysmon_asleep()));
	return t;
}

static atomic_int nr_there;

/* The one on the worker that keeps the deadline computes. */
static void compute_there(void *arg)
{
	nr_there++;
	if (own_index() != index_of_sleeper) {
		EXPECT_TRUE(UNTIL_BUSY(nr_there == 2));
		return;
	}
	*(bool *)arg = keeps_for_sleeper();
	if (*(bool *)arg)
		EXPECT_TRUE(UNTIL_BUSY(nr_back));
}

/* One on each worker. */
static bool compute_on_both(void)
{
	bool is_valid = false;
	pl_task_t t[2];
	int i;

	nr_there = 0;
	for (i = 0; i < 2; i++)
		t[i] = spawn(compute_there, &is_valid);
	for (i = 0; i < 2; i++)
		join(t[i]);
	return is_valid;
}

TEST_TIMED(task_wakes_while_its_worker_computes_since, SYSMON_MAY_BE_EARLY)
TEST_F(kept, task_wakes_while_its_worker_computes_since)
{
	int i, nr_valid = 0;
	pl_task_t sleeper;

	for (i = 0; i < MAX_ROUNDS && nr_valid < NR_VALID; i++) {
		renew_workers(i);
		sleeper = start_idle_sleeper(40 * NSEC_PER_MSEC);
		nr_valid += compute_on_both();
		join(sleeper);
	}
	EXPECT_EQ(0, nr_early);
	EXPECT_EQ(NR_VALID, nr_valid);
}

static void start_blocking_task(void *arg)
{
	spawn_flags(PL_SPAWN_BLOCKING, read_byte, pipes[0]);
	/* It is taken by another worker. */
	EXPECT_TRUE(UNTIL_BUSY(nr_begun));
}

/* The idle worker that keeps the deadline may be the one that is woken. */
TEST_F(kept, task_wakes_while_its_worker_is_a_spare)
{
	pl_task_t sleeper, t;
	int i;

	start_fixed(1, 3);
	ASSERT_EQ(0, pipe2(pipes[0], O_CLOEXEC));
	for (i = 0; i < 20; i++) {
		nr_begun = 0;
		sleeper = start_idle_sleeper(100 * NSEC_PER_MSEC);
		t = spawn(start_blocking_task, NULL);
		EXPECT_TRUE(UNTIL(nr_back && nr_begun));
		EXPECT_EQ(1, write(pipes[0][1], "x", 1));
		join(t);
		join(sleeper);
	}
	EXPECT_EQ(0, nr_early);
}

/* ---- a worker that sleeps ---- */

static void sleep_often(void *arg)
{
	int i;

	for (i = 0; i < 200; i++)
		EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC / 2));
	nr_back++;
}

/* In one of the rounds: on a busy machine a worker may seem to be stuck. */
static void check_sleepers(int nr_tasks)
{
	long before, nr = 200;
	bool is_asleep;
	int i;

	for (i = 0; i < 20 && nr >= 50; i++) {
		before = nr_switches_of("pl-timer", &is_asleep);
		nr_back = 0;
		EXPECT_EQ(nr_tasks, pl_spawn_many(NULL, (uint32_t)nr_tasks,
						  sleep_often, NULL, NULL));
		EXPECT_TRUE(UNTIL(nr_back == nr_tasks));
		nr = nr_switches_of("pl-timer", &is_asleep) - before;
	}
	EXPECT_GT(50, nr);
}

#define COUNTS_SWITCHES	"switches of a thread; one of several tries"

TEST_TIMED(lone_sleeper_does_not_wake_the_timer_thread, COUNTS_SWITCHES)
TEST_F(kept, lone_sleeper_does_not_wake_the_timer_thread)
{
	start_fixed(2, 0);
	check_sleepers(1);
}

TEST_TIMED(lone_sleeper_after_a_rest_does_not_wake_the_timer_thread,
	   COUNTS_SWITCHES)
TEST_F(kept, lone_sleeper_after_a_rest_does_not_wake_the_timer_thread)
{
	start_fixed(2, 0);
	ASSERT_TRUE(UNTIL(is_sysmon_asleep()));
	check_sleepers(1);
}

static uint64_t nr_fired_by(bool by_thread)
{
	struct pl__timers *t = pl__rt.timers;
	uint64_t nr = 0;
	uint32_t i;

	for (i = 0; i < t->nr_buckets; i++)
		nr += load_relaxed(&t->buckets[i].fired);
	return by_thread ? load_relaxed(&t->fired) : nr;
}

/* Their workers are hardly ever idle, and may seem to be stuck. */
TEST_TIMED(deadlines_of_a_crowd_are_kept, SYSMON_MAY_BE_EARLY)
TEST_F_TIMEOUT(kept, deadlines_of_a_crowd_are_kept, 120)
{
	uint64_t by_thread = 1, by_workers = 0;
	int i, nr = scaled(1000);

	start_fixed(2, 0);
	for (i = 0; i < 10 && by_thread > 4 * by_workers; i++) {
		by_thread = nr_fired_by(true);
		by_workers = nr_fired_by(false);
		nr_back = 0;
		EXPECT_EQ(nr, pl_spawn_many(NULL, (uint32_t)nr, sleep_often,
					    NULL, NULL));
		EXPECT_TRUE(UNTIL(nr_back == nr));
		by_thread = nr_fired_by(true) - by_thread;
		by_workers = nr_fired_by(false) - by_workers;
	}
	EXPECT_GE(4 * by_workers, by_thread);
}

static void receive_until_stop(void *arg)
{
	char c;

	EXPECT_EQ(-ECANCELED, pl_recv(*(int *)arg, &c, 1, 0));
}

/* It sleeps in its ring. */
TEST_F(kept, task_wakes_while_its_worker_waits_for_others)
{
	int i, fds[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	start_fixed(1, 1);
	spawn(receive_until_stop, &fds[0]);
	for (i = 0; i < 20; i++)
		run_in_task(kick_and_sleep, (void *)(uintptr_t)
			    (2 * NSEC_PER_MSEC));
	EXPECT_EQ(0, nr_early);
}

/* ---- a worker that ends ---- */

#define NR_MET		6

static atomic_int nr_elsewhere;

/* Each on another worker; on the last, which is to end, a task sleeps. */
static void meet_and_sleep(void *arg)
{
	int i;

	nr_begun++;
	EXPECT_TRUE(UNTIL_BUSY(nr_begun == NR_MET));
	if (own_index() != NR_MET - 1) {
		nr_elsewhere++;
		return;
	}
	/* Sysmon is awake then, and looks seldom. */
	for (i = 0; i < 5; i++)
		EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	sleep_for(arg);
}

static bool is_keeper_keeping(void)
{
	return pl__is_keeping(pl__rt.main.workers[index_of_sleeper]);
}

/* Whether the worker kept the deadline and ended before it. */
static bool end_keeper(uint64_t sleep_ns)
{
	pl_task_t t[NR_MET];
	bool is_valid;
	size_t i;

	nr_begun = nr_asleep = nr_back = nr_elsewhere = 0;
	start_fixed(NR_MET, 0);
	/* A worker keeps nothing before it has parked. */
	ASSERT_TRUE(UNTIL(is_all_parked()));
	for (i = 0; i < NR_MET; i++)
		t[i] = spawn(meet_and_sleep, (void *)(uintptr_t)sleep_ns);
	/* None sleeps if the relief of that worker ran its task. */
	ASSERT_TRUE(UNTIL(nr_elsewhere == NR_MET ||
			  (nr_asleep && (nr_back || is_all_parked()))));
	is_valid = nr_asleep && is_keeper_keeping();
	EXPECT_EQ(0, pl_runtime_set_workers(1));
	ASSERT_TRUE(UNTIL(rt_stat().workers <= 2));
	is_valid &= !nr_back &&
		    !load_relaxed(&pl__rt.main.workers[index_of_sleeper]->tid);
	if (is_valid)
		EXPECT_FALSE(is_keeper_keeping());
	for (i = 0; i < NR_MET; i++)
		join(t[i]);
	EXPECT_EQ(0, pl_runtime_stop());
	return is_valid;
}

TEST_TIMED(task_wakes_though_its_worker_has_ended, SYSMON_MAY_BE_EARLY)
TEST_F_TIMEOUT(kept, task_wakes_though_its_worker_has_ended, 120)
{
	int i, nr_valid = 0;

	pl__idle_timeout_ns = 5 * NSEC_PER_MSEC;
	for (i = 0; i < 50 && nr_valid < NR_VALID; i++)
		nr_valid += end_keeper((40 + i % 8 * 8) * NSEC_PER_MSEC);
	EXPECT_EQ(0, nr_early);
	EXPECT_EQ(NR_VALID, nr_valid);
}

static atomic_int nr_cancelled;

static void sleep_until_stop(void *arg)
{
	nr_asleep++;
	EXPECT_EQ(-ECANCELED, pl_sleep(3600 * NSEC_PER_SEC));
	nr_cancelled++;
}

TEST_F(kept, stop_ends_sleeps_at_once)
{
	int i, k;

	for (k = 0; k < 10; k++) {
		nr_asleep = nr_cancelled = 0;
		start_fixed(4, 0);
		for (i = 0; i < 100; i++)
			EXPECT_EQ(0, pl_spawn(NULL, sleep_until_stop, NULL,
					      NULL));
		ASSERT_TRUE(UNTIL(nr_asleep == 100));
		if (k % 2)
			ASSERT_TRUE(UNTIL(is_all_parked()));
		EXPECT_EQ(0, pl_runtime_stop());
		EXPECT_EQ(100, nr_cancelled);
	}
}

TEST_HARNESS_MAIN
