/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I/O at a position, by vector and by message; and poll: from tasks, tasks on
 * the worker's stack and threads.
 */
#define SIM_SHORT_READS
#include "kselftest_harness.h"

#include "rt.h"
#include "io.h"

#include <fcntl.h>
#include <poll.h>

RT_IO_FIXTURE(iovec)

/* ---- at a position ---- */

static void use_positions(void *arg)
{
	int fd = memfd_create("positions", MFD_CLOEXEC);
	char buf[8] = "";

	ASSERT_LE(0, fd);
	EXPECT_EQ(6, pl_pwrite(fd, "abcdef", 6, 10));
	EXPECT_EQ(3, pl_pread(fd, buf, 3, 12));
	EXPECT_STREQ("cde", buf);
	/* The file's own position has not moved. */
	EXPECT_EQ(0, lseek(fd, 0, SEEK_CUR));
	EXPECT_EQ(2, pl_pread_until(fd, buf, 8, 14, PL_FOREVER));
	EXPECT_EQ(0, pl_pread(fd, buf, 8, 16));
	EXPECT_EQ(1, pl_pwrite_until(fd, "x", 1, 0, in_ms(10000)));
	EXPECT_EQ(-EINVAL, pl_pread(fd, buf, 1, -1));
	EXPECT_EQ(-EINVAL, pl_pwrite(fd, "x", 1, -2));
	EXPECT_EQ(16, lseek(fd, 0, SEEK_END));
	EXPECT_EQ(0, pl_close(fd));
}

TEST_F(iovec, positions_are_read_and_written_without_moving)
{
	run_as_each(use_positions, NULL);
}

static void use_positions_of_pipe(void *arg)
{
	char c = 0;
	int fd[2];

	ASSERT_EQ(0, pipe(fd));
	EXPECT_EQ(1, pl_pwrite(fd[1], "x", 1, 0));
	EXPECT_EQ(1, pl_pread(fd[0], &c, 1, 0));
	EXPECT_EQ('x', c);
	close_pair(fd);
}

TEST_F(iovec, positions_of_pipes_are_ignored)
{
	run_as_each(use_positions_of_pipe, NULL);
}

/* ---- by vector ---- */

static void use_vectors(void *arg)
{
	char a[4] = "", b[8] = "";
	struct iovec out[] = { { (void *)"abc", 3 }, { (void *)"", 0 },
			       { (void *)"defg", 4 } };
	struct iovec in[] = { { a, 2 }, { b, 7 } };
	int fd[2];

	make_pair(fd);
	EXPECT_EQ(7, pl_writev(fd[1], out, 3));
	EXPECT_EQ(7, pl_readv(fd[0], in, 2));
	EXPECT_STREQ("ab", a);
	EXPECT_STREQ("cdefg", b);
	EXPECT_EQ(3, pl_writev_until(fd[1], out, 1, in_ms(10000)));
	EXPECT_EQ(2, pl_readv_until(fd[0], in, 1, in_ms(10000)));
	EXPECT_EQ(1, pl_readv_until(fd[0], in, 1, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_readv_until(fd[0], in, 1, in_ms(1)));
	EXPECT_EQ(-EINVAL, pl_readv(fd[0], in, -1));
	EXPECT_EQ(-EINVAL, pl_writev(fd[1], out, -1));
	EXPECT_EQ(-EINVAL, pl_writev(fd[1], out, 1 << 20));
	close_pair(fd);
}

TEST_F(iovec, vectors_are_gathered_and_scattered)
{
	run_as_each(use_vectors, NULL);
}

static void use_vectors_in_file(void *arg)
{
	int fd = memfd_create("vectors", MFD_CLOEXEC);
	struct iovec iov[] = { { (void *)"ab", 2 }, { (void *)"c", 1 } };

	ASSERT_LE(0, fd);
	EXPECT_EQ(3, pl_writev(fd, iov, 2));
	EXPECT_EQ(3, pl_writev(fd, iov, 2));
	EXPECT_EQ(6, lseek(fd, 0, SEEK_CUR));
	EXPECT_EQ(0, pl_close(fd));
}

TEST_F(iovec, vectors_move_the_position)
{
	run_as_each(use_vectors_in_file, NULL);
}

static void read_when_there(void *arg)
{
	int *fd = arg;
	char c = 0;
	struct iovec iov = { &c, 1 };

	EXPECT_EQ(1, pl_readv(fd[0], &iov, 1));
	EXPECT_EQ('x', c);
}

/* One that is non-blocking is waited for all the same. */
TEST_F(iovec, readv_waits_in_each_blocking_mode)
{
	int fd[2], mode;
	pl_task_t t;

	for (mode = 0; mode < 2; mode++) {
		make_pair_of(SOCK_STREAM | (mode ? SOCK_NONBLOCK : 0), fd);
		t = spawn(read_when_there, fd);
		EXPECT_EQ(-ETIMEDOUT, pl_join_until(t, in_ms(2)));
		EXPECT_EQ(1, write(fd[1], "x", 1));
		join(t);
		close_pair(fd);
	}
}

/* ---- by message ---- */

static void use_messages(void *arg)
{
	char buf[8] = "";
	struct iovec in = { buf, 7 }, out = { (void *)"hello", 5 };
	struct msghdr to = { .msg_iov = &out, .msg_iovlen = 1 };
	struct msghdr from = { .msg_iov = &in, .msg_iovlen = 1 };
	int fd[2];

	make_pair(fd);
	EXPECT_EQ(-EAGAIN, pl_recvmsg(fd[0], &from, MSG_DONTWAIT));
	EXPECT_EQ(-ETIMEDOUT, pl_recvmsg_until(fd[0], &from, 0, in_ms(1)));
	EXPECT_EQ(5, pl_sendmsg(fd[1], &to, 0));
	EXPECT_EQ(5, pl_recvmsg(fd[0], &from, 0));
	EXPECT_STREQ("hello", buf);
	EXPECT_EQ(5, pl_sendmsg_until(fd[1], &to, 0, in_ms(10000)));
	EXPECT_EQ(5, pl_recvmsg_until(fd[0], &from, 0, 0));
	EXPECT_EQ(0, pl_close(fd[0]));
	/* No SIGPIPE, which would kill us. */
	EXPECT_EQ(-EPIPE, pl_sendmsg(fd[1], &to, 0));
	EXPECT_EQ(0, pl_close(fd[1]));
}

TEST_F(iovec, messages_are_sent_and_received_without_sigpipe)
{
	signal(SIGPIPE, SIG_DFL);
	run_as_each(use_messages, NULL);
}

union control {
	struct cmsghdr	hdr;
	char		room[CMSG_SPACE(sizeof(int))];
};

static void send_descriptor(int to, int fd)
{
	union control ctl = { 0 };
	struct iovec iov = { (void *)"f", 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &ctl, .msg_controllen = sizeof(ctl),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	EXPECT_EQ(1, pl_sendmsg(to, &msg, 0));
}

static int receive_descriptor(int from)
{
	union control ctl = { 0 };
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &ctl, .msg_controllen = sizeof(ctl),
	};
	int fd = -1;

	EXPECT_EQ(1, pl_recvmsg(from, &msg, MSG_CMSG_CLOEXEC));
	ASSERT_NE(NULL, CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

static void pass_descriptor(void *arg)
{
	int pair[2], pipes[2], fd;
	char c = 0;

	make_pair(pair);
	ASSERT_EQ(0, pipe(pipes));
	send_descriptor(pair[1], pipes[1]);
	fd = receive_descriptor(pair[0]);
	EXPECT_EQ(1, pl_write(fd, "y", 1));
	EXPECT_EQ(1, pl_read(pipes[0], &c, 1));
	EXPECT_EQ('y', c);
	EXPECT_EQ(0, pl_close(fd));
	close_pair(pipes);
	close_pair(pair);
}

TEST_F(iovec, messages_pass_descriptors)
{
	run_as_each(pass_descriptor, NULL);
}

/* ---- poll ---- */

static void use_poll(void *arg)
{
	int fd[2];
	char c;

	make_pair(fd);
	EXPECT_EQ(POLLOUT, pl_poll(fd[0], POLLIN | POLLOUT, PL_FOREVER));
	EXPECT_EQ(-ETIMEDOUT, pl_poll(fd[0], POLLIN, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_poll(fd[0], POLLIN, in_ms(1)));
	EXPECT_EQ(1, pl_write(fd[1], "x", 1));
	EXPECT_EQ(POLLIN, pl_poll(fd[0], POLLIN, 0));
	EXPECT_EQ(1, pl_read(fd[0], &c, 1));
	EXPECT_EQ(0, pl_close(fd[1]));
	EXPECT_EQ(POLLHUP, pl_poll(fd[0], 0, PL_FOREVER));
	EXPECT_EQ(0, pl_close(fd[0]));
	EXPECT_EQ(-EBADF, pl_poll(-1, POLLIN, PL_FOREVER));
	EXPECT_EQ(-EBADF, pl_poll(-1, POLLIN, 0));
}

TEST_F(iovec, poll_returns_the_ready_events)
{
	run_as_each(use_poll, NULL);
}

static atomic_int nr_polled;

static void poll_until_readable(void *arg)
{
	EXPECT_EQ(POLLIN, pl_poll(*(int *)arg, POLLIN, PL_FOREVER));
	atomic_fetch_add(&nr_polled, 1);
}

TEST_F(iovec, event_ends_all_polls_of_a_descriptor)
{
	static struct mixed m;
	int fd[2];

	make_pair(fd);
	mixed_start(&m, 50, 4, poll_until_readable, &fd[0]);
	ASSERT_TRUE(UNTIL(rt_stat().io_in_flight == 54));
	EXPECT_EQ(0, nr_polled);
	EXPECT_EQ(1, write(fd[1], "x", 1));
	mixed_join(&m);
	EXPECT_EQ(54, nr_polled);
	close_pair(fd);
}

TEST_HARNESS_MAIN
