// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What each command does, in redis's words
 *
 * A command of one key is atomic.  One of several keys takes their locks in
 * turn, never two at a time: each key is looked at in its own moment.
 */
#include "kv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NOT_A_NUMBER	"-ERR value is not an integer or out of range\r\n"
#define MS_NS		1000000ULL

static void __attribute__((format(printf, 2, 3)))
reply(struct conn *c, const char *format, ...)
{
	char text[512];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	buf_append(&c->out, text, (size_t)n < sizeof(text) ? (size_t)n :
						sizeof(text) - 1);
}

static void reply_bulk(struct conn *c, const char *at, size_t len)
{
	reply(c, "$%zu\r\n", len);
	buf_append(&c->out, at, len);
	buf_append(&c->out, "\r\n", 2);
}

static bool is_word(struct str s, const char *word)
{
	return s.len == strlen(word) && !strncasecmp(s.at, word, s.len);
}

/* As redis takes them: no space, no sign but "-", no zero in front. */
static bool to_number(struct str s, int64_t *n)
{
	char text[24], again[24];

	if (!s.len || s.len >= sizeof(text))
		return false;
	memcpy(text, s.at, s.len);
	text[s.len] = '\0';
	*n = strtoll(text, NULL, 10);
	snprintf(again, sizeof(again), "%lld", (long long)*n);
	return !strcmp(text, again);
}

static void ping(struct conn *c, const struct request *req)
{
	if (req->argc > 1)
		reply_bulk(c, req->argv[1].at, req->argv[1].len);
	else
		reply(c, "+PONG\r\n");
}

static void get(struct conn *c, const struct request *req)
{
	uint64_t hash;
	struct shard *s;
	struct entry *e;
	int i;

	for (i = 1; i < req->argc; i++) {
		s = table_lock(req->argv[i], &hash);
		e = table_find(s, hash, req->argv[i]);
		if (e)
			reply_bulk(c, e->value.at, e->value.len);
		else
			reply(c, "$-1\r\n");
		table_unlock(s);
	}
}

static void mget(struct conn *c, const struct request *req)
{
	reply(c, "*%d\r\n", req->argc - 1);
	get(c, req);
}

struct set_options {
	uint64_t	expires_ns;
	bool		if_there, if_not_there;
};

/* The time that @n units of @unit_ns are from now; 0: not in this world. */
static uint64_t from_now(int64_t n, uint64_t unit_ns)
{
	const uint64_t now_ns = pl_now();

	if (n <= 0 || (uint64_t)n > (INT64_MAX - now_ns) / unit_ns)
		return 0;
	return now_ns + (uint64_t)n * unit_ns;
}

static bool set_parse(struct conn *c, const struct request *req,
		      struct set_options *o)
{
	int64_t n;
	int i;

	for (i = 3; i < req->argc; i++) {
		const bool is_ms = is_word(req->argv[i], "px");

		if (is_word(req->argv[i], "nx") && !o->if_there) {
			o->if_not_there = true;
		} else if (is_word(req->argv[i], "xx") && !o->if_not_there) {
			o->if_there = true;
		} else if ((is_ms || is_word(req->argv[i], "ex")) &&
			   i + 1 < req->argc && o->expires_ns == PL_FOREVER) {
			if (!to_number(req->argv[++i], &n)) {
				reply(c, NOT_A_NUMBER);
				return false;
			}
			o->expires_ns = from_now(n, is_ms ? MS_NS : SEC_NS);
		} else {
			reply(c, "-ERR syntax error\r\n");
			return false;
		}
	}
	if (!o->expires_ns)
		reply(c, "-ERR invalid expire time in 'set' command\r\n");
	return o->expires_ns;
}

/* False: there was not enough memory, and the key is gone. */
static bool set_value(struct shard *s, struct entry *e, uint64_t hash,
		      struct str key, struct str value, uint64_t expires_ns)
{
	if (!e)
		e = table_add(s, hash, key);
	if (!e)
		return false;
	e->value.len = 0;
	buf_append(&e->value, value.at, value.len);
	if (!e->value.has_failed &&
	    (e->expires_ns == expires_ns || !table_set_expiry(e, expires_ns)))
		return true;
	table_remove(s, e);
	return false;
}

static void set(struct conn *c, const struct request *req)
{
	struct set_options o = { .expires_ns = PL_FOREVER };
	struct shard *s;
	struct entry *e;
	uint64_t hash;

	if (!set_parse(c, req, &o))
		return;
	s = table_lock(req->argv[1], &hash);
	e = table_find(s, hash, req->argv[1]);
	if (e ? o.if_not_there : o.if_there)
		reply(c, "$-1\r\n");
	else if (set_value(s, e, hash, req->argv[1], req->argv[2],
			   o.expires_ns))
		reply(c, "+OK\r\n");
	else
		reply(c, "-OOM out of memory\r\n");
	table_unlock(s);
}

static void incr(struct conn *c, const struct request *req)
{
	struct str value = { "0", 1 };
	struct shard *s;
	struct entry *e;
	uint64_t hash;
	char text[24];
	int64_t n;

	s = table_lock(req->argv[1], &hash);
	e = table_find(s, hash, req->argv[1]);
	if (e)
		value = (struct str){ e->value.at, e->value.len };
	if (!to_number(value, &n)) {
		reply(c, NOT_A_NUMBER);
	} else if (n == INT64_MAX) {
		reply(c, "-ERR increment or decrement would overflow\r\n");
	} else {
		value.at = text;
		value.len = (size_t)sprintf(text, "%lld", (long long)n + 1);
		if (set_value(s, e, hash, req->argv[1], value,
			      e ? e->expires_ns : PL_FOREVER))
			reply(c, ":%s\r\n", text);
		else
			reply(c, "-OOM out of memory\r\n");
	}
	table_unlock(s);
}

/* How many of them are there; @removes: no longer. */
static void count(struct conn *c, const struct request *req, bool removes)
{
	int i, nr = 0;

	for (i = 1; i < req->argc; i++) {
		uint64_t hash;
		struct shard *s = table_lock(req->argv[i], &hash);
		struct entry *e = table_find(s, hash, req->argv[i]);

		nr += e != NULL;
		if (e && removes)
			table_remove(s, e);
		table_unlock(s);
	}
	reply(c, ":%d\r\n", nr);
}

static void del(struct conn *c, const struct request *req)
{
	count(c, req, true);
}

static void exists(struct conn *c, const struct request *req)
{
	count(c, req, false);
}

static void expire(struct conn *c, const struct request *req)
{
	uint64_t hash, expires_ns = 0;
	struct shard *s;
	struct entry *e;
	int64_t n;

	if (!to_number(req->argv[2], &n)) {
		reply(c, NOT_A_NUMBER);
		return;
	}
	if (n > 0)
		expires_ns = from_now(n, SEC_NS);
	if (n > 0 && !expires_ns) {
		reply(c, "-ERR invalid expire time in 'expire' command\r\n");
		return;
	}
	s = table_lock(req->argv[1], &hash);
	e = table_find(s, hash, req->argv[1]);
	if (e && !expires_ns)
		table_remove(s, e);
	if (e && expires_ns && table_set_expiry(e, expires_ns))
		reply(c, "-OOM out of memory\r\n");
	else
		reply(c, ":%d\r\n", e != NULL);
	table_unlock(s);
}

static void ttl(struct conn *c, const struct request *req)
{
	const uint64_t now_ns = pl_now();
	long long left = -2;
	struct shard *s;
	struct entry *e;
	uint64_t hash;

	s = table_lock(req->argv[1], &hash);
	e = table_find(s, hash, req->argv[1]);
	if (e && e->expires_ns == PL_FOREVER)
		left = -1;
	else if (e)
		left = (long long)((e->expires_ns - now_ns + SEC_NS / 2) /
				   SEC_NS);
	table_unlock(s);
	reply(c, ":%lld\r\n", left);
}

static void dbsize(struct conn *c, const struct request *req)
{
	(void)req;
	reply(c, ":%llu\r\n", (unsigned long long)table_size());
}

static void info(struct conn *c, const struct request *req)
{
	struct pl_stat st = PL_STAT_INIT;
	char text[256];

	(void)req;
	pl_stat_read(&st);
	reply_bulk(c, text, (size_t)sprintf(text,
		   "# Server\r\nparklot_version:%s\r\ntasks:%u\r\n"
		   "# Keyspace\r\ndb0:keys=%llu\r\n", PARKLOT_VERSION,
		   st.tasks_alive, (unsigned long long)table_size()));
}

/* redis-cli asks for all of them; it can do without. */
static void command(struct conn *c, const struct request *req)
{
	(void)req;
	reply(c, "*0\r\n");
}

static void quit(struct conn *c, const struct request *req)
{
	(void)req;
	c->is_last = true;
	reply(c, "+OK\r\n");
}

static const struct {
	const char	*name;
	int		arity;		/* negative: at least that many */
	void		(*run)(struct conn *c, const struct request *req);
} commands[] = {
	{ "get", 2, get }, { "set", -3, set }, { "incr", 2, incr },
	{ "del", -2, del }, { "exists", -2, exists }, { "mget", -2, mget },
	{ "expire", 3, expire }, { "ttl", 2, ttl }, { "ping", -1, ping },
	{ "dbsize", 1, dbsize }, { "info", -1, info },
	{ "command", -1, command }, { "quit", -1, quit },
};

static void reply_unknown(struct conn *c, const struct request *req)
{
	size_t begin = c->out.len + 1, i;
	int at;

	reply(c, "-ERR unknown command '%.*s', with args beginning with: ",
	      req->argv[0].len < 128 ? (int)req->argv[0].len : 128,
	      req->argv[0].at);
	for (at = 1; at < req->argc && at < 4; at++)
		reply(c, "'%.*s' ", req->argv[at].len < 32 ?
		      (int)req->argv[at].len : 32, req->argv[at].at);
	for (i = begin; i < c->out.len; i++)
		if (c->out.at[i] == '\r' || c->out.at[i] == '\n')
			c->out.at[i] = ' ';
	reply(c, "\r\n");
}

void command_run(struct conn *c)
{
	const struct request *req = &c->req;
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (is_word(req->argv[0], commands[i].name))
			break;
	if (i == sizeof(commands) / sizeof(*commands))
		reply_unknown(c, req);
	else if (commands[i].arity < 0 ? req->argc < -commands[i].arity :
					 req->argc != commands[i].arity)
		reply(c, "-ERR wrong number of arguments for '%s' command\r\n",
		      commands[i].name);
	else
		commands[i].run(c, req);
}
