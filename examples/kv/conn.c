// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A connection: a task that reads, executes, replies
 *
 * The replies to all commands that have come are sent together.
 */
#include "kv.h"

#include <linux/sockios.h>
#include <stdio.h>
#include <sys/ioctl.h>

#define READ_SIZE	16384
#define SEND_SIZE	65536	/* bytes of replies that wait for others */
#define DRAIN_NS	(10 * SEC_NS)
#define DRAIN_TICK_NS	(SEC_NS / 100)

/* What could not be sent stays. */
static bool conn_send(struct conn *c)
{
	size_t done = 0;
	ssize_t n = 0;

	while (n >= 0 && done < c->out.len && !c->out.has_failed) {
		n = pl_send(c->fd, c->out.at + done, c->out.len - done, 0);
		if (n > 0)
			done += (size_t)n;
	}
	c->out.len -= done;
	if (c->out.len)
		memmove(c->out.at, c->out.at + done, c->out.len);
	return n >= 0 && !c->out.has_failed;
}

static void conn_refuse(struct conn *c, const char *why)
{
	char text[128];

	buf_append(&c->out, text, (size_t)sprintf(text,
		   "-ERR Protocol error: %s\r\n", why));
	c->is_last = true;
}

/* All commands that have come whole; what is left of another stays. */
static bool conn_execute(struct conn *c)
{
	const char *why;
	size_t done = 0;
	ssize_t n = 1;

	while (done < c->in.len && !c->is_last) {
		n = request_parse(&c->req, c->in.at + done, c->in.len - done,
				  &why);
		if (n < 0)
			conn_refuse(c, why);
		if (n <= 0)
			break;
		done += (size_t)n;
		if (c->req.argc)
			command_run(c);
		if (c->out.len > SEND_SIZE && !conn_send(c))
			return false;
	}
	c->in.len -= done;
	memmove(c->in.at, c->in.at + done, c->in.len);
	return conn_send(c) && !c->is_last;
}

/* Whether the peer may yet lose some of what was sent. */
static bool conn_is_sending(struct conn *c)
{
	int nr_bytes;

	return !ioctl(c->fd, SIOCOUTQ, &nr_bytes) && nr_bytes;
}

/*
 * The stop of the runtime cancels the task: the shield lets it send the replies
 * to what it has done.  To close amid commands that nobody reads would reset
 * the connection, and replies on their way would be lost: they are read.
 */
static void conn_drain(struct conn *c)
{
	struct pl_scope shield = PL_SCOPE_INIT;
	ssize_t n = 1;

	if (pl_scope_enter(&shield, pl_now() + DRAIN_NS, PL_SCOPE_SHIELD))
		return;
	if (conn_send(c)) {
		shutdown(c->fd, SHUT_WR);
		while ((n > 0 || n == -ETIMEDOUT) && conn_is_sending(c))
			n = pl_recv_until(c->fd, c->in.at, c->in.size, 0,
					  pl_now() + DRAIN_TICK_NS);
	}
	pl_scope_leave(&shield);
}

void conn_run(void *conn)
{
	struct conn *c = conn;
	ssize_t n;
	char *to;

	do {
		to = buf_reserve(&c->in, READ_SIZE);
		n = to ? pl_recv(c->fd, to, READ_SIZE, 0) : -ENOMEM;
		if (n > 0)
			c->in.len += (size_t)n;
	} while (n > 0 && conn_execute(c));
	if (pl_cancelled())
		conn_drain(c);
	pl_close(c->fd);
	buf_free(&c->in);
	buf_free(&c->out);
	free(c);
}
