// SPDX-License-Identifier: GPL-2.0-only
/*
 * PARK with a pollfd: the wake or the descriptor ends it, whichever is first.
 */
#include "kselftest_harness.h"

#include <liburing.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include "mod_crew.h"

#define RACE_NS		(3 * NSEC_PER_SEC)

FIXTURE(poll)
{
	struct space s;
	int fd[2];		/* of a pipe */
};

FIXTURE_SETUP(poll)
{
	SPACE_SETUP(&self->s, 2);
	ASSERT_TRUE(dev_features(self->s.fd) & PARKLOT_FEAT_POLLFD);
	ASSERT_EQ(0, pipe2(self->fd, O_CLOEXEC | O_NONBLOCK));
}

FIXTURE_TEARDOWN(poll)
{
	EXPECT_EQ(0, nr_parked(&self->s, 0));
	space_close(&self->s);
}

static int dev_park_poll(int fd, int pollfd, uint32_t events, uint64_t deadline)
{
	struct parklot_park park = {
		.deadline_ns = deadline, .pollfd = pollfd,
		.poll_events = events,
	};
	int err = dev_ioctl(fd, PARKLOT_IOC_PARK, &park);

	return err ? err : (int)park.reason;
}

/* A thread that parks on lot 0 and polls. */
struct poller {
	struct space	*s;
	int		fd;
	uint32_t	events;
	pthread_t	thread;
	atomic_int	tid;
	atomic_int	result;
};

static void *poller_main(void *arg)
{
	struct poller *p = arg;

	atomic_store(&p->tid, gettid());
	atomic_store(&p->result, dev_park_poll(p->s->fd, p->fd, p->events,
					       PARKLOT_FOREVER));
	return NULL;
}

static int poller_start(struct poller *p, struct space *s, int fd,
			uint32_t events)
{
	int err;

	*p = (struct poller){ .s = s, .fd = fd, .events = events };
	err = pthread_create(&p->thread, NULL, poller_main, p);
	if (!err)
		wait_parked(s, 0, 1);
	return err;
}

static int poller_join(struct poller *p)
{
	pthread_join(p->thread, NULL);
	return atomic_load(&p->result);
}

TEST_F(poll, ready_descriptor_ends_the_park_at_once)
{
	EXPECT_EQ(1, write(self->fd[1], "", 1));
	EXPECT_EQ(PARKLOT_POLLED, dev_park_poll(self->s.fd, self->fd[0], POLLIN,
						PARKLOT_FOREVER));
	EXPECT_EQ(PARKLOT_POLLED, dev_park_poll(self->s.fd, self->fd[0], POLLIN,
						0));
}

TEST_F(poll, descriptor_that_becomes_ready_ends_the_park)
{
	struct poller p;

	ASSERT_EQ(0, poller_start(&p, &self->s, self->fd[0], POLLIN));
	EXPECT_EQ(1, write(self->fd[1], "", 1));
	EXPECT_EQ(PARKLOT_POLLED, poller_join(&p));
	EXPECT_EQ(0, dev_wake(self->s.fd, 0, 1));
}

TEST_F(poll, wake_wins_over_readiness)
{
	struct poller p;

	ASSERT_EQ(0, poller_start(&p, &self->s, self->fd[0], POLLIN));
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(PARKLOT_WOKEN, poller_join(&p));
}

TEST_F(poll, park_with_a_pollfd_ends_at_its_deadline)
{
	uint64_t deadline = now_ns() + 20 * NSEC_PER_MSEC;

	EXPECT_EQ(PARKLOT_TIMEDOUT, dev_park_poll(self->s.fd, self->fd[0],
						  POLLIN, deadline));
	EXPECT_LE(deadline, now_ns());
	EXPECT_EQ(PARKLOT_TIMEDOUT, dev_park_poll(self->s.fd, self->fd[0],
						  POLLIN, 0));
}

TEST_F(poll, changed_seq_ends_the_park_at_once)
{
	seq_signal(&self->s, 0);
	EXPECT_EQ(PARKLOT_CHANGED, dev_park_poll(self->s.fd, self->fd[0],
						 POLLIN, PARKLOT_FOREVER));
}

/* The socket's one wait queue is also woken for room to write. */
TEST_F(poll, other_events_leave_the_park)
{
	static char much[1 << 20];
	struct poller p;
	int sock[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sock));
	while (write(sock[0], much, sizeof(much)) > 0)
		;
	ASSERT_EQ(0, poller_start(&p, &self->s, sock[0], POLLIN));
	while (read(sock[1], much, sizeof(much)) > 0)
		;
	EXPECT_EQ(PARKLOT_POLLED, dev_park_poll(self->s.fd, sock[0], POLLOUT,
						PARKLOT_FOREVER));
	EXPECT_EQ(1, nr_parked(&self->s, 0));
	EXPECT_EQ(1, write(sock[1], "", 1));
	EXPECT_EQ(PARKLOT_POLLED, poller_join(&p));
}

TEST_F(poll, hangup_ends_the_park_unasked)
{
	struct poller p;

	ASSERT_EQ(0, poller_start(&p, &self->s, self->fd[0], 0));
	EXPECT_EQ(0, close(self->fd[1]));
	EXPECT_EQ(PARKLOT_POLLED, poller_join(&p));
}

TEST_F(poll, close_of_the_descriptor_leaves_the_park)
{
	struct poller p;

	ASSERT_EQ(0, poller_start(&p, &self->s, self->fd[0], POLLIN));
	EXPECT_EQ(0, close(self->fd[0]));
	EXPECT_EQ(1, nr_parked(&self->s, 0));
	EXPECT_EQ(1, write(self->fd[1], "", 1));
	EXPECT_EQ(PARKLOT_POLLED, poller_join(&p));
	/* The last reference to the pipe's end is gone now. */
	signal(SIGPIPE, SIG_IGN);
	EXPECT_EQ(-1, write(self->fd[1], "", 1));
	EXPECT_EQ(EPIPE, errno);
}

TEST_F(poll, close_of_the_space_ends_the_park)
{
	struct poller p;

	ASSERT_EQ(0, poller_start(&p, &self->s, self->fd[0], POLLIN));
	EXPECT_EQ(0, close(self->s.fd));
	EXPECT_EQ(PARKLOT_INTERRUPTED, poller_join(&p));
	self->s.fd = dev_open();
}

static void ignore(int sig)
{
	(void)sig;
}

TEST_F(poll, signal_restarts_the_park)
{
	struct sigaction action = {
		.sa_handler = ignore, .sa_flags = SA_RESTART,
	};
	struct poller p;

	sigaction(SIGUSR1, &action, NULL);
	ASSERT_EQ(0, poller_start(&p, &self->s, self->fd[0], POLLIN));
	EXPECT_EQ(0, pthread_kill(p.thread, SIGUSR1));
	EXPECT_EQ(1, write(self->fd[1], "", 1));
	EXPECT_EQ(PARKLOT_POLLED, poller_join(&p));

	action.sa_flags = 0;
	sigaction(SIGUSR1, &action, NULL);
	EXPECT_EQ(1, read(self->fd[0], &action, 1));
	ASSERT_EQ(0, poller_start(&p, &self->s, self->fd[0], POLLIN));
	EXPECT_EQ(0, pthread_kill(p.thread, SIGUSR1));
	EXPECT_EQ(-EINTR, poller_join(&p));
}

/* How often this thread has slept, or -1. */
static long nr_sleeps(int tid)
{
	char path[64], line[128];
	long nr = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	file = fopen(path, "re");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		sscanf(line, "voluntary_ctxt_switches: %ld", &nr);
	fclose(file);
	return nr;
}

/* A signal wakes each poller of a signalfd, also of one for other signals. */
TEST_F(poll, wakeup_without_readiness_leaves_the_park)
{
	struct poller p;
	sigset_t mask;
	long before;
	int fd;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGUSR2);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &mask, NULL));
	sigdelset(&mask, SIGUSR2);
	fd = signalfd(-1, &mask, SFD_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, poller_start(&p, &self->s, fd, POLLIN));
	before = nr_sleeps(p.tid);
	ASSERT_LE(0, before);
	EXPECT_EQ(0, kill(getpid(), SIGUSR2));
	UNTIL(nr_sleeps(p.tid) > before);
	EXPECT_EQ(1, nr_parked(&self->s, 0));
	EXPECT_EQ(0, atomic_load(&p.result));
	EXPECT_EQ(0, kill(getpid(), SIGUSR1));
	EXPECT_EQ(PARKLOT_POLLED, poller_join(&p));
	close(fd);
}

TEST_F(poll, bad_descriptors_are_refused)
{
	int path = open("/", O_PATH | O_CLOEXEC), fd = self->s.fd;
	struct parklot_wake_entry entry = { .lot = 1, .nr = 1 };
	struct parklot_wake_park both = {
		.wake = {
			.entries = (uintptr_t)&entry, .nr_entries = 1,
			.limit = 1,
		},
		.park = { .pollfd = path },
	};
	struct parker parker;

	ASSERT_EQ(0, close(self->fd[0]));
	EXPECT_EQ(-EBADF, dev_park_poll(fd, self->fd[0], POLLIN, 0));
	EXPECT_EQ(-EBADF, dev_park_poll(fd, -2, POLLIN, 0));
	EXPECT_EQ(-EBADF, dev_park_poll(fd, path, POLLIN, 0));
	EXPECT_EQ(-EINVAL, dev_park_poll(fd, self->fd[1], 0x10000, 0));
	/* Refused before a sleeper is woken. */
	ASSERT_EQ(0, parker_start(&parker, &self->s, 1, PARKLOT_FOREVER));
	EXPECT_EQ(-EBADF, dev_ioctl(fd, PARKLOT_IOC_WAKE_PARK, &both));
	EXPECT_EQ(1, nr_parked(&self->s, 1));
	both.park.pollfd = self->fd[1];
	both.park.poll_events = POLLOUT;
	EXPECT_EQ(0, dev_ioctl(fd, PARKLOT_IOC_WAKE_PARK, &both));
	EXPECT_EQ(1, both.wake.woken);
	EXPECT_EQ(PARKLOT_POLLED, both.park.reason);
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker));
}

TEST_F(poll, masked_pollfd_is_refused)
{
	if (!set_features(~(unsigned long)PARKLOT_FEAT_POLLFD))
		SKIP(return, "not root");
	EXPECT_EQ(-EOPNOTSUPP, dev_park_poll(self->s.fd, self->fd[1], POLLOUT,
					     0));
	EXPECT_TRUE(set_features(~0UL));
}

/* Several descriptors at once, by an epoll. */
TEST_F(poll, ready_epoll_ends_the_park)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epfd = epoll_create1(EPOLL_CLOEXEC), evfd = eventfd(0, 0);
	struct poller p;

	ASSERT_EQ(0, epoll_ctl(epfd, EPOLL_CTL_ADD, self->fd[0], &event));
	ASSERT_EQ(0, epoll_ctl(epfd, EPOLL_CTL_ADD, evfd, &event));
	ASSERT_EQ(0, poller_start(&p, &self->s, epfd, POLLIN));
	EXPECT_EQ(0, eventfd_write(evfd, 1));
	EXPECT_EQ(PARKLOT_POLLED, poller_join(&p));
}

static void do_park_poll(struct worker *w)
{
	atomic_store(&w->result, dev_park_poll(w->space->fd, w->fd[0], POLLIN,
					       PARKLOT_FOREVER));
}

TEST_F(poll, polling_worker_counts_as_parked)
{
	struct worker w = { .fd = { self->fd[0], self->fd[1] } };
	struct space s;

	if (space_open_crew(&s, 1, 1))
		SKIP(return, "no crew");
	ASSERT_EQ(0, worker_start(&w, &s, 0, do_park_poll));
	worker_begin(&w);
	UNTIL(nr_idle_workers(&s) == 1 && nr_running(&s) == 0);
	EXPECT_EQ(0, nr_blocked(&s));
	EXPECT_EQ(1, write(w.fd[1], "", 1));
	UNTIL(nr_running(&s) == 1 && nr_idle_workers(&s) == 0);
	EXPECT_EQ(0, worker_finish(&w));
	EXPECT_EQ(PARKLOT_POLLED, atomic_load(&w.result));
	space_close(&s);
}

/*
 * The poller takes one byte for each time it finds data; none comes too late.
 */
struct race {
	struct space	*s;
	int		fd;
	atomic_int	nr_read, nr_waking, nr_polled;
	atomic_bool	is_over;
};

static void *race_main(void *arg)
{
	struct race *race = arg;
	int reason;
	char c;

	while (!atomic_load(&race->is_over)) {
		reason = dev_park_poll(race->s->fd, race->fd, POLLIN,
				       PARKLOT_FOREVER);
		atomic_fetch_add(&race->nr_waking, reason == PARKLOT_WOKEN);
		if (reason != PARKLOT_POLLED)
			continue;
		atomic_fetch_add(&race->nr_polled, 1);
		atomic_fetch_add(&race->nr_read, read(race->fd, &c, 1));
	}
	return NULL;
}

/*
 * Writes and wakes at all times: no byte stays unread, and as many parks end by
 * a wake as WAKE counted.
 */
TEST_F_TIMEOUT(poll, readiness_racing_a_wake_loses_neither, 60)
{
	struct race race = { .s = &self->s, .fd = self->fd[0] };
	uint64_t end = now_ns() + RACE_NS;
	int i, nr_woken = 0;
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, race_main, &race));
	for (i = 0; now_ns() < end; i++) {
		if (i & 1)
			nr_woken += dev_wake(self->s.fd, 0, 1);
		EXPECT_EQ(1, write(self->fd[1], "", 1));
		if (!(i & 1) && i % 3)
			nr_woken += dev_wake(self->s.fd, 0, 1);
		while (atomic_load(&race.nr_read) <= i)
			sched_yield();
	}
	atomic_store(&race.is_over, true);
	do {
		nr_woken += dev_wake(self->s.fd, 0, 1);
		sleep_ns(50000);
	} while (pthread_tryjoin_np(thread, NULL));
	EXPECT_EQ(nr_woken, atomic_load(&race.nr_waking));
	EXPECT_EQ(i, atomic_load(&race.nr_polled));
}

/*
 * A ring that defers work to its thread's next call does not wake its pollers,
 * since the thread itself has to do the work; the ring's eventfd is woken.
 */
static void *write_later(void *arg)
{
	struct poller *p = arg;

	wait_parked(p->s, 0, 1);
	atomic_store(&p->result, write(p->fd, "", 1));
	return NULL;
}

TEST_F(poll, deferred_work_of_a_ring_ends_the_park)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN,
	};
	struct poller writer = { .s = &self->s, .fd = self->fd[1] };
	int evfd = eventfd(0, EFD_CLOEXEC);
	struct io_uring_cqe *cqe;
	struct io_uring ring;

	if (io_uring_queue_init_params(4, &ring, &params))
		SKIP(return, "no such ring");
	io_uring_prep_poll_add(io_uring_get_sqe(&ring), self->fd[0], POLLIN);
	ASSERT_EQ(1, io_uring_submit(&ring));
	ASSERT_EQ(0, io_uring_register_eventfd(&ring, evfd));
	ASSERT_EQ(0, pthread_create(&writer.thread, NULL, write_later,
				    &writer));
	EXPECT_EQ(PARKLOT_POLLED, dev_park_poll(self->s.fd, evfd, POLLIN,
						PARKLOT_FOREVER));
	EXPECT_EQ(0, io_uring_get_events(&ring));
	EXPECT_EQ(0, io_uring_peek_cqe(&ring, &cqe));
	EXPECT_EQ(1, poller_join(&writer));
	io_uring_queue_exit(&ring);
}

TEST_HARNESS_MAIN
