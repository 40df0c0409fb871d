/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * kv: what its files share.  Each is one noun:
 *
 *	kv.c		options, signals, accepts
 *	conn.c		a connection: a task that reads, executes, replies
 *	request.c	a command as redis clients send it
 *	command.c	what each command does
 *	table.c		keys, values, and when they expire
 *	buf.h		bytes that become more
 */
#ifndef KV_H
#define KV_H

#include <parklot.h>

#include "buf.h"

#define MAX_ARGS	256
#define MAX_REQUEST	(1 << 21)	/* bytes; of a string half */
#define SEC_NS		1000000000ULL

struct str {
	const char	*at;
	size_t		len;
};

struct request {
	int		argc;
	struct str	argv[MAX_ARGS];
};

struct conn {
	int		fd;
	struct buf	in, out;
	struct request	req;
	bool		is_last;	/* the reply under way is */
};

/* conn.c */
void conn_run(void *conn);

/*
 * request.c: how many of the @n bytes are a request; 0: more have to come; -1:
 * what begins so is none, *@why says what is wrong.
 */
ssize_t request_parse(struct request *req, const char *at, size_t n,
		      const char **why);

/* command.c: replies to c->out; waits for nothing but other commands. */
void command_run(struct conn *c);

/* table.c */
struct entry {
	struct entry	*next;
	uint64_t	hash;
	uint64_t	expires_ns;	/* PL_FOREVER: never */
	pl_timer_t	timer;		/* 0: none is armed */
	uint32_t	refs;		/* the table's, and the timer's */
	bool		is_removed;
	struct buf	value;
	struct str	key;
	char		bytes[];
};

struct shard;

/* Nobody else sees or changes what has the shard of @key meanwhile. */
struct shard *table_lock(struct str key, uint64_t *hash);
void table_unlock(struct shard *s);
struct entry *table_find(struct shard *s, uint64_t hash, struct str key);
/* One that is not there: without a value; NULL: no memory. */
struct entry *table_add(struct shard *s, uint64_t hash, struct str key);
void table_remove(struct shard *s, struct entry *e);
/* 0, or -errno and nothing has changed. */
int table_set_expiry(struct entry *e, uint64_t expires_ns);
uint64_t table_size(void);

#endif /* KV_H */
