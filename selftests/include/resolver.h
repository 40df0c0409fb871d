/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A resolver in place of the C library's: the linker finds it first.  It tells
 * how often it is called, and counts the lists that are not freed.
 *
 * A name that begins with "gate" is found once the gate is open; others at
 * once: "none" is none, "system" and "memory" fail as they say, and the rest is
 * 127.0.0.1.  As in the C library, what is asked for as a number is looked up
 * nowhere.  The harness and rt.h are included before this.
 */
#ifndef SELFTESTS_RESOLVER_H
#define SELFTESTS_RESOLVER_H

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>

static atomic_int nr_calls;		/* of names */
static atomic_int nr_inside, most_inside;
static atomic_int nr_lists;		/* not freed */
static char last_name[64];		/* read behind the gate: gate-... */
static int gate[2];

static inline void make_gate(void)
{
	ASSERT_EQ(0, pipe2(gate, O_CLOEXEC));
}

static inline void open_gate(void)
{
	EXPECT_EQ(0, close(gate[1]));
}

/* The present number inside is counted before the gate, the name read after. */
static inline void resolver_enter(bool is_gated)
{
	int nr = atomic_fetch_add(&nr_inside, 1) + 1, most = most_inside;
	char c;

	atomic_fetch_add(&nr_calls, 1);
	while (nr > most &&
	       !atomic_compare_exchange_weak(&most_inside, &most, nr))
		;
	while (is_gated && read(gate[0], &c, 1) < 0)
		;
	atomic_fetch_sub(&nr_inside, 1);
}

static inline int resolver_answer(struct addrinfo **list)
{
	struct both {
		struct addrinfo info;
		struct sockaddr_in addr;
	} *b = calloc(1, sizeof(*b));

	if (!b)
		return EAI_MEMORY;
	b->info.ai_family = b->addr.sin_family = AF_INET;
	b->info.ai_addr = (struct sockaddr *)&b->addr;
	b->info.ai_addrlen = sizeof(b->addr);
	b->addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	atomic_fetch_add(&nr_lists, 1);
	*list = &b->info;
	return 0;
}

int getaddrinfo(const char *node, const char *service,
		const struct addrinfo *hints, struct addrinfo **list)
{
	bool is_numeric = !node || (*node >= '0' && *node <= '9');

	if (is_numeric && (!service || *service <= '9'))
		return resolver_answer(list);
	if (hints && hints->ai_flags & AI_NUMERICHOST)
		return EAI_NONAME;
	resolver_enter(!strncmp(node, "gate", 4));
	if (!strncmp(node, "gate-", 5))
		snprintf(last_name, sizeof(last_name), "%s", node);
	*list = (struct addrinfo *)8;	/* undefined, if it fails */
	if (!strcmp(node, "none"))
		return EAI_NONAME;
	if (!strcmp(node, "memory"))
		return EAI_MEMORY;
	if (!strcmp(node, "system")) {
		errno = ENOTTY;
		return EAI_SYSTEM;
	}
	return resolver_answer(list);
}

void freeaddrinfo(struct addrinfo *list)
{
	atomic_fetch_sub(&nr_lists, 1);
	free(list);
}

/* Port 1 is behind the gate, port 2 has no name. */
int getnameinfo(const struct sockaddr *addr, socklen_t len, char *host,
		socklen_t host_size, char *service, socklen_t service_size,
		int flags)
{
	const struct sockaddr_in *in = (const void *)addr;
	bool is_numeric = flags & NI_NUMERICHOST;

	if (len < sizeof(*in))
		return EAI_FAMILY;
	if (!is_numeric)
		resolver_enter(in->sin_port == htons(1));
	if (!is_numeric && in->sin_port == htons(2))
		return EAI_NONAME;
	if (host)
		snprintf(host, host_size, is_numeric ? "127.0.0.1" : "local");
	if (service)
		snprintf(service, service_size, "%u", ntohs(in->sin_port));
	return 0;
}

#endif /* SELFTESTS_RESOLVER_H */
