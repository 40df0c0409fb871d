// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A connection: a task that reads, executes, replies
 *
 * The replies to all commands that have come are sent together.
 */
#include "kv.h"

#include <stdio.h>

#define READ_SIZE	16384
#define SEND_SIZE	65536	/* bytes of replies that wait for others */

static bool conn_send(struct conn *c)
{
	size_t done = 0;
	ssize_t n;

	while (done < c->out.len && !c->out.has_failed) {
		n = pl_send(c->fd, c->out.at + done, c->out.len - done, 0);
		if (n < 0)
			return false;
		done += (size_t)n;
	}
	c->out.len = 0;
	return !c->out.has_failed;
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
	pl_close(c->fd);
	buf_free(&c->in);
	buf_free(&c->out);
	free(c);
}
