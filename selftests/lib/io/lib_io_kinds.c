/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I/O on each kind of descriptor: what is particular to it is as the system
 * calls have it; from tasks, tasks on the worker's stack and threads.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "io.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/un.h>

FIXTURE(kinds) { char unused; };
RT_IO_VARIANTS(kinds)

FIXTURE_SETUP(kinds)
{
	rt_begin_io(_metadata, variant->io, variant->wait);
	signal(SIGPIPE, SIG_DFL);
}

FIXTURE_TEARDOWN(kinds)
{
	rt_end();
}

/* ---- datagrams ---- */

static bool make_udp_pair(int fd[2])
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd[0] = socket(AF_INET, SOCK_DGRAM, 0);
	fd[1] = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd[0] < 0 || fd[1] < 0 ||
	    bind(fd[0], (struct sockaddr *)&sin, sizeof(sin)) ||
	    getsockname(fd[0], (struct sockaddr *)&sin, &len))
		return false;
	EXPECT_EQ(0, pl_connect(fd[1], (struct sockaddr *)&sin, len));
	return true;
}

static void use_udp(void *arg)
{
	char buf[8] = "";
	int fd[2];

	ASSERT_TRUE(make_udp_pair(fd));
	EXPECT_EQ(-ETIMEDOUT, pl_recv_until(fd[0], buf, 8, 0, in_ms(1)));
	EXPECT_EQ(4, pl_send(fd[1], "ping", 4, 0));
	EXPECT_EQ(0, pl_send(fd[1], "", 0, 0));
	EXPECT_EQ(3, pl_write(fd[1], "end", 3));
	EXPECT_EQ(4, pl_recv(fd[0], buf, 8, 0));
	EXPECT_EQ(0, pl_recv(fd[0], buf, 8, 0));
	/* What does not fit is cut off. */
	EXPECT_EQ(2, pl_read(fd[0], buf, 2));
	EXPECT_EQ(-EAGAIN, pl_recv(fd[0], buf, 8, MSG_DONTWAIT));
	close_pair(fd);
}

TEST_F(kinds, udp_datagrams_come_one_by_one)
{
	int fd[2];

	if (!make_udp_pair(fd))
		SKIP(return, "no loopback interface");
	close_pair(fd);
	run_as_each(use_udp, NULL);
}

static void use_seqpacket(void *arg)
{
	char buf[8] = "";
	int fd[2];

	make_pair_of(SOCK_SEQPACKET, fd);
	EXPECT_EQ(2, pl_send(fd[1], "ab", 2, 0));
	EXPECT_EQ(1, pl_send(fd[1], "c", 1, 0));
	EXPECT_EQ(2, pl_recv(fd[0], buf, 8, 0));
	EXPECT_EQ(1, pl_recv(fd[0], buf, 8, 0));
	EXPECT_EQ(0, pl_close(fd[1]));
	EXPECT_EQ(0, pl_recv(fd[0], buf, 8, 0));
	EXPECT_EQ(-EPIPE, pl_send(fd[0], "x", 1, 0));
	EXPECT_EQ(0, pl_close(fd[0]));
}

TEST_F(kinds, packets_keep_their_bounds)
{
	run_as_each(use_seqpacket, NULL);
}

/* ---- all or nothing less ---- */

static void send_parts(void *arg)
{
	int i;

	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC / 2));
		EXPECT_EQ(2, pl_send(*(int *)arg, &"abcdef"[2 * i], 2, 0));
	}
}

static void receive_all(void *arg)
{
	char a[3] = "", b[8] = "", buf[8] = "";
	struct iovec iov[] = { { a, 1 }, { NULL, 0 }, { b, 5 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 3 };
	pl_task_t t;
	int fd[2];

	make_pair(fd);
	t = spawn(send_parts, &fd[1]);
	EXPECT_EQ(6, pl_recv(fd[0], buf, 6, MSG_WAITALL));
	EXPECT_STREQ("abcdef", buf);
	join(t);
	t = spawn(send_parts, &fd[1]);
	EXPECT_EQ(6, pl_recvmsg(fd[0], &msg, MSG_WAITALL));
	EXPECT_STREQ("a", a);
	EXPECT_STREQ("bcdef", b);
	join(t);
	/* What came before the deadline, or the end, is told. */
	EXPECT_EQ(2, pl_send(fd[1], "xy", 2, 0));
	EXPECT_EQ(2, pl_recv_until(fd[0], buf, 6, MSG_WAITALL, in_ms(1)));
	EXPECT_EQ(1, pl_send(fd[1], "z", 1, 0));
	EXPECT_EQ(0, pl_close(fd[1]));
	EXPECT_EQ(1, pl_recv(fd[0], buf, 6, MSG_WAITALL));
	EXPECT_EQ(0, pl_recv(fd[0], buf, 6, MSG_WAITALL));
	EXPECT_EQ(0, pl_close(fd[0]));
}

static void look_at_all(void *arg)
{
	char buf[8] = "", b[8] = "";
	struct iovec iov = { b, 6 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fd[2];

	make_pair(fd);
	EXPECT_EQ(-EAGAIN, pl_recv(fd[0], buf, 6, MSG_ERRQUEUE));
	EXPECT_EQ(-EAGAIN, pl_recvmsg(fd[0], &msg, MSG_ERRQUEUE));
	EXPECT_EQ(2, pl_send(fd[1], "xy", 2, 0));
	EXPECT_EQ(2, pl_recv(fd[0], buf, 6, MSG_PEEK | MSG_WAITALL));
	EXPECT_STREQ("xy", buf);
	EXPECT_EQ(2, pl_recvmsg(fd[0], &msg, MSG_PEEK | MSG_WAITALL));
	EXPECT_STREQ("xy", b);
	EXPECT_EQ(0, pl_close(fd[1]));
	EXPECT_EQ(2, pl_recv(fd[0], buf, 6, MSG_WAITALL));
	EXPECT_EQ(0, pl_close(fd[0]));
}

static void read_nothing(void *arg)
{
	struct iovec iov[] = { { NULL, 0 }, { NULL, 0 } };
	int fd[2];

	make_pair(fd);
	EXPECT_EQ(0, pl_read_until(fd[0], NULL, 0, in_ms(500)));
	EXPECT_EQ(0, pl_readv_until(fd[0], iov, 0, in_ms(500)));
	EXPECT_EQ(0, pl_readv_until(fd[0], iov, 2, in_ms(500)));
	EXPECT_EQ(-EFAULT, pl_readv_until(fd[0], NULL, 2, in_ms(500)));
	close_pair(fd);
	make_pair_of(SOCK_DGRAM, fd);
	EXPECT_EQ(1, pl_send(fd[1], "x", 1, 0));
	EXPECT_EQ(0, pl_read_until(fd[0], NULL, 0, in_ms(500)));
	EXPECT_EQ(0, pl_readv_until(fd[0], iov, 2, in_ms(500)));
	EXPECT_EQ(1, pl_recv(fd[0], (char [1]){ 0 }, 1, MSG_DONTWAIT));
	close_pair(fd);
}

TEST_F(kinds, read_of_nothing_takes_nothing_and_does_not_wait)
{
	run_as_each(read_nothing, NULL);
}

TEST_F(kinds, peek_takes_what_there_is_and_errors_are_not_waited_for)
{
	run_as_each(look_at_all, NULL);
}

TEST_F(kinds, waitall_receives_the_whole_length)
{
	run_as_each(receive_all, NULL);
}

/* ---- pipes, and what is read as they are ---- */

#define NR_BYTES	(1 << 20)

static void write_much(void *arg)
{
	static char much[NR_BYTES];
	size_t done = 0;
	ssize_t n;

	while (done < NR_BYTES) {
		n = pl_write(*(int *)arg, much + done, NR_BYTES - done);
		ASSERT_LT(0, n);
		done += (size_t)n;
	}
	EXPECT_EQ(0, pl_close(*(int *)arg));
}

static void read_much(void *arg)
{
	char buf[4096];
	size_t done = 0;
	pl_task_t t;
	ssize_t n;
	int fd[2];

	ASSERT_EQ(0, pipe(fd));
	t = spawn(write_much, &fd[1]);
	while ((n = pl_read(fd[0], buf, sizeof(buf))) > 0)
		done += (size_t)n;
	EXPECT_EQ(0, n);
	EXPECT_EQ(NR_BYTES, done);
	join(t);
	EXPECT_EQ(0, pl_close(fd[0]));
}

TEST_F(kinds, pipe_passes_more_than_it_holds)
{
	run_as_each(read_much, NULL);
}

static void write_to_nobody(void *arg)
{
	int fd[2];

	ASSERT_EQ(0, pipe(fd));
	EXPECT_EQ(0, pl_close(fd[0]));
	/* No SIGPIPE, which would kill us. */
	EXPECT_EQ(-EPIPE, pl_write(fd[1], "x", 1));
	EXPECT_EQ(0, pl_close(fd[1]));
}

TEST_F(kinds, pipe_without_a_reader_is_epipe_without_sigpipe)
{
	run_as_each(write_to_nobody, NULL);
}

static void post(void *arg)
{
	uint64_t two = 2;

	EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	EXPECT_EQ(8, pl_write(*(int *)arg, &two, 8));
}

static void use_counters(void *arg)
{
	struct itimerspec in_1ms = { .it_value.tv_nsec = NSEC_PER_MSEC };
	int event = eventfd(0, 0), timer;
	uint64_t nr = 0;
	pl_task_t t;

	EXPECT_EQ(-ETIMEDOUT, pl_read_until(event, &nr, 8, in_ms(1)));
	t = spawn(post, &event);
	EXPECT_EQ(8, pl_read(event, &nr, 8));
	EXPECT_EQ(2, nr);
	join(t);
	EXPECT_EQ(0, pl_close(event));

	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	ASSERT_LE(0, timer);
	EXPECT_EQ(0, timerfd_settime(timer, 0, &in_1ms, NULL));
	EXPECT_EQ(8, pl_read(timer, &nr, 8));
	EXPECT_EQ(1, nr);
	EXPECT_EQ(0, pl_close(timer));
}

TEST_REAL(eventfd_and_timerfd_are_waited_for,
	  "timers of the kernel have the real time")
TEST_F(kinds, eventfd_and_timerfd_are_waited_for)
{
	run_as_each(use_counters, NULL);
}

/* ---- files ---- */

static void use_file(void *arg)
{
	char name[] = "/tmp/lib_io_kinds.XXXXXX", buf[8] = "";
	int dir, fd = mkstemp(name);

	ASSERT_LE(0, fd);
	unlink(name);
	EXPECT_EQ(5, pl_write(fd, "hello", 5));
	EXPECT_EQ(2, pl_pread(fd, buf, 8, 3));
	EXPECT_EQ(0, pl_pread(fd, buf, 8, 5));
	EXPECT_EQ(1, pl_pwrite(fd, "!", 1, 7));
	/* The gap is zeroes. */
	EXPECT_EQ(3, pl_read(fd, buf, 8));
	EXPECT_EQ(0, buf[0]);
	EXPECT_EQ('!', buf[2]);
	EXPECT_EQ(0, pl_read(fd, buf, 8));
	EXPECT_EQ(0, pl_close(fd));

	dir = open("/", O_RDONLY | O_DIRECTORY);
	EXPECT_EQ(-EISDIR, pl_read(dir, buf, 8));
	EXPECT_EQ(-EBADF, pl_write(dir, buf, 8));
	EXPECT_EQ(0, pl_close(dir));
}

TEST_F(kinds, read_at_the_end_of_a_file_returns_0)
{
	run_as_each(use_file, NULL);
}

/* ---- connecting ---- */

/* Until there is no room for more: how many. */
static int fill_backlog(struct sockaddr_un *sun, socklen_t len, int *fd)
{
	int nr;

	for (nr = 0; nr < 8; nr++) {
		fd[nr] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (connect(fd[nr], (struct sockaddr *)sun, len))
			break;
	}
	EXPECT_EQ(EAGAIN, errno);
	close(fd[nr]);
	return nr;
}

static void accept_later(void *arg)
{
	int fd;

	EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	fd = pl_accept(*(int *)arg, NULL, NULL, 0);
	EXPECT_LE(0, fd);
	EXPECT_EQ(0, pl_close(fd));
}

static void connect_to_full(void *arg)
{
	struct sockaddr_un sun;
	socklen_t len;
	int l = listen_locally(&sun, &len, 0), fd[8], nr, i, c;
	pl_task_t t;

	nr = fill_backlog(&sun, len, fd);
	c = socket(AF_UNIX, SOCK_STREAM, 0);
	EXPECT_EQ(-ETIMEDOUT, pl_connect_until(c, (struct sockaddr *)&sun, len,
					       in_ms(3)));
	t = spawn(accept_later, &l);
	EXPECT_EQ(0, pl_connect(c, (struct sockaddr *)&sun, len));
	join(t);
	EXPECT_EQ(0, fcntl(c, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(0, pl_close(c));
	for (i = 0; i < nr; i++)
		close(fd[i]);
	EXPECT_EQ(0, pl_close(l));
}

TEST_F(kinds, connect_waits_for_room_in_the_backlog)
{
	start_with(2, 0);
	run_as_each(connect_to_full, NULL);
}

/* ---- the mode of a descriptor is its owner's ---- */

static void use_blocking(void *arg)
{
	int fd[2];
	char c;

	make_pair(fd);
	EXPECT_EQ(-ETIMEDOUT, pl_read_until(fd[0], &c, 1, in_ms(1)));
	EXPECT_EQ(1, pl_write(fd[1], "x", 1));
	EXPECT_EQ(1, pl_recv(fd[0], &c, 1, 0));
	EXPECT_EQ(0, fcntl(fd[0], F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(0, fcntl(fd[1], F_GETFL) & O_NONBLOCK);
	close_pair(fd);
	ASSERT_EQ(0, pipe(fd));
	EXPECT_EQ(-ETIMEDOUT, pl_read_until(fd[0], &c, 1, in_ms(1)));
	EXPECT_EQ(1, pl_write(fd[1], "x", 1));
	EXPECT_EQ(0, fcntl(fd[0], F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(0, fcntl(fd[1], F_GETFL) & O_NONBLOCK);
	close_pair(fd);
}

TEST_F(kinds, io_leaves_the_blocking_mode)
{
	run_as_each(use_blocking, NULL);
}

/* ---- what only epoll has to take care of ---- */

FIXTURE(kinds_poll) { char unused; };

FIXTURE_SETUP(kinds_poll)
{
	rt_begin_io(_metadata, "poll", NULL);
}

FIXTURE_TEARDOWN(kinds_poll)
{
	rt_end();
}

static int bind_datagrams(struct sockaddr_un *sun, socklen_t *len)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	*len = sizeof(sa_family_t);
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)sun, *len));
	*len = sizeof(*sun);
	ASSERT_EQ(0, getsockname(fd, (struct sockaddr *)sun, len));
	return fd;
}

#define NR_SENDERS	64

/* From so many senders that not they are full: the last one sends none. */
static int fill_datagrams(struct sockaddr_un *sun, socklen_t len, int *fd)
{
	int i, nr;

	for (i = 0; i < NR_SENDERS; i++) {
		fd[i] = socket(AF_UNIX, SOCK_DGRAM, 0);
		for (nr = 0; sendto(fd[i], "x", 1, MSG_DONTWAIT,
				    (struct sockaddr *)sun, len) == 1;)
			nr++;
		if (!nr)
			break;
	}
	EXPECT_EQ(EAGAIN, errno);
	return i;
}

static void receive_later(void *arg)
{
	char c;

	EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	EXPECT_EQ(1, pl_recv(*(int *)arg, &c, 1, 0));
	EXPECT_EQ('x', c);
}

/*
 * Its own end is writable, though the other takes no more.  (Linux 6.18's
 * io_uring sends an empty datagram then.)
 */
static void send_to_full(void *arg)
{
	struct iovec iov = { (void *)"z", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct sockaddr_un sun;
	int to, fd[NR_SENDERS], nr, i;
	pl_task_t t;
	char c = 0;

	to = bind_datagrams(&sun, &msg.msg_namelen);
	nr = fill_datagrams(&sun, msg.msg_namelen, fd);
	msg.msg_name = &sun;
	EXPECT_EQ(-ETIMEDOUT, pl_sendmsg_until(fd[nr], &msg, 0, in_ms(2)));
	t = spawn(receive_later, &to);
	EXPECT_EQ(1, pl_sendmsg(fd[nr], &msg, 0));
	join(t);
	while (c != 'z')
		ASSERT_EQ(1, pl_recv_until(to, &c, 1, 0, in_ms(10000)));
	for (i = 0; i <= nr; i++)
		EXPECT_EQ(0, pl_close(fd[i]));
	EXPECT_EQ(0, pl_close(to));
}

TEST_F(kinds_poll, datagram_waits_for_room_at_its_peer)
{
	start_with(2, 0);
	run_as_each(send_to_full, NULL);
}

TEST_HARNESS_MAIN
