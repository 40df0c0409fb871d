// SPDX-License-Identifier: GPL-2.0-only
/*
 * PARKLOT_WAKE_HANDOFF: the last wakee gets the processor that the caller is
 * about to leave. Without it the scheduler chooses a processor, so the test
 * counts over many rounds.
 */
#include "kselftest_harness.h"

#include "mod.h"

#define NR_ROUNDS	100

FIXTURE(handoff)
{
	struct space s;
	struct parklot_wake_entry entry[2];
	struct parklot_wake_park both;	/* wakes one, polls lot 0 */
};

FIXTURE_SETUP(handoff)
{
	SPACE_SETUP(&self->s, 3);
	if (!(dev_features(self->s.fd) & PARKLOT_FEAT_HANDOFF))
		SKIP_ALL("this kernel cannot hand off");
	self->entry[0].lot = 1;
	self->entry[0].nr = 1;
	self->both.wake.entries = (uintptr_t)self->entry;
	self->both.wake.nr_entries = 1;
	self->both.wake.limit = ~0U;
	self->both.wake.flags = PARKLOT_WAKE_HANDOFF;
	self->both.park.pollfd = -1;
}

FIXTURE_TEARDOWN(handoff)
{
	EXPECT_EQ(0, nr_parked(&self->s, 0));
	EXPECT_EQ(0, nr_parked(&self->s, 1));
	space_close(&self->s);
}

static int run_on(int first, int last)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (; first <= last; first++)
		CPU_SET(first, &cpus);
	return pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
}

struct wakee {
	struct space	*s;
	bool		is_bound;	/* to processor 1 */
	atomic_int	nr_here;	/* wakeups on processor 0 */
};

/* Goes to sleep on processor 1, and records where it wakes up. */
static void *wakee_main(void *arg)
{
	struct wakee *wakee = arg;
	int i;

	for (i = 0; i < NR_ROUNDS; i++) {
		run_on(1, 1);
		run_on(wakee->is_bound, 1);
		dev_park(wakee->s->fd, 1, 0, PARKLOT_FOREVER);
		atomic_fetch_add(&wakee->nr_here, sched_getcpu() == 0);
		wait_parked(wakee->s, 0, 1);
		dev_wake(wakee->s->fd, 0, 1);
	}
	return NULL;
}

/* How often the wakee woke up on the waker's processor, or -1. */
static int ping_pong(FIXTURE_DATA(handoff) *self, bool is_bound)
{
	struct wakee wakee = { .s = &self->s, .is_bound = is_bound };
	pthread_t thread;
	int i, nr_woken = 0;

	if (run_on(0, 0) || pthread_create(&thread, NULL, wakee_main, &wakee))
		return -1;
	self->both.park.deadline_ns = PARKLOT_FOREVER;
	for (i = 0; i < NR_ROUNDS; i++) {
		wait_parked(&self->s, 1, 1);
		if (dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE_PARK, &self->both))
			return -1;
		nr_woken += self->both.park.reason == PARKLOT_WOKEN &&
			    self->both.wake.woken == 1;
	}
	pthread_join(thread, NULL);
	return nr_woken == NR_ROUNDS ? atomic_load(&wakee.nr_here) : -1;
}

TEST_TIMED(wakee_runs_where_the_caller_was,
	   "counts what the scheduler did meanwhile")
TEST_F(handoff, wakee_runs_where_the_caller_was)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "takes two processors");
	EXPECT_LT(NR_ROUNDS / 2, ping_pong(self, false));
}

/* A wakee that may not run here is woken on a processor of its own. */
TEST_F(handoff, wakee_bound_elsewhere_is_woken_there)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "takes two processors");
	EXPECT_EQ(0, ping_pong(self, true));
}

/* More wakees than one batch has, and exactly a batch; each is woken. */
TEST_F(handoff, every_wakee_is_woken)
{
	static const int nr[] = { 0, 1, 7, 8, 9, 16, 17 };
	struct parker parker[17];
	size_t i;
	int j;

	self->entry[0].nr = ~0U;
	for (i = 0; i < ARRAY_SIZE(nr); i++) {
		for (j = 0; j < nr[i]; j++)
			ASSERT_EQ(0, parker_start(&parker[j], &self->s, 1,
						  PARKLOT_FOREVER));
		EXPECT_EQ(0, dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE_PARK,
				       &self->both));
		EXPECT_EQ(nr[i], self->both.wake.woken);
		EXPECT_EQ(PARKLOT_TIMEDOUT, self->both.park.reason);
		for (j = 0; j < nr[i]; j++)
			EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker[j]));
	}
}

TEST_F(handoff, handoff_outside_wake_park_is_refused)
{
	self->both.wake.flags = PARKLOT_WAKE_HANDOFF;
	EXPECT_EQ(-EINVAL, dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE,
				     &self->both.wake));
}

TEST_HARNESS_MAIN
