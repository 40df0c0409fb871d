// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A connection: a task that reads, parses and answers
 *
 * While it is idle it has the pages of its stack that it touched, and no other
 * memory: that of requests and answers comes with the first byte of a request
 * and goes with the last byte of the answer.
 */
#include "httpd.h"

#include <stdlib.h>

/* Room for @n bytes, at most OUT_SIZE; NULL: what was there cannot be sent. */
char *conn_reserve(struct conn *c, size_t n)
{
	if (c->x->out_len + n > OUT_SIZE && conn_flush(c))
		return NULL;
	return c->x->out + c->x->out_len;
}

static int conn_send_out(struct conn *c, bool has_more)
{
	const size_t n = c->x->out_len;

	c->x->out_len = 0;
	return n ? stream_send(&c->stream, c->x->out, n, has_more,
			       pl_now() + config.request_s * SEC_NS) : 0;
}

int conn_flush(struct conn *c)
{
	return conn_send_out(c, false);
}

/* What was there before it, and all @size bytes of the file. */
int conn_send_file(struct conn *c, int fd, off_t size)
{
	off_t done = 0;
	ssize_t n;

	if (conn_send_out(c, true))
		return -EPIPE;
	while (done < size) {
		n = stream_sendfile(&c->stream, fd, &done,
				    (size_t)(size - done),
				    pl_now() + config.request_s * SEC_NS);
		if (n <= 0 && n != -EINTR)
			return -EPIPE;
	}
	return 0;
}

/*
 * To close at once what has not been read would reset the connection, and the
 * peer could lose the answer: let it finish, for a second.
 */
static void conn_linger(struct conn *c, char *in, size_t size)
{
	const uint64_t deadline_ns = pl_now() + SEC_NS;

	stream_shutdown(&c->stream);
	while (stream_recv(&c->stream, in, size, deadline_ns) > 0)
		;
}

/* Refuse it, with a page, unless it is the callback's send that failed. */
static void conn_refuse(struct conn *c, int status)
{
	c->is_last = true;
	if (!answer_error(c, status, ""))
		conn_flush(c);
}

/* What was received; 0 at the end; -EPROTO when the connection was refused. */
static ssize_t conn_recv(struct conn *c, char *in, size_t size)
{
	ssize_t n;

	do {
		/* The server interrupts idle ones when it drains. */
		if (server_is_draining() && !c->in_request)
			return 0;
		n = stream_recv(&c->stream, in, size, c->deadline_ns);
	} while (n == -EINTR);
	if (n == -ETIMEDOUT && c->in_request) {
		conn_refuse(c, 408);
		return -EPROTO;
	}
	return n;
}

/* True: more may come. */
static bool conn_parse(struct conn *c, const char *in, size_t n)
{
	http_parser *p = &c->parser;
	size_t done;

	if (!c->x) {
		c->x = malloc(sizeof(*c->x));
		if (!c->x)
			return false;
		c->x->error = 0;
		c->x->out_len = 0;
	}
	done = http_parser_execute(p, &request_settings, in, n);
	if (HTTP_PARSER_ERRNO(p) == HPE_CB_message_complete)
		return false;
	if (HTTP_PARSER_ERRNO(p) && !c->is_last)
		conn_refuse(c, request_error(c, done < n ? in[done] : '\0'));
	if (conn_flush(c))
		return false;
	if (!c->in_request) {
		free(c->x);
		c->x = NULL;
	}
	return !c->is_last;
}

static void conn_serve(struct conn *c)
{
	char in[2048];
	ssize_t n;

	do {
		n = conn_recv(c, in, sizeof(in));
	} while (n > 0 && conn_parse(c, in, (size_t)n));
	if (c->is_last)
		conn_linger(c, in, sizeof(in));
}

void conn_run(void *conn)
{
	struct conn *c = conn;

	http_parser_init(&c->parser, HTTP_REQUEST);
	c->parser.data = c;
	c->deadline_ns = pl_now() + config.idle_s * SEC_NS;
	if (!stream_open(&c->stream))
		conn_serve(c);
	free(c->x);
	stream_close(&c->stream);
	server_remove(c);
}
