// SPDX-License-Identifier: GPL-2.0-only
/* PARK: the events that end a sleep, and those that do not. */
#include "kselftest_harness.h"

#include <sys/syscall.h>
#include "mod.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x00000080
#endif

FIXTURE(park)
{
	struct space s;
};

FIXTURE_SETUP(park)
{
	SPACE_SETUP(&self->s, 2);
}

FIXTURE_TEARDOWN(park)
{
	EXPECT_EQ(0, nr_parked(&self->s, 0));
	EXPECT_EQ(0, nr_parked(&self->s, 1));
	space_close(&self->s);
}

TEST_F(park, park_with_a_changed_seq_returns_at_once)
{
	int fd = self->s.fd;

	EXPECT_EQ(2, seq_signal(&self->s, 0));
	EXPECT_EQ(PARKLOT_CHANGED, dev_park(fd, 0, 0, PARKLOT_FOREVER));
	EXPECT_EQ(PARKLOT_CHANGED, dev_park(fd, 0, 4, PARKLOT_FOREVER));
	EXPECT_EQ(PARKLOT_CHANGED, dev_park(fd, 1, 2, PARKLOT_FOREVER));
}

TEST_F(park, park_compares_each_bit_of_seq)
{
	uint32_t bit;

	for (bit = 0; bit < 32; bit++)
		EXPECT_EQ(PARKLOT_CHANGED, dev_park(self->s.fd, 0, 1U << bit,
						    PARKLOT_FOREVER));
	self->s.words->lot[0].seq = ~0U;
	EXPECT_EQ(PARKLOT_TIMEDOUT, dev_park(self->s.fd, 0, ~0U, 0));
}

/* Bit 0 means stopped: a thread that expected a running lot does not sleep. */
TEST_F(park, park_on_a_stopped_lot_returns_at_once)
{
	__atomic_or_fetch(&self->s.words->lot[0].seq, 1, __ATOMIC_SEQ_CST);
	EXPECT_EQ(PARKLOT_CHANGED, dev_park(self->s.fd, 0, 0, PARKLOT_FOREVER));
}

TEST_F(park, changed_seq_wins_over_a_past_deadline)
{
	seq_signal(&self->s, 0);
	EXPECT_EQ(PARKLOT_CHANGED, dev_park(self->s.fd, 0, 0, 0));
}

TEST_F(park, park_with_a_past_deadline_returns_at_once)
{
	EXPECT_EQ(PARKLOT_TIMEDOUT, dev_park(self->s.fd, 0, 0, 0));
	EXPECT_EQ(PARKLOT_TIMEDOUT, dev_park(self->s.fd, 0, 0, 1));
	EXPECT_EQ(PARKLOT_TIMEDOUT, dev_park(self->s.fd, 0, 0, now_ns()));
}

TEST_F(park, park_ends_at_its_deadline)
{
	uint64_t deadline;
	int i;

	for (i = 0; i < 5; i++) {
		deadline = now_ns() + 20 * NSEC_PER_MSEC;
		EXPECT_EQ(PARKLOT_TIMEDOUT,
			  dev_park(self->s.fd, 0, 0, deadline));
		EXPECT_LE(deadline, now_ns());
	}
}

TEST_F(park, park_ends_when_woken)
{
	static const uint64_t deadlines[] = {
		PARKLOT_FOREVER, PARKLOT_FOREVER - 1, 1ULL << 63,
		(1ULL << 63) - 1, (1ULL << 63) - 2,
	};
	struct parker parker;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(deadlines); i++) {
		ASSERT_EQ(0, parker_start(&parker, &self->s, 0,
					  deadlines[i]));
		EXPECT_EQ(0, atomic_load(&parker.result));
		EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
		EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker));
	}
}

TEST_F(park, wake_ends_a_park_before_its_deadline)
{
	uint64_t deadline = now_ns() + 1000 * NSEC_PER_SEC;
	struct parker parker;

	ASSERT_EQ(0, parker_start(&parker, &self->s, 1, deadline));
	EXPECT_EQ(1, dev_wake(self->s.fd, 1, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker));
	EXPECT_LT(now_ns(), deadline);
}

TEST_F(park, parked_thread_is_counted)
{
	struct parker parker[3];
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, parker_start(&parker[i], &self->s, 1,
					  PARKLOT_FOREVER));
		EXPECT_EQ(i + 1, nr_parked(&self->s, 1));
		EXPECT_EQ(0, nr_parked(&self->s, 0));
	}
	EXPECT_EQ(3, dev_wake(self->s.fd, 1, 3));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker[i]));
}

TEST_F(park, park_ignores_reason_on_input)
{
	struct parklot_park park = { .pollfd = -1, .reason = 0xdeadbeef };

	EXPECT_EQ(0, dev_ioctl(self->s.fd, PARKLOT_IOC_PARK, &park));
	EXPECT_EQ(PARKLOT_TIMEDOUT, park.reason);
}

static struct space *handler_space;
static atomic_int nr_handled;

static void count_signal(int sig)
{
	(void)sig;
	atomic_fetch_add(&nr_handled, 1);
	if (handler_space)
		seq_signal(handler_space, 0);
}

static void handle(int flags)
{
	struct sigaction action = {
		.sa_handler = count_signal, .sa_flags = flags,
	};

	sigaction(SIGUSR1, &action, NULL);
}

/* With the whole time for each restart, this would not end. */
TEST_F(park, restarted_park_keeps_its_deadline)
{
	uint64_t deadline, ms;
	struct parker parker;

	handle(SA_RESTART);
	/* A later deadline, if the first passed before a few restarts. */
	for (ms = 300; atomic_load(&nr_handled) <= 3; ms *= 2) {
		atomic_store(&nr_handled, 0);
		deadline = now_ns() + ms * NSEC_PER_MSEC;
		ASSERT_EQ(0, parker_start(&parker, &self->s, 0, deadline));
		while (!atomic_load(&parker.result)) {
			pthread_kill(parker.thread, SIGUSR1);
			sleep_ns(5 * NSEC_PER_MSEC);
		}
		EXPECT_EQ(PARKLOT_TIMEDOUT, parker_join(&parker));
		EXPECT_LE(deadline, now_ns());
	}
}

TEST_F(park, restarted_park_rereads_seq)
{
	struct parker parker;

	handle(SA_RESTART);
	handler_space = &self->s;
	ASSERT_EQ(0, parker_start(&parker, &self->s, 0, PARKLOT_FOREVER));
	pthread_kill(parker.thread, SIGUSR1);
	EXPECT_EQ(PARKLOT_CHANGED, parker_join(&parker));
	EXPECT_EQ(1, atomic_load(&nr_handled));
}

TEST_F(park, restarted_park_is_woken)
{
	struct parker parker;
	int i;

	handle(SA_RESTART);
	ASSERT_EQ(0, parker_start(&parker, &self->s, 0, PARKLOT_FOREVER));
	for (i = 1; i <= 20; i++) {
		pthread_kill(parker.thread, SIGUSR1);
		while (atomic_load(&nr_handled) != i)
			sleep_ns(50000);
		wait_parked(&self->s, 0, 1);
	}
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker));
}

TEST_F(park, signal_without_restart_is_eintr)
{
	struct parker parker;

	handle(0);
	ASSERT_EQ(0, parker_start(&parker, &self->s, 0, PARKLOT_FOREVER));
	pthread_kill(parker.thread, SIGUSR1);
	EXPECT_EQ(-EINTR, parker_join(&parker));
	EXPECT_EQ(0, dev_wake(self->s.fd, 0, 1));
}

/* As a debugger or job control does: no handler runs for these signals. */
TEST_F(park, stopped_and_continued_park_sleeps_on)
{
	siginfo_t info;
	struct space s;
	pid_t pid;
	int i;

	pid = fork();
	if (!pid) {
		if (space_open(&s, 1))
			_exit(1);
		_exit(dev_park(s.fd, 0, 0, now_ns() + 500 * NSEC_PER_MSEC) !=
		      PARKLOT_TIMEDOUT);
	}
	for (i = 0; i < 5; i++) {
		sleep_ns(10 * NSEC_PER_MSEC);
		kill(pid, SIGSTOP);
		EXPECT_EQ(0, waitid(P_PID, pid, &info, WSTOPPED | WEXITED |
				    WNOWAIT));
		kill(pid, SIGCONT);
	}
	EXPECT_EQ(0, waitid(P_PID, pid, &info, WEXITED));
	EXPECT_EQ(CLD_EXITED, info.si_code);
	EXPECT_EQ(0, info.si_status);
}

/* The clock of the child is ahead of the machine's. */
static int park_in_time_namespace(const char *offset)
{
	int fd, status = 0, len = strlen(offset);
	struct space s;
	uint64_t end;
	pid_t pid;

	if (unshare(CLONE_NEWTIME))
		return -errno;
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, offset, len) != len)
		return -errno;
	close(fd);
	pid = fork();
	if (pid) {
		waitpid(pid, &status, 0);
		return status;
	}
	if (space_open(&s, 1))
		_exit(1);
	if (dev_park(s.fd, 0, 0, now_ns()) != PARKLOT_TIMEDOUT)
		_exit(2);
	end = now_ns() + 50 * NSEC_PER_MSEC;
	if (dev_park(s.fd, 0, 0, end) != PARKLOT_TIMEDOUT)
		_exit(3);
	_exit(now_ns() < end ? 4 : 0);
}

TEST_F(park, deadline_follows_the_callers_time_namespace)
{
	int status = park_in_time_namespace("monotonic 1000 0\n");

	if (status == -EPERM || status == -EINVAL)
		SKIP(return, "no time namespaces");
	EXPECT_EQ(0, status);
}

/* Over many timers, none is left behind on a sleeper's stack. */
TEST_TIMED(short_deadlines_and_wakes_alternate,
	   "both ends of a race must be seen")
TEST_F(park, short_deadlines_and_wakes_alternate)
{
	struct parker parker;
	int i, nr_woken = 0, nr_timedout = 0, result;

	for (i = 0; i < 300; i++) {
		memset(&parker, 0, sizeof(parker));
		parker.space = &self->s;
		parker.deadline = now_ns() + (i % 3) * 200000;
		ASSERT_EQ(0, parker_spawn(&parker, parker_main));
		nr_woken += dev_wake(self->s.fd, 0, 1);
		result = parker_join(&parker);
		nr_woken -= result == PARKLOT_WOKEN;
		nr_timedout += result == PARKLOT_TIMEDOUT;
	}
	EXPECT_EQ(0, nr_woken);
	EXPECT_LT(0, nr_timedout);
}

TEST_HARNESS_MAIN
