/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "watch/sysmon_asleep.h"
#include "base/sys.h"

#include <fcntl.h>
#include <string.h>

static int open_stat(struct pl__worker *w, int tid)
{
	int plus_1 = load_relaxed(&w->sysmon.stat_plus_1), fd;
	char path[40];

	if (plus_1 && w->sysmon.stat_tid == tid)
		return plus_1 - 1;
	store_relaxed(&w->sysmon.stat_plus_1, 0);
	if (plus_1)
		pl__close(plus_1 - 1);
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = pl__fd_move_up(pl__open(path, O_RDONLY));
	w->sysmon.stat_tid = tid;
	if (fd >= 0)
		store_relaxed(&w->sysmon.stat_plus_1, fd + 1);
	return fd;
}

bool pl__sysmon_is_asleep(struct pl__worker *w)
{
	ssize_t n = -ESRCH;
	int tid = load_relaxed(&w->tid), fd;
	char stat[64], *p;

	if (!tid)
		return false;
	fd = open_stat(w, tid);
	if (fd >= 0)
		n = pl__fd_reread(fd, stat, sizeof(stat));
	if (n <= 0)
		return true;
	/* The line is "pid (name) S ...", and the name may contain anything. */
	p = strrchr(stat, ')');
	return p && p + 2 < stat + n && (p[2] == 'S' || p[2] == 'D');
}

uint64_t pl__sysmon_nr_sleeps(int tid)
{
	static const char field[] = "\nvoluntary_ctxt_switches:";
	char path[40], status[4096], *p;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	if (pl__read_file(path, status, sizeof(status)) <= 0)
		return 0;
	p = strstr(status, field);
	return p ? strtoull(p + sizeof(field) - 1, NULL, 10) : 0;
}
