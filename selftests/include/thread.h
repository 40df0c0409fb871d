/* SPDX-License-Identifier: GPL-2.0-only */
/* The state that /proc shows of a thread of this process. */
#ifndef SELFTESTS_THREAD_H
#define SELFTESTS_THREAD_H

#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline bool thread_read(int tid, const char *what, char *buf,
			       size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, what);
	return pl__read_file(path, buf, size) > 0;
}

/* Returns true if the thread sleeps in the kernel, and is not runnable. */
static inline bool thread_is_asleep(int tid)
{
	char buf[512], *p;

	if (!thread_read(tid, "stat", buf, sizeof(buf)))
		return false;
	p = strrchr(buf, ')');
	return p && p[2] == 'S';
}

/* How often the thread has slept; -1: there is no such count. */
static inline long thread_nr_switches(int tid)
{
	char buf[4096], *p;

	if (!thread_read(tid, "status", buf, sizeof(buf)))
		return -1;
	p = strstr(buf, "\nvoluntary_ctxt_switches:");
	return p ? atol(strchr(p, ':') + 1) : -1;
}

#endif /* SELFTESTS_THREAD_H */
