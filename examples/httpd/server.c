// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The server: accepts connections, knows them all, drains them
 *
 * To drain is to close the listener, and to interrupt every connection once: an
 * idle one sees that it is over, one amid a request finishes that first.
 */
#include "httpd.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
	int		listener;
	struct pl_sem	room;		/* a unit for each further connection */
	struct pl_mutex	mutex;
	struct pl_cond	removed;
	struct conn	*conns;		/* mutex */
	uint32_t	nr_conns;	/* mutex */
	atomic_bool	is_draining;
} server;

bool server_is_draining(void)
{
	return atomic_load(&server.is_draining);
}

static void server_add(struct conn *c)
{
	c->next = server.conns;
	c->link = &server.conns;
	if (c->next)
		c->next->link = &c->next;
	server.conns = c;
	server.nr_conns++;
}

void server_remove(struct conn *c)
{
	pl_mutex_lock(&server.mutex);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	server.nr_conns--;
	pl_cond_broadcast(&server.removed);
	pl_mutex_unlock(&server.mutex);
	free(c);
	pl_sem_post(&server.room, 1);
}

/* Takes @fd. */
static void server_serve(int fd)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	struct conn *c = calloc(1, sizeof(*c));
	const int one = 1;
	int ret = -ENOMEM;

	opts.name = "connection";
	opts.stack = stream_stack;
	if (c) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		c->stream.fd = fd;
		/* With the lock: it cannot end before it is in the list. */
		pl_mutex_lock(&server.mutex);
		ret = pl_spawn(&c->task, conn_run, c, &opts);
		if (!ret)
			server_add(c);
		pl_mutex_unlock(&server.mutex);
	}
	if (ret) {
		free(c);
		pl_close(fd);
		pl_sem_post(&server.room, 1);
	}
}

static void server_accept(void *unused)
{
	int fd;

	(void)unused;
	while (!pl_sem_wait(&server.room)) {
		fd = pl_accept(server.listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0) {
			server_serve(fd);
			continue;
		}
		pl_sem_post(&server.room, 1);
		if (fd == -EBADF || fd == -ECANCELED)
			return;
		/* Short of something, or the peer has gone. */
		pl_sleep(SEC_NS / 1000);
	}
}

/* config.port is what it got. */
static int server_listen(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	const int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons(config.port);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&addr, len) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		return -errno;
	config.port = ntohs(addr.sin_port);
	return fd;
}

int server_start(void)
{
	server.listener = server_listen();
	if (server.listener < 0)
		return server.listener;
	pl_sem_init(&server.room, config.max_connections);
	return pl_spawn(NULL, server_accept, NULL, NULL);
}

uint32_t server_drain(void)
{
	const uint64_t deadline_ns = pl_now() + config.drain_s * SEC_NS;
	struct conn *c;
	uint32_t nr;

	atomic_store(&server.is_draining, true);
	pl_close(server.listener);
	pl_mutex_lock(&server.mutex);
	for (c = server.conns; c; c = c->next)
		pl_interrupt(c->task);
	while (server.nr_conns &&
	       !pl_cond_wait_until(&server.removed, &server.mutex, deadline_ns))
		;
	nr = server.nr_conns;
	pl_mutex_unlock(&server.mutex);
	return nr;
}
