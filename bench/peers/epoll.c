// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A TCP echo server as C has it without tasks: threads, two by default, each
 * with an epoll of its own, connections given to them in turn
 */
#include <getopt.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../lib/listen.h"

#define MAX_THREADS	64
#define NR_EVENTS	64

/* What does not go at once waits: no connection delays the others. */
struct conn {
	int fd;
	uint32_t begin, end;		/* of buf: received and not yet sent */
	char buf[4096];
};

static unsigned int nr_threads = 2;
static uint64_t compute_ns;	/* for each piece that is received */

static void conn_close(struct conn *c)
{
	close(c->fd);
	free(c);
}

static void want(int epfd, struct conn *c, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = c };

	if (epoll_ctl(epfd, EPOLL_CTL_MOD, c->fd, &ev))
		die("epoll_ctl: %s", strerror(errno));
}

/* False: the connection is no more. */
static int send_rest(int epfd, struct conn *c)
{
	ssize_t n = send(c->fd, c->buf + c->begin, c->end - c->begin,
			 MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN) {
		conn_close(c);
		return 0;
	}
	c->begin += n > 0 ? (uint32_t)n : 0;
	if (c->begin < c->end)
		want(epfd, c, EPOLLOUT);
	return 1;
}

static void receive(int epfd, struct conn *c)
{
	ssize_t n = recv(c->fd, c->buf, sizeof(c->buf), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		conn_close(c);
		return;
	}
	compute(compute_ns);
	c->begin = 0;
	c->end = (uint32_t)n;
	send_rest(epfd, c);
}

static void *serve(void *arg)
{
	struct epoll_event ev[NR_EVENTS];
	const int epfd = *(int *)arg;
	struct conn *c;
	int i, n;

	for (;;) {
		n = epoll_wait(epfd, ev, NR_EVENTS, -1);
		for (i = 0; i < n; i++) {
			c = ev[i].data.ptr;
			if (c->begin == c->end)
				receive(epfd, c);
			else if (send_rest(epfd, c) && c->begin == c->end)
				want(epfd, c, EPOLLIN);
		}
	}
	return NULL;
}

static void begin(int epfd, int fd)
{
	struct conn *c = zalloc(1, sizeof(*c));
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };

	c->fd = fd;
	no_delay(fd);
	if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev))
		die("epoll_ctl: %s", strerror(errno));
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "compute", required_argument, NULL, 'c' },
		{ "threads", required_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'c')
			compute_ns = whole(optarg, 1000000) * 1000ULL;
		else if (opt == 't')
			nr_threads = whole(optarg, MAX_THREADS);
		else
			die("usage: epoll [--threads N] [--compute US]");
	}
}

int main(int argc, char **argv)
{
	int epfd[MAX_THREADS], listener, fd;
	pthread_t thread;
	unsigned int i;

	parse(argc, argv);
	raise_limit();
	listener = listen_anywhere();
	for (i = 0; i < nr_threads; i++) {
		epfd[i] = epoll_create1(EPOLL_CLOEXEC);
		if (epfd[i] < 0 ||
		    pthread_create(&thread, NULL, serve, &epfd[i]))
			die("cannot start a thread");
	}
	for (i = 0;; i = (i + 1) % nr_threads) {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			die("accept: %s", strerror(errno));
		begin(epfd[i], fd);
	}
}
