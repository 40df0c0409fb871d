// SPDX-License-Identifier: GPL-2.0-only
/*
 * GSSAPI of MIT Kerberos in tasks, with a KDC
 *
 * What GSSAPI keeps for each thread comes first, in 1, 10 and 1000 tasks on one
 * worker and on two: the text of a minor status, and the cache that was named
 * by gss_krb5_ccache_name().  Tasks that wait before they read the text, and
 * that have no hook for the cache, find those of others.  Those that read it at
 * once, and have the hook, find their own.
 *
 * Then 200 members are clients of a service, each with a task for its server.
 * Their tokens and messages pass a pair of sockets by pl_read() and pl_write().
 * The server knows which user a member is, and both read what the other said.
 * Tickets come from the KDC, for which GSSAPI waits by itself: a third of the
 * members is spawned as such that block, a third calls GSSAPI in pl_blocking().
 * One half names its cache for each call, the other one by
 * gss_krb5_ccache_name().
 *
 * Its argument is a directory with the keytabs "clients", of user0 to user9,
 * and "service", of store.  KRB5_CONFIG= says where the KDC is.
 */
#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <sys/socket.h>

#include "app.h"

#define NR_USERS	10
#define MOST_BYTES	16384		/* of a token */
#define REFRESH		8		/* units with one ticket */
#define SERVICE		"store"

static atomic_long nr_contexts, nr_tickets, nr_refused, nr_given_up;

/* ---- what belongs to the thread ---- */

static _Thread_local bool cache_is_named;

/* No caller keeps the address of the thread's flag over a wait. */
static void __attribute__((noinline)) cache_name(const char *name)
{
	OM_uint32 minor;

	gss_krb5_ccache_name(&minor, name, NULL);
	cache_is_named = name;
}

static void *cache_save(void)
{
	const char *name = NULL;
	OM_uint32 minor;

	if (!cache_is_named)
		return NULL;
	cache_is_named = false;
	gss_krb5_ccache_name(&minor, NULL, &name);
	return strdup(name);
}

static void cache_restore(void *name)
{
	if (name)
		cache_name(name);
	free(name);
}

/* In the mechanism's words. */
static void text_of(OM_uint32 minor, char *text, size_t size)
{
	gss_buffer_desc words = GSS_C_EMPTY_BUFFER;
	OM_uint32 unused, more = 0;

	gss_display_status(&unused, minor, GSS_C_MECH_CODE,
			   (gss_OID)gss_mech_krb5, &more, &words);
	snprintf(text, size, "%.*s", (int)words.length, (char *)words.value);
	gss_release_buffer(&unused, &words);
}

/* @minor is read after the call that is @major. */
static void must_gss(const char *what, OM_uint32 major, OM_uint32 *minor)
{
	char text[256];

	if (!GSS_ERROR(major))
		return;
	text_of(*minor, text, sizeof(text));
	app_fail("%s: %#x: %s", what, major, text);
}

static OM_uint32 acquire(gss_cred_id_t *cred, gss_name_t name,
			 gss_cred_usage_t usage, OM_uint32 nr_where,
			 gss_key_value_element_desc *where, OM_uint32 *minor)
{
	gss_OID_set_desc krb5 = { 1, (gss_OID)gss_mech_krb5 };
	gss_key_value_set_desc store = { nr_where, where };

	return gss_acquire_cred_from(minor, name, GSS_C_INDEFINITE, &krb5,
				     usage, &store, cred, NULL, NULL);
}

/* A keytab that is not there: its name is in the text. */
static OM_uint32 fail_to_acquire(uint32_t nr, char *name, size_t size)
{
	gss_key_value_element_desc where = { "keytab", name };
	gss_cred_id_t cred;
	OM_uint32 minor;

	snprintf(name, size, "FILE:/nonexistent/%u", nr);
	if (acquire(&cred, GSS_C_NO_NAME, GSS_C_ACCEPT, 1, &where, &minor) !=
	    GSS_S_NO_CRED)
		app_fail("there are credentials in %s", name);
	return minor;
}

static bool is_text_of(OM_uint32 minor, const char *name)
{
	const char *found;
	char text[256];

	text_of(minor, text, sizeof(text));
	found = strstr(text, name);
	return found && found[strlen(name)] == ' ';
}

/* ---- state of the thread, with and without its answer ---- */

static struct pl_barrier meeting;
static atomic_int nr_wrong_texts, nr_wrong_caches;
static bool is_read_late;

static void have_state(void *arg)
{
	const char *cache = NULL;
	char name[64], file[64];
	OM_uint32 minor, code;

	snprintf(file, sizeof(file), "FILE:/nonexistent/cache%u",
		 (uint32_t)(uintptr_t)arg);
	cache_name(file);
	code = fail_to_acquire((uint32_t)(uintptr_t)arg, name, sizeof(name));
	if (!is_read_late)
		nr_wrong_texts += !is_text_of(code, name);
	app_must("pl_barrier_wait", pl_barrier_wait(&meeting));
	if (is_read_late)
		nr_wrong_texts += !is_text_of(code, name);
	gss_krb5_ccache_name(&minor, file, &cache);
	nr_wrong_caches += strcmp(cache, file) != 0;
	cache_name(NULL);
}

/* All have set it before the first of them reads it. */
static void have_states(uint32_t nr_tasks, uint32_t nr_workers, bool is_late)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	static pl_task_t tasks[1000];
	uint32_t i;

	cfg.nr_workers = nr_workers;
	nr_wrong_texts = nr_wrong_caches = 0;
	is_read_late = is_late;
	app_must("pl_runtime_start", pl_runtime_start(&cfg));
	app_must("pl_barrier_init", pl_barrier_init(&meeting, nr_tasks));
	for (i = 0; i < nr_tasks; i++)
		app_must("pl_spawn", pl_spawn(&tasks[i], have_state,
					      (void *)(uintptr_t)i, NULL));
	for (i = 0; i < nr_tasks; i++)
		pl_join(tasks[i]);
	app_must("pl_runtime_stop", pl_runtime_stop());
	printf("gssapi: %u tasks, %u workers, %s: %d wrong texts, %d wrong "
	       "caches\n", nr_tasks, nr_workers, is_late ? "without" : "with",
	       nr_wrong_texts, nr_wrong_caches);
}

static void compare_states(bool is_late)
{
	static const uint32_t nrs[] = { 1, 10, 1000 };
	uint32_t i, nr_workers;
	bool must_fail;

	for (nr_workers = 1; nr_workers <= 2; nr_workers++) {
		for (i = 0; i < 3; i++) {
			have_states(nrs[i], nr_workers, is_late);
			/* Others that were alone may run on any worker. */
			must_fail = is_late && nrs[i] > nr_workers;
			if (must_fail && (!nr_wrong_texts || !nr_wrong_caches))
				app_fail("there is no state of the thread");
			if (!is_late && (nr_wrong_texts || nr_wrong_caches))
				app_fail("a task found what another one set");
		}
	}
}

/* ---- tokens and messages on a socket ---- */

/* Whether all of it came; the task may be cancelled. */
static bool read_all(int fd, void *to, size_t size)
{
	ssize_t n = 1;
	size_t done;

	for (done = 0; n > 0 && done < size; done += (size_t)n)
		n = pl_read(fd, (char *)to + done, size - done);
	if (n < 0 && n != -ECANCELED)
		app_fail("pl_read: %s", strerror((int)-n));
	return n > 0;
}

static bool send_token(int fd, gss_buffer_desc *token)
{
	uint32_t size = (uint32_t)token->length;
	char bytes[sizeof(size) + MOST_BYTES];
	size_t total = sizeof(size) + size, done;
	OM_uint32 minor;
	ssize_t n = 1;

	if (size > MOST_BYTES)
		app_fail("a token has %u bytes", size);
	memcpy(bytes, &size, sizeof(size));
	memcpy(bytes + sizeof(size), token->value, size);
	gss_release_buffer(&minor, token);
	for (done = 0; n > 0 && done < total; done += (size_t)n)
		n = pl_send(fd, bytes + done, total - done, 0);
	if (n < 0 && n != -ECANCELED && n != -EPIPE)
		app_fail("pl_send: %s", strerror((int)-n));
	return n > 0;
}

static bool read_token(int fd, gss_buffer_desc *token, char *bytes)
{
	uint32_t size;

	if (!read_all(fd, &size, sizeof(size)) || size > MOST_BYTES ||
	    !read_all(fd, bytes, size))
		return false;
	token->value = bytes;
	token->length = size;
	return true;
}

/* ---- a member, and its server ---- */

struct peer {
	struct member *m;
	int fd[2];			/* the member's, and the server's */
	char cache[128], keytab[128];	/* as GSSAPI names them */
	char bytes[MOST_BYTES];		/* what the member reads */
	gss_ctx_id_t ctx;
	gss_cred_id_t cred;
	gss_name_t service;
	gss_buffer_desc in, out;
	OM_uint32 major, minor;
};

static void user_of(uint32_t nr, char *user, size_t size)
{
	snprintf(user, size, "user%u@LOT.TEST", nr % NR_USERS);
}

static gss_name_t import_name(const char *text)
{
	gss_buffer_desc buffer = { strlen(text), (void *)(uintptr_t)text };
	gss_name_t name;
	OM_uint32 minor;

	must_gss("gss_import_name",
		 gss_import_name(&minor, &buffer,
				 (gss_OID)GSS_KRB5_NT_PRINCIPAL_NAME, &name),
		 &minor);
	return name;
}

/* Says that in capitals, as "user3@LOT.TEST: HELLO 7". */
static void answer(const gss_buffer_desc *said, gss_name_t user, char *to,
		   size_t size)
{
	gss_buffer_desc name;
	OM_uint32 minor;
	size_t i;
	int n;

	must_gss("gss_display_name",
		 gss_display_name(&minor, user, &name, NULL), &minor);
	n = snprintf(to, size, "%.*s: ", (int)name.length,
		     (char *)name.value);
	gss_release_buffer(&minor, &name);
	for (i = 0; i < said->length && (size_t)n + i + 1 < size; i++) {
		to[(size_t)n + i] = ((char *)said->value)[i];
		if (to[(size_t)n + i] >= 'a' && to[(size_t)n + i] <= 'z')
			to[(size_t)n + i] -= 'a' - 'A';
	}
	to[(size_t)n + i] = '\0';
}

static void serve_message(int fd, gss_ctx_id_t ctx, gss_name_t user)
{
	char bytes[MOST_BYTES], text[256];
	gss_buffer_desc in, said, out;
	OM_uint32 minor;

	if (!read_token(fd, &in, bytes))
		return;
	must_gss("gss_unwrap",
		 gss_unwrap(&minor, ctx, &in, &said, NULL, NULL), &minor);
	answer(&said, user, text, sizeof(text));
	gss_release_buffer(&minor, &said);
	said.value = text;
	said.length = strlen(text);
	must_gss("gss_wrap", gss_wrap(&minor, ctx, 1, GSS_C_QOP_DEFAULT, &said,
				      NULL, &out), &minor);
	send_token(fd, &out);
}

/* A child of the member's scope. */
static intptr_t serve(void *arg)
{
	struct peer *p = arg;
	gss_key_value_element_desc where = { "keytab", p->keytab };
	gss_cred_id_t cred = GSS_C_NO_CREDENTIAL;
	gss_ctx_id_t ctx = GSS_C_NO_CONTEXT;
	OM_uint32 major = GSS_S_CONTINUE_NEEDED, minor;
	gss_name_t user = GSS_C_NO_NAME;
	gss_buffer_desc in, out;
	char bytes[MOST_BYTES];

	must_gss("gss_acquire_cred_from", acquire(&cred, GSS_C_NO_NAME,
		 GSS_C_ACCEPT, 1, &where, &minor), &minor);
	while (major == GSS_S_CONTINUE_NEEDED &&
	       read_token(p->fd[1], &in, bytes)) {
		gss_release_name(&minor, &user);
		major = gss_accept_sec_context(&minor, &ctx, cred, &in,
			GSS_C_NO_CHANNEL_BINDINGS, &user, NULL, &out, NULL,
			NULL, NULL);
		must_gss("gss_accept_sec_context", major, &minor);
		if (out.length && !send_token(p->fd[1], &out))
			break;
	}
	if (major == GSS_S_COMPLETE)
		serve_message(p->fd[1], ctx, user);
	gss_release_name(&minor, &user);
	gss_delete_sec_context(&minor, &ctx, GSS_C_NO_BUFFER);
	gss_release_cred(&minor, &cred);
	/* The member reads no further. */
	shutdown(p->fd[1], SHUT_RDWR);
	return 0;
}

/* Once in a while it asks the KDC, which blocks. */
static void init_context(void *arg)
{
	struct peer *p = arg;

	p->major = gss_init_sec_context(&p->minor, p->cred, &p->ctx,
		p->service, (gss_OID)gss_mech_krb5,
		GSS_C_MUTUAL_FLAG | GSS_C_CONF_FLAG | GSS_C_INTEG_FLAG, 0,
		GSS_C_NO_CHANNEL_BINDINGS, &p->in, NULL, &p->out, NULL, NULL);
	must_gss("gss_init_sec_context", p->major, &p->minor);
}

/* By the cache that a call names, or the thread. */
static void get_credentials(void *arg)
{
	struct peer *p = arg;
	gss_key_value_element_desc where[] = {
		{ "client_keytab", NULL }, { "ccache", p->cache },
	};
	gss_name_t name;
	char user[64], keytab[160];
	OM_uint32 minor;

	snprintf(keytab, sizeof(keytab), "FILE:%s/clients", app_argument);
	where[0].value = keytab;
	nr_tickets += access(p->cache + strlen("FILE:"), F_OK) != 0;
	user_of(p->m->nr, user, sizeof(user));
	name = import_name(user);
	must_gss("gss_acquire_cred_from",
		 acquire(&p->cred, name, GSS_C_INITIATE, 2 - p->m->nr % 2,
			 where, &minor), &minor);
	gss_release_name(&minor, &name);
	init_context(arg);
}

static void call_gss(struct peer *p, void (*fn)(void *))
{
	if (p->m->nr % 3 == 1)
		pl_blocking(fn, p);
	else
		fn(p);
}

static bool open_context(struct peer *p)
{
	call_gss(p, get_credentials);
	for (;;) {
		if (p->out.length && !send_token(p->fd[0], &p->out))
			return false;
		if (p->major == GSS_S_COMPLETE)
			return true;
		if (!read_token(p->fd[0], &p->in, p->bytes))
			return false;
		call_gss(p, init_context);
	}
}

/* A token that somebody changed is refused, and its text is the member's. */
static void refuse(struct peer *p)
{
	const uint32_t nr = app_random(&p->m->seed, 1000000);
	gss_buffer_desc in, said;
	char name[64], junk[64];
	OM_uint32 minor;

	memset(junk, (int)(nr % 256), sizeof(junk));
	in.value = junk;
	in.length = sizeof(junk);
	if (!GSS_ERROR(gss_unwrap(&minor, p->ctx, &in, &said, NULL, NULL)))
		app_fail("junk is taken for a message");
	minor = fail_to_acquire(nr, name, sizeof(name));
	if (!is_text_of(minor, name))
		app_fail("the text of %s is another one's", name);
	nr_refused++;
}

static bool talk(struct peer *p)
{
	char text[64], user[64], want[160];
	gss_buffer_desc said, out;
	OM_uint32 minor;

	said.length = (size_t)snprintf(text, sizeof(text), "HELLO %u",
				       app_random(&p->m->seed, 1000000));
	user_of(p->m->nr, user, sizeof(user));
	snprintf(want, sizeof(want), "%s: %s", user, text);
	text[1] = 'e';
	said.value = text;
	must_gss("gss_wrap", gss_wrap(&minor, p->ctx, 1, GSS_C_QOP_DEFAULT,
				      &said, NULL, &out), &minor);
	if (!send_token(p->fd[0], &out) ||
	    !read_token(p->fd[0], &p->in, p->bytes))
		return false;
	must_gss("gss_unwrap", gss_unwrap(&minor, p->ctx, &p->in, &said, NULL,
					  NULL), &minor);
	if (said.length != strlen(want) ||
	    memcmp(said.value, want, said.length))
		app_fail("the server says '%.*s', and ought to say '%s'",
			 (int)said.length, (char *)said.value, want);
	gss_release_buffer(&minor, &said);
	return true;
}

static void be_client(struct peer *p)
{
	struct pl_scope s = PL_SCOPE_INIT;
	OM_uint32 minor;
	bool is_done;
	int ret;

	if (pl_scope_enter(&s, PL_FOREVER, 0))
		return;
	ret = pl_scope_spawn(&s, NULL, serve, p, NULL);
	/* The member may be cancelled since it entered. */
	if (ret == -ECANCELED && pl_cancelled()) {
		pl_scope_leave(&s);
		nr_given_up++;
		return;
	}
	app_must("pl_scope_spawn", ret);
	if (p->m->nr % 2)
		cache_name(p->cache);
	pl_sleep(app_random(&p->m->seed, NSEC_PER_MSEC));
	is_done = open_context(p);
	if (is_done && !app_random(&p->m->seed, 4))
		refuse(p);
	is_done = is_done && talk(p);
	if (!is_done && !pl_cancelled())
		app_fail("the server went away");
	shutdown(p->fd[0], SHUT_RDWR);
	pl_scope_leave(&s);
	nr_contexts += is_done;
	nr_given_up += !is_done;
	gss_release_buffer(&minor, &p->out);
	gss_delete_sec_context(&minor, &p->ctx, GSS_C_NO_BUFFER);
	gss_release_cred(&minor, &p->cred);
}

static void connect_once(struct member *m)
{
	struct peer *p = calloc(1, sizeof(*p));
	OM_uint32 minor;

	if (!p || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p->fd))
		app_fail("a pair of sockets: %s", strerror(errno));
	p->m = m;
	snprintf(p->cache, sizeof(p->cache), "FILE:%s/cache%u", app_argument,
		 m->nr);
	snprintf(p->keytab, sizeof(p->keytab), "FILE:%s/service",
		 app_argument);
	if (!app_random(&m->seed, REFRESH))
		unlink(p->cache + strlen("FILE:"));
	p->service = import_name(SERVICE);
	be_client(p);
	gss_release_name(&minor, &p->service);
	cache_name(NULL);
	close(p->fd[0]);
	close(p->fd[1]);
	free(p);
}

/* ---- the rounds ---- */

static void begin(void)
{
	nr_contexts = nr_tickets = nr_refused = nr_given_up = 0;
}

static void end(void)
{
	printf("gssapi: %ld contexts, %ld tickets, %ld refused, %ld given up\n",
	       (long)nr_contexts, (long)nr_tickets, (long)nr_refused,
	       (long)nr_given_up);
	if (!nr_contexts || !nr_tickets)
		app_fail("no member had a context and a ticket");
}

static uint32_t flags(uint32_t nr)
{
	return nr % 3 ? 0 : PL_SPAWN_BLOCKING;
}

int main(int argc, char **argv)
{
	static const struct app gssapi = {
		.name = "gssapi", .cancel_ns = 5 * NSEC_PER_MSEC,
		.begin = begin, .work = connect_once, .flags = flags,
		.end = end,
	};

	app_name = gssapi.name;
	if (argc < 2)
		app_fail("the argument is missing: a directory");
	/* Its hook is added in between: it cannot be removed. */
	compare_states(true);
	app_must("pl_hook_add", pl_hook_add(cache_save, cache_restore, free));
	compare_states(false);
	return app_main(argc, argv, &gssapi);
}
