/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peers that are slow, or go away at any moment: an echo server of tasks serves
 * the others all the while, and keeps nothing of those.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "io.h"

#include <fcntl.h>
#include <sys/resource.h>

static int nr_fds_at_first;

FIXTURE(peers) { char unused; };
RT_IO_VARIANTS(peers)

/* As many descriptors as may be. */
FIXTURE_SETUP(peers)
{
	struct rlimit limit;

	rt_begin_io(_metadata, variant->io, variant->wait);
	signal(SIGPIPE, SIG_DFL);
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	nr_fds_at_first = nr_entries("/proc/self/fd");
}

FIXTURE_TEARDOWN(peers)
{
	rt_end();
	EXPECT_EQ(nr_fds_at_first, nr_entries("/proc/self/fd"));
}

/* ---- the server ---- */

static struct sockaddr_in address;
static int listener;
static pl_task_t acceptor;
static atomic_int nr_accepted, nr_served, nr_lost;

static bool send_all(int fd, const char *buf, size_t n)
{
	ssize_t ret;

	for (; n; buf += ret, n -= (size_t)ret) {
		ret = pl_send(fd, buf, n, 0);
		if (ret <= 0)
			return false;
	}
	return true;
}

static void serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[4096];
	ssize_t n;

	do {
		n = pl_recv(fd, buf, sizeof(buf), 0);
	} while (n > 0 && send_all(fd, buf, (size_t)n));
	/* Whatever became of the peer: one of these. */
	EXPECT_TRUE(n >= 0 || n == -ECONNRESET || n == -ECANCELED ||
		    n == -ETIMEDOUT) {
		TH_LOG("recv: %zd", n);
	}
	EXPECT_EQ(0, pl_close(fd));
	if (n)
		nr_lost++;
	nr_served++;
}

static void accept_all(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	int fd;

	opts.stack = PL_STACK_SMALL;
	while ((fd = pl_accept(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		nr_accepted++;
		EXPECT_EQ(0, pl_spawn(NULL, serve, (void *)(intptr_t)fd,
				      &opts));
	}
	EXPECT_EQ(-EBADF, fd);
}

/*
 * A high number: once closed it is not given again, so that a task that comes
 * too late to accept finds it closed, not another file.
 */
static int move_to_top(int fd)
{
	struct rlimit limit;
	int top;

	EXPECT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	top = limit.rlim_cur < 65536 ? (int)limit.rlim_cur - 1 : 65535;
	top = fcntl(fd, F_DUPFD_CLOEXEC, top);
	EXPECT_LE(0, top);
	close(fd);
	return top;
}

/* False: there is no loopback interface. */
static bool start_server(void)
{
	listener = listen_on_loopback(&address);
	if (listener < 0)
		return false;
	listener = move_to_top(listener);
	EXPECT_EQ(0, listen(listener, SOMAXCONN));
	acceptor = spawn(accept_all, NULL);
	return true;
}

static void stop_server(void)
{
	EXPECT_EQ(0, pl_close(listener));
	join(acceptor);
	EXPECT_TRUE(UNTIL_NO_MORE(nr_served == nr_accepted, nr_served));
}

static int connect_to_server(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	EXPECT_LE(0, fd);
	EXPECT_EQ(0, pl_connect(fd, (struct sockaddr *)&address,
				sizeof(address)));
	return fd;
}

/* The peer is reset by it, and no port stays in use. */
static void reset(int fd)
{
	struct linger now = { .l_onoff = 1 };

	EXPECT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	EXPECT_EQ(0, pl_close(fd));
}

static void ask_once(int fd)
{
	char buf[8] = "";

	EXPECT_EQ(4, pl_send(fd, "ping", 4, 0));
	EXPECT_EQ(4, pl_recv(fd, buf, 4, MSG_WAITALL));
	EXPECT_STREQ("ping", buf);
}

/* ---- gone at any step ---- */

#define NR_STEPS	5
#define MUCH		(2 << 20)

static char much[MUCH];

/* How far it goes before it resets the connection. */
static void go_away(void *arg)
{
	int step = *(int *)arg, fd = connect_to_server();
	char buf[1000];

	switch (step) {
	case 4:
		EXPECT_EQ(2, pl_send(fd, much, 2, 0));
		EXPECT_LT(0, pl_recv(fd, buf, 1, 0));
		break;
	case 3:
		EXPECT_LT(0, pl_send(fd, much, MUCH, 0));
		EXPECT_LT(0, pl_recv(fd, buf, sizeof(buf), 0));
		break;
	case 2:
		EXPECT_LT(0, pl_send(fd, much, MUCH, 0));
		break;
	case 1:
		EXPECT_EQ(2, pl_send(fd, much, 2, 0));
		break;
	}
	reset(fd);
}

TEST_F(peers, resets_at_each_step_lose_nothing_of_others)
{
	static int step[NR_STEPS] = { 0, 1, 2, 3, 4 };
	pl_task_t t[NR_STEPS];
	int i, k, fd, nr = scaled(40);

	if (!start_server())
		SKIP(return, "no loopback interface");
	fd = connect_to_server();
	for (i = 0; i < nr; i++) {
		for (k = 0; k < NR_STEPS; k++)
			t[k] = spawn(go_away, &step[k]);
		ask_once(fd);
		for (k = 0; k < NR_STEPS; k++)
			join(t[k]);
	}
	EXPECT_EQ(0, pl_close(fd));
	/*
	 * Connections reset before accept are accepted all the same, and before
	 * this one, except those gone before the kernel knew of them.
	 */
	fd = connect_to_server();
	ask_once(fd);
	EXPECT_EQ(0, pl_close(fd));
	stop_server();
	EXPECT_GE(NR_STEPS * nr + 2, nr_accepted);
	EXPECT_LE(nr, nr_lost);
	EXPECT_EQ(0, pl_runtime_stop());
}

/* ---- slow, and half gone ---- */

static void send_much(void *arg)
{
	EXPECT_TRUE(send_all(*(int *)arg, much, MUCH));
	EXPECT_EQ(0, shutdown(*(int *)arg, SHUT_WR));
}

/* It reads only once all others were served; and then gets all of it. */
TEST_F(peers, slow_reader_delays_no_other_and_gets_all_data)
{
	int fd, other, i, small = 64 * 1024;
	size_t total = 0;
	char buf[4096];
	pl_task_t t;
	ssize_t n;

	if (!start_server())
		SKIP(return, "no loopback interface");
	for (i = 0; i < MUCH; i++)
		much[i] = (char)(i * 7 >> 3);
	fd = connect_to_server();
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	t = spawn(send_much, &fd);
	for (i = 0; i < scaled(50); i++) {
		other = connect_to_server();
		ask_once(other);
		reset(other);
	}
	while ((n = pl_recv(fd, buf, sizeof(buf), 0)) > 0) {
		ASSERT_EQ(0, memcmp(buf, much + total, (size_t)n));
		total += (size_t)n;
	}
	EXPECT_EQ(0, n);
	EXPECT_EQ(MUCH, total);
	join(t);
	EXPECT_EQ(0, pl_close(fd));
	stop_server();
	EXPECT_EQ(0, pl_runtime_stop());
}

TEST_HARNESS_MAIN
