/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What every program here needs: clocks, memory, arguments
 *
 * A mistake on the command line, or a machine without memory, ends the program
 * with status 2.
 */
#ifndef BENCH_UTIL_H
#define BENCH_UTIL_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#ifndef NSEC_PER_SEC
# define NSEC_PER_SEC	UINT64_C(1000000000)
#endif
#define NSEC_PER_MSEC	UINT64_C(1000000)

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Sleep until @ns of now_ns(), the kernel's timer slack later. */
static inline void sleep_until(uint64_t ns)
{
	struct timespec ts;

	ts.tv_sec = (time_t)(ns / NSEC_PER_SEC);
	ts.tv_nsec = (long)(ns % NSEC_PER_SEC);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

__attribute__((noreturn, format(printf, 1, 2)))
static inline void die(const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

static inline void *zalloc(size_t nr, size_t size)
{
	void *p = calloc(nr, size);

	if (!p)
		die("no memory");
	return p;
}

/* splitmix64: an output that looks random for every input */
static inline uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static inline double number(const char *arg, double min, double max)
{
	char *end;
	double v = strtod(arg, &end);

	if (end == arg || *end || !(v >= min && v <= max))
		die("%s: a number from %g to %g is wanted", arg, min, max);
	return v;
}

static inline unsigned int whole(const char *arg, unsigned int max)
{
	double v = number(arg, 1, max);

	if (v != (double)(unsigned int)v)
		die("%s: a whole number is wanted", arg);
	return (unsigned int)v;
}

static inline struct sockaddr_in address(char *arg)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	char *colon = strrchr(arg, ':');

	if (!colon)
		die("%s: ADDRESS:PORT is wanted", arg);
	*colon = '\0';
	if (inet_pton(AF_INET, arg, &addr.sin_addr) != 1)
		die("%s: an IPv4 address is wanted", arg);
	addr.sin_port = htons((uint16_t)whole(colon + 1, 65535));
	return addr;
}

/* As many descriptors as we may have. */
static inline void raise_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl))
		return;
	rl.rlim_cur = rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
}

#endif /* BENCH_UTIL_H */
