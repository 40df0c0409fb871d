// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * examples/echo with handlers that compute: for so long, of a processor, on
 * each piece that is received
 */
#include <unistd.h>

#include "../lib/listen.h"
#include "../lib/task.h"

#define BUF_SIZE	4096

static uint64_t compute_ns;

static bool send_all(int fd, const char *buf, ssize_t n)
{
	ssize_t ret;

	for (; n > 0; buf += ret, n -= ret) {
		ret = pl_send(fd, buf, (size_t)n, 0);
		if (ret < 0)
			return false;
	}
	return true;
}

static void serve(void *arg)
{
	const int fd = (int)(intptr_t)arg;
	char buf[BUF_SIZE];
	ssize_t n;

	no_delay(fd);
	do {
		n = pl_recv(fd, buf, sizeof(buf), 0);
		compute(compute_ns);
	} while (n > 0 && send_all(fd, buf, n));
	pl_close(fd);
}

static void accept_all(void *arg)
{
	const struct pl_spawn_opts opts = spawn_opts(PL_STACK_SMALL, 0);
	const int listener = (int)(intptr_t)arg;
	int fd;

	for (;;) {
		fd = must("accept", pl_accept(listener, NULL, NULL,
					      SOCK_CLOEXEC));
		must("spawn", pl_spawn(NULL, serve, (void *)(intptr_t)fd,
				       &opts));
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		die("usage: compute_server US");
	compute_ns = whole(argv[1], 1000000) * 1000ULL;
	raise_limit();
	must("join", pl_join(spawn(accept_all,
				   (void *)(intptr_t)listen_anywhere())));
	return 0;
}
