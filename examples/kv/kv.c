// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A store of keys and values that redis's clients can use: a task a connection
 *
 *	cc -D_GNU_SOURCE -o kv *.c $(pkg-config --cflags --libs parklot)
 */
#include "kv.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
"Usage: kv [--port N]\n"
"Keeps keys and values for redis-cli and other clients of redis, in memory,\n"
"at port N of 127.0.0.1 (0, the default: a free one) until SIGINT or SIGTERM;\n"
"then it ends once the replies to what it has done have arrived, or after 10 s.\n"
"Commands: GET SET INCR DEL EXISTS MGET EXPIRE TTL PING DBSIZE INFO COMMAND QUIT\n"
"  --help, --version\n";

static void __attribute__((noreturn)) die(const char *what, int err)
{
	fprintf(stderr, "kv: %s: %s\n", what, strerror(-err));
	exit(1);
}

static void serve(int fd)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	struct conn *c = calloc(1, sizeof(*c));
	const int one = 1;

	opts.name = "connection";
	opts.stack = PL_STACK_SMALL;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (c)
		c->fd = fd;
	if (!c || pl_spawn(NULL, conn_run, c, &opts)) {
		pl_close(fd);
		free(c);
	}
}

static void accept_all(void *arg)
{
	const int listener = (int)(intptr_t)arg;
	int fd;

	while ((fd = pl_accept(listener, NULL, NULL, SOCK_CLOEXEC)) !=
	       -ECANCELED) {
		if (fd >= 0)
			serve(fd);
		else	/* short of something, or the peer has gone */
			pl_sleep(SEC_NS / 1000);
	}
	pl_close(listener);
}

/* A socket that listens on 127.0.0.1; *@port is what it got. */
static int listen_on(uint16_t *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	const int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons(*port);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&addr, len) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		die("listen", -errno);
	*port = ntohs(addr.sin_port);
	return fd;
}

static uint16_t to_port(const char *text)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || port > 65535) {
		fprintf(stderr, "kv: --port: '%s' is no port\n", text);
		exit(2);
	}
	return (uint16_t)port;
}

static uint16_t parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "port", required_argument, NULL, 'p' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	uint16_t port = 0;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'p') {
			port = to_port(optarg);
		} else if (opt == 'v') {
			puts("kv of parklot " PARKLOT_VERSION);
			exit(0);
		} else {
			fputs(usage, opt == 'h' ? stdout : stderr);
			exit(opt == 'h' ? 0 : 2);
		}
	}
	if (optind < argc) {
		fputs(usage, stderr);
		exit(2);
	}
	return port;
}

int main(int argc, char **argv)
{
	uint16_t port = parse(argc, argv);
	sigset_t set;
	int fd, ret, sig;

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
	return pl_runtime_stop() ? 1 : 0;
}
