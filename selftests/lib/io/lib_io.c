/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I/O: each call does what the system call of its name does, and parks no more
 * than its caller; from tasks, tasks on the worker's stack and threads.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "io.h"

#include <fcntl.h>
#include <liburing.h>

FIXTURE(io) { char unused; };
RT_IO_VARIANTS(io)

FIXTURE_SETUP(io)
{
	rt_begin_io(_metadata, variant->io, variant->wait);
	signal(SIGPIPE, SIG_DFL);
}

FIXTURE_TEARDOWN(io)
{
	rt_end();
}

/* ---- what the calls do ---- */

static void use_pipe(void *arg)
{
	char buf[16] = "";
	int fd[2];

	ASSERT_EQ(0, pipe(fd));
	EXPECT_EQ(5, pl_write(fd[1], "hello", 5));
	EXPECT_EQ(3, pl_read(fd[0], buf, 3));
	EXPECT_EQ(2, pl_read(fd[0], buf + 3, 10));
	EXPECT_STREQ("hello", buf);
	EXPECT_EQ(0, pl_close(fd[1]));
	EXPECT_EQ(0, pl_read(fd[0], buf, 10));
	/* Its number may be a worker's ring from now on: not to be used. */
	EXPECT_EQ(0, pl_close(fd[0]));
}

TEST_F(io, pipes_are_read_and_written)
{
	run_as_each(use_pipe, NULL);
}

static void use_socket(void *arg)
{
	char buf[16] = "";
	int fd[2];

	make_pair(fd);
	EXPECT_EQ(5, pl_send(fd[1], "hello", 5, 0));
	EXPECT_EQ(2, pl_recv(fd[0], buf, 2, MSG_PEEK));
	EXPECT_EQ(5, pl_recv(fd[0], buf, 10, 0));
	EXPECT_STREQ("hello", buf);
	EXPECT_EQ(-EAGAIN, pl_recv(fd[0], buf, 10, MSG_DONTWAIT));
	EXPECT_EQ(0, pl_close(fd[1]));
	EXPECT_EQ(0, pl_recv(fd[0], buf, 10, 0));
	/* No SIGPIPE, which would kill us. */
	EXPECT_EQ(-EPIPE, pl_send(fd[0], "x", 1, 0));
	EXPECT_EQ(0, pl_close(fd[0]));
}

TEST_F(io, sockets_send_and_receive_without_sigpipe)
{
	run_as_each(use_socket, NULL);
}

static void use_file(void *arg)
{
	int fd = memfd_create("io", MFD_CLOEXEC);
	char buf[16] = "";

	ASSERT_LE(0, fd);
	EXPECT_EQ(5, pl_write(fd, "hello", 5));
	EXPECT_EQ(6, pl_write(fd, " world", 6));
	EXPECT_EQ(0, pl_read(fd, buf, 10));
	EXPECT_EQ(0, lseek(fd, 0, SEEK_SET));
	EXPECT_EQ(4, pl_read(fd, buf, 4));
	EXPECT_EQ(7, pl_read(fd, buf + 4, 10));
	EXPECT_STREQ("hello world", buf);
	EXPECT_EQ(0, pl_close(fd));
}

TEST_F(io, files_are_read_and_written_at_their_position)
{
	run_as_each(use_file, NULL);
}

static void use_bad_fd(void *arg)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	char c = 0;

	EXPECT_EQ(-EBADF, pl_read(-1, &c, 1));
	EXPECT_EQ(-EBADF, pl_write(-1, &c, 1));
	EXPECT_EQ(-EBADF, pl_recv(-1, &c, 1, 0));
	EXPECT_EQ(-EBADF, pl_send(-1, &c, 1, 0));
	EXPECT_EQ(-EBADF, pl_accept(-1, NULL, NULL, 0));
	EXPECT_EQ(-EBADF, pl_connect(-1, (struct sockaddr *)&sin, sizeof(sin)));
	EXPECT_EQ(-EBADF, pl_close(-1));
	EXPECT_EQ(-EINVAL, pl_io_wait(NULL, 0));
}

TEST_F(io, bad_descriptor_is_ebadf)
{
	run_as_each(use_bad_fd, NULL);
}

static void use_own_sqe_without_uring(void *arg)
{
	struct io_uring_sqe sqe;

	pl_io_sqe_init(&sqe);
	io_uring_prep_nop(&sqe);
	EXPECT_EQ(-EOPNOTSUPP, pl_io_wait(&sqe, PL_FOREVER));
}

static void use_own_sqe(void *arg)
{
	struct __kernel_timespec ts = { .tv_nsec = NSEC_PER_MSEC };
	struct io_uring_sqe sqe;
	uint64_t start;

	memset(&sqe, 0xff, sizeof(sqe));
	pl_io_sqe_init(&sqe);
	io_uring_prep_nop(&sqe);
	EXPECT_EQ(0, pl_io_wait(&sqe, PL_FOREVER));

	pl_io_sqe_init(&sqe);
	io_uring_prep_timeout(&sqe, &ts, 0, 0);
	start = pl_now();
	EXPECT_EQ(-ETIME, pl_io_wait(&sqe, PL_FOREVER));
	EXPECT_LE(start + NSEC_PER_MSEC, pl_now());

	ts.tv_sec = 3600;
	start = pl_now();
	EXPECT_EQ(-ETIMEDOUT, pl_io_wait(&sqe, in_ms(1)));
	EXPECT_LE(start + NSEC_PER_MSEC, pl_now());
}

TEST_F(io, own_sqe_is_submitted_and_waited_for)
{
	run_as_each(rt_has_uring() ? use_own_sqe : use_own_sqe_without_uring,
		    NULL);
}

/* ---- TCP ---- */

static bool has_loopback(void)
{
	struct sockaddr_in sin;
	int fd = bind_to_loopback(&sin);

	close(fd);
	return fd >= 0;
}

static void use_tcp(void *arg)
{
	struct sockaddr_in sin, peer, name;
	socklen_t len = sizeof(peer), name_len = sizeof(name);
	int l = listen_on_loopback(&sin), c, s;
	char buf[8] = "";

	c = socket(AF_INET, SOCK_STREAM, 0);
	EXPECT_EQ(0, pl_connect(c, (struct sockaddr *)&sin, sizeof(sin)));
	s = pl_accept(l, (struct sockaddr *)&peer, &len, SOCK_CLOEXEC);
	ASSERT_LE(0, s);
	EXPECT_EQ(FD_CLOEXEC, fcntl(s, F_GETFD));
	EXPECT_EQ(sizeof(peer), len);
	EXPECT_EQ(0, getsockname(c, (struct sockaddr *)&name, &name_len));
	EXPECT_EQ(name.sin_port, peer.sin_port);
	EXPECT_EQ(4, pl_write(c, "ping", 4));
	EXPECT_EQ(4, pl_read(s, buf, 8));
	EXPECT_EQ(4, pl_send(s, "pong", 4, 0));
	EXPECT_EQ(4, pl_recv(c, buf, 8, 0));
	EXPECT_STREQ("pong", buf);
	EXPECT_EQ(0, pl_close(c));
	EXPECT_EQ(0, pl_read(s, buf, 8));
	EXPECT_EQ(0, pl_close(s));
	EXPECT_EQ(0, pl_close(l));
}

TEST_F(io, connect_meets_accept)
{
	if (!has_loopback())
		SKIP(return, "no loopback interface");
	run_as_each(use_tcp, NULL);
}

/* A port that is kept, or others might listen there by now. */
static void connect_to_nobody(void *arg)
{
	struct sockaddr_in sin;
	int kept = bind_to_loopback(&sin), c = socket(AF_INET, SOCK_STREAM, 0);

	EXPECT_EQ(-ECONNREFUSED, pl_connect(c, (struct sockaddr *)&sin,
					    sizeof(sin)));
	EXPECT_EQ(0, pl_close(c));
	EXPECT_EQ(0, pl_close(kept));
}

TEST_F(io, connect_without_a_listener_is_refused)
{
	if (!has_loopback())
		SKIP(return, "no loopback interface");
	run_as_each(connect_to_nobody, NULL);
}

/* ---- how a wait ends ---- */

static void read_by_deadline(void *arg)
{
	uint64_t deadline = in_ms(2);
	char buf[8] = "";
	int fd[2];

	make_pair(fd);
	EXPECT_EQ(-ETIMEDOUT, pl_read_until(fd[0], buf, 8, deadline));
	EXPECT_LE(deadline, pl_now());
	EXPECT_EQ(-ETIMEDOUT, pl_read_until(fd[0], buf, 8, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_recv_until(fd[0], buf, 8, 0, in_ms(1)));
	/* The readers that gave up took nothing. */
	EXPECT_EQ(4, pl_write(fd[1], "late", 4));
	EXPECT_EQ(4, pl_read_until(fd[0], buf, 8, in_ms(STUCK_NS)));
	EXPECT_STREQ("late", buf);
	close_pair(fd);
}

TEST_F(io, deadline_ends_a_read_and_loses_nothing)
{
	run_as_each(read_by_deadline, NULL);
}

/* Fills what the socket takes: how much. */
static size_t fill(int fd)
{
	static const char page[4096];
	size_t total = 0;
	ssize_t n;

	while ((n = send(fd, page, sizeof(page), MSG_DONTWAIT)) > 0)
		total += n;
	return total;
}

static atomic_int nr_begun;

/* ---- both ways ---- */

static void write_to_full(void *arg)
{
	EXPECT_EQ(1, pl_write(*(int *)arg, "w", 1));
	atomic_fetch_add(&nr_begun, 1);
}

static void read_from_full(void *arg)
{
	char c = 0;

	EXPECT_EQ(1, pl_read(*(int *)arg, &c, 1));
	EXPECT_EQ('r', c);
	atomic_fetch_add(&nr_begun, 1);
}

static bool is_in_flight(uint32_t nr)
{
	return UNTIL(rt_stat().io_in_flight == nr);
}

/* A later waiter takes nothing from an earlier one. */
TEST_F(io, reader_and_writer_wait_on_the_same_descriptor)
{
	void (*const first[])(void *) = { read_from_full, write_to_full };
	char page[4096];
	pl_task_t t[2];
	int i, fd[2];

	start_with(1, 1);
	for (i = 0; i < 4; i++) {
		nr_begun = 0;
		make_pair(fd);
		EXPECT_LT(0, fill(fd[0]));
		t[0] = spawn(first[i % 2], &fd[0]);
		ASSERT_TRUE(is_in_flight(1));
		t[1] = spawn(first[!(i % 2)], &fd[0]);
		ASSERT_TRUE(is_in_flight(2));
		ASSERT_TRUE(UNTIL(rt_stat().workers_parked == 1));
		if (i < 2) {
			EXPECT_EQ(1, write(fd[1], "r", 1));
			ASSERT_TRUE(UNTIL(nr_begun == 1));
		}
		while (recv(fd[1], page, sizeof(page), MSG_DONTWAIT) > 0)
			;
		if (i >= 2) {
			ASSERT_TRUE(UNTIL(nr_begun == 1));
			EXPECT_EQ(1, write(fd[1], "r", 1));
		}
		join(t[0]);
		join(t[1]);
		close_pair(fd);
	}
}

/* ---- which worker a completion wakes ---- */

#define NR_ANSWERS	2000

static void answer(void *arg)
{
	int *fd = arg, i;
	char c = 0;

	for (i = 0; i < NR_ANSWERS; i++) {
		EXPECT_EQ(1, pl_read(fd[0], &c, 1));
		EXPECT_EQ(1, pl_write(fd[0], &c, 1));
	}
}

/*
 * Its worker runs it: another would be woken for nothing, each time.  Where
 * there is no io_uring a request may be over before its task waits for it.
 */
TEST_TIMED(completion_for_one_task_wakes_no_other_worker,
	   "counts what the scheduler did meanwhile")
TEST_F(io, completion_for_one_task_wakes_no_other_worker)
{
	pl_task_t t;
	int fd[2], i;
	char c = 0;

	make_pair(fd);
	start_with(2, 0);
	t = spawn(answer, fd);
	for (i = 0; i < NR_ANSWERS; i++) {
		ASSERT_EQ(1, write(fd[1], &c, 1));
		ASSERT_EQ(1, read(fd[1], &c, 1));
	}
	join(t);
	if (rt_stat().io == PL_IO_URING)
		EXPECT_LT(rt_stat().wakes, NR_ANSWERS / 4);
	close_pair(fd);
}

TEST_HARNESS_MAIN
