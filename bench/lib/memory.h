/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What a process has of the machine's memory: pages, and tables of pages
 */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include "util.h"

static inline uint64_t memory_kb(const char *status, const char *key)
{
	const char *line = strstr(status, key);

	if (!line)
		die("/proc/self/status has no %s", key);
	return strtoull(line + strlen(key), NULL, 10);
}

/* In bytes: what counts under @key, and tables. */
static inline uint64_t memory_of(const char *key)
{
	FILE *f = fopen("/proc/self/status", "r");
	char text[8192];
	size_t n;

	if (!f)
		die("/proc/self/status: %s", strerror(errno));
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return 1024 * (memory_kb(text, key) + memory_kb(text, "VmPTE:"));
}

static inline uint64_t memory_used(void)
{
	return memory_of("VmRSS:");
}

/* The most that it ever was. */
static inline uint64_t memory_peak(void)
{
	return memory_of("VmHWM:");
}

/* More than @before, for each of @nr; never less than none. */
static inline double memory_since(uint64_t before, double nr)
{
	uint64_t now = memory_used();

	return now > before ? (double)(now - before) / nr : 0;
}

#endif /* BENCH_MEMORY_H */
