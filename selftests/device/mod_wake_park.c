// SPDX-License-Identifier: GPL-2.0-only
/* WAKE_PARK: the wakes, then the sleep, and no wake twice. */
#include "kselftest_harness.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include "mod.h"

FIXTURE(wake_park)
{
	struct space s;
	struct parker parker[4];
	struct parklot_wake_entry entry;
	struct parklot_wake_park both;	/* wakes one on lot 1, polls lot 0 */
};

FIXTURE_SETUP(wake_park)
{
	SPACE_SETUP(&self->s, 4);
	self->entry.lot = 1;
	self->entry.nr = 1;
	self->both.wake.entries = (uintptr_t)&self->entry;
	self->both.wake.nr_entries = 1;
	self->both.wake.limit = ~0U;
	self->both.park.pollfd = -1;
}

FIXTURE_TEARDOWN(wake_park)
{
	int i;

	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, nr_parked(&self->s, i));
	space_close(&self->s);
}

static int wake_park(struct space *s, struct parklot_wake_park *both)
{
	return dev_ioctl(s->fd, PARKLOT_IOC_WAKE_PARK, both);
}

TEST_F(wake_park, wake_park_with_a_past_deadline_wakes)
{
	ASSERT_EQ(0, parker_start(&self->parker[0], &self->s, 1,
				  PARKLOT_FOREVER));
	EXPECT_EQ(0, wake_park(&self->s, &self->both));
	EXPECT_EQ(1, self->both.wake.woken);
	EXPECT_EQ(1, self->entry.woken);
	EXPECT_EQ(PARKLOT_TIMEDOUT, self->both.park.reason);
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[0]));
}

TEST_F(wake_park, wake_park_with_a_changed_seq_wakes)
{
	ASSERT_EQ(0, parker_start(&self->parker[0], &self->s, 1,
				  PARKLOT_FOREVER));
	seq_signal(&self->s, 0);
	self->both.park.deadline_ns = PARKLOT_FOREVER;
	EXPECT_EQ(0, wake_park(&self->s, &self->both));
	EXPECT_EQ(1, self->both.wake.woken);
	EXPECT_EQ(PARKLOT_CHANGED, self->both.park.reason);
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[0]));
}

TEST_F(wake_park, wake_park_of_an_empty_lot_parks)
{
	uint64_t deadline = now_ns() + 20 * NSEC_PER_MSEC;

	self->both.park.deadline_ns = deadline;
	EXPECT_EQ(0, wake_park(&self->s, &self->both));
	EXPECT_EQ(0, self->both.wake.woken);
	EXPECT_EQ(PARKLOT_TIMEDOUT, self->both.park.reason);
	EXPECT_LE(deadline, now_ns());
}

/* The caller's own lot, before the caller is on it. */
TEST_F(wake_park, wake_park_does_not_wake_its_caller)
{
	self->entry.lot = 0;
	self->entry.nr = ~0U;
	self->both.park.deadline_ns = now_ns() + 20 * NSEC_PER_MSEC;
	EXPECT_EQ(0, wake_park(&self->s, &self->both));
	EXPECT_EQ(0, self->both.wake.woken);
	EXPECT_EQ(PARKLOT_TIMEDOUT, self->both.park.reason);
}

/* As both counts say; the thread's, to be read after its end. */
static uint32_t woken_by_thread;

static void *wake_park_main(void *arg)
{
	struct parker *p = arg;
	struct parklot_wake_entry entry = { .lot = 1, .nr = 1 };
	struct parklot_wake_park both = {
		.wake = {
			.entries = (uintptr_t)&entry, .nr_entries = 1,
			.limit = 1,
		},
		.park = { .deadline_ns = PARKLOT_FOREVER, .pollfd = -1 },
	};
	int err = wake_park(p->space, &both);

	woken_by_thread = both.wake.woken << 8 | entry.woken;
	atomic_store(&p->result, err ? err : (int)both.park.reason);
	return NULL;
}

/* Two are parked on lot 1; a third wakes one of them and parks on lot 0. */
#define WAKE_PARK_IN_THREAD() do { \
	ASSERT_EQ(0, parker_start(&self->parker[0], &self->s, 1, \
				  PARKLOT_FOREVER)); \
	ASSERT_EQ(0, parker_start(&self->parker[1], &self->s, 1, \
				  PARKLOT_FOREVER)); \
	self->parker[2].space = &self->s; \
	ASSERT_EQ(0, parker_spawn(&self->parker[2], wake_park_main)); \
	wait_parked(&self->s, 0, 1); \
	EXPECT_EQ(1, nr_parked(&self->s, 1)); \
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[1])); \
} while (0)

TEST_F(wake_park, wake_park_is_woken_in_turn)
{
	WAKE_PARK_IN_THREAD();
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[2]));
	EXPECT_EQ(1 << 8 | 1, woken_by_thread);
	EXPECT_EQ(1, dev_wake(self->s.fd, 1, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[0]));
}

static void ignore(int sig)
{
	(void)sig;
}

/* A restart would wake the thread that is left on lot 1. */
TEST_F(wake_park, signal_does_not_restart_a_wake_park)
{
	struct sigaction action = {
		.sa_handler = ignore, .sa_flags = SA_RESTART,
	};

	sigaction(SIGUSR1, &action, NULL);
	WAKE_PARK_IN_THREAD();
	pthread_kill(self->parker[2].thread, SIGUSR1);
	EXPECT_EQ(PARKLOT_INTERRUPTED, parker_join(&self->parker[2]));
	EXPECT_EQ(1 << 8 | 1, woken_by_thread);
	EXPECT_EQ(1, nr_parked(&self->s, 1));
	EXPECT_EQ(0, atomic_load(&self->parker[0].result));
	EXPECT_EQ(1, dev_wake(self->s.fd, 1, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[0]));
}

/* Returns true if @path comes to contain @text. */
static bool file_becomes(const char *path, const char *text)
{
	uint64_t end = now_ns() + 10 * NSEC_PER_SEC * time_factor();
	char buf[512];
	int fd, len;

	do {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		len = read(fd, buf, sizeof(buf) - 1);
		close(fd);
		buf[len < 0 ? 0 : len] = 0;
		if (strstr(buf, text))
			return true;
		sleep_ns(NSEC_PER_MSEC);
	} while (now_ns() < end);
	return false;
}

/*
 * A process in WAKE_PARK for two seconds, once @begin has a byte; its exit
 * status is the reason.
 */
static void __attribute__((noreturn)) park_for_a_while(int begin)
{
	struct parklot_wake_park both = { .park = { .pollfd = -1 } };
	struct space s;
	char c;

	if (space_open(&s, 1) || dup2(s.fd, 200) != 200 ||
	    read(begin, &c, 1) != 1)
		_exit(100);
	both.park.deadline_ns = now_ns() + 2 * NSEC_PER_SEC;
	_exit(wake_park(&s, &both) ? 101 : (int)both.park.reason);
}

/*
 * Freezes and thaws @pid, which sleeps once it is told to; returns 0, or the
 * failed step. To move it may take as long as it sleeps.
 */
static int freeze(const char *cgroup, pid_t pid, int begin)
{
	char text[32], path[128];

	snprintf(text, sizeof(text), "%d", pid);
	if (write_file(cgroup, "cgroup.procs", text) ||
	    write(begin, "", 1) != 1)
		return 1;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/200", pid);
	if (!file_becomes(path, "parklot-parked:\t1"))
		return 2;
	snprintf(path, sizeof(path), "%s/freezer.state", cgroup);
	if (write_file(cgroup, "freezer.state", "FROZEN") ||
	    !file_becomes(path, "FROZEN"))
		return 3;
	return write_file(cgroup, "freezer.state", "THAWED") ? 4 : 0;
}

/* As at suspend: sleepers are frozen where they are, and do not return. */
TEST_F(wake_park, frozen_wake_park_sleeps_on)
{
	char dir[] = "/tmp/mod_wake_park.XXXXXX", cgroup[64];
	int status = 0, err, fd[2];
	pid_t pid;

	mkdir("/tmp", 01777);
	if (!mkdtemp(dir) || mount("none", dir, "cgroup", 0, "freezer"))
		SKIP(return, "no cgroup freezer");
	ASSERT_EQ(0, pipe2(fd, O_CLOEXEC));
	snprintf(cgroup, sizeof(cgroup), "%s/parklot", dir);
	EXPECT_EQ(0, mkdir(cgroup, 0755));
	pid = fork();
	if (!pid) {
		close(fd[1]);
		park_for_a_while(fd[0]);
	}
	err = freeze(cgroup, pid, fd[1]);
	close(fd[1]);
	waitpid(pid, &status, 0);
	rmdir(cgroup);
	umount(dir);
	rmdir(dir);
	EXPECT_EQ(0, err);
	EXPECT_EQ(PARKLOT_TIMEDOUT, WEXITSTATUS(status));
}

TEST_F(wake_park, refused_park_wakes_no_sleeper)
{
	struct parklot_wake_park *both = &self->both;

	ASSERT_EQ(0, parker_start(&self->parker[0], &self->s, 1,
				  PARKLOT_FOREVER));
	both->park.lot = 4;
	EXPECT_EQ(-EINVAL, wake_park(&self->s, both));
	both->park.lot = 0;
	both->park.flags = 1;
	EXPECT_EQ(-EINVAL, wake_park(&self->s, both));
	both->park.flags = 0;
	both->park.pollfd = -2;
	EXPECT_EQ(-EBADF, wake_park(&self->s, both));
	both->park.pollfd = -1;
	both->park.poll_events = 1;
	EXPECT_EQ(-EINVAL, wake_park(&self->s, both));
	both->park.poll_events = 0;
	EXPECT_EQ(1, nr_parked(&self->s, 1));
	EXPECT_EQ(0, wake_park(&self->s, both));
	EXPECT_EQ(1, both->wake.woken);
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[0]));
}

/* A park for ever would run into the test's time limit. */
TEST_F(wake_park, refused_wake_does_not_park)
{
	self->both.park.deadline_ns = PARKLOT_FOREVER;
	self->entry.reserved = 1;
	EXPECT_EQ(-EINVAL, wake_park(&self->s, &self->both));
	self->entry.reserved = 0;
	self->entry.lot = 4;
	EXPECT_EQ(-EINVAL, wake_park(&self->s, &self->both));
	self->entry.lot = 0;
	self->both.wake.nr_entries = 65;
	EXPECT_EQ(-EINVAL, wake_park(&self->s, &self->both));
	self->both.wake.nr_entries = 1;
	self->both.wake.flags = 2;
	EXPECT_EQ(-EINVAL, wake_park(&self->s, &self->both));
	self->both.wake.flags = 0;
	self->both.wake.entries = 1;
	EXPECT_EQ(-EFAULT, wake_park(&self->s, &self->both));
}

TEST_F(wake_park, masked_handoff_is_refused)
{
	ASSERT_EQ(0, parker_start(&self->parker[0], &self->s, 1,
				  PARKLOT_FOREVER));
	if (!set_features(~(unsigned long)PARKLOT_FEAT_HANDOFF))
		SKIP(return, "not root");
	self->both.wake.flags = PARKLOT_WAKE_HANDOFF;
	EXPECT_EQ(-EOPNOTSUPP, wake_park(&self->s, &self->both));
	EXPECT_TRUE(set_features(~0UL));
	EXPECT_EQ(1, nr_parked(&self->s, 1));
	EXPECT_EQ(1, dev_wake(self->s.fd, 1, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker[0]));
}

/* One of a pair: wakes the other's lot, sleeps on its own. */
struct player {
	struct space	*s;
	uint32_t	own, other;
	int		nr_rounds, nr_woken, nr_wakes;
};

static void *play(void *arg)
{
	struct player *p = arg;
	struct parklot_wake_entry entry = { .lot = p->other, .nr = 1 };
	struct parklot_wake_park both = {
		.wake = {
			.entries = (uintptr_t)&entry, .nr_entries = 1,
			.limit = 1,
		},
		.park = {
			.lot = p->own, .deadline_ns = PARKLOT_FOREVER,
			.pollfd = -1,
		},
	};
	int i;

	for (i = 0; i < p->nr_rounds; i++) {
		both.park.expected_seq = 2 * i;
		seq_signal(p->s, p->other);
		if (wake_park(p->s, &both))
			break;
		p->nr_wakes += both.wake.woken;
		p->nr_woken += both.park.reason == PARKLOT_WOKEN;
		/* A wake may be late: then it was of the last round. */
		while (seq_read(p->s, p->own) < 2 * (i + 1U))
			sched_yield();
	}
	return NULL;
}

/* Each signal is seen as a wake or as a changed seq, by number. */
TEST_F(wake_park, pair_takes_turns)
{
	struct player a = { &self->s, 0, 1, 5000, 0, 0 };
	struct player b = { &self->s, 1, 0, 5000, 0, 0 };
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, play, &a));
	play(&b);
	pthread_join(thread, NULL);
	EXPECT_EQ(a.nr_rounds * 2, seq_read(&self->s, 0));
	EXPECT_EQ(b.nr_rounds * 2, seq_read(&self->s, 1));
	EXPECT_EQ(a.nr_wakes, b.nr_woken);
	EXPECT_EQ(b.nr_wakes, a.nr_woken);
}

TEST_HARNESS_MAIN
