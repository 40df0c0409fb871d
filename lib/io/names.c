/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * names: of hosts and services, by the C library's resolver
 *
 * Addresses and ports as numbers are looked up nowhere: the caller's thread
 * reads and writes them.  For a name the resolver may wait for a server, so
 * that a task of the library's calls it.
 *
 * EAI_* are small negative numbers, as -errno is: -2 is EAI_NONAME as well as
 * -ENOENT.  So they come by a pointer of their own.
 */
#include "base/sys.h"
#include "io/io.h"
#include "io/proxy_call.h"
#include "wait/wait.h"

#include "parklot.h"

#include <netdb.h>
#include <string.h>

/* Of internationalized names, which the C library loads a library for. */
#ifdef AI_IDN
# define AI_CONVERTS	(AI_IDN | AI_CANONIDN)
#else
# define AI_CONVERTS	0
#endif

/* What the resolver said. */
struct name_answer {
	int	eai;	/* EAI_* or 0 */
	int	err;	/* the errno that it left */
};

static int name_result(const struct name_answer *a, int *eai)
{
	if (eai)
		*eai = a->eai;
	switch (a->eai) {
	case 0:
		return 0;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_SYSTEM:
		return a->err > 0 ? -a->err : -EIO;
	}
	return -ENXIO;
}

/* With its NUL; 0: no string. */
static size_t name_size(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

/* ---- from names to addresses ---- */

struct addrinfo_call {
	struct pl__proxy_call	call;
	struct name_answer	answer;
	struct addrinfo		*list;
	bool			has_hints;
	struct addrinfo		hints;
	const char		*node;		/* in text, or NULL */
	const char		*service;	/* in text, or NULL */
	char			text[];
};

static void addrinfo_ask(struct name_answer *a, const char *node,
			 const char *service, const struct addrinfo *hints,
			 struct addrinfo **list)
{
	int before = pl__errno_swap(0);

	a->eai = getaddrinfo(node, service, hints, list);
	a->err = pl__errno_swap(before);
	if (a->eai)
		*list = NULL;
}

static void addrinfo_run(struct pl__proxy_call *call)
{
	struct addrinfo_call *c = container_of(call, struct addrinfo_call,
					       call);

	addrinfo_ask(&c->answer, c->node, c->service,
		     c->has_hints ? &c->hints : NULL, &c->list);
}

static void addrinfo_destroy(struct pl__proxy_call *call)
{
	struct addrinfo_call *c = container_of(call, struct addrinfo_call,
					       call);

	if (c->list)
		freeaddrinfo(c->list);
	pl__free(c);
}

static struct addrinfo_call *addrinfo_call_new(const char *node,
					       const char *service,
					       const struct addrinfo *hints)
{
	size_t node_size = name_size(node), service_size = name_size(service);
	struct addrinfo_call *c;

	c = pl__alloc(sizeof(*c) + node_size + service_size);
	if (!c)
		return NULL;
	c->call.run = addrinfo_run;
	c->call.destroy = addrinfo_destroy;
	c->has_hints = hints;
	if (hints)
		c->hints = *hints;
	if (node)
		c->node = memcpy(c->text, node, node_size);
	if (service)
		c->service = memcpy(c->text + node_size, service,
				    service_size);
	return c;
}

static bool addrinfo_is_numeric(const char *node, const char *service,
				const struct addrinfo *hints,
				struct addrinfo **list)
{
	struct addrinfo numeric = { 0 };
	struct name_answer answer;

	if (hints)
		numeric = *hints;
	numeric.ai_flags &= ~AI_CONVERTS;
	numeric.ai_flags |= AI_NUMERICHOST | AI_NUMERICSERV;
	addrinfo_ask(&answer, node, service, &numeric, list);
	return !answer.eai;
}

static int addrinfo_by_proxy(const char *node, const char *service,
			     const struct addrinfo *hints,
			     struct addrinfo **list, int *eai,
			     uint64_t deadline_ns)
{
	struct addrinfo_call *c = addrinfo_call_new(node, service, hints);
	int ret;

	if (!c)
		return -ENOMEM;
	ret = pl__proxy_call(&c->call, "pl-getaddrinfo", PL__FOR_GETADDRINFO,
			     deadline_ns);
	if (ret)
		return ret;
	*list = c->list;
	c->list = NULL;
	ret = name_result(&c->answer, eai);
	addrinfo_destroy(&c->call);
	return ret;
}

int pl_getaddrinfo_until(const char *node, const char *service,
			 const struct addrinfo *hints, struct addrinfo **list,
			 int *eai, uint64_t deadline_ns)
{
	int ret;

	if (eai)
		*eai = 0;
	if (!list)
		return -EINVAL;
	*list = NULL;
	ret = pl__wait_pending();
	if (ret)
		return ret;
	if (!addrinfo_is_numeric(node, service, hints, list))
		return addrinfo_by_proxy(node, service, hints, list, eai,
					 deadline_ns);
	pl__io_take_turn();
	return 0;
}

int pl_getaddrinfo(const char *node, const char *service,
		   const struct addrinfo *hints, struct addrinfo **list,
		   int *eai)
{
	return pl_getaddrinfo_until(node, service, hints, list, eai,
				    PL_FOREVER);
}

/* ---- from addresses to names ---- */

/* What is to be written, and where. */
struct nameinfo {
	char		*host;
	char		*service;
	socklen_t	host_size;	/* 0: no host */
	socklen_t	service_size;	/* 0: no service */
	int		flags;		/* NI_* */
};

struct nameinfo_call {
	struct pl__proxy_call	call;
	struct name_answer	answer;
	struct nameinfo		to;		/* in text */
	struct sockaddr_storage	addr;
	socklen_t		len;
	char			text[];
};

static void nameinfo_ask(struct name_answer *a, const struct sockaddr *addr,
			 socklen_t len, const struct nameinfo *to)
{
	int before = pl__errno_swap(0);

	a->eai = getnameinfo(addr, len, to->host_size ? to->host : NULL,
			     to->host_size,
			     to->service_size ? to->service : NULL,
			     to->service_size, to->flags);
	a->err = pl__errno_swap(before);
}

static void nameinfo_run(struct pl__proxy_call *call)
{
	struct nameinfo_call *c = container_of(call, struct nameinfo_call,
					       call);

	nameinfo_ask(&c->answer, (struct sockaddr *)&c->addr, c->len, &c->to);
}

static void nameinfo_destroy(struct pl__proxy_call *call)
{
	pl__free(container_of(call, struct nameinfo_call, call));
}

static struct nameinfo_call *nameinfo_call_new(const struct sockaddr *addr,
					       socklen_t len,
					       const struct nameinfo *to)
{
	struct nameinfo_call *c;

	c = pl__alloc(sizeof(*c) + to->host_size + to->service_size);
	if (!c)
		return NULL;
	c->call.run = nameinfo_run;
	c->call.destroy = nameinfo_destroy;
	c->to = *to;
	c->to.host = c->text;
	c->to.service = c->text + to->host_size;
	c->len = len;
	memcpy(&c->addr, addr, len);
	return c;
}

static bool nameinfo_is_numeric(const struct nameinfo *to)
{
	return (!to->host_size || to->flags & NI_NUMERICHOST) &&
	       (!to->service_size || to->flags & NI_NUMERICSERV);
}

static int nameinfo_by_proxy(const struct sockaddr *addr, socklen_t len,
			     const struct nameinfo *to, int *eai,
			     uint64_t deadline_ns)
{
	struct nameinfo_call *c = nameinfo_call_new(addr, len, to);
	int ret;

	if (!c)
		return -ENOMEM;
	ret = pl__proxy_call(&c->call, "pl-getnameinfo", PL__FOR_GETNAMEINFO,
			     deadline_ns);
	if (ret)
		return ret;
	if (!c->answer.eai && to->host_size)
		memcpy(to->host, c->to.host, name_size(c->to.host));
	if (!c->answer.eai && to->service_size)
		memcpy(to->service, c->to.service, name_size(c->to.service));
	ret = name_result(&c->answer, eai);
	nameinfo_destroy(&c->call);
	return ret;
}

int pl_getnameinfo_until(const struct sockaddr *addr, socklen_t len,
			 char *host, socklen_t host_size, char *service,
			 socklen_t service_size, int flags, int *eai,
			 uint64_t deadline_ns)
{
	const struct nameinfo to = {
		.host = host,
		.service = service,
		.host_size = host ? host_size : 0,
		.service_size = service ? service_size : 0,
		.flags = flags,
	};
	struct name_answer answer;
	int ret;

	if (eai)
		*eai = 0;
	if (!addr || len > sizeof(struct sockaddr_storage))
		return -EINVAL;
	ret = pl__wait_pending();
	if (ret)
		return ret;
	if (!nameinfo_is_numeric(&to))
		return nameinfo_by_proxy(addr, len, &to, eai, deadline_ns);
	nameinfo_ask(&answer, addr, len, &to);
	pl__io_take_turn();
	return name_result(&answer, eai);
}

int pl_getnameinfo(const struct sockaddr *addr, socklen_t len, char *host,
		   socklen_t host_size, char *service, socklen_t service_size,
		   int flags, int *eai)
{
	return pl_getnameinfo_until(addr, len, host, host_size, service,
				    service_size, flags, eai, PL_FOREVER);
}
