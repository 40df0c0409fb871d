// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A TCP echo server as C has it without tasks: two threads, each with an
 * epoll of its own, connections given to them in turn
 */
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../util.h"

#define NR_THREADS	2
#define NR_EVENTS	64

/* What does not go at once waits: no connection delays the others. */
struct conn {
	int fd;
	uint32_t begin, end;		/* of buf: received and not yet sent */
	char buf[4096];
};

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

static int listen_anywhere(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) ||
	    listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		die("listen: %s", strerror(errno));
	printf("listening on 127.0.0.1:%u\n", ntohs(addr.sin_port));
	fflush(stdout);
	return fd;
}

static void begin(int epfd, int fd)
{
	struct conn *c = zalloc(1, sizeof(*c));
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };
	const int one = 1;

	c->fd = fd;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev))
		die("epoll_ctl: %s", strerror(errno));
}

int main(void)
{
	int epfd[NR_THREADS], listener, fd, i;
	pthread_t thread;

	raise_limit();
	listener = listen_anywhere();
	for (i = 0; i < NR_THREADS; i++) {
		epfd[i] = epoll_create1(EPOLL_CLOEXEC);
		if (epfd[i] < 0 ||
		    pthread_create(&thread, NULL, serve, &epfd[i]))
			die("cannot start a thread");
	}
	for (i = 0;; i = (i + 1) % NR_THREADS) {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			die("accept: %s", strerror(errno));
		begin(epfd[i], fd);
	}
}
