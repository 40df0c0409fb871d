// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * An echo server that errs on purpose, to see that echo_load finds it out
 *
 * A thread a connection, no parklot. Of all that is received, piece number
 * --at is treated as --fault says; all else is echoed. scripts/test/test-load
 * is its user.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../lib/listen.h"

#define PIECE	4096

struct fault {
	const char *name;
	/* Called instead of echo(); false: the connection is closed. */
	bool (*on_piece)(int fd, unsigned char *buf, size_t n);
};

static const struct fault *fault;
static unsigned int fault_at = 5;
static _Atomic unsigned int nr_pieces;
static unsigned char first[PIECE];	/* the first one */
static pthread_rwlock_t halted = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER;

static bool echo(int fd, const unsigned char *buf, size_t n)
{
	ssize_t ret;

	pthread_rwlock_rdlock(&halted);
	pthread_rwlock_unlock(&halted);
	for (; n; buf += ret, n -= (size_t)ret) {
		ret = send(fd, buf, n, MSG_NOSIGNAL);
		if (ret < 0)
			return false;
	}
	return true;
}

static bool flip_bit(int fd, unsigned char *buf, size_t n)
{
	buf[n / 2] ^= 1;
	return echo(fd, buf, n);
}

/* What another connection is due. */
static bool mix_up(int fd, unsigned char *buf, size_t n)
{
	pthread_mutex_lock(&first_lock);
	memcpy(buf, first, n);
	pthread_mutex_unlock(&first_lock);
	return echo(fd, buf, n);
}

static bool say_more(int fd, unsigned char *buf, size_t n)
{
	return echo(fd, buf, n) && echo(fd, buf, 1);
}

static bool say_half(int fd, unsigned char *buf, size_t n)
{
	echo(fd, buf, n / 2);
	return false;
}

static bool reset(int fd, unsigned char *buf, size_t n)
{
	const struct linger linger = { .l_onoff = 1 };

	(void)buf;
	(void)n;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return false;
}

static bool stall(int fd, unsigned char *buf, size_t n)
{
	(void)fd;
	(void)buf;
	(void)n;
	while (pause())
		;
	return false;
}

/* Nothing is answered on any connection. */
static bool halt(int fd, unsigned char *buf, size_t n)
{
	const struct timespec pause = { .tv_nsec = 300 * NSEC_PER_MSEC };

	pthread_rwlock_wrlock(&halted);
	nanosleep(&pause, NULL);
	pthread_rwlock_unlock(&halted);
	return echo(fd, buf, n);
}

static bool in_pieces(int fd, unsigned char *buf, size_t n)
{
	const struct timespec pause = { .tv_nsec = 20 * NSEC_PER_MSEC };
	size_t i;

	for (i = 0; i < n; i++) {
		if (i < 8)
			nanosleep(&pause, NULL);
		if (!echo(fd, buf + i, 1))
			return false;
	}
	return true;
}

static const struct fault faults[] = {
	{ "none", NULL },
	{ "flip-bit", flip_bit },
	{ "mix-up", mix_up },
	{ "say-more", say_more },
	{ "say-half", say_half },
	{ "reset", reset },
	{ "stall", stall },
	{ "in-pieces", in_pieces },
	{ "halt", halt },
};

static bool serve_piece(int fd, unsigned char *buf, size_t n)
{
	unsigned int i = atomic_fetch_add(&nr_pieces, 1);

	if (i == 0) {
		pthread_mutex_lock(&first_lock);
		memcpy(first, buf, n);
		pthread_mutex_unlock(&first_lock);
	}
	if (i == fault_at && fault->on_piece)
		return fault->on_piece(fd, buf, n);
	return echo(fd, buf, n);
}

static void *serve(void *arg)
{
	const int fd = (int)(intptr_t)arg;
	unsigned char buf[PIECE];
	ssize_t n;

	do {
		n = recv(fd, buf, sizeof(buf), 0);
	} while (n > 0 && serve_piece(fd, buf, (size_t)n));
	close(fd);
	return NULL;
}

static void accept_all(int listener)
{
	pthread_t thread;
	int fd;

	for (;;) {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			die("accept: %s", strerror(errno));
		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd))
			die("cannot start a thread");
		pthread_detach(thread);
	}
}

static const struct fault *fault_of(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (!strcmp(faults[i].name, name))
			return &faults[i];
	}
	die("%s: no such fault", name);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "at", required_argument, NULL, 'a' },
		{ "fault", required_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};
	int fd, opt;

	fault = &faults[0];
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'a')
			fault_at = whole(optarg, 1U << 30);
		else if (opt == 'f')
			fault = fault_of(optarg);
		else
			die("usage: echo_faulty [--fault NAME] [--at N]");
	}
	fd = listen_anywhere();
	accept_all(fd);
}
