/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "debug/thread_state.h"
#include "base/base.h"
#include "base/sys.h"
#include "debug/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* False: @file of the thread cannot be read. */
static bool thread_read(char *to, size_t size, int pid, int tid,
			const char *file)
{
	char path[64] = "/proc/self";

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d", pid);
	snprintf(path + strlen(path), sizeof(path) - strlen(path),
		 "/task/%d/%s", tid, file);
	return pl__read_file(path, to, size) > 0;
}

/* The letter of proc(5); 0: it cannot be read. */
static char thread_letter(int pid, int tid)
{
	char stat[64], *p;

	if (!thread_read(stat, sizeof(stat), pid, tid, "stat"))
		return 0;
	/* The line is "tid (name) S ...", and the name may contain anything. */
	p = strrchr(stat, ')');
	return p && p[1] ? p[2] : 0;
}

/* The line is "running", or "-1 SP PC", or "NR ARG ARG ...". */
static void thread_parse(struct pl__thread_state *s, const char *line)
{
	char *end;

	s->is = *line == 'r' ? PL__THREAD_COMPUTES : PL__THREAD_BLOCKED;
	s->nr = strtol(line, &end, 0);
	s->arg = strtoull(end, NULL, 0);
}

/* Without a symbol table, or for other users, the kernel says "0". */
static void read_where(struct pl__thread_state *s, int pid, int tid)
{
	s->nr = PL__THREAD_SOME_CALL;
	if (!thread_read(s->where, sizeof(s->where), pid, tid, "wchan") ||
	    *s->where == '0')
		*s->where = '\0';
}

void pl__thread_look(struct pl__thread_state *s, int pid, int tid)
{
	char line[160], letter = thread_letter(pid, tid);

	memset(s, 0, sizeof(*s));
	if (letter == 'R') {
		s->is = PL__THREAD_COMPUTES;
	} else if (letter == 'T' || letter == 't') {
		s->is = PL__THREAD_STOPPED;
	} else if (thread_read(line, sizeof(line), pid, tid, "syscall")) {
		thread_parse(s, line);
	} else if (letter) {
		s->is = PL__THREAD_BLOCKED;
		read_where(s, pid, tid);
	}
}

static void say_blocked(const struct pl__thread_state *s, char *to, size_t size)
{
	const struct pl__syscall_name *call = pl__syscall_name(s->nr);

	if (s->nr == PL__THREAD_NO_CALL)
		snprintf(to, size, "blocked outside of system calls");
	else if (s->nr == PL__THREAD_SOME_CALL)
		snprintf(to, size, "blocked%s%s", *s->where ? " in " : "",
			 s->where);
	else if (!call)
		snprintf(to, size, "blocked in system call %ld", s->nr);
	else if (call->has_fd)
		snprintf(to, size, "blocked in %s(2), fd %d", call->name,
			 (int)s->arg);
	else
		snprintf(to, size, "blocked in %s(2)", call->name);
}

void pl__thread_say(const struct pl__thread_state *s, char *to, size_t size)
{
	static const char *const words[] = {
		[PL__THREAD_UNKNOWN]	= "",
		[PL__THREAD_COMPUTES]	= "computes",
		[PL__THREAD_STOPPED]	= "stopped",
	};

	if (s->is == PL__THREAD_BLOCKED)
		say_blocked(s, to, size);
	else
		snprintf(to, size, "%s", words[s->is]);
}
