// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * An echo server on two ports: handlers of the first, for each piece that they
 * receive, are 20 ms in usleep(); those of the second are not.  Tasks on two
 * workers, or threads, one for each connection; and HOGS more that compute.
 *
 * Usage: server parklot|pthread [HOGS]
 */
#include <pthread.h>
#include <unistd.h>

#include "../lib/listen.h"
#include "../lib/task.h"

#define NR_WORKERS	2
#define MAX_WORKERS	1024
#define BUF_SIZE	4096
#define BLOCK_US	20000

struct conn {
	int fd;
	bool blocks;
};

struct port {
	int listener;
	bool blocks;	/* its handlers do */
};

static bool is_threads;

static ssize_t receive(int fd, void *buf, size_t len)
{
	return is_threads ? recv(fd, buf, len, 0) : pl_recv(fd, buf, len, 0);
}

static bool send_all(int fd, const char *buf, ssize_t n)
{
	ssize_t ret;

	for (; n > 0; buf += ret, n -= ret) {
		ret = is_threads ? send(fd, buf, (size_t)n, MSG_NOSIGNAL) :
		      pl_send(fd, buf, (size_t)n, 0);
		if (ret < 0)
			return false;
	}
	return true;
}

static void *serve(void *arg)
{
	struct conn *conn = arg;
	char buf[BUF_SIZE];
	ssize_t n;

	no_delay(conn->fd);
	do {
		n = receive(conn->fd, buf, sizeof(buf));
		if (n > 0 && conn->blocks)
			usleep(BLOCK_US);
	} while (n > 0 && send_all(conn->fd, buf, n));
	if (is_threads)
		close(conn->fd);
	else
		pl_close(conn->fd);
	free(conn);
	return NULL;
}

static void serve_task(void *conn)
{
	serve(conn);
}

static void start_handler(struct conn *conn)
{
	pthread_t thread;
	int err;

	if (!is_threads) {
		must("spawn", pl_spawn(NULL, serve_task, conn, NULL));
		return;
	}
	err = pthread_create(&thread, NULL, serve, conn);
	if (err)
		die("cannot start a thread: %s", strerror(err));
	pthread_detach(thread);
}

static void accept_all(void *arg)
{
	const struct port *port = arg;
	struct conn *conn;

	for (;;) {
		conn = zalloc(1, sizeof(*conn));
		conn->blocks = port->blocks;
		conn->fd = is_threads ?
			   accept4(port->listener, NULL, NULL, SOCK_CLOEXEC) :
			   pl_accept(port->listener, NULL, NULL, SOCK_CLOEXEC);
		if (conn->fd < 0)
			die("accept failed");
		start_handler(conn);
	}
}

static void *accept_thread(void *port)
{
	accept_all(port);
	return NULL;
}

static void start_accepting(struct port *port)
{
	pthread_t thread;

	if (!is_threads)
		spawn(accept_all, port);
	else if (pthread_create(&thread, NULL, accept_thread, port))
		die("cannot start a thread");
}

static void compute_on(void *arg)
{
	uint64_t v = (uint64_t)(uintptr_t)arg;

	for (;;) {
		v = mix(v);
		__asm__ volatile("" : : "r" (v));
	}
}

static void *compute_thread(void *arg)
{
	compute_on(arg);
	return NULL;
}

static void start_hogs(unsigned int nr)
{
	pthread_t thread;

	while (nr--) {
		if (!is_threads)
			spawn(compute_on, NULL);
		else if (pthread_create(&thread, NULL, compute_thread, NULL))
			die("cannot start a thread");
	}
}

int main(int argc, char **argv)
{
	struct port ports[] = { { .blocks = true }, { .blocks = false } };
	struct pl_config cfg = PL_CONFIG_INIT;

	if (argc < 2 || argc > 3 || (strcmp(argv[1], "parklot") &&
				     strcmp(argv[1], "pthread")))
		die("usage: server parklot|pthread [HOGS]");
	is_threads = !strcmp(argv[1], "pthread");
	raise_limit();
	cfg.nr_workers = NR_WORKERS;
	cfg.max_workers = MAX_WORKERS;
	if (!is_threads)
		must("start", pl_runtime_start(&cfg));
	ports[0].listener = listen_anywhere();
	start_accepting(&ports[0]);
	ports[1].listener = listen_anywhere();
	start_accepting(&ports[1]);
	if (argc > 2)
		start_hogs(whole(argv[2], MAX_WORKERS));
	for (;;)
		pause();
}
