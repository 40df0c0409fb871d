/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pl_getaddrinfo() and pl_getnameinfo() find what the C library finds.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/auxv.h>
#ifdef __GLIBC__
# include <nss.h>
#endif

FIXTURE(resolver) { char unused; };

/* A static program's resolver would load libraries all the same. */
FIXTURE_SETUP(resolver)
{
	rt_begin(_metadata);
	if (!getauxval(AT_BASE))
		SKIP(return, "the program is static");
#ifdef __GLIBC__
	/* No server of the machine's is asked. */
	ASSERT_EQ(0, __nss_configure_lookup("hosts", "files"));
	ASSERT_EQ(0, __nss_configure_lookup("services", "files"));
#else
	SKIP(return, "the name server cannot be chosen here");
#endif
}

FIXTURE_TEARDOWN(resolver)
{
	rt_end();
}

/* ---- as getaddrinfo(3) ---- */

static void expect_same_list(const struct addrinfo *a, const struct addrinfo *b)
{
	for (; a && b; a = a->ai_next, b = b->ai_next) {
		EXPECT_EQ(a->ai_family, b->ai_family);
		EXPECT_EQ(a->ai_socktype, b->ai_socktype);
		EXPECT_EQ(a->ai_protocol, b->ai_protocol);
		ASSERT_EQ(a->ai_addrlen, b->ai_addrlen);
		EXPECT_EQ(0, memcmp(a->ai_addr, b->ai_addr, a->ai_addrlen));
		EXPECT_EQ(!a->ai_canonname, !b->ai_canonname);
		if (a->ai_canonname && b->ai_canonname)
			EXPECT_STREQ(a->ai_canonname, b->ai_canonname);
	}
	EXPECT_EQ(NULL, a);
	EXPECT_EQ(NULL, b);
}

static void expect_same(const char *node, const char *service,
			const struct addrinfo *hints)
{
	struct addrinfo *want = NULL, *list = NULL;
	int want_eai = getaddrinfo(node, service, hints, &want), eai;
	int ret = pl_getaddrinfo(node, service, hints, &list, &eai);

	EXPECT_EQ(want_eai, eai) {
		TH_LOG("%s, %s: %s", node, service, gai_strerror(eai));
	}
	EXPECT_EQ(!want_eai, !ret);
	if (want_eai)
		want = NULL;
	expect_same_list(want, list);
	if (want)
		freeaddrinfo(want);
	if (list)
		freeaddrinfo(list);
}

static void expect_same_by(const struct addrinfo *hints)
{
	static const char *const nodes[] = {
		NULL, "127.0.0.1", "127.1", "::1", "::1%lo", "fe80::1%lo",
		"localhost",
	};
	static const char *const services[] = {
		NULL, "80", "http", "no such service", "99999",
	};
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(nodes); i++)
		for (j = 0; j < ARRAY_SIZE(services); j++)
			expect_same(nodes[i], services[j], hints);
}

static void expect_same_lists(void *arg)
{
	static const int flags[] = {
		0, AI_PASSIVE, AI_CANONNAME, AI_NUMERICHOST, AI_NUMERICSERV,
		AI_ADDRCONFIG, AI_V4MAPPED | AI_ALL, ~0,
	};
	static const int families[] = { AF_UNSPEC, AF_INET, AF_INET6, AF_UNIX };
	struct addrinfo hints = { 0 };
	size_t i, j;

	expect_same_by(NULL);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		for (j = 0; j < ARRAY_SIZE(families); j++) {
			hints.ai_flags = flags[i];
			hints.ai_family = families[j];
			hints.ai_socktype = j % 2 ? SOCK_STREAM : 0;
			expect_same_by(&hints);
		}
	}
}

TEST_F(resolver, lists_are_those_of_getaddrinfo)
{
	expect_same_lists(NULL);
	run_in_task(expect_same_lists, NULL);
	run_as(PL_STACK_SMALL, expect_same_lists, NULL);
}

static void expect_same_name(const char *ip, int flags)
{
	char want[2][NI_MAXHOST] = { "", "" }, got[2][NI_MAXHOST] = { "", "" };
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int want_eai, eai;

	addr.sin_port = htons(80);
	ASSERT_EQ(1, inet_pton(AF_INET, ip, &addr.sin_addr));
	want_eai = getnameinfo((struct sockaddr *)&addr, sizeof(addr), want[0],
			       sizeof(want[0]), want[1], sizeof(want[1]),
			       flags);
	EXPECT_EQ(!want_eai,
		  !pl_getnameinfo((struct sockaddr *)&addr, sizeof(addr),
				  got[0], sizeof(got[0]), got[1],
				  sizeof(got[1]), flags, &eai));
	EXPECT_EQ(want_eai, eai);
	EXPECT_STREQ(want[0], got[0]);
	EXPECT_STREQ(want[1], got[1]);
}

static void expect_same_names(void *arg)
{
	expect_same_name("127.0.0.1", 0);
	expect_same_name("127.0.0.1", NI_NUMERICHOST);
	expect_same_name("127.0.0.1", NI_NUMERICSERV);
	expect_same_name("10.1.2.3", NI_NUMERICHOST | NI_NUMERICSERV);
}

TEST_F(resolver, names_are_those_of_getnameinfo)
{
	expect_same_names(NULL);
	run_in_task(expect_same_names, NULL);
	run_as(PL_STACK_SMALL, expect_same_names, NULL);
}

TEST_HARNESS_MAIN
