// SPDX-License-Identifier: GPL-2.0-only
/* WAKE: which sleepers are woken, in which order, and the returned counts. */
#include "kselftest_harness.h"

#include "mod.h"

#define NR_LOTS	80

FIXTURE(wake)
{
	struct space s;
	struct parker parker[64];
};

FIXTURE_SETUP(wake)
{
	SPACE_SETUP(&self->s, NR_LOTS);
}

FIXTURE_TEARDOWN(wake)
{
	int i;

	for (i = 0; i < NR_LOTS; i++)
		EXPECT_EQ(0, nr_parked(&self->s, i));
	space_close(&self->s);
}

/* Parks @nr more threads on @lot, one after the other, for ever. */
#define PARK(parker, lot, nr) do { \
	int __i; \
	for (__i = 0; __i < (int)(nr); __i++) \
		ASSERT_EQ(0, parker_start(&(parker)[__i], &self->s, lot, \
					  PARKLOT_FOREVER)); \
} while (0)

TEST_F(wake, wake_of_an_empty_lot_wakes_none)
{
	EXPECT_EQ(0, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(0, dev_wake(self->s.fd, 0, ~0U));
}

TEST_F(wake, wake_of_an_empty_lot_is_not_remembered)
{
	EXPECT_EQ(0, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(PARKLOT_TIMEDOUT, dev_park(self->s.fd, 0, 0,
					     now_ns() + NSEC_PER_MSEC));
}

TEST_F(wake, wake_wakes_as_many_as_asked)
{
	PARK(self->parker, 0, 5);
	EXPECT_EQ(2, dev_wake(self->s.fd, 0, 2));
	EXPECT_EQ(3, nr_parked(&self->s, 0));
	parker_returned(self->parker, 5);
	parker_returned(self->parker, 5);
	EXPECT_EQ(3, nr_parked(&self->s, 0));
	EXPECT_EQ(3, dev_wake(self->s.fd, 0, 100));
	parker_returned(self->parker, 5);
	parker_returned(self->parker, 5);
	parker_returned(self->parker, 5);
}

TEST_F(wake, wake_leaves_other_lots_alone)
{
	PARK(self->parker, 3, 1);
	EXPECT_EQ(0, dev_wake(self->s.fd, 2, ~0U));
	EXPECT_EQ(0, dev_wake(self->s.fd, 4, ~0U));
	EXPECT_EQ(1, nr_parked(&self->s, 3));
	EXPECT_EQ(1, dev_wake(self->s.fd, 3, ~0U));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[0]));
}

TEST_F(wake, wake_takes_the_last_parked_first)
{
	int i;

	PARK(self->parker, 0, 6);
	for (i = 5; i >= 0; i--) {
		EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
		EXPECT_EQ(i, parker_returned(self->parker, 6));
	}
}

static void ignore(int sig)
{
	(void)sig;
}

/* By a signal: a deadline might pass before the third has parked. */
TEST_F(wake, sleeper_that_leaves_keeps_the_order)
{
	struct sigaction action = { .sa_handler = ignore };

	sigaction(SIGUSR1, &action, NULL);
	PARK(self->parker, 0, 3);
	pthread_kill(self->parker[1].thread, SIGUSR1);
	EXPECT_EQ(1, parker_returned(self->parker, 3));
	EXPECT_EQ(-EINTR, atomic_load(&self->parker[1].result));
	EXPECT_EQ(2, nr_parked(&self->s, 0));
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(2, parker_returned(self->parker, 3));
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(0, parker_returned(self->parker, 3));
}

/* The lock is dropped after every eighth sleeper: numbers around that edge. */
TEST_F(wake, wake_of_many_counts_exactly)
{
	static const uint32_t nrs[] = { 1, 7, 8, 9, 15, 16, 17, 40 };
	uint32_t nr, j;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nrs); i++) {
		nr = nrs[i];
		PARK(self->parker, 0, nr);
		EXPECT_EQ(nr, dev_wake(self->s.fd, 0, i & 1 ? ~0U : nr));
		EXPECT_EQ(0, nr_parked(&self->s, 0));
		for (j = 0; j < nr; j++)
			EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[j]));
	}
}

TEST_F(wake, wake_of_some_of_many_counts_exactly)
{
	static const uint32_t nrs[] = { 1, 8, 9, 16, 6 };
	uint32_t left = 40;
	size_t i;

	PARK(self->parker, 0, left);
	for (i = 0; i < ARRAY_SIZE(nrs); i++) {
		EXPECT_EQ(nrs[i], dev_wake(self->s.fd, 0, nrs[i]));
		left -= nrs[i];
		EXPECT_EQ(left, nr_parked(&self->s, 0));
	}
	for (i = 0; i < 40; i++)
		EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[i]));
}

TEST_F(wake, wake_counts_each_entry_and_the_sum)
{
	struct parklot_wake_entry entry[] = {
		{ .lot = 0, .nr = 5, .woken = 99 },
		{ .lot = 1, .nr = 1, .woken = 99 },
		{ .lot = 2, .nr = ~0U, .woken = 99 },
		{ .lot = 3, .nr = 1, .woken = 99 },
	};
	int i;

	PARK(&self->parker[0], 0, 1);
	PARK(&self->parker[1], 1, 2);
	PARK(&self->parker[3], 2, 3);
	EXPECT_EQ(5, dev_wake_batch(self->s.fd, entry, 4, ~0U));
	EXPECT_EQ(1, entry[0].woken);
	EXPECT_EQ(1, entry[1].woken);
	EXPECT_EQ(3, entry[2].woken);
	EXPECT_EQ(0, entry[3].woken);
	EXPECT_EQ(0, nr_parked(&self->s, 0));
	EXPECT_EQ(1, nr_parked(&self->s, 1));
	EXPECT_EQ(0, nr_parked(&self->s, 2));
	EXPECT_EQ(1, dev_wake(self->s.fd, 1, 1));
	for (i = 0; i < 6; i++)
		EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[i]));
}

TEST_F(wake, wake_stops_at_its_limit)
{
	struct parklot_wake_entry entry[] = {
		{ .lot = 0, .nr = 2 }, { .lot = 1, .nr = 2 },
		{ .lot = 2, .nr = 2 },
	};
	int i;

	for (i = 0; i < 3; i++)
		PARK(&self->parker[2 * i], i, 2);
	EXPECT_EQ(0, dev_wake_batch(self->s.fd, entry, 3, 0));
	EXPECT_EQ(3, dev_wake_batch(self->s.fd, entry, 3, 3));
	EXPECT_EQ(2, entry[0].woken);
	EXPECT_EQ(1, entry[1].woken);
	EXPECT_EQ(0, entry[2].woken);
	EXPECT_EQ(0, nr_parked(&self->s, 0));
	EXPECT_EQ(1, nr_parked(&self->s, 1));
	EXPECT_EQ(2, nr_parked(&self->s, 2));
	EXPECT_EQ(3, dev_wake_batch(self->s.fd, entry, 3, 100));
	EXPECT_EQ(0, entry[0].woken);
	EXPECT_EQ(1, entry[1].woken);
	EXPECT_EQ(2, entry[2].woken);
	for (i = 0; i < 6; i++)
		EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[i]));
}

/* An entry without sleepers leaves its share of the limit to later ones. */
TEST_F(wake, limit_skips_entries_without_sleepers)
{
	struct parklot_wake_entry entry[] = {
		{ .lot = 0, .nr = 5 }, { .lot = 1, .nr = 5 },
	};
	int i;

	PARK(self->parker, 1, 3);
	EXPECT_EQ(2, dev_wake_batch(self->s.fd, entry, 2, 2));
	EXPECT_EQ(0, entry[0].woken);
	EXPECT_EQ(2, entry[1].woken);
	EXPECT_EQ(1, dev_wake(self->s.fd, 1, 1));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[i]));
}

TEST_F(wake, wake_may_name_a_lot_twice)
{
	struct parklot_wake_entry entry[] = {
		{ .lot = 0, .nr = 1 }, { .lot = 0, .nr = 1 },
		{ .lot = 0, .nr = 9 },
	};
	int i;

	PARK(self->parker, 0, 3);
	EXPECT_EQ(3, dev_wake_batch(self->s.fd, entry, 3, ~0U));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(1, entry[i].woken);
		EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[i]));
	}
}

TEST_F(wake, wake_of_none_is_legal)
{
	struct parklot_wake_entry entry = { .lot = 0, .nr = 0, .woken = 9 };

	PARK(self->parker, 0, 1);
	EXPECT_EQ(0, dev_wake_batch(self->s.fd, NULL, 0, ~0U));
	EXPECT_EQ(0, dev_wake_batch(self->s.fd, &entry, 1, ~0U));
	EXPECT_EQ(0, entry.woken);
	EXPECT_EQ(1, nr_parked(&self->s, 0));
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[0]));
}

TEST_F(wake, wake_serves_64_entries)
{
	struct parklot_wake_entry entry[65] = {};
	int i;

	for (i = 0; i < 64; i++) {
		PARK(&self->parker[i], i, 1);
		entry[i].lot = i;
		entry[i].nr = 1;
	}
	EXPECT_EQ(-EINVAL, dev_wake_batch(self->s.fd, entry, 65, ~0U));
	for (i = 0; i < 64; i++)
		EXPECT_EQ(1, nr_parked(&self->s, i));
	EXPECT_EQ(64, dev_wake_batch(self->s.fd, entry, 64, ~0U));
	for (i = 0; i < 64; i++) {
		EXPECT_EQ(1, entry[i].woken);
		EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[i]));
	}
}

/* Parks again and again, until the stop bit is set. */
static void *park_on(void *arg)
{
	struct parker *p = arg;
	int reason = 0, nr_woken = 0;

	while (reason != PARKLOT_CHANGED) {
		reason = dev_park(p->space->fd, p->lot, 0, PARKLOT_FOREVER);
		nr_woken += reason == PARKLOT_WOKEN;
	}
	atomic_store(&p->result, nr_woken);
	return NULL;
}

/* Each wakee is back on its lot before the call that woke it returns. */
TEST_F(wake, wake_of_all_spares_sleepers_that_return)
{
	int i, round, nr_woken = 0;

	for (i = 0; i < 24; i++) {
		self->parker[i].space = &self->s;
		ASSERT_EQ(0, parker_spawn(&self->parker[i], park_on));
	}
	for (round = 0; round < 50; round++) {
		wait_parked(&self->s, 0, 24);
		EXPECT_EQ(24, dev_wake(self->s.fd, 0, ~0U));
	}
	wait_parked(&self->s, 0, 24);
	self->s.words->lot[0].seq = 1;
	EXPECT_EQ(24, dev_wake(self->s.fd, 0, ~0U));
	for (i = 0; i < 24; i++)
		nr_woken += parker_join(&self->parker[i]);
	EXPECT_EQ(51 * 24, nr_woken);
}

/*
 * On one processor, by a waker of a real-time class: the wakee cannot have run
 * when the waker reads the count.
 */
TEST_F(wake, wake_lowers_the_count_before_it_returns)
{
	struct sched_param param = { .sched_priority = 1 };
	cpu_set_t cpu;
	int i;

	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(cpu), &cpu));
	PARK(self->parker, 0, 3);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		SKIP(return, "no real-time class");
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
		EXPECT_EQ(2 - i, nr_parked(&self->s, 0));
	}
	for (i = 0; i < 3; i++)
		EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[i]));
}

struct racers {
	struct space	*s;
	uint64_t	sleep_time_ns;
	atomic_int	nr_woken, nr_other, stop;
};

/* Sleeps so short that they end at about the time of a wake. */
static void *sleep_briefly(void *arg)
{
	struct racers *r = arg;
	uint64_t deadline;
	int reason;

	while (!atomic_load(&r->stop)) {
		deadline = r->sleep_time_ns ? now_ns() + r->sleep_time_ns :
					      PARKLOT_FOREVER;
		reason = dev_park(r->s->fd, 0, 0, deadline);
		atomic_fetch_add(reason == PARKLOT_WOKEN ? &r->nr_woken :
							   &r->nr_other, 1);
	}
	return NULL;
}

/*
 * Returns how many sleepers the wakes counted while three threads slept for
 * short times. It goes on, more slowly, until sleeps have ended both ways.
 */
static int race(struct racers *r, int nr_rounds, bool has_signals)
{
	pthread_t thread[3];
	int i, nr_woken = 0;

	for (i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, sleep_briefly, r);
	for (i = 0; i < nr_rounds || !nr_woken ||
		    !atomic_load(&r->nr_other); i++) {
		if (i >= nr_rounds)
			sleep_ns(100000);
		if (has_signals)
			pthread_kill(thread[i % 3], SIGUSR1);
		nr_woken += dev_wake(r->s->fd, 0, 1 + i % 3);
	}
	atomic_store(&r->stop, 1);
	r->s->words->lot[0].seq = 1;
	nr_woken += dev_wake(r->s->fd, 0, ~0U);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return nr_woken;
}

TEST_TIMED(wake_racing_a_timeout_counts_exactly,
	   "both ends of a race must be seen")
TEST_F(wake, wake_racing_a_timeout_counts_exactly)
{
	struct racers r = { .s = &self->s, .sleep_time_ns = 30000 };
	int nr_woken = race(&r, 20000, false);

	EXPECT_EQ(atomic_load(&r.nr_woken), nr_woken);
	EXPECT_LT(0, nr_woken);
	EXPECT_LT(0, atomic_load(&r.nr_other));
}

TEST_TIMED(wake_racing_a_signal_counts_exactly,
	   "both ends of a race must be seen")
TEST_F(wake, wake_racing_a_signal_counts_exactly)
{
	struct sigaction action = { .sa_handler = ignore };
	struct racers r = { .s = &self->s };
	int nr_woken;

	sigaction(SIGUSR1, &action, NULL);
	nr_woken = race(&r, 10000, true);
	EXPECT_EQ(atomic_load(&r.nr_woken), nr_woken);
	EXPECT_LT(0, nr_woken);
	EXPECT_LT(0, atomic_load(&r.nr_other));
}

#define NR_CROWD	256
#define HOG_NS		(20 * NSEC_PER_MSEC)

struct slow_waker {
	struct space	*s;
	int		nr_woken;
	atomic_bool	is_over;
};

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *hog_cpu(void *arg)
{
	struct slow_waker *slow = arg;
	uint64_t end;

	pin(0);
	while (!atomic_load(&slow->is_over)) {
		end = now_ns() + HOG_NS;
		while (now_ns() < end)
			;
		/* The slow waker does not hold the kernel's locks for long. */
		sleep_ns(HOG_NS / 20);
	}
	return NULL;
}

/* The waker runs only while the hog, and all others, leave the processor. */
static void *wake_all_slowly(void *arg)
{
	struct sched_param param = {};
	struct slow_waker *slow = arg;

	pin(0);
	sched_setscheduler(0, SCHED_IDLE, &param);
	slow->nr_woken = dev_wake(slow->s->fd, 0, ~0U);
	return NULL;
}

/* A parked thread can be woken even if another waker has begun to wake it. */
TEST_F_TIMEOUT(wake, preempted_waker_of_all_delays_no_other_wake, 60)
{
	struct slow_waker slow = { .s = &self->s };
	struct parker *crowd = calloc(NR_CROWD, sizeof(*crowd));
	int i, nr = 0, nr_woken = 0;
	pthread_t hog, waker;

	PARK(crowd, 0, NR_CROWD);
	ASSERT_EQ(0, pthread_create(&hog, NULL, hog_cpu, &slow));
	ASSERT_EQ(0, pthread_create(&waker, NULL, wake_all_slowly, &slow));
	pin(1);
	while (nr_parked(&self->s, 0) == NR_CROWD)
		sched_yield();
	do {
		nr_woken += nr;
		nr = dev_wake(self->s.fd, 0, 1);
	} while (nr);
	EXPECT_EQ(0, nr_parked(&self->s, 0));
	atomic_store(&slow.is_over, true);
	pthread_join(hog, NULL);
	pthread_join(waker, NULL);
	EXPECT_EQ(NR_CROWD, nr_woken + slow.nr_woken);
	for (i = 0; i < NR_CROWD; i++)
		EXPECT_EQ(PARKLOT_WOKEN, parker_join(&crowd[i]));
	free(crowd);
}

/*
 * The last of the sleepers that a waker of all has begun to wake times out. A
 * thread that parks then is not woken with the others.
 */
TEST_TIMED(sleeper_that_parks_during_a_wake_of_all_sleeps_on,
	   "an event must come before a deadline")
TEST_F_TIMEOUT(wake, sleeper_that_parks_during_a_wake_of_all_sleeps_on, 60)
{
	struct slow_waker slow = { .s = &self->s };
	struct parker *crowd = self->parker;
	struct parker late = {
		.space = &self->s, .seq = seq_read(&self->s, 0),
		.deadline = PARKLOT_FOREVER,
	};
	int i, nr = ARRAY_SIZE(self->parker), nr_late = 0;
	pthread_t hog, waker;

	ASSERT_EQ(0, parker_start(&crowd[0], &self->s, 0,
				  now_ns() + 500 * NSEC_PER_MSEC));
	PARK(crowd + 1, 0, nr - 1);
	ASSERT_EQ(0, pthread_create(&hog, NULL, hog_cpu, &slow));
	ASSERT_EQ(0, pthread_create(&waker, NULL, wake_all_slowly, &slow));
	pin(1);
	/* One may have timed out before: the waker takes several at once. */
	while (nr_parked(&self->s, 0) + 1 >= (uint32_t)nr)
		sched_yield();
	while (!atomic_load(&crowd[0].result))
		sched_yield();
	ASSERT_EQ(0, parker_spawn(&late, parker_main));
	sleep_ns(2 * HOG_NS);
	atomic_store(&slow.is_over, true);
	pthread_join(hog, NULL);
	pthread_join(waker, NULL);
	for (i = 0; i < nr; i++)
		nr_late += parker_join(&crowd[i]) == PARKLOT_TIMEDOUT;
	EXPECT_EQ(nr, nr_late + slow.nr_woken);
	EXPECT_GE(1, nr_late);
	UNTIL(nr_parked(&self->s, 0) == 1);
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&late));
}

TEST_HARNESS_MAIN
