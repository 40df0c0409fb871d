/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pl_sendfile() sends a file as sendfile(2) does, and parks the task where the
 * socket takes no more: from tasks, tasks on the worker's stack and threads.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "io.h"

#include <fcntl.h>
#include <signal.h>

RT_IO_FIXTURE(sendfile)

#define FILE_SIZE	(1 << 20)	/* more than a socket takes */

static int file, sockets[2];

static char byte_at(off_t offset)
{
	return (char)(offset * 31 + (offset >> 8));
}

static void open_all(void)
{
	char block[4096];
	off_t at;
	size_t i;

	file = memfd_create("file", MFD_CLOEXEC);
	ASSERT_LE(0, file);
	for (at = 0; at < FILE_SIZE; at += (off_t)sizeof(block)) {
		for (i = 0; i < sizeof(block); i++)
			block[i] = byte_at(at + (off_t)i);
		ASSERT_EQ(sizeof(block), write(file, block, sizeof(block)));
	}
	ASSERT_EQ(0, lseek(file, 0, SEEK_SET));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
}

static void close_all(void)
{
	pl_close(file);
	pl_close(sockets[0]);
	pl_close(sockets[1]);
}

static void send_as_each(void (*fn)(void *arg))
{
	open_all();
	run_in_task(fn, NULL);
	close_all();
	open_all();
	run_as(PL_STACK_WORKER, fn, NULL);
	close_all();
	open_all();
	fn(NULL);
	close_all();
}

/* Ends when the sender has shut down. */
static void receive_all(void *arg)
{
	off_t *at = arg;
	char buf[5000];
	ssize_t i, n;

	while ((n = pl_recv(sockets[1], buf, sizeof(buf), 0)) > 0)
		for (i = 0; i < n; i++)
			if (buf[i] != byte_at((*at)++))
				TH_LOG("byte %lld is wrong",
				       (long long)*at - 1);
	EXPECT_EQ(0, n);
}

static void send_file(void *arg)
{
	off_t offset = 10, received = 10;
	pl_task_t receiver;
	ssize_t n;

	ASSERT_EQ(0, pl_spawn(&receiver, receive_all, &received, NULL));
	while ((n = pl_sendfile(sockets[0], file, &offset, FILE_SIZE)) > 0)
		;
	EXPECT_EQ(0, n);
	EXPECT_EQ(FILE_SIZE, offset);
	EXPECT_EQ(0, lseek(file, 0, SEEK_CUR));
	shutdown(sockets[0], SHUT_WR);
	EXPECT_EQ(0, pl_join(receiver));
	EXPECT_EQ(FILE_SIZE, received);
}

TEST_F(sendfile, file_larger_than_the_socket_arrives_from_the_offset)
{
	send_as_each(send_file);
}

static void send_from_position(void *arg)
{
	char buf[8];

	EXPECT_EQ(100, lseek(file, 100, SEEK_SET));
	EXPECT_EQ(8, pl_sendfile(sockets[0], file, NULL, 8));
	EXPECT_EQ(108, lseek(file, 0, SEEK_CUR));
	EXPECT_EQ(8, pl_recv(sockets[1], buf, 8, 0));
	EXPECT_EQ(byte_at(107), buf[7]);
	EXPECT_EQ(0, pl_sendfile(sockets[0], file, NULL, 0));
}

TEST_F(sendfile, without_an_offset_the_position_moves)
{
	send_as_each(send_from_position);
}

static void send_when_cancelled(void *arg)
{
	EXPECT_EQ(0, pl_cancel(pl_self()));
	EXPECT_EQ(-ECANCELED, pl_sendfile(sockets[0], file, NULL, 8));
	EXPECT_EQ(0, lseek(file, 0, SEEK_CUR));
}

TEST_F(sendfile, cancelled_task_sends_nothing)
{
	open_all();
	run_in_task(send_when_cancelled, NULL);
	close_all();
}

static void send_to_nobody(void *arg)
{
	sigset_t pending;

	EXPECT_EQ(0, pl_close(sockets[1]));
	EXPECT_EQ(-EPIPE, pl_sendfile(sockets[0], file, NULL, 8));
	sigpending(&pending);
	EXPECT_FALSE(sigismember(&pending, SIGPIPE));
}

/* Its default action would end the program. */
TEST_F(sendfile, peer_that_has_gone_is_an_error_without_sigpipe)
{
	send_as_each(send_to_nobody);
}

/* The kernel tells of the part that was sent, and by SIGPIPE of the rest. */
static void send_in_part(void *arg)
{
	sigset_t pending;
	off_t offset = 0;
	int i, fd[2];

	for (i = 0; i < 20; i++) {
		ASSERT_TRUE(make_tcp_pair(fd));
		EXPECT_EQ(0, close(fd[1]));
		EXPECT_NE(0, pl_sendfile(fd[0], file, &offset, FILE_SIZE));
		sigpending(&pending);
		EXPECT_FALSE(sigismember(&pending, SIGPIPE));
		EXPECT_EQ(0, pl_close(fd[0]));
		offset = 0;
	}
}

TEST_F(sendfile, peer_that_goes_meanwhile_raises_no_sigpipe)
{
	int fd[2];

	if (!make_tcp_pair(fd))
		SKIP(return, "no loopback interface");
	close_pair(fd);
	send_as_each(send_in_part);
}

static void send_wrong(void *arg)
{
	off_t offset = -1;

	EXPECT_EQ(-EBADF, pl_sendfile(999999, file, NULL, 8));
	EXPECT_EQ(-EBADF, pl_sendfile(sockets[0], 999999, NULL, 8));
	EXPECT_EQ(-EINVAL, pl_sendfile(sockets[0], sockets[1], NULL, 8));
	EXPECT_EQ(-EINVAL, pl_sendfile(sockets[0], file, &offset, 8));
}

TEST_F(sendfile, wrong_arguments_are_errors)
{
	send_as_each(send_wrong);
}

/* Programs may share a pipe, and block on it. */
TEST_F(sendfile, only_a_socket_changes_its_mode)
{
	int fds[2];

	open_all();
	ASSERT_EQ(0, pipe(fds));
	EXPECT_EQ(8, pl_sendfile(fds[1], file, NULL, 8));
	EXPECT_FALSE(fcntl(fds[1], F_GETFL) & O_NONBLOCK);
	EXPECT_FALSE(fcntl(sockets[0], F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(8, pl_sendfile(sockets[0], file, NULL, 8));
	EXPECT_TRUE(fcntl(sockets[0], F_GETFL) & O_NONBLOCK);
	close(fds[0]);
	close(fds[1]);
	close_all();
}

TEST_HARNESS_MAIN
