// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A command as redis clients send it: an array of strings, or words in a line
 *
 *	*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n		GET key\r\n
 */
#include "kv.h"

#include <ctype.h>
#include <string.h>

struct cursor {
	const char	*at, *end;
	const char	*why;		/* it is no request */
};

/* A line without its end; at is NULL: it has not come whole. */
static struct str cursor_line(struct cursor *cur)
{
	const char *nl = memchr(cur->at, '\n', (size_t)(cur->end - cur->at));
	struct str line = { NULL, 0 };

	if (!nl) {
		if (cur->end - cur->at > 64 * 1024)
			cur->why = "too big inline request";
		return line;
	}
	line.at = cur->at;
	line.len = (size_t)(nl - cur->at);
	if (line.len && nl[-1] == '\r')
		line.len--;
	cur->at = nl + 1;
	return line;
}

/* The number after the line's first character; -1: that is none up to @max. */
static long line_number(struct str line, long max)
{
	long n = 0;
	size_t i;

	for (i = 1; i < line.len; i++) {
		if (!isdigit((unsigned char)line.at[i]))
			return -1;
		n = n * 10 + line.at[i] - '0';
		if (n > max)
			return -1;
	}
	return line.len > 1 ? n : -1;
}

/* False: it has not come whole, or is none. */
static bool cursor_bulk(struct cursor *cur, struct str *arg)
{
	struct str line = cursor_line(cur);
	long n;

	if (!line.at)
		return false;
	if (!line.len || *line.at != '$') {
		cur->why = "expected '$'";
		return false;
	}
	n = line_number(line, MAX_REQUEST / 2);
	if (n < 0) {
		cur->why = "invalid bulk length";
		return false;
	}
	if (cur->end - cur->at < n + 2)
		return false;
	arg->at = cur->at;
	arg->len = (size_t)n;
	cur->at += n + 2;
	return true;
}

static bool cursor_array(struct cursor *cur, struct request *req,
			 struct str line)
{
	long nr = line_number(line, MAX_ARGS);

	if (nr < 0) {
		if (line.len < 2 || line.at[1] != '-')
			cur->why = "invalid multibulk length";
		return !cur->why;	/* a negative one is as good as 0 */
	}
	for (req->argc = 0; req->argc < nr; req->argc++)
		if (!cursor_bulk(cur, &req->argv[req->argc]))
			return false;
	return true;
}

static void line_words(struct request *req, struct str line)
{
	const char *at = line.at, *end = line.at + line.len;
	struct str *word;

	while (req->argc < MAX_ARGS) {
		while (at < end && isspace((unsigned char)*at))
			at++;
		if (at == end)
			break;
		word = &req->argv[req->argc++];
		word->at = at;
		while (at < end && !isspace((unsigned char)*at))
			at++;
		word->len = (size_t)(at - word->at);
	}
}

ssize_t request_parse(struct request *req, const char *at, size_t n,
		      const char **why)
{
	struct cursor cur = { .at = at, .end = at + n };
	struct str line = cursor_line(&cur);
	bool is_whole = line.at;

	req->argc = 0;
	if (is_whole && line.len && *line.at == '*')
		is_whole = cursor_array(&cur, req, line);
	else if (is_whole)
		line_words(req, line);
	if (!is_whole && !cur.why && n > MAX_REQUEST)
		cur.why = "too big request";
	*why = cur.why;
	if (cur.why)
		return -1;
	return is_whole ? cur.at - at : 0;
}
