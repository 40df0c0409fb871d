/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "rt/cpus.h"
#include "base/sys.h"
#include "queue/place.h"

#include <string.h>

#define CGROUP_ROOT	"/sys/fs/cgroup"

unsigned int pl__cpus_parse_quota(const char *cpu_max)
{
	unsigned long long quota, period;

	if (sscanf(cpu_max, "%llu %llu", &quota, &period) != 2 || !period)
		return 0;
	quota = quota / period + !!(quota % period);
	if (quota > UINT32_MAX)
		return 0;
	return quota ? (unsigned int)quota : 1;
}

static unsigned int at_most(unsigned int nr, unsigned int quota)
{
	return quota && quota < nr ? quota : nr;
}

/* The quota of one group of the unified hierarchy. */
static unsigned int quota_v2(const char *group)
{
	char path[512], text[64];

	snprintf(path, sizeof(path), CGROUP_ROOT "%s/cpu.max", group);
	return pl__read_file(path, text, sizeof(text)) > 0 ?
	       pl__cpus_parse_quota(text) : 0;
}

static unsigned int quota_v1(const char *group)
{
	char path[512], quota[32], both[80], period[32];

	snprintf(path, sizeof(path), CGROUP_ROOT "/cpu%s/cpu.cfs_quota_us",
		 group);
	if (pl__read_file(path, quota, sizeof(quota)) <= 0 || *quota == '-')
		return 0;
	snprintf(path, sizeof(path), CGROUP_ROOT "/cpu%s/cpu.cfs_period_us",
		 group);
	if (pl__read_file(path, period, sizeof(period)) <= 0)
		return 0;
	snprintf(both, sizeof(both), "%s %s", quota, period);
	return pl__cpus_parse_quota(both);
}

/* Returns the least quota of @group and all groups above it, at most @nr. */
static unsigned int least_up(unsigned int nr, char *group,
			     unsigned int (*quota_of)(const char *group))
{
	char *slash;

	for (;;) {
		nr = at_most(nr, quota_of(group));
		slash = strrchr(group, '/');
		if (!slash)
			return nr;
		*slash = '\0';
	}
}

/* One line of /proc/self/cgroup: "ID:CONTROLLERS:GROUP". */
static unsigned int least_of_line(unsigned int nr, char *line)
{
	char *ctl = strchr(line, ':');
	char *group = ctl ? strchr(ctl + 1, ':') : NULL;

	if (!group || strlen(group) > 256)
		return nr;
	*group++ = '\0';
	ctl++;
	if (!*ctl)
		return least_up(nr, group, quota_v2);
	if (!strcmp(ctl, "cpu") || !strncmp(ctl, "cpu,", 4))
		return least_up(nr, group, quota_v1);
	return nr;
}

/* The caller may be a worker that is pinned to one. */
static unsigned int nr_allowed(void)
{
	unsigned int nr = pl__pin_nr_cpus();
	struct pl__cpu_set set;

	if (!nr && !pl__affinity_get(&set))
		nr = pl__cpu_set_count(&set);
	return nr ? nr : 1;
}

unsigned int pl__cpus_usable(void)
{
	unsigned int nr = nr_allowed();
	char text[4096], *line, *save = NULL;

	if (pl__read_file("/proc/self/cgroup", text, sizeof(text)) <= 0)
		return nr;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		nr = least_of_line(nr, line);
	return nr;
}
