// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Many HTTP GETs of one URL at a time: a task each, with a deadline
 *
 * Without a URL it fetches from itself: another task serves a page on loopback.
 */
#include "usage.h"

#include <errno.h>
#include <netdb.h>
#include <parklot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_NS	10000000000ULL

static struct fetch {
	char host[256], port[8], path[1024];
	struct sockaddr_storage addr;
	socklen_t addrlen;
	struct pl_sem slots;		/* one unit for each fetch at a time */
	struct pl_mutex mutex;		/* of what follows */
	size_t nr_ok, nr_failed, nr_bytes;
} f = { .host = "127.0.0.1", .port = "80", .path = "/" };

static void __attribute__((noreturn)) die(const char *what, const char *why)
{
	fprintf(stderr, "fetch: %s: %s\n", what, why);
	exit(1);
}

/* The answer's length, if it is one of success; else -errno. */
static ssize_t get(int fd, uint64_t deadline)
{
	char buf[8192];
	ssize_t n, total = 0;
	int ret = pl_connect_until(fd, (struct sockaddr *)&f.addr, f.addrlen,
				   deadline);

	if (ret)
		return ret;
	n = snprintf(buf, sizeof(buf), "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n",
		     f.path, f.host);
	n = pl_send_until(fd, buf, (size_t)n, 0, deadline);
	while (n > 0) {
		n = pl_recv_until(fd, buf, sizeof(buf), 0, deadline);
		if (!total && (n < 12 || memcmp(buf, "HTTP/1.", 7) ||
			       buf[9] != '2'))
			return n < 0 ? n : -EPROTO;
		total += n > 0 ? n : 0;
	}
	return n < 0 ? n : total;
}

static void fetch_one(void *unused __attribute__((unused)))
{
	int fd = socket(f.addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t n = fd < 0 ? -errno : get(fd, pl_now() + TIMEOUT_NS);

	if (fd >= 0)
		pl_close(fd);
	pl_mutex_lock(&f.mutex);
	f.nr_bytes += n > 0 ? (size_t)n : 0;
	if (n < 0 && !f.nr_failed++)
		fprintf(stderr, "fetch: %s\n", strerror((int)-n));
	f.nr_ok += n >= 0;
	pl_mutex_unlock(&f.mutex);
	pl_sem_post(&f.slots, 1);
}

static void serve(void *arg)
{
	static const char page[] = "HTTP/1.0 200 OK\r\n\r\nhello\n";
	const int listener = (int)(intptr_t)arg;
	char buf[2048];
	int fd;

	while ((fd = pl_accept(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		if (pl_recv(fd, buf, sizeof(buf), 0) > 0)
			pl_send(fd, page, sizeof(page) - 1, 0);
		pl_close(fd);
	}
}

static void serve_oneself(void)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)&f.addr;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	f.addrlen = sizeof(*sin);
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)sin, f.addrlen) ||
	    listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)sin, &f.addrlen) ||
	    pl_spawn(NULL, serve, (void *)(intptr_t)fd, NULL))
		die("cannot serve", strerror(errno));
}

static void resolve(const char *url)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	int eai;

	if (sscanf(url, "http://%255[^:/]:%7[0-9]%1023s", f.host, f.port,
		   f.path) < 2 &&
	    sscanf(url, "http://%255[^:/]%1023s", f.host, f.path) < 1)
		die(url, "not http://HOST[:PORT][/PATH]");
	if (pl_getaddrinfo(f.host, f.port, &hints, &ai, &eai))
		die(f.host, eai ? gai_strerror(eai) : "cannot be looked up");
	memcpy(&f.addr, ai->ai_addr, ai->ai_addrlen);
	f.addrlen = ai->ai_addrlen;
	freeaddrinfo(ai);
}

static void fetch_all(int nr, int nr_at_once)
{
	int i;

	pl_sem_init(&f.slots, (uint32_t)nr_at_once);
	for (i = 0; i < nr; i++)
		if (pl_sem_wait(&f.slots) ||
		    pl_spawn(NULL, fetch_one, NULL, NULL))
			die("cannot start", "no room for a task");
	for (i = 0; i < nr_at_once; i++)
		pl_sem_wait(&f.slots);
}

int main(int argc, char **argv)
{
	static const char usage[] = "fetch [-n NUMBER] [-c AT-A-TIME] [URL]";
	int opt, nr = 100, nr_at_once = 20;

	while ((opt = usage_option(argc, argv, "c:n:", NULL, 1, usage)) != -1) {
		if (opt == 'c')
			nr_at_once = usage_number("-c", optarg, 1, 100000);
		else
			nr = usage_number("-n", optarg, 1, 1000000000);
	}
	if (optind < argc)
		resolve(argv[optind]);
	else
		serve_oneself();
	fetch_all(nr, nr_at_once);
	printf("%zu fetched, %zu bytes, %zu failed\n", f.nr_ok, f.nr_bytes,
	       f.nr_failed);
	return pl_runtime_stop() || f.nr_failed ? 1 : 0;
}
