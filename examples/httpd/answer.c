// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * An answer: a file, or a page that says what is wrong
 *
 * It goes to the connection's buffer, which is sent when it is full or when no
 * more requests are at hand: the answers of a pipeline travel together.
 */
#include "httpd.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HEAD_SIZE	512	/* of an answer, at most */

static const char *reason(int status)
{
	switch (status) {
	case 200: return "OK";
	case 301: return "Moved Permanently";
	case 400: return "Bad Request";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 405: return "Not Allowed";
	case 408: return "Request Time-out";
	case 413: return "Request Entity Too Large";
	case 414: return "Request-URI Too Large";
	case 431: return "Request Header Fields Too Large";
	case 501: return "Not Implemented";
	case 503: return "Service Temporarily Unavailable";
	case 505: return "HTTP Version Not Supported";
	default: return "Internal Server Error";
	}
}

/* @more: fields, each with its line's end. */
static int put_head(struct conn *c, int status, const char *type, off_t length,
		    const char *more)
{
	char *out = conn_reserve(c, HEAD_SIZE + strlen(more));
	const time_t now = time(NULL);
	char date[32];
	struct tm tm;
	int n;

	if (!out)
		return -EPIPE;
	strftime(date, sizeof(date), "%a, %d %b %Y %T GMT", gmtime_r(&now, &tm));
	n = sprintf(out, "HTTP/1.1 %d %s\r\nServer: httpd\r\nDate: %s\r\n"
		    "Content-Type: %s\r\nContent-Length: %lld\r\n"
		    "Connection: %s\r\n%s\r\n", status, reason(status), date,
		    type, (long long)length, c->is_last ? "close" : "keep-alive",
		    more);
	c->x->out_len += (size_t)n;
	return 0;
}

int answer_error(struct conn *c, int status, const char *more)
{
	char page[256], *out;
	size_t n;
	int ret;

	n = (size_t)sprintf(page, "<html>\r\n<head><title>%d %s</title></head>"
			    "\r\n<body>\r\n<center><h1>%d %s</h1></center>\r\n"
			    "<hr><center>httpd</center>\r\n</body>\r\n"
			    "</html>\r\n", status, reason(status), status,
			    reason(status));
	ret = put_head(c, status, "text/html", (off_t)n, more);
	if (ret || c->parser.method == HTTP_HEAD)
		return ret;
	out = conn_reserve(c, n);
	if (!out)
		return -EPIPE;
	memcpy(out, page, n);
	c->x->out_len += n;
	return 0;
}

/* To the same with a "/"; none of its characters means anything in a field. */
static int answer_moved(struct conn *c, const char *path)
{
	char location[3 * MAX_TARGET / 2], *to = location;

	to += sprintf(to, "Location: ");
	for (; *path; path++) {
		if (to > location + sizeof(location) - 8)
			return answer_error(c, 414, "");
		if (isalnum((unsigned char)*path) || strchr("/-._~", *path))
			*to++ = *path;
		else
			to += sprintf(to, "%%%02X", (unsigned char)*path);
	}
	sprintf(to, "/\r\n");
	return answer_error(c, 301, location);
}

static int answer_errno(struct conn *c, int err)
{
	switch (-err) {
	case ENOENT: case ENOTDIR: case ENAMETOOLONG: case ENXIO:
		return answer_error(c, 404, "");
	case EACCES: case ELOOP: case EXDEV: case EPERM:
		return answer_error(c, 403, "");
	case EMFILE: case ENFILE: case ENOMEM:
		return answer_error(c, 503, "");
	default:
		return answer_error(c, 500, "");
	}
}

static int put_file(struct conn *c, int fd, off_t size)
{
	off_t done = 0;
	size_t room;
	ssize_t n;

	while (done < size) {
		if (c->x->out_len == OUT_SIZE && conn_flush(c))
			return -EPIPE;
		room = OUT_SIZE - c->x->out_len;
		if ((off_t)room > size - done)
			room = (size_t)(size - done);
		n = pl_pread(fd, c->x->out + c->x->out_len, room, done);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		c->x->out_len += (size_t)n;
		done += n;
	}
	return 0;
}

/*
 * One that fits goes with other answers, by the buffer.  One that became
 * shorter ends the connection: its length was promised.
 */
static int send_file(struct conn *c, int fd, off_t size)
{
	if (!stream_sends_files ||
	    size <= (off_t)(OUT_SIZE - c->x->out_len))
		return put_file(c, fd, size);
	return conn_send_file(c, fd, size);
}

static int answer_open(struct conn *c, int fd, const char *path)
{
	struct stat st;
	int ret;

	if (fstat(fd, &st))
		return answer_errno(c, -errno);
	if (S_ISDIR(st.st_mode))
		return answer_moved(c, path);
	if (!S_ISREG(st.st_mode))
		return answer_error(c, 404, "");
	ret = put_head(c, 200, path_type(path), st.st_size, "");
	if (!ret && c->parser.method == HTTP_GET)
		ret = send_file(c, fd, st.st_size);
	return ret;
}

static int answer_file(struct conn *c, char *path)
{
	static const char index[] = "index.html";
	size_t len = strlen(path);
	const bool is_dir = path[len - 1] == '/';
	int fd, ret;

	if (is_dir) {
		if (len + sizeof(index) > MAX_TARGET)
			return answer_error(c, 414, "");
		memcpy(path + len, index, sizeof(index));
	}
	fd = path_open(path);
	if (fd == -ENOENT && is_dir) {
		path[len] = '\0';
		fd = path_open(path);
		if (fd >= 0) {
			close(fd);
			return answer_error(c, 403, "");
		}
	}
	if (fd < 0)
		return answer_errno(c, fd);
	ret = answer_open(c, fd, path);
	close(fd);
	return ret;
}

int answer_request(struct conn *c)
{
	struct exchange *x = c->x;

	x->target[x->target_len] = '\0';
	if (c->parser.method != HTTP_GET && c->parser.method != HTTP_HEAD)
		return answer_error(c, 405, "Allow: GET, HEAD\r\n");
	if (path_normalise(x->target)) {
		c->is_last = true;
		return answer_error(c, 400, "");
	}
	return answer_file(c, x->target);
}
