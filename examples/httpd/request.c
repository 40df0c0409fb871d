// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A request, as http_parser calls it out
 *
 * Names, values and targets come in pieces, cut where a receive ended.  A
 * callback that refuses the request sets the status and returns -1.  The last
 * one answers: it may wait for the peer, as any function of a task may.
 */
#include "httpd.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static int refuse(struct exchange *x, int status)
{
	x->error = status;
	return -1;
}

static int on_begin(http_parser *p)
{
	struct conn *c = p->data;
	struct exchange *x = c->x;

	memset(&x->target_len, 0, offsetof(struct exchange, out_len) -
	       offsetof(struct exchange, target_len));
	c->in_request = true;
	c->deadline_ns = pl_now() + config.request_s * SEC_NS;
	return 0;
}

static int on_url(http_parser *p, const char *at, size_t n)
{
	struct exchange *x = ((struct conn *)p->data)->x;
	size_t i;

	if (n >= MAX_TARGET - x->target_len)
		return refuse(x, 414);
	for (i = 0; i < n; i++)
		if (iscntrl((unsigned char)at[i]))
			return refuse(x, 400);
	memcpy(x->target + x->target_len, at, n);
	x->target_len += n;
	return 0;
}

/* Space and control characters would do harm where a host is put to use. */
static bool is_host(const char *value, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!isgraph((unsigned char)value[i]) || value[i] == '/')
			return false;
	return n;
}

/* A field has ended, if there was one. */
static int field_end(struct exchange *x)
{
	int ret = 0;

	x->name[x->name_len] = x->value[x->value_len] = '\0';
	if (!strcasecmp(x->name, "host")) {
		if (x->nr_hosts++ || !is_host(x->value, x->value_len))
			ret = refuse(x, 400);
	} else if (!strcasecmp(x->name, "transfer-encoding")) {
		x->has_other_encoding |= strcasecmp(x->value, "chunked") != 0;
	} else if (!strcasecmp(x->name, "expect")) {
		x->has_expect = !strcasecmp(x->value, "100-continue");
	}
	x->name_len = x->value_len = 0;
	x->has_value = false;
	return ret;
}

static void append(char *to, size_t *len, size_t size, const char *at, size_t n)
{
	if (n > size - 1 - *len)
		n = size - 1 - *len;
	memcpy(to + *len, at, n);
	*len += n;
}

static int on_field(http_parser *p, const char *at, size_t n)
{
	struct exchange *x = ((struct conn *)p->data)->x;

	if (x->has_value && field_end(x))
		return -1;
	/* http_parser, as Debian builds it, lets spaces through. */
	if (memchr(at, ' ', n))
		return refuse(x, 400);
	append(x->name, &x->name_len, sizeof(x->name), at, n);
	return 0;
}

static int on_value(http_parser *p, const char *at, size_t n)
{
	struct exchange *x = ((struct conn *)p->data)->x;

	x->has_value = true;
	append(x->value, &x->value_len, sizeof(x->value), at, n);
	return 0;
}

static int on_headers(http_parser *p)
{
	static const char proceed[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct conn *c = p->data;
	struct exchange *x = c->x;
	const bool is_chunked = p->flags & F_CHUNKED;
	const bool has_length = p->flags & F_CONTENTLENGTH;
	char *out;

	if (field_end(x))
		return -1;
	p->upgrade = 0;		/* to other protocols: not here */
	if (p->http_major != 1)
		return refuse(x, p->http_major ? 505 : 400);
	if (p->http_minor && !x->nr_hosts)
		return refuse(x, 400);
	if (x->has_other_encoding)
		return refuse(x, 501);
	if (has_length && p->content_length > config.max_body)
		return refuse(x, 413);
	if (p->method == HTTP_CONNECT)
		return refuse(x, 405);
	if (x->has_expect && p->http_minor &&
	    (is_chunked || (has_length && p->content_length))) {
		out = conn_reserve(c, sizeof(proceed));
		if (!out)
			return -1;
		memcpy(out, proceed, sizeof(proceed));
		x->out_len += sizeof(proceed) - 1;
		return conn_flush(c);
	}
	return 0;
}

/* Of no use to files: only counted. */
static int on_body(http_parser *p, const char *at, size_t n)
{
	struct exchange *x = ((struct conn *)p->data)->x;

	(void)at;
	x->body += n;
	return x->body > config.max_body ? refuse(x, 413) : 0;
}

static int on_end(http_parser *p)
{
	struct conn *c = p->data;

	c->in_request = false;
	c->is_last = !http_should_keep_alive(p) || server_is_draining();
	c->deadline_ns = pl_now() + config.idle_s * SEC_NS;
	if (answer_request(c))
		return -1;
	p->method = HTTP_GET;	/* should what follows be none */
	if (c->is_last)
		http_parser_pause(p, 1);
	return 0;
}

const http_parser_settings request_settings = {
	.on_message_begin = on_begin,
	.on_url = on_url,
	.on_header_field = on_field,
	.on_header_value = on_value,
	.on_headers_complete = on_headers,
	.on_body = on_body,
	.on_message_complete = on_end,
};

int request_error(const struct conn *c, char at)
{
	if (c->x->error)
		return c->x->error;
	switch (HTTP_PARSER_ERRNO(&c->parser)) {
	case HPE_HEADER_OVERFLOW:
		return 431;
	case HPE_INVALID_METHOD:
		return isupper((unsigned char)at) ? 501 : 400;
	default:
		return 400;
	}
}
