/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An echo server under load; its tasks are cancelled and interrupted at random:
 * no byte is lost, none comes twice, and all is given back.
 *
 *	lib_echo [--seconds N] [--seed S] [--workers W]
 *
 * A client is an ordinary thread with one connection after the other.  It knows
 * each byte that has to come.  A cancelled task says to the client that no more
 * comes, and leaves its connection to one that receives what still does.  Then
 * the client has sent what the server received, and received what that sent,
 * to the byte: also what was on its way while the call was given up.
 */
#include "kselftest_harness.h"

#include "manual_run.h"
#include "rt.h"
#include "io.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>

#define NR_CLIENTS	32
#define NR_BATCHES_MAX	16	/* of slots, for as many as are ever alive */

/* One client and its connection.  C: the client.  S: its server task. */
struct client {
	struct in_addr	addr;		/* its own, by which it is known */
	uint64_t	seed;		/* C */
	int		fd;		/* C */
	uint64_t	stream;		/* C: of which the bytes are */
	uint64_t	sent, got;	/* C */
	bool		has_ended;	/* C: nothing more comes */
	pthread_t	thread;
	atomic_bool	is_open;	/* C sets it: now it is S's turn */

	int		served_fd;	/* S */
	uint64_t	received, echoed; /* S */
	bool		is_cancelled;	/* S */
	_Atomic pl_task_t server;	/* S: to be cancelled; or 0 */
	struct pl_latch	over;		/* S: has closed */
} __attribute__((aligned(64)));

static struct client clients[NR_CLIENTS];
static struct sockaddr_in at;
static atomic_int is_over;
static atomic_long nr_conns, nr_requests, nr_cancelled, nr_interrupted;

static uint32_t pick(uint64_t *seed, uint32_t nr)
{
	return (uint32_t)(next_random(seed) >> 20) % nr;
}

/* Byte @i of what client @c sends on this connection. */
static unsigned char byte_of(const struct client *c, uint64_t i)
{
	return (unsigned char)((c->stream ^ i) * 0x9e3779b97f4a7c15ULL >> 56);
}

/* ---- the server: one task a connection ---- */

/* By several calls, each of which is given up in its own way. */
static ssize_t receive_once(struct client *c, char *buf, size_t n)
{
	switch ((c - clients) % 3) {
	case 0:
		return pl_recv(c->served_fd, buf, n, 0);
	case 1:
		return pl_read(c->served_fd, buf, n);
	}
	return pl_recv_until(c->served_fd, buf, n, 0,
			     pl_now() + 300 * NSEC_PER_USEC);
}

static ssize_t echo_once(struct client *c, const char *buf, size_t n)
{
	switch ((c - clients) % 3) {
	case 0:
		return pl_send(c->served_fd, buf, n, 0);
	case 1:
		return pl_write(c->served_fd, buf, n);
	}
	return pl_send_until(c->served_fd, buf, n, 0,
			     pl_now() + 300 * NSEC_PER_USEC);
}

static bool is_to_be_repeated(ssize_t ret)
{
	return ret == -EINTR || ret == -ETIMEDOUT;
}

/* 0: no more, or it is cancelled. */
static size_t receive(struct client *c, char *buf, size_t size)
{
	ssize_t n;

	do {
		n = receive_once(c, buf, size);
	} while (is_to_be_repeated(n));
	if (n >= 0) {
		c->received += (size_t)n;
		return (size_t)n;
	}
	EXPECT_EQ(-ECANCELED, n);
	c->is_cancelled = true;
	return 0;
}

static bool echo(struct client *c, const char *buf, size_t size)
{
	ssize_t n;

	while (size) {
		n = echo_once(c, buf, size);
		if (is_to_be_repeated(n))
			continue;
		if (n < 0) {
			EXPECT_EQ(-ECANCELED, n);
			c->is_cancelled = true;
			return false;
		}
		c->echoed += (size_t)n;
		buf += n;
		size -= (size_t)n;
	}
	return true;
}

/* What the client still sends is received, or else it would not arrive. */
static void take_rest(void *arg)
{
	struct client *c = arg;
	char buf[4096];
	ssize_t n;

	while ((n = pl_recv(c->served_fd, buf, sizeof(buf), 0)) > 0)
		c->received += (size_t)n;
	EXPECT_EQ(0, n);
	EXPECT_EQ(0, pl_close(c->served_fd));
	pl_latch_done(&c->over);
}

static void serve(void *arg)
{
	struct client *c = arg;
	char buf[4096];
	size_t n;

	atomic_store(&c->server, pl_self());
	do {
		n = receive(c, buf, sizeof(buf));
	} while (n && echo(c, buf, n));
	atomic_store(&c->server, 0);

	EXPECT_EQ(0, shutdown(c->served_fd, SHUT_WR));
	spawn(take_rest, c);
}

static struct client *client_at(const struct sockaddr_in *addr)
{
	int i;

	for (i = 0; i < NR_CLIENTS; i++)
		if (clients[i].addr.s_addr == addr->sin_addr.s_addr)
			return &clients[i];
	return NULL;
}

static void accept_all(void *arg)
{
	struct sockaddr_in addr;
	const int small = 4096;
	struct client *c;
	socklen_t len;
	int fd;

	for (;;) {
		len = sizeof(addr);
		fd = pl_accept(*(int *)arg, (struct sockaddr *)&addr, &len,
			       SOCK_CLOEXEC);
		if (fd == -EINTR)
			continue;
		if (fd < 0)
			break;
		c = client_at(&addr);
		ASSERT_NE(NULL, c);
		ASSERT_TRUE(atomic_exchange(&c->is_open, false));
		c->received = c->echoed = 0;
		c->is_cancelled = false;
		/* So that some wait to send, and are cancelled there. */
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
		c->served_fd = fd;
		spawn(serve, c);
	}
	EXPECT_EQ(-ECANCELED, fd);
}

/* ---- the clients ---- */

/* Each from an address of its own: ports rest for a minute after use. */
static void conn_open(struct client *c)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = c->addr };

	c->stream = next_random(&c->seed);
	c->sent = c->got = 0;
	c->has_ended = false;
	ASSERT_EQ(0, pl_latch_init(&c->over, 1));
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ASSERT_LE(0, c->fd);
	ASSERT_EQ(0, bind(c->fd, (struct sockaddr *)&own, sizeof(own)));
	atomic_store(&c->is_open, true);
	ASSERT_EQ(0, connect(c->fd, (struct sockaddr *)&at, sizeof(at)));
	ASSERT_EQ(0, fcntl(c->fd, F_SETFL, O_NONBLOCK));
}

static void send_some(struct client *c, uint64_t until)
{
	unsigned char buf[2048];
	size_t nr = 0;
	ssize_t n;

	while (nr < sizeof(buf) && c->sent + nr < until) {
		buf[nr] = byte_of(c, c->sent + nr);
		nr++;
	}
	n = send(c->fd, buf, nr, MSG_NOSIGNAL);
	if (n < 0)
		ASSERT_EQ(EAGAIN, errno);
	else
		c->sent += (size_t)n;
}

static void receive_some(struct client *c)
{
	unsigned char buf[2048];
	ssize_t n = recv(c->fd, buf, sizeof(buf), 0), i;

	if (n < 0) {
		ASSERT_EQ(EAGAIN, errno);
		return;
	}
	for (i = 0; i < n; i++, c->got++)
		ASSERT_EQ(byte_of(c, c->got), buf[i]);
	c->has_ended = !n;
}

/* What of @events there is; the client has no other way to wait. */
static short await(struct client *c, short events)
{
	struct pollfd p = { .fd = c->fd, .events = events };

	ASSERT_EQ(1, poll(&p, 1, (int)(stuck_ns() / NSEC_PER_MSEC))) {
		TH_LOG("client %d: sent %llu, got %llu", (int)(c - clients),
		       (unsigned long long)c->sent, (unsigned long long)c->got);
	}
	return p.revents;
}

/* Until either all of it has come back, or nothing more comes. */
static void exchange(struct client *c, uint64_t until)
{
	short events;

	while (!c->has_ended && c->got < until) {
		events = await(c, POLLIN | (c->sent < until ? POLLOUT : 0));
		if (events & POLLOUT)
			send_some(c, until);
		if (events & ~POLLOUT)
			receive_some(c);
	}
}

/* To its end, from whichever side that comes; then both have the same books. */
static void conn_close(struct client *c)
{
	ASSERT_EQ(0, shutdown(c->fd, SHUT_WR));
	while (!c->has_ended) {
		await(c, POLLIN);
		receive_some(c);
	}
	close(c->fd);
	ASSERT_EQ(0, pl_latch_wait_until(&c->over, pl_now() + stuck_ns()));
	EXPECT_EQ(c->sent, c->received);
	EXPECT_EQ(c->got, c->echoed);
	if (!c->is_cancelled)
		EXPECT_EQ(c->sent, c->got);
	atomic_fetch_add(&nr_conns, 1);
}

static void *client_main(void *arg)
{
	struct client *c = arg;
	uint32_t nr;

	while (!is_over) {
		conn_open(c);
		for (nr = 1 + pick(&c->seed, 100);
		     nr && !c->has_ended && !is_over; nr--) {
			exchange(c, c->sent + 1 +
				    pick(&c->seed, pick(&c->seed, 8) ? 256 :
								       32768));
			atomic_fetch_add(&nr_requests, 1);
		}
		conn_close(c);
	}
	return NULL;
}

/* ---- the whole ---- */

static void disturb(uint64_t *seed, pl_task_t acceptor)
{
	struct timespec pause = { .tv_nsec = pick(seed, 400000) };
	uint32_t i = pick(seed, NR_CLIENTS + 1);
	pl_task_t t = i < NR_CLIENTS ? atomic_load(&clients[i].server) :
				       acceptor;

	nanosleep(&pause, NULL);
	if (!t)
		return;
	if (t != acceptor && pick(seed, 2))
		atomic_fetch_add(&nr_cancelled, !pl_cancel(t));
	else
		atomic_fetch_add(&nr_interrupted, !pl_interrupt(t));
}

static void clients_init(uint64_t *seed)
{
	uint32_t i;

	for (i = 0; i < NR_CLIENTS; i++) {
		clients[i].seed = next_random(seed);
		clients[i].addr.s_addr = htonl(0x7f000101U + 256 * i);
	}
}

static void clients_start(void)
{
	int i;

	for (i = 0; i < NR_CLIENTS; i++)
		ASSERT_EQ(0, pthread_create(&clients[i].thread, NULL,
					    client_main, &clients[i]));
}

static uint64_t told_ns = 100 * NSEC_PER_MSEC, told_seed;
static uint64_t told_workers;	/* 0: as many as the environment says */

/* Until then, or so many were cancelled. */
static void soak(uint64_t end_ns, long nr, uint64_t seed)
{
	int nr_fds = nr_entries("/proc/self/fd"), listener, i;
	pl_task_t acceptor;

	TH_LOG("--seed %llu", (unsigned long long)seed);
	if (told_workers)
		start_with((uint32_t)told_workers, 0);
	clients_init(&seed);
	listener = listen_on_loopback(&at);
	ASSERT_LE(0, listener);
	acceptor = spawn(accept_all, &listener);
	clients_start();
	while (pl_now() < end_ns && nr_cancelled < nr)
		disturb(&seed, acceptor);
	is_over = 1;
	for (i = 0; i < NR_CLIENTS; i++)
		pthread_join(clients[i].thread, NULL);
	EXPECT_EQ(0, pl_cancel(acceptor));
	join(acceptor);
	close(listener);

	EXPECT_LE(pl__slab_nr_slots(&pl__rt.tasks),
		  NR_BATCHES_MAX * pl__rt.tasks.nr_in_batch);
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(nr_fds, nr_entries("/proc/self/fd"));
	TH_LOG("%ld connections, %ld requests, %ld cancelled, %ld interrupted",
	       (long)nr_conns, (long)nr_requests, (long)nr_cancelled,
	       (long)nr_interrupted);
}

static uint64_t some_seed(void)
{
	return told_seed ? told_seed : pl_now() | 1;
}

RT_FIXTURE(echo)

TEST_REAL(echo, "timers of TCP have the real time")
TEST_F(echo, cancelled_tasks_lose_no_data)
{
	soak(PL_FOREVER, scaled(100), some_seed());
}

TEST_F(echo, echo_by_epoll_loses_no_data)
{
	setenv("PARKLOT_IO", "poll", 1);
	soak(PL_FOREVER, scaled(50), some_seed());
}

TEST_F_TIMEOUT(echo, echo_under_load_loses_no_data, 24 * 3600)
{
	soak(pl_now() + told_ns, LONG_MAX, some_seed());
}

int main(int argc, char **argv)
{
	static const struct setting settings[] = {
		{ "--seconds", "LIB_ECHO_SECONDS", &told_ns, NSEC_PER_SEC },
		{ "--seed", "LIB_ECHO_SEED", &told_seed, 1 },
		{ "--workers", "LIB_ECHO_WORKERS", &told_workers, 1 },
	};

	return manual_run_main(argc, argv,
			       "echo_under_load_loses_no_data",
			       settings, ARRAY_SIZE(settings));
}
