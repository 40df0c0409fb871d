/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A connection to an echo server: sends a request, checks every byte of the
 * answer, and counts the ways in which a connection fails
 *
 * What is sent differs from connection to connection and from request to
 * request, so that an answer to another connection, or an old one, is a wrong
 * one.  A connection has one request on its way.
 */
#ifndef BENCH_ECHO_CONN_H
#define BENCH_ECHO_CONN_H

#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "progress.h"
#include "../lib/util.h"

#define CONN_MAX_TOLD	10U	/* failures described; the rest is counted */

enum conn_failure {
	CONN_WRONG,	/* a byte that is not the one sent */
	CONN_SURPLUS,	/* more bytes than were sent */
	CONN_SHORT,	/* the end before the whole answer */
	CONN_RESET,	/* an error of send() or recv() */
	CONN_REFUSED,	/* an error of connect() */
	CONN_STALLED,	/* no byte for as long as --stall says */
	CONN_NR_FAILURES
};

static const char *const conn_failure_name[CONN_NR_FAILURES] = {
	"wrong", "surplus", "short", "reset", "refused", "stalled",
};

struct conn {
	int fd;			/* -1: closed */
	unsigned int id;
	bool wants_out;		/* EPOLLOUT is asked for */
	bool is_ending;		/* nothing more is sent; EOF is the end */
	bool is_idle;		/* no request on its way */
	size_t sent;
	size_t got;
	uint64_t nr_requests;	/* answered */
	uint64_t began_ns;	/* its latency counts from then */
	uint64_t moved_ns;	/* the last byte sent or received */
	unsigned char *out;	/* what is sent: set->size bytes */
};

/* Connections of one thread. */
struct conn_set {
	int epfd;
	unsigned int nr_open;
	unsigned int size;	/* bytes of a request */
	unsigned char *in;	/* size + 1 bytes, to see a surplus */
};

static _Atomic uint64_t conn_nr_failures[CONN_NR_FAILURES];
static _Atomic unsigned int conn_nr_told;

/* Close @c; what it was about is counted, and told to a patient reader. */
__attribute__((format(printf, 4, 5)))
static inline void conn_fail(struct conn_set *s, struct conn *c,
			     enum conn_failure what, const char *format, ...)
{
	va_list ap;

	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	s->nr_open--;
	atomic_fetch_add(&conn_nr_failures[what], 1);
	if (atomic_fetch_add(&conn_nr_told, 1) >= CONN_MAX_TOLD)
		return;
	flockfile(stderr);
	progress_clear();
	fprintf(stderr, "echo_load: connection %u: request %llu: ", c->id,
		(unsigned long long)c->nr_requests);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	funlockfile(stderr);
}

static inline void conn_fill(const struct conn_set *s, struct conn *c)
{
	uint64_t word = mix((uint64_t)c->id << 40 ^ c->nr_requests);
	size_t i, n;

	for (i = 0; i < s->size; i += n) {
		n = s->size - i < sizeof(word) ? s->size - i : sizeof(word);
		memcpy(c->out + i, &word, n);
		word = mix(word);
	}
}

static inline void conn_want(struct conn_set *s, struct conn *c, bool out)
{
	struct epoll_event ev = {
		.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c,
	};

	if (c->wants_out == out)
		return;
	c->wants_out = out;
	if (epoll_ctl(s->epfd, EPOLL_CTL_MOD, c->fd, &ev))
		die("epoll_ctl: %s", strerror(errno));
}

/* Send what is left of the request; false if the connection has failed. */
static inline bool conn_send_rest(struct conn_set *s, struct conn *c)
{
	ssize_t n;

	while (c->sent < s->size) {
		n = send(c->fd, c->out + c->sent, s->size - c->sent,
			 MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			conn_fail(s, c, CONN_RESET, "send: %s",
				  strerror(errno));
			return false;
		}
		c->sent += (size_t)n;
		c->moved_ns = now_ns();
	}
	conn_want(s, c, c->sent < s->size);
	return true;
}

/*
 * Send a request.  Its latency counts from @due_ns, when it was due, or if that
 * is 0 from now.
 */
static inline bool conn_send_next(struct conn_set *s, struct conn *c,
				  uint64_t due_ns)
{
	c->is_idle = false;
	c->sent = 0;
	c->got = 0;
	conn_fill(s, c);
	c->moved_ns = now_ns();
	c->began_ns = due_ns ? due_ns : c->moved_ns;
	return conn_send_rest(s, c);
}

/* Whether the @n bytes of s->in are those that @c has to receive next. */
static inline bool conn_is_echo(struct conn_set *s, struct conn *c, size_t n)
{
	const unsigned char *due = c->out + c->got;
	size_t nr_due = c->sent - c->got, i;

	for (i = 0; i < n && i < nr_due; i++) {
		if (s->in[i] == due[i])
			continue;
		conn_fail(s, c, CONN_WRONG, "byte %zu: sent 0x%02x, got 0x%02x",
			  c->got + i, due[i], s->in[i]);
		return false;
	}
	if (n > nr_due) {
		conn_fail(s, c, CONN_SURPLUS, "%zu bytes sent, more received",
			  c->sent);
		return false;
	}
	return true;
}

/* The peer has closed: right only if we had, and nothing is missing. */
static inline void conn_take_eof(struct conn_set *s, struct conn *c)
{
	if (!c->is_ending) {
		conn_fail(s, c, CONN_SHORT, "end of stream at byte %zu of %u",
			  c->got, s->size);
		return;
	}
	close(c->fd);
	c->fd = -1;
	s->nr_open--;
}

/*
 * Receive once; what remains, epoll will tell again.  True: the answer is
 * whole.
 */
static inline bool conn_receive(struct conn_set *s, struct conn *c)
{
	ssize_t n = recv(c->fd, s->in, s->size - c->got + 1, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0) {
		conn_fail(s, c, CONN_RESET, "recv: %s", strerror(errno));
		return false;
	}
	if (!n) {
		conn_take_eof(s, c);
		return false;
	}
	if (!conn_is_echo(s, c, (size_t)n))
		return false;
	c->moved_ns = now_ns();
	c->got += (size_t)n;
	return c->got == s->size;
}

/* No request follows: say so, and expect the end of the stream. */
static inline void conn_end(struct conn_set *s, struct conn *c)
{
	c->is_ending = true;
	c->is_idle = false;
	c->sent = 0;
	c->got = 0;
	c->moved_ns = now_ns();
	if (shutdown(c->fd, SHUT_WR))
		conn_fail(s, c, CONN_RESET, "shutdown: %s", strerror(errno));
}

/* No request is on its way, and none is due. */
static inline void conn_rest(struct conn *c)
{
	c->is_idle = true;
	c->sent = 0;
	c->got = 0;
}

static inline void conn_open(struct conn_set *s, struct conn *c,
			     const struct sockaddr_in *addr)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };
	const int one = 1;

	c->out = zalloc(s->size, 1);
	s->nr_open++;
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		die("socket: %s", strerror(errno));
	if (connect(c->fd, (const struct sockaddr *)addr, sizeof(*addr))) {
		conn_fail(s, c, CONN_REFUSED, "connect: %s", strerror(errno));
		return;
	}
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK))
		die("O_NONBLOCK: %s", strerror(errno));
	if (setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("TCP_NODELAY: %s", strerror(errno));
	if (epoll_ctl(s->epfd, EPOLL_CTL_ADD, c->fd, &ev))
		die("epoll_ctl: %s", strerror(errno));
}

#endif /* BENCH_ECHO_CONN_H */
