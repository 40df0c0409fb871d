/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * httpd: what its files share.  Each is one noun:
 *
 *	httpd.c		options, signals
 *	server.c	accepts, knows all connections, drains them
 *	conn.c		a connection: a task that reads, parses, answers
 *	request.c	a request, as http_parser calls it out
 *	answer.c	a file or an error page
 *	path.c		the file that a request names
 *	stream_tcp.c	bytes
 */
#ifndef HTTPD_H
#define HTTPD_H

#include <http_parser.h>
#include <parklot.h>

#include "stream.h"

#define MAX_HEAD	8192	/* bytes of a request before its body */
#define MAX_TARGET	4096	/* bytes of what it asks for */
#define OUT_SIZE	16384
#define SEC_NS		1000000000ULL

extern struct config {
	const char	*root;
	int		root_fd;
	uint16_t	port;
	uint32_t	max_connections;
	uint64_t	max_body;	/* bytes */
	uint64_t	request_s;	/* for a request, and for a send */
	uint64_t	idle_s;		/* between requests */
	uint64_t	drain_s;	/* after SIGTERM */
} config;

/* Memory of a connection that is not idle. */
struct exchange {
	/* The request; the lengths and all that follows begin as 0. */
	char		target[MAX_TARGET];
	char		name[24], value[256];	/* of a field, cut off */
	size_t		target_len, name_len, value_len;
	uint32_t	nr_hosts;
	bool		has_value;	/* the field has begun its value */
	bool		has_other_encoding;	/* than chunked */
	bool		has_expect;
	uint64_t	body;		/* bytes so far */
	int		error;		/* a status: refused by a callback */
	/* Answers not yet sent. */
	size_t		out_len;
	char		out[OUT_SIZE];
};

struct conn {
	struct stream	stream;
	http_parser	parser;
	struct exchange	*x;		/* NULL: idle */
	uint64_t	deadline_ns;	/* of what is to be received */
	bool		in_request;	/* between its first and last byte */
	bool		is_last;	/* no request is read after this */
	pl_task_t	task;
	struct conn	*next, **link;	/* the server's list */
};

/* server.c */
int server_start(void);
void server_remove(struct conn *c);
bool server_is_draining(void);
/* How many connections had to be cancelled. */
uint32_t server_drain(void);

/* conn.c: the functions return 0 or -errno; after an error nothing is sent. */
void conn_run(void *conn);
char *conn_reserve(struct conn *c, size_t n);
int conn_flush(struct conn *c);
int conn_send_file(struct conn *c, int fd, off_t size);

/* request.c */
extern const http_parser_settings request_settings;
/* The status with which to refuse what ended in a parser's error at @c. */
int request_error(const struct conn *c, char at);

/* answer.c */
int answer_request(struct conn *c);
int answer_error(struct conn *c, int status, const char *more);

/* path.c: decodes and normalises in place; 0, or 400. */
int path_normalise(char *target);
int path_open(const char *path);
const char *path_type(const char *path);

#endif /* HTTPD_H */
