/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pl_poll_many() waits for several descriptors as poll(2) does: from tasks,
 * tasks on the worker's stack and threads.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "io.h"

#include <poll.h>

RT_IO_FIXTURE(poll_many)

#define NR_PAIRS	100

static int pairs[NR_PAIRS][2];

static void open_pairs(int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		make_pair(pairs[i]);
}

static void close_pairs(int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		close_pair(pairs[i]);
}

static void poll_as_each(void (*fn)(void *arg))
{
	open_pairs(3);
	run_as_each(fn, NULL);
	close_pairs(3);
}

static void poll_ready(void *arg)
{
	struct pollfd fds[] = {
		{ .fd = pairs[0][0], .events = POLLIN },
		{ .fd = -1, .events = POLLIN, .revents = 1 },
		{ .fd = pairs[1][0], .events = POLLIN | POLLOUT },
	};

	EXPECT_EQ(1, pl_poll_many(fds, 3, PL_FOREVER));
	EXPECT_EQ(0, fds[0].revents);
	EXPECT_EQ(0, fds[1].revents);
	EXPECT_EQ(POLLOUT, fds[2].revents);
	fds[2].events = POLLIN;
	EXPECT_EQ(-ETIMEDOUT, pl_poll_many(fds, 3, 0));
	EXPECT_EQ(0, fds[2].revents);
	EXPECT_EQ(-ETIMEDOUT, pl_poll_many(fds, 3, in_ms(2)));
	EXPECT_EQ(-ETIMEDOUT, pl_poll_many(NULL, 0, in_ms(2)));
	EXPECT_EQ(-ETIMEDOUT, pl_poll_many(NULL, 0, 0));
	EXPECT_EQ(-EINVAL, pl_poll_many(NULL, 1, PL_FOREVER));
	EXPECT_EQ(-EINVAL, pl_poll_many(fds, UINT32_MAX, PL_FOREVER));
}

TEST_F(poll_many, ready_descriptors_are_told)
{
	poll_as_each(poll_ready);
}

static void poll_odd_ones(void *arg)
{
	int file = memfd_create("file", MFD_CLOEXEC);
	struct pollfd fds[] = {
		{ .fd = pairs[0][0], .events = POLLIN },
		{ .fd = file, .events = POLLIN },
		{ .fd = 999999, .events = POLLIN },
	};

	EXPECT_EQ(2, pl_poll_many(fds, 3, PL_FOREVER));
	EXPECT_EQ(POLLIN, fds[1].revents);
	EXPECT_EQ(POLLNVAL, fds[2].revents);
	EXPECT_EQ(1, pl_poll_many(fds, 2, PL_FOREVER));
	EXPECT_EQ(0, pl_close(file));
}

TEST_F(poll_many, file_is_ready_and_closed_descriptor_is_invalid)
{
	poll_as_each(poll_odd_ones);
}

static void send_late(void *arg)
{
	EXPECT_EQ(0, pl_sleep(2 * NSEC_PER_MSEC));
	EXPECT_EQ(1, pl_send(*(int *)arg, "x", 1, 0));
}

/* The same descriptor twice, for different events. */
static void poll_until_sent(void *arg)
{
	struct pollfd fds[] = {
		{ .fd = pairs[0][0], .events = POLLPRI },
		{ .fd = pairs[1][0], .events = POLLIN },
		{ .fd = pairs[0][0], .events = POLLIN },
	};
	pl_task_t t;
	char c;

	ASSERT_EQ(0, pl_spawn(&t, send_late, &pairs[0][1], NULL));
	EXPECT_EQ(1, pl_poll_many(fds, 3, PL_FOREVER));
	EXPECT_EQ(0, fds[0].revents);
	EXPECT_EQ(0, fds[1].revents);
	EXPECT_EQ(POLLIN, fds[2].revents);
	EXPECT_EQ(1, pl_recv(pairs[0][0], &c, 1, 0));
	EXPECT_EQ(0, pl_join(t));
}

/* epoll refuses it, and poll(2) has nothing of what it is asked for. */
static void poll_beside_file(void *arg)
{
	int file = memfd_create("file", MFD_CLOEXEC);
	struct pollfd fds[] = {
		{ .fd = file, .events = POLLPRI },
		{ .fd = pairs[1][0], .events = POLLIN },
	};
	pl_task_t t = spawn(send_late, &pairs[1][1]);
	char c;

	EXPECT_EQ(1, pl_poll_many(fds, 2, in_ms(5000)));
	EXPECT_EQ(0, fds[0].revents);
	EXPECT_EQ(POLLIN, fds[1].revents);
	join(t);
	EXPECT_EQ(1, pl_recv(pairs[1][0], &c, 1, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_poll_many(fds, 1, in_ms(2)));
	EXPECT_EQ(0, pl_close(file));
}

TEST_F(poll_many, file_without_the_events_does_not_end_the_wait)
{
	poll_as_each(poll_beside_file);
}

TEST_F(poll_many, event_of_one_ends_the_wait)
{
	poll_as_each(poll_until_sent);
}

static atomic_int nr_seen;

/* Waits for the same pairs as all others, and takes nothing away. */
static void poll_all(void *arg)
{
	struct pollfd fds[NR_PAIRS];
	int i;

	for (i = 0; i < NR_PAIRS; i++) {
		fds[i].fd = pairs[i][0];
		fds[i].events = POLLIN;
	}
	EXPECT_EQ(1, pl_poll_many(fds, NR_PAIRS, PL_FOREVER));
	for (i = 0; i < NR_PAIRS; i++)
		EXPECT_EQ(i == 70 ? POLLIN : 0, fds[i].revents);
	atomic_fetch_add(&nr_seen, 1);
}

TEST_F(poll_many, event_ends_the_waits_of_all)
{
	static struct mixed m;

	open_pairs(NR_PAIRS);
	mixed_start(&m, 50, 4, poll_all, NULL);
	ASSERT_TRUE(UNTIL(rt_stat().io_in_flight == 54));
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(1, write(pairs[70][1], "x", 1));
	mixed_join(&m);
	EXPECT_EQ(54, nr_seen);
	close_pairs(NR_PAIRS);
}

static void poll_without_descriptors(void *arg)
{
	struct pollfd fds = { .fd = pairs[0][0], .events = POLLIN };
	struct rlimit old, none;

	/* The ring is open by then. */
	EXPECT_EQ(-ETIMEDOUT, pl_poll(fds.fd, POLLIN, in_ms(1)));
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &old));
	none = old;
	none.rlim_cur = 3;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_EQ(-EMFILE, pl_poll_many(&fds, 1, PL_FOREVER));
	/* With nothing to watch it needs none. */
	EXPECT_EQ(-ETIMEDOUT, pl_poll_many(NULL, 0, in_ms(1)));
	fds.fd = -1;
	EXPECT_EQ(-ETIMEDOUT, pl_poll_many(&fds, 1, in_ms(1)));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &old));
}

TEST_F(poll_many, wait_without_a_free_descriptor_fails)
{
	open_pairs(1);
	run_in_task(poll_without_descriptors, NULL);
	close_pairs(1);
}

/*
 * The number is another file's, and a copy keeps the file that had it: its
 * events are none of the caller's, and are there again and again.
 */
static void poll_closed(void *arg)
{
	struct pollfd fds = { .fd = pairs[0][0], .events = POLLIN };

	EXPECT_EQ(-EINTR, pl_poll_many(&fds, 1, PL_FOREVER));
}

TEST_F(poll_many, event_of_a_closed_file_is_not_told)
{
	pl_task_t t;
	int copy;

	open_pairs(2);
	copy = dup(pairs[0][0]);
	ASSERT_EQ(0, pl_spawn(&t, poll_closed, NULL, NULL));
	ASSERT_TRUE(UNTIL(rt_stat().io_in_flight == 1));
	ASSERT_EQ(pairs[0][0], dup2(pairs[1][0], pairs[0][0]));
	EXPECT_EQ(1, write(pairs[0][1], "x", 1));
	EXPECT_EQ(-ETIMEDOUT, pl_join_until(t, in_ms(50)));
	EXPECT_EQ(0, pl_interrupt(t));
	EXPECT_EQ(0, pl_join(t));
	EXPECT_EQ(0, close(copy));
	close_pairs(2);
}

/* io_uring tells of a peer that sends no more, whatever was asked for. */
static void poll_for_hang_up(void *arg)
{
	int fd = pairs[0][0];

	EXPECT_EQ(-ETIMEDOUT, pl_poll(fd, 0, in_ms(2)));
	EXPECT_EQ(-ETIMEDOUT, pl_poll(fd, POLLPRI, 0));
	EXPECT_EQ(POLLIN, pl_poll(fd, POLLIN, PL_FOREVER));
}

TEST_F(poll_many, peer_that_sends_no_more_is_no_hang_up)
{
	open_pairs(1);
	ASSERT_EQ(0, shutdown(pairs[0][1], SHUT_WR));
	run_in_task(poll_for_hang_up, NULL);
	poll_for_hang_up(NULL);
	ASSERT_EQ(0, shutdown(pairs[0][1], SHUT_RD));
	ASSERT_EQ(0, shutdown(pairs[0][0], SHUT_RDWR));
	EXPECT_EQ(POLLHUP, pl_poll(pairs[0][0], 0, PL_FOREVER));
	close_pairs(1);
}

TEST_HARNESS_MAIN
