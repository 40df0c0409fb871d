// SPDX-License-Identifier: GPL-2.0-only
/*
 * The crew: how workers are counted, and which parked worker is called in place
 * of a blocked one. No test waits for a call that must not come: CREW checks
 * the need before it returns.
 */
#include "kselftest_harness.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include "mod_crew.h"

#define INTERVAL	"crew_interval_us"

FIXTURE(crew)
{
	struct space s;
	struct worker w[8];
};

FIXTURE_SETUP(crew)
{
	CREW_SETUP(&self->s, 2, 8);
}

FIXTURE_TEARDOWN(crew)
{
	EXPECT_EQ(0, nr_running(&self->s));
	EXPECT_EQ(0, nr_blocked(&self->s));
	EXPECT_EQ(0, nr_idle_workers(&self->s));
	space_close(&self->s);
}

TEST_F(crew, crew_is_a_feature)
{
	EXPECT_TRUE(dev_features(self->s.fd) & PARKLOT_FEAT_CREW);
}

TEST_F(crew, joins_and_leaves_are_counted)
{
	EXPECT_EQ(0, nr_running(&self->s));
	EXPECT_EQ(0, dev_join(self->s.fd, 3));
	EXPECT_EQ(1, nr_running(&self->s));
	EXPECT_EQ(0, dev_leave(self->s.fd, 3));
	EXPECT_EQ(0, nr_running(&self->s));
	EXPECT_EQ(0, dev_join(self->s.fd, 7));
	EXPECT_EQ(0, dev_leave(self->s.fd, 7));
}

TEST_F(crew, blocked_workers_are_counted)
{
	ASSERT_EQ(0, worker_block(&self->w[0], &self->s, 0));
	EXPECT_EQ(1, nr_blocked(&self->s));
	EXPECT_EQ(0, nr_running(&self->s));
	ASSERT_EQ(0, worker_block(&self->w[1], &self->s, 1));
	EXPECT_EQ(2, nr_blocked(&self->s));
	EXPECT_TRUE(worker_unblock(&self->w[0]));
	EXPECT_EQ(1, nr_blocked(&self->s));
	EXPECT_EQ(1, nr_running(&self->s));
	EXPECT_TRUE(worker_unblock(&self->w[1]));
	EXPECT_EQ(0, nr_blocked(&self->s));
	EXPECT_EQ(2, nr_running(&self->s));
	EXPECT_EQ(0, worker_finish(&self->w[0]));
	EXPECT_EQ(0, worker_finish(&self->w[1]));
}

TEST_F(crew, parked_worker_does_not_count_as_blocked)
{
	ASSERT_EQ(0, worker_park(&self->w[0], &self->s, 0));
	wait_parked(&self->s, 0, 1);
	EXPECT_EQ(0, nr_blocked(&self->s));
	EXPECT_EQ(0, nr_running(&self->s));
	/* The waker changes the count, not the wakee. */
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(1, nr_running(&self->s));
	EXPECT_EQ(0, nr_idle_workers(&self->s));
	EXPECT_EQ(0, worker_finish(&self->w[0]));
	EXPECT_EQ(PARKLOT_WOKEN, atomic_load(&self->w[0].result));
}

/* The counts are right after each way in which a park ends. */
TEST_F(crew, each_end_of_a_park_is_counted)
{
	ASSERT_EQ(0, dev_join(self->s.fd, 0));
	EXPECT_EQ(PARKLOT_TIMEDOUT, dev_park(self->s.fd, 0, 0, 0));
	EXPECT_EQ(1, nr_running(&self->s));
	EXPECT_EQ(PARKLOT_TIMEDOUT,
		  dev_park(self->s.fd, 0, 0, now_ns() + NSEC_PER_MSEC));
	EXPECT_EQ(1, nr_running(&self->s));
	EXPECT_EQ(PARKLOT_CHANGED,
		  dev_park(self->s.fd, 0, 2, PARKLOT_FOREVER));
	EXPECT_EQ(1, nr_running(&self->s));
	EXPECT_EQ(0, nr_idle_workers(&self->s));
	EXPECT_EQ(0, dev_leave(self->s.fd, 0));
}

TEST_F(crew, announced_wait_does_not_count_as_blocked)
{
	struct worker *w = &self->w[0];

	ASSERT_EQ(0, pipe(w->fd));
	ASSERT_EQ(0, worker_start(w, &self->s, 0, do_read));
	set_state(&self->s, 0, PARKLOT_WORKER_IDLE);
	worker_begin(w);
	UNTIL(!nr_running(&self->s));
	EXPECT_EQ(0, nr_blocked(&self->s));
	EXPECT_EQ(0, nr_idle_workers(&self->s));
	EXPECT_TRUE(worker_unblock(w));
	EXPECT_EQ(1, nr_running(&self->s));
	EXPECT_EQ(0, worker_finish(w));
}

/* A worker's announcement does not cover another worker. */
TEST_F(crew, announcement_covers_one_slot)
{
	set_state(&self->s, 0, PARKLOT_WORKER_IDLE);
	set_state(&self->s, 2, PARKLOT_WORKER_IDLE);
	ASSERT_EQ(0, worker_block(&self->w[0], &self->s, 1));
	EXPECT_TRUE(worker_unblock(&self->w[0]));
	EXPECT_EQ(0, worker_finish(&self->w[0]));
}

TEST_F(crew, blocked_worker_calls_one_parked_worker)
{
	ASSERT_EQ(0, dev_crew(self->s.fd, 1, 8, 0));
	ASSERT_EQ(0, worker_start(&self->w[1], &self->s, 1, do_park));
	ASSERT_EQ(0, pipe(self->w[0].fd));
	ASSERT_EQ(0, worker_start(&self->w[0], &self->s, 0, do_read));
	worker_begin(&self->w[1]);
	UNTIL(nr_idle_workers(&self->s) == 1);
	set_backlog(&self->s, 1);
	worker_begin(&self->w[0]);
	UNTIL(atomic_load(&self->w[1].result));
	EXPECT_EQ(PARKLOT_CALLED, atomic_load(&self->w[1].result));
	EXPECT_EQ(0, nr_parked(&self->s, 0));
	UNTIL(nr_called(&self->s) == 1);
	EXPECT_TRUE(worker_unblock(&self->w[0]));
	EXPECT_EQ(0, worker_finish(&self->w[0]));
	EXPECT_EQ(0, worker_finish(&self->w[1]));
}

TEST_F(crew, leaving_worker_calls_a_parked_worker)
{
	ASSERT_EQ(0, dev_crew(self->s.fd, 1, 8, 0));
	ASSERT_EQ(0, worker_start(&self->w[1], &self->s, 1, NULL));
	ASSERT_EQ(0, worker_park(&self->w[0], &self->s, 0));
	set_backlog(&self->s, 1);
	EXPECT_EQ(0, worker_finish(&self->w[1]));
	UNTIL(atomic_load(&self->w[0].result));
	EXPECT_EQ(PARKLOT_CALLED, atomic_load(&self->w[0].result));
	EXPECT_EQ(0, worker_finish(&self->w[0]));
}

/* Too few workers run already: the park returns at once. */
TEST_F(crew, worker_that_parks_on_a_backlog_is_called)
{
	ASSERT_EQ(0, dev_crew(self->s.fd, 1, 8, 0));
	set_backlog(&self->s, 1);
	ASSERT_EQ(0, dev_join(self->s.fd, 0));
	EXPECT_EQ(PARKLOT_CALLED,
		  dev_park(self->s.fd, 0, 0, PARKLOT_FOREVER));
	EXPECT_EQ(1, nr_running(&self->s));
	EXPECT_EQ(0, dev_leave(self->s.fd, 0));
}

/* One worker is parked; each condition of a call is met in turn. */
TEST_F(crew, crew_without_need_calls_no_worker)
{
	ASSERT_EQ(0, worker_park(&self->w[0], &self->s, 0));
	EXPECT_EQ(0, dev_crew(self->s.fd, 1, 8, 0));
	EXPECT_EQ(1, nr_idle_workers(&self->s)) TH_LOG("no backlog");
	set_backlog(&self->s, 1);
	EXPECT_EQ(0, dev_crew(self->s.fd, 0, 8, 0));
	EXPECT_EQ(1, nr_idle_workers(&self->s)) TH_LOG("no target");
	ASSERT_EQ(0, worker_start(&self->w[1], &self->s, 1, NULL));
	EXPECT_EQ(0, dev_crew(self->s.fd, 1, 1, 0));
	EXPECT_EQ(1, nr_idle_workers(&self->s)) TH_LOG("one runs");
	EXPECT_EQ(0, dev_crew(self->s.fd, 2, 2, 0));
	UNTIL(atomic_load(&self->w[0].result));
	EXPECT_EQ(PARKLOT_CALLED, atomic_load(&self->w[0].result));
	UNTIL(nr_called(&self->s) == 1);
	EXPECT_EQ(0, worker_finish(&self->w[0]));
	EXPECT_EQ(0, worker_finish(&self->w[1]));
}

TEST_F(crew, crew_calls_no_thread_that_has_not_joined)
{
	struct parker parker;

	ASSERT_EQ(0, worker_park(&self->w[0], &self->s, 0));
	ASSERT_EQ(0, parker_start(&parker, &self->s, 0, PARKLOT_FOREVER));
	set_backlog(&self->s, 1);
	EXPECT_EQ(0, dev_crew(self->s.fd, 4, 8, 0));
	UNTIL(atomic_load(&self->w[0].result));
	EXPECT_EQ(PARKLOT_CALLED, atomic_load(&self->w[0].result));
	EXPECT_EQ(1, nr_parked(&self->s, 0));
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 8));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker));
	EXPECT_EQ(0, worker_finish(&self->w[0]));
}

TEST_F(crew, crew_calls_the_last_parked_on_any_lot)
{
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, worker_park(&self->w[i], &self->s, i));
	set_backlog(&self->s, 1);
	EXPECT_EQ(0, dev_crew(self->s.fd, 1, 8, 0));
	UNTIL(atomic_load(&self->w[2].result));
	EXPECT_EQ(PARKLOT_CALLED, atomic_load(&self->w[2].result));
	EXPECT_EQ(2, nr_parked(&self->s, 0));
	set_backlog(&self->s, 0);
	EXPECT_EQ(2, dev_wake(self->s.fd, 0, 8));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, worker_finish(&self->w[i]));
}

TEST_F(crew, call_waits_for_the_stall_window)
{
	const uint64_t stall = 300 * NSEC_PER_MSEC;
	uint64_t begun;

	ASSERT_EQ(0, dev_crew(self->s.fd, 1, 8, stall));
	ASSERT_EQ(0, worker_start(&self->w[1], &self->s, 1, NULL));
	ASSERT_EQ(0, worker_park(&self->w[0], &self->s, 0));
	set_backlog(&self->s, 1);
	begun = now_ns();
	EXPECT_EQ(0, worker_finish(&self->w[1]));
	UNTIL(atomic_load(&self->w[0].result));
	EXPECT_LE(begun + stall, now_ns());
	EXPECT_EQ(PARKLOT_CALLED, atomic_load(&self->w[0].result));
	EXPECT_EQ(0, worker_finish(&self->w[0]));
}

TEST_F(crew, shortage_that_ended_begins_anew)
{
	const uint64_t stall = 200 * NSEC_PER_MSEC;
	uint64_t first, begun;

	ASSERT_EQ(0, dev_crew(self->s.fd, 1, 8, stall));
	ASSERT_EQ(0, worker_start(&self->w[1], &self->s, 1, NULL));
	ASSERT_EQ(0, worker_park(&self->w[0], &self->s, 0));
	set_backlog(&self->s, 1);
	first = now_ns();
	EXPECT_EQ(0, worker_finish(&self->w[1]));
	sleep_ns(stall / 2);
	ASSERT_EQ(0, dev_join(self->s.fd, 2));
	begun = now_ns();
	EXPECT_EQ(0, dev_leave(self->s.fd, 2));
	UNTIL(atomic_load(&self->w[0].result));
	/* On a slow machine the first window may have ended already. */
	if (begun < first + stall)
		EXPECT_LE(begun + stall, now_ns());
	EXPECT_EQ(PARKLOT_CALLED, atomic_load(&self->w[0].result));
	EXPECT_EQ(0, worker_finish(&self->w[0]));
}

/* A new CREW call starts a new window. */
TEST_F(crew, window_begins_with_the_crew_call)
{
	const uint64_t stall = 300 * NSEC_PER_MSEC;
	uint64_t first, begun, done;

	ASSERT_EQ(0, worker_park(&self->w[0], &self->s, 0));
	set_backlog(&self->s, 1);
	first = now_ns();
	ASSERT_EQ(0, dev_crew(self->s.fd, 1, 8, stall));
	sleep_ns(stall / 2);
	begun = now_ns();
	ASSERT_EQ(0, dev_crew(self->s.fd, 1, 8, stall));
	done = now_ns();
	UNTIL(atomic_load(&self->w[0].result));
	/* On a slow machine the first window may have ended already. */
	if (done < first + stall)
		EXPECT_LE(begun + stall, now_ns());
	EXPECT_EQ(PARKLOT_CALLED, atomic_load(&self->w[0].result));
	EXPECT_EQ(0, worker_finish(&self->w[0]));
}

#define LONG_STALL	(4 * NSEC_PER_SEC)

/* How long three calls take after a short window that follows a long one. */
static uint64_t end_long_window(struct __test_metadata *_metadata,
				FIXTURE_DATA(crew) *self)
{
	long called = nr_called(&self->s) + 3;
	uint64_t ns;
	int i;

	memset(self->w, 0, sizeof(self->w));
	set_backlog(&self->s, 0);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, worker_park(&self->w[i], &self->s, i));
	set_backlog(&self->s, 1);
	ns = now_ns();
	ASSERT_EQ(0, dev_crew(self->s.fd, 3, 8, LONG_STALL));
	ASSERT_EQ(0, dev_crew(self->s.fd, 3, 8, 0));
	UNTIL(nr_called(&self->s) == called);
	ns = now_ns() - ns;
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, worker_finish(&self->w[i]));
	return ns;
}

/*
 * All checks that a long window delays are made at once when it ends. A machine
 * may stand still for as long, but not each time.
 */
TEST_TIMED(short_window_ends_a_long_one,
	   "time that passed; one of several tries")
TEST_F(crew, short_window_ends_a_long_one)
{
	uint64_t ns = LONG_STALL;
	int i;

	for (i = 0; i < 3 && ns >= LONG_STALL; i++)
		ns = end_long_window(_metadata, self);
	EXPECT_GT(LONG_STALL, ns);
}

#define SHORT_STALL	(20 * NSEC_PER_MSEC)

/* Sleeps of microseconds, and how many of them took much longer. */
static void do_short_sleeps(struct worker *w)
{
	struct timespec ts = { .tv_nsec = 1000 };
	int i, nr_long = 0;
	uint64_t begun;

	for (i = 0; i < 2000; i++) {
		begun = now_ns();
		nanosleep(&ts, NULL);
		nr_long += now_ns() - begun >= SHORT_STALL;
	}
	atomic_store(&w->result, nr_long);
}

TEST_TIMED(short_sleeps_call_no_worker,
	   "counts what the scheduler did meanwhile")
TEST_F(crew, short_sleeps_call_no_worker)
{
	int nr_woken;

	ASSERT_EQ(0, dev_crew(self->s.fd, 1, 8, SHORT_STALL));
	ASSERT_EQ(0, worker_start(&self->w[0], &self->s, 0, do_short_sleeps));
	ASSERT_EQ(0, worker_park(&self->w[1], &self->s, 1));
	set_backlog(&self->s, 1);
	worker_begin(&self->w[0]);
	UNTIL(atomic_load(&self->w[0].is_done));
	EXPECT_LE(nr_called(&self->s), atomic_load(&self->w[0].result));
	set_backlog(&self->s, 0);
	nr_woken = dev_wake(self->s.fd, 0, 1);
	EXPECT_EQ(0, worker_finish(&self->w[0]));
	EXPECT_EQ(0, worker_finish(&self->w[1]));
	EXPECT_EQ(nr_woken ? PARKLOT_WOKEN : PARKLOT_CALLED,
		  atomic_load(&self->w[1].result));
}

#define AN_HOUR		"3600000000"

/* As many are called as are missing, and further looks call no more. */
TEST_F(crew, missing_workers_are_called_at_once)
{
	int i;

	if (!set_parameter(INTERVAL, AN_HOUR))
		SKIP(return, "not root");
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, worker_park(&self->w[i], &self->s, i));
	set_backlog(&self->s, 1);
	EXPECT_EQ(0, dev_crew(self->s.fd, 4, 8, 0));
	UNTIL(nr_called(&self->s) == 4);
	for (i = 0; i < 8; i++)
		EXPECT_EQ(0, dev_crew(self->s.fd, 4, 8, 0));
	EXPECT_EQ(4, nr_called(&self->s));
	EXPECT_EQ(4, nr_idle_workers(&self->s));
	set_backlog(&self->s, 0);
	/* The last parked workers were called. */
	for (i = 4; i < 8; i++) {
		UNTIL(atomic_load(&self->w[i].is_done));
		EXPECT_EQ(PARKLOT_CALLED, atomic_load(&self->w[i].result));
	}
	EXPECT_EQ(4, dev_wake(self->s.fd, 0, 8));
	set_parameter(INTERVAL, "50");
	for (i = 0; i < 8; i++)
		EXPECT_EQ(0, worker_finish(&self->w[i]));
}

#define NR_MANY		20

/* More than the module wakes with interrupts off. */
TEST_F(crew, many_missing_workers_do_not_wait_for_the_interval)
{
	static struct worker w[NR_MANY];
	struct space s;
	int i;

	if (!set_parameter(INTERVAL, AN_HOUR))
		SKIP(return, "not root");
	ASSERT_EQ(0, space_open_crew(&s, 1, NR_MANY));
	for (i = 0; i < NR_MANY; i++)
		ASSERT_EQ(0, worker_park(&w[i], &s, i));
	set_backlog(&s, 1);
	EXPECT_EQ(0, dev_crew(s.fd, NR_MANY, NR_MANY, 0));
	UNTIL(nr_called(&s) == NR_MANY);
	set_parameter(INTERVAL, "50");
	for (i = 0; i < NR_MANY; i++) {
		EXPECT_EQ(0, worker_finish(&w[i]));
		EXPECT_EQ(PARKLOT_CALLED, atomic_load(&w[i].result));
	}
	space_close(&s);
}

static void do_park_and_look(struct worker *w)
{
	do_park(w);
	*(uint64_t *)w->arg = now_ns();
}

/* Those that are missing later are called an interval later. */
TEST_F(crew, calls_are_an_interval_apart)
{
	const uint64_t apart = 30 * NSEC_PER_MSEC;
	uint64_t begun, back[4];
	int i;

	if (!set_parameter(INTERVAL, "30000"))
		SKIP(return, "not root");
	for (i = 0; i < 4; i++) {
		self->w[i].arg = &back[i];
		ASSERT_EQ(0, worker_start(&self->w[i], &self->s, i,
					  do_park_and_look));
		worker_begin(&self->w[i]);
		wait_parked(&self->s, 0, i + 1);
	}
	set_backlog(&self->s, 1);
	begun = now_ns();
	EXPECT_EQ(0, dev_crew(self->s.fd, 2, 8, 0));
	EXPECT_EQ(0, dev_crew(self->s.fd, 4, 8, 0));
	UNTIL(nr_called(&self->s) == 4);
	set_parameter(INTERVAL, "50");
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, worker_finish(&self->w[i]));
	EXPECT_LE(begun + apart, back[0]);
	EXPECT_LE(begun + apart, back[1]);
}

static bool pin(pthread_t thread)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	return !pthread_setaffinity_np(thread, sizeof(cpus), &cpus);
}

static atomic_int is_over;

static void *busy_main(void *arg)
{
	while (!atomic_load(&is_over))
		;
	return arg;
}

/* Computes until it was preempted often. */
static void do_compute(struct worker *w)
{
	struct rusage usage;
	int nr_blocked_seen = 0;

	do {
		nr_blocked_seen += nr_blocked(w->space) > 0;
		getrusage(RUSAGE_THREAD, &usage);
	} while (usage.ru_nivcsw < 30);
	atomic_store(&w->result, nr_blocked_seen);
}

TEST_TIMED(preempted_worker_does_not_count_as_blocked, "switches of a thread")
TEST_F(crew, preempted_worker_does_not_count_as_blocked)
{
	pthread_t busy;

	atomic_store(&is_over, 0);
	ASSERT_EQ(0, pthread_create(&busy, NULL, busy_main, NULL));
	ASSERT_TRUE(pin(busy));
	ASSERT_EQ(0, worker_start(&self->w[0], &self->s, 0, do_compute));
	ASSERT_TRUE(pin(self->w[0].thread));
	ASSERT_EQ(0, dev_crew(self->s.fd, 1, 8, 0));
	ASSERT_EQ(0, worker_park(&self->w[1], &self->s, 1));
	set_backlog(&self->s, 1);
	worker_begin(&self->w[0]);
	while (!atomic_load(&self->w[0].is_done))
		EXPECT_EQ(0, nr_blocked(&self->s));
	EXPECT_EQ(0, atomic_load(&self->w[0].result));
	EXPECT_EQ(0, nr_called(&self->s));
	set_backlog(&self->s, 0);
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(0, worker_finish(&self->w[0]));
	EXPECT_EQ(0, worker_finish(&self->w[1]));
	atomic_store(&is_over, 1);
	pthread_join(busy, NULL);
}

static void do_many_reads(struct worker *w)
{
	char c;
	int i;

	for (i = 0; i < 100; i++)
		atomic_fetch_add(&w->result, read(w->fd[0], &c, 1));
}

/* The scheduler may leave a sleeping thread on the run queue for a while. */
TEST_F(crew, blocked_worker_is_seen_beside_a_busy_one)
{
	struct worker *w = &self->w[0];
	pthread_t busy;
	int i;

	atomic_store(&is_over, 0);
	ASSERT_EQ(0, pthread_create(&busy, NULL, busy_main, NULL));
	ASSERT_TRUE(pin(busy));
	ASSERT_EQ(0, pipe(w->fd));
	ASSERT_EQ(0, worker_start(w, &self->s, 0, do_many_reads));
	ASSERT_TRUE(pin(w->thread));
	worker_begin(w);
	for (i = 0; i < 100; i++) {
		UNTIL(nr_blocked(&self->s) == 1 && !nr_running(&self->s));
		EXPECT_EQ(1, write(w->fd[1], "", 1));
		UNTIL(atomic_load(&w->result) == i + 1);
	}
	EXPECT_EQ(0, worker_finish(w));
	atomic_store(&is_over, 1);
	pthread_join(busy, NULL);
}

TEST_HARNESS_MAIN
