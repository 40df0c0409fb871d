/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I/O: each call does what the system call of its name does, and parks no more
 * than its caller; from tasks, tasks on the worker's stack and threads.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include <fcntl.h>
#include <liburing.h>
#include <netinet/in.h>
#include <sys/socket.h>

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

/* Runs it as each kind of caller that there is. */
static void run_as_each(void (*fn)(void *arg), void *arg)
{
	run_in_task(fn, arg);
	run_as(PL_STACK_SMALL, fn, arg);
	run_as(PL_STACK_WORKER, fn, arg);
	fn(arg);
}

static void make_pair(int fd[2])
{
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
}

static void close_pair(int fd[2])
{
	EXPECT_EQ(0, pl_close(fd[0]));
	EXPECT_EQ(0, pl_close(fd[1]));
}

/* ---- what the calls do ---- */

static void use_pipe(void *arg)
{
	char buf[16] = "";
	int fd[2];

	(void)arg;
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

	(void)arg;
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

	(void)arg;
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

	(void)arg;
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

	(void)arg;
	pl_io_sqe_init(&sqe);
	io_uring_prep_nop(&sqe);
	EXPECT_EQ(-EOPNOTSUPP, pl_io_wait(&sqe, PL_FOREVER));
}

static void use_own_sqe(void *arg)
{
	struct __kernel_timespec ts = { .tv_nsec = NSEC_PER_MSEC };
	struct io_uring_sqe sqe;
	uint64_t start;

	(void)arg;
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

static int bind_to_loopback(struct sockaddr_in *sin)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*sin);

	ASSERT_LE(0, fd);
	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)sin, sizeof(*sin)));
	ASSERT_EQ(0, getsockname(fd, (struct sockaddr *)sin, &len));
	return fd;
}

static int listen_on_loopback(struct sockaddr_in *sin)
{
	int fd = bind_to_loopback(sin);

	ASSERT_EQ(0, listen(fd, 512));
	return fd;
}

static bool has_loopback(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	int ret, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return false;
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ret = bind(fd, (struct sockaddr *)&sin, sizeof(sin));
	close(fd);
	return !ret;
}

static void use_tcp(void *arg)
{
	struct sockaddr_in sin, peer, name;
	socklen_t len = sizeof(peer), name_len = sizeof(name);
	int l = listen_on_loopback(&sin), c, s;
	char buf[8] = "";

	(void)arg;
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

	(void)arg;
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

	(void)arg;
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

TEST_F(io, late_wake_of_another_wait_leaves_the_deadline)
{
	pl_task_t t = spawn(read_by_deadline, NULL);
	uint64_t end = in_ms(4);

	while (pl_now() < end)
		wake_late(t);
	join(t);
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

static void write_by_deadline(void *arg)
{
	char buf[8] = "full";
	int fd[2];

	(void)arg;
	make_pair(fd);
	EXPECT_LT(0, fill(fd[1]));
	EXPECT_EQ(-ETIMEDOUT, pl_write_until(fd[1], buf, 4, in_ms(1)));
	EXPECT_EQ(-ETIMEDOUT, pl_send_until(fd[1], buf, 4, 0, in_ms(1)));
	EXPECT_EQ(-EAGAIN, pl_send(fd[1], buf, 4, MSG_DONTWAIT));
	close_pair(fd);
}

TEST_F(io, deadline_ends_a_write)
{
	run_as_each(write_by_deadline, NULL);
}

static void accept_by_deadline(void *arg)
{
	struct sockaddr_in sin;
	int fd = listen_on_loopback(&sin);

	(void)arg;
	EXPECT_EQ(-ETIMEDOUT, pl_accept_until(fd, NULL, NULL, 0, in_ms(1)));
	EXPECT_EQ(0, fcntl(fd, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-ETIMEDOUT, pl_accept_until(fd, NULL, NULL, 0, in_ms(1)));
	EXPECT_EQ(0, pl_close(fd));
}

TEST_F(io, deadline_ends_an_accept)
{
	if (!has_loopback())
		SKIP(return, "no loopback interface");
	run_as_each(accept_by_deadline, NULL);
}

static atomic_int nr_begun;

static void read_until_ended(void *arg)
{
	int *fd = arg;
	char buf[8] = "";

	atomic_fetch_add(&nr_begun, 1);
	EXPECT_EQ(-EINTR, pl_read(fd[0], buf, 8));
	atomic_fetch_add(&nr_begun, 1);
	EXPECT_EQ(4, pl_read(fd[0], buf, 8));
	EXPECT_STREQ("data", buf);
	atomic_fetch_add(&nr_begun, 1);
	EXPECT_EQ(-ECANCELED, pl_read(fd[0], buf, 8));
	EXPECT_EQ(-ECANCELED, pl_write(fd[0], buf, 1));
	EXPECT_EQ(-ECANCELED, pl_recv(fd[0], buf, 1, 0));
	EXPECT_EQ(-ECANCELED, pl_send(fd[0], buf, 1, 0));
	EXPECT_EQ(-ECANCELED, pl_accept(fd[0], NULL, NULL, 0));
	/* No point of cancellation. */
	EXPECT_EQ(0, pl_close(fd[0]));
}

TEST_F(io, io_is_interrupted_and_cancelled)
{
	uint32_t cls;
	pl_task_t t;
	int fd[2];

	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		make_pair(fd);
		nr_begun = 0;
		t = spawn_as(cls, read_until_ended, fd);
		ASSERT_TRUE(UNTIL(nr_begun == 1));
		EXPECT_EQ(0, pl_interrupt(t));
		ASSERT_TRUE(UNTIL(nr_begun == 2));
		EXPECT_EQ(4, write(fd[1], "data", 4));
		ASSERT_TRUE(UNTIL(nr_begun == 3));
		EXPECT_EQ(0, pl_cancel(t));
		join(t);
		close(fd[1]);
	}
}

/*
 * Bytes sent while their reader is interrupted at any moment: each arrives
 * once, in order, and each interrupt is told once.
 */
struct stream {
	int		fd[2];
	int		nr_bytes;
	atomic_int	nr_read;
	int		nr_interrupts;	/* seen */
};

static void read_stream(void *arg)
{
	struct stream *s = arg;
	unsigned char c;
	ssize_t n;

	while (s->nr_read < s->nr_bytes) {
		n = pl_read(s->fd[0], &c, 1);
		if (n == -EINTR) {
			s->nr_interrupts++;
			continue;
		}
		ASSERT_EQ(1, n);
		ASSERT_EQ((unsigned char)s->nr_read, c);
		atomic_fetch_add(&s->nr_read, 1);
	}
}

static void interrupt_stream(uint32_t cls)
{
	struct stream s = { .nr_bytes = scaled(2000) };
	uint64_t seed = 5555;
	unsigned char c;
	pl_task_t t;
	int i;

	make_pair(s.fd);
	t = spawn_as(cls, read_stream, &s);
	for (i = 0; i < s.nr_bytes; i++) {
		c = (unsigned char)i;
		if (i % 2)
			pl_interrupt(t);
		spin_ns(next_random(&seed) % 20000);
		ASSERT_EQ(1, write(s.fd[1], &c, 1));
		if (i % 3)
			spin_ns(next_random(&seed) % 20000);
		if (i % 4 == 2)
			pl_interrupt(t);
	}
	join(t);
	TH_LOG("%d interrupts in %d bytes", s.nr_interrupts, s.nr_bytes);
	EXPECT_LE(1, s.nr_interrupts);
	close_pair(s.fd);
}

TEST_F(io, interrupts_lose_no_data)
{
	interrupt_stream(PL_STACK_NORMAL);
}

TEST_F(io, interrupts_lose_no_data_on_the_workers_stack)
{
	interrupt_stream(PL_STACK_WORKER);
}

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

/* ---- non-blocking descriptors ---- */

static void write_later(void *arg)
{
	EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	EXPECT_EQ(4, pl_write(*(int *)arg, "data", 4));
}

static void read_nonblocking(void *arg)
{
	char buf[8] = "";
	pl_task_t t;
	int fd[2];

	(void)arg;
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd));
	t = spawn(write_later, &fd[1]);
	EXPECT_EQ(4, pl_read(fd[0], buf, 8));
	EXPECT_STREQ("data", buf);
	join(t);
	EXPECT_EQ(-ETIMEDOUT, pl_recv_until(fd[0], buf, 8, 0, in_ms(1)));
	EXPECT_LT(0, fill(fd[1]));
	EXPECT_EQ(-ETIMEDOUT, pl_write_until(fd[1], buf, 8, in_ms(1)));
	close_pair(fd);
}

TEST_F(io, non_blocking_descriptor_is_waited_for)
{
	start_with(2, 0);
	run_as_each(read_nonblocking, NULL);
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
