// SPDX-License-Identifier: GPL-2.0-only
/*
 * No shortage is overlooked: the only running worker blocks while another
 * thread raises the backlog from 0. That thread calls WAKE only if it sees that
 * too few run; otherwise the crew has to see the backlog. Either way the parked
 * worker returns, each time, and no later event makes up for a loss.
 *
 *	raiser				worker that blocks
 *	backlog = 1			running.out++
 *	full barrier			full barrier	[crew-a]
 *	if (fewer than 1 runs)		if (backlog and one is parked)
 *	    WAKE			    call it
 *
 * Both threads aim at the moment of the other's step, from both sides.
 *
 * Nor is a shortage overlooked if the chosen worker leaves its lot meanwhile,
 * because its deadline has come: then another worker is called.
 *
 * And the counts agree with the true state in the end, and with each other,
 * though several threads change them at a time.
 */
#include "kselftest_harness.h"

#include "mod_crew.h"

#define STUCK_NS	(10 * NSEC_PER_SEC * time_factor())
#define RACE_NS		(6 * NSEC_PER_SEC)
#define LEAVE_NS	(2 * NSEC_PER_SEC)
#define STAY_NS		(2 * NSEC_PER_MSEC)
#define MIN_STEP	5000
#define MAX_DELAY	5000000

FIXTURE(race)
{
	struct space s;
	struct worker blocker, parker, leaver;
};

FIXTURE_SETUP(race)
{
	CREW_SETUP(&self->s, 1, 3);
	ASSERT_EQ(0, pipe(self->blocker.fd));
}

FIXTURE_TEARDOWN(race)
{
	EXPECT_EQ(0, nr_running(&self->s));
	EXPECT_EQ(0, nr_blocked(&self->s));
	EXPECT_EQ(0, nr_idle_workers(&self->s));
	space_close(&self->s);
}

static atomic_int nr_begun, nr_unblocked, nr_back, nr_settled, is_over;

static void dawdle(int loops)
{
	while (loops-- > 0)
		__asm__ volatile("" ::: "memory");
}

static bool await(atomic_int *count, int nr)
{
	while (atomic_load(count) < nr && !atomic_load(&is_over))
		sched_yield();
	return !atomic_load(&is_over);
}

static void do_block_often(struct worker *w)
{
	char c;
	int i;

	for (i = 1; await(&nr_begun, i); i++) {
		if (read(w->fd[0], &c, 1) != 1)
			return;
		atomic_fetch_add(&nr_unblocked, 1);
	}
}

static void do_park_often(struct worker *w)
{
	int i, reason;

	for (i = 1; !atomic_load(&is_over); i++) {
		reason = dev_park(w->space->fd, 0, 0, PARKLOT_FOREVER);
		if (reason == PARKLOT_CALLED)
			atomic_fetch_add(&w->result, 1);
		atomic_fetch_add(&nr_back, 1);
		if (!await(&nr_settled, i))
			return;
	}
}

/* Returns true if @count becomes @nr in time. */
static bool becomes(atomic_int *count, int nr)
{
	uint64_t end = now_ns() + STUCK_NS;

	while (atomic_load(count) < nr) {
		if (now_ns() > end)
			return false;
		sched_yield();
	}
	return true;
}

/* The same for a count in the kernel's counters. */
#define comes_to(count, s, nr) __extension__ ({ \
	uint64_t __end = now_ns() + STUCK_NS; \
	while (count(s) != (nr) && now_ns() < __end) \
		sched_yield(); \
	count(s) == (nr); \
})

/* The end of a round; returns false if the blocked worker does not return. */
static bool settle(FIXTURE_DATA(race) *self, int round)
{
	set_backlog(&self->s, 0);
	if (write(self->blocker.fd[1], "", 1) != 1 ||
	    !becomes(&nr_unblocked, round))
		return false;
	atomic_store(&nr_settled, round);
	return true;
}

/* One round; returns the number of WAKE calls, or -1 if no worker parked. */
static int raise_and_look(FIXTURE_DATA(race) *self, int round, int delay)
{
	int nr_wakes = 0;

	UNTIL(nr_idle_workers(&self->s) == 1);
	while (nr_running(&self->s) != 1)
		sched_yield();
	atomic_store(&nr_begun, round);
	dawdle(delay);
	set_backlog(&self->s, 1);
	if (nr_running(&self->s) < 1) {
		dev_wake(self->s.fd, 0, 1);
		nr_wakes++;
	}
	if (!becomes(&nr_back, round))
		return -1;
	return settle(self, round) ? nr_wakes : -1;
}

TEST_F_TIMEOUT(race, backlog_racing_the_last_block_calls_a_worker, 60)
{
	int i, step, nr_wakes, nr_woken = 0, delay = 0;
	uint64_t end = now_ns() + RACE_NS;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "takes two processors");
	ASSERT_EQ(0, dev_crew(self->s.fd, 1, 2, 0));
	ASSERT_EQ(0, worker_start(&self->blocker, &self->s, 0,
				  do_block_often));
	ASSERT_EQ(0, worker_start(&self->parker, &self->s, 1, do_park_often));
	worker_begin(&self->blocker);
	worker_begin(&self->parker);
	/* Until each side was first at times, however long that takes. */
	for (i = 1; now_ns() < end || !nr_woken ||
	     !atomic_load(&self->parker.result); i++) {
		nr_wakes = raise_and_look(self, i, delay);
		ASSERT_LE(0, nr_wakes) {
			TH_LOG("overlooked in round %d", i);
		}
		nr_woken += nr_wakes;
		step = delay / (nr_woken ? 8 : 2) + i % 31;
		delay += nr_wakes ? -step : step;
		delay = delay < 0 ? 0 : delay > MAX_DELAY ? MAX_DELAY : delay;
	}
	UNTIL(nr_idle_workers(&self->s) == 1);
	atomic_store(&is_over, 1);
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(0, worker_finish(&self->blocker));
	EXPECT_EQ(0, worker_finish(&self->parker));
	TH_LOG("%d rounds, %d woken, %d called", i, nr_woken,
	       atomic_load(&self->parker.result));
}

static atomic_ullong leave_at;
static atomic_int nr_told, nr_left;

static void do_leave_often(struct worker *w)
{
	int i;

	for (i = 1; await(&nr_told, i); i++) {
		atomic_store(&w->result,
			     dev_park(w->space->fd, 0, 0,
				      atomic_load(&leave_at)));
		atomic_fetch_add(&nr_left, 1);
		if (!await(&nr_settled, i))
			return;
	}
}

/*
 * One round; returns the reason of the leaver's park, or -1 if it never parked.
 * The last running worker blocks @before ns before the leaver's deadline, which
 * is @stay ns away.
 */
static int leave_and_look(FIXTURE_DATA(race) *self, int round, int64_t before,
			  int64_t stay)
{
	uint64_t at;

	UNTIL(nr_idle_workers(&self->s) == 1);
	at = now_ns() + stay;
	atomic_store(&leave_at, at);
	atomic_store(&nr_told, round);
	while (nr_idle_workers(&self->s) != 2 && now_ns() < at)
		sched_yield();
	set_backlog(&self->s, 1);
	while ((int64_t)(at - now_ns()) > before)
		sched_yield();
	atomic_store(&nr_begun, round);
	if (!becomes(&nr_back, round) || !becomes(&nr_left, round))
		return -1;
	return settle(self, round) ? atomic_load(&self->leaver.result) : -1;
}

/* A debug build delays at @point only, for longer than the aim is off. */
static bool dawdle_at(const char *point)
{
	return set_parameter("inject_at", point) &&
	       set_parameter("inject_us", "2000");
}

/* The default of module/inject.c. */
static void dawdle_as_ever(void)
{
	set_parameter("inject_at", "all");
	set_parameter("inject_us", "20");
}

static void race_deadlines(struct __test_metadata *_metadata,
			   FIXTURE_DATA(race) *self, uint64_t end)
{
	int64_t before = 0, step = MIN_STEP, stay = NSEC_PER_MSEC;
	int i, reason, last = 0, nr_called = 0, nr_late = 0;

	/* Until each side was first at times, however long that takes. */
	for (i = 1; now_ns() < end || !nr_called || !nr_late; i++) {
		reason = leave_and_look(self, i, before, stay);
		ASSERT_LE(0, reason) {
			TH_LOG("overlooked in round %d", i);
			dawdle_as_ever();
		}
		nr_called += reason == PARKLOT_CALLED;
		nr_late += reason == PARKLOT_TIMEDOUT;
		step = reason == last ? 2 * step : step / 4;
		step = step < MIN_STEP ? MIN_STEP + i % 31 * 100 : step;
		before += reason == PARKLOT_CALLED ? -step : step;
		stay = before > stay ? 2 * stay : stay;
		last = reason;
	}
	TH_LOG("%d rounds, %d called, %d late", i, nr_called, nr_late);
}

/* The chosen worker leaves meanwhile; a debug build is slow at @point. */
static void leave_and_call(struct __test_metadata *_metadata,
			   FIXTURE_DATA(race) *self, const char *point)
{
	uint64_t time = dawdle_at(point) ? RACE_NS : LEAVE_NS;

	ASSERT_EQ(0, dev_crew(self->s.fd, 2, 3, 0));
	ASSERT_EQ(0, worker_start(&self->blocker, &self->s, 0,
				  do_block_often));
	ASSERT_EQ(0, worker_start(&self->parker, &self->s, 1, do_park_often));
	ASSERT_EQ(0, worker_start(&self->leaver, &self->s, 2, do_leave_often));
	worker_begin(&self->blocker);
	worker_begin(&self->parker);
	worker_begin(&self->leaver);
	race_deadlines(_metadata, self, now_ns() + time);
	dawdle_as_ever();
	UNTIL(nr_idle_workers(&self->s) == 1);
	atomic_store(&is_over, 1);
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(0, worker_finish(&self->blocker));
	EXPECT_EQ(0, worker_finish(&self->parker));
	EXPECT_EQ(0, worker_finish(&self->leaver));
}

/* The worker was chosen, and is gone when it is to be called. */
TEST_F_TIMEOUT(race, deadline_racing_the_call_leaves_one_reason, 60)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "takes two processors");
	leave_and_call(_metadata, self, "replace");
}

/* The worker is still parked when it is chosen, but about to leave. */
TEST_F_TIMEOUT(race, deadline_racing_the_choice_leaves_one_reason, 60)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "takes two processors");
	leave_and_call(_metadata, self, "unlisted");
}

/* Looks for a worker to call, until it has done so beside another looker. */
struct looker {
	struct space	*space;
	pthread_t	thread;
	atomic_int	may_begin;
};

static void *look_often(void *arg)
{
	struct looker *looker = arg;
	int i;

	spin_until(&looker->may_begin);
	for (i = 0; i < 20; i++)
		dev_crew(looker->space->fd, 1, 2, 0);
	return NULL;
}

/*
 * Two workers are parked and one should run, two threads look; returns the
 * calls.
 */
static int look_and_count(struct __test_metadata *_metadata)
{
	struct looker looker[2] = {};
	struct worker w[2] = {};
	struct space s;
	int i, nr;

	ASSERT_EQ(0, space_open_crew(&s, 1, 2));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, worker_park(&w[i], &s, i));
	set_backlog(&s, 1);
	for (i = 0; i < 2; i++) {
		looker[i].space = &s;
		ASSERT_EQ(0, pthread_create(&looker[i].thread, NULL, look_often,
					    &looker[i]));
	}
	for (i = 0; i < 2; i++)
		atomic_store(&looker[i].may_begin, 1);
	for (i = 0; i < 2; i++)
		pthread_join(looker[i].thread, NULL);
	nr = nr_called(&s);
	set_backlog(&s, 0);
	dev_wake(s.fd, 0, 2);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, worker_finish(&w[i]));
	space_close(&s);
	return nr;
}

/*
 * Another thread may look before the worker that is being called counts as
 * running.
 */
TEST_F_TIMEOUT(race, two_looks_call_one_worker, 60)
{
	uint64_t end = now_ns() + LEAVE_NS;
	int i, nr = 1;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "takes two processors");
	if (!set_parameter("crew_interval_us", "3600000000"))
		SKIP(return, "not root");
	if (dawdle_at("wake-a"))
		end += RACE_NS;
	for (i = 0; now_ns() < end && nr == 1; i++)
		nr = look_and_count(_metadata);
	EXPECT_EQ(1, nr);
	dawdle_as_ever();
	set_parameter("crew_interval_us", "50");
	TH_LOG("%d rounds", i);
}

/* Sleeps until the moment at which all workers wake up, in each round. */
static void do_sleep_often(struct worker *w)
{
	struct timespec ts;
	uint64_t at;
	int i;

	for (i = 1; await(&nr_begun, i); i++) {
		at = atomic_load(&leave_at);
		ts.tv_sec = at / NSEC_PER_SEC;
		ts.tv_nsec = at % NSEC_PER_SEC;
		atomic_store(&w->result,
			     clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
					     &ts, NULL));
		atomic_fetch_add(&nr_back, 1);
	}
}

/* Several threads change the counts at a time, and no change is lost. */
TEST_F_TIMEOUT(race, concurrent_unblocks_are_all_counted, 60)
{
	struct worker *nappers[] = {
		&self->blocker, &self->parker, &self->leaver,
	};
	uint64_t end = now_ns() + LEAVE_NS;
	int i, round;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "takes two processors");
	dawdle_at("count");
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, worker_start(nappers[i], &self->s, i,
					  do_sleep_often));
		worker_begin(nappers[i]);
	}
	for (round = 1; now_ns() < end; round++) {
		atomic_store(&leave_at, now_ns() + NSEC_PER_MSEC);
		atomic_store(&nr_begun, round);
		ASSERT_TRUE(becomes(&nr_back, 3 * round));
		ASSERT_TRUE(comes_to(nr_running, &self->s, 3)) {
			TH_LOG("%u after round %d", nr_running(&self->s),
			       round);
			dawdle_as_ever();
		}
	}
	dawdle_as_ever();
	atomic_store(&is_over, 1);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, worker_finish(nappers[i]));
	TH_LOG("%d rounds", round);
}

/*
 * From running to parked and back; the worker stays in both states for longer
 * than a look takes.
 */
static void do_sleep_long(struct worker *w)
{
	while (!atomic_load(&is_over)) {
		dev_park(w->space->fd, 0, 0, now_ns() + STAY_NS);
		for (uint64_t end = now_ns() + STAY_NS; now_ns() < end;)
			;
	}
}

/*
 * One count is raised before the other is lowered: the worker is always
 * counted.
 */
TEST_TIMED(racing_worker_is_always_counted, "both ends of a race must be seen")
TEST_F_TIMEOUT(race, racing_worker_is_always_counted, 60)
{
	uint64_t begun, end = now_ns() + LEAVE_NS;
	int nr_looks = 0, nr_nowhere = 0;
	bool is_nowhere;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "takes two processors");
	dawdle_at("count");
	ASSERT_EQ(0, worker_start(&self->parker, &self->s, 0, do_sleep_long));
	worker_begin(&self->parker);
	while (now_ns() < end) {
		begun = now_ns();
		is_nowhere = !nr_running(&self->s) &&
			     !nr_idle_workers(&self->s) &&
			     !nr_blocked(&self->s) && !nr_running(&self->s);
		/*
		 * If the look took long, the worker may have changed and
		 * returned.
		 */
		if (now_ns() - begun >= STAY_NS)
			continue;
		nr_nowhere += is_nowhere;
		nr_looks++;
	}
	dawdle_as_ever();
	EXPECT_EQ(0, nr_nowhere);
	EXPECT_LT(0, nr_looks);
	atomic_store(&is_over, 1);
	EXPECT_EQ(0, worker_finish(&self->parker));
}

TEST_HARNESS_MAIN
