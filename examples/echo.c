// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A TCP echo server: a task a connection, written as if each were a thread
 *
 * One task accepts. Main waits for a signal, and then stops the runtime: all
 * tasks find their calls cancelled, close what they have, and end.
 */
#include "usage.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <parklot.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, int err)
{
	fprintf(stderr, "echo: %s: %s\n", what, strerror(-err));
	exit(1);
}

static int send_all(int fd, const char *buf, size_t n)
{
	ssize_t ret;

	for (; n; buf += ret, n -= (size_t)ret) {
		ret = pl_send(fd, buf, n, 0);
		if (ret < 0)
			return (int)ret;
	}
	return 0;
}

static void serve(void *arg)
{
	const int fd = (int)(intptr_t)arg, one = 1;
	char buf[4096];
	ssize_t n;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	do {
		n = pl_recv(fd, buf, sizeof(buf), 0);
	} while (n > 0 && !send_all(fd, buf, (size_t)n));
	pl_close(fd);
}

static void accept_all(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	const int listener = (int)(intptr_t)arg;
	int fd;

	opts.name = "connection";
	opts.stack = PL_STACK_SMALL;
	while ((fd = pl_accept(listener, NULL, NULL, SOCK_CLOEXEC)) !=
	       -ECANCELED) {
		if (fd == -EOPNOTSUPP)
			die("accept", fd);
		/* Short of something, or the peer has gone: go on in a bit. */
		if (fd < 0)
			pl_sleep(1000 * 1000);
		else if (pl_spawn(NULL, serve, (void *)(intptr_t)fd, &opts))
			pl_close(fd);
	}
	pl_close(listener);
}

/* A socket that listens on 127.0.0.1; *@port is what it got. */
static int listen_on(uint16_t *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	const int one = 1;
	int fd;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons(*port);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&addr, len) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		die("listen", -errno);
	*port = ntohs(addr.sin_port);
	return fd;
}

static void print_stat(void)
{
	struct pl_stat st = PL_STAT_INIT;

	pl_stat_read(&st);
	printf("stat: backend=%s tasks=%" PRIu64 " switches=%" PRIu64
	       " parks=%" PRIu64 " wakes=%" PRIu64 " io_submitted=%" PRIu64
	       " io_enters=%" PRIu64 "\n",
	       st.backend == PL_BACKEND_MODULE ? "module" : "futex",
	       st.tasks_spawned, st.switches, st.parks, st.wakes,
	       st.io_submitted, st.io_enters);
}

static const char usage[] =
"echo [--port N] [--stat]\n"
"Echoes what is sent to port N of 127.0.0.1 (0, the default: a free port)\n"
"until SIGINT or SIGTERM; --stat then prints what the runtime did.\n"
"PARKLOT_BACKEND=futex|module chooses where idle workers sleep.";

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "stat", no_argument, NULL, 's' },
		USAGE_OPTIONS
	};
	bool has_stat = false;
	uint16_t port = 0;
	sigset_t set;
	int fd, opt, ret, sig;

	while ((opt = usage_option(argc, argv, "", options, 0, usage)) != -1) {
		if (opt == 'p')
			port = (uint16_t)usage_number("port", optarg, 0, 65535);
		else
			has_stat = true;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);

	fd = listen_on(&port);
	ret = pl_spawn(NULL, accept_all, (void *)(intptr_t)fd, NULL);
	if (ret)
		die("start", ret);
	printf("listening on 127.0.0.1:%u\n", port);
	fflush(stdout);
	sigwait(&set, &sig);
	if (has_stat)
		print_stat();
	return pl_runtime_stop() ? 1 : 0;
}
