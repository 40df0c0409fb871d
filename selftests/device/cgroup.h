/* SPDX-License-Identifier: GPL-2.0-only */
/* A memory cgroup for a test, below a mount of its own. After mod.h. */
#ifndef SELFTESTS_CGROUP_H
#define SELFTESTS_CGROUP_H

#include <sys/mount.h>
#include <sys/stat.h>

struct cgroup {
	char	top[32];	/* where cgroup2 is mounted */
	char	path[64];	/* the cgroup's directory */
};

/* 0, or -errno of open() or write(). */
static inline int cgroup_set(const struct cgroup *cgroup, const char *name,
			     const char *value)
{
	return write_file(cgroup->path, name, value);
}

/* The caller's process moves there. */
static inline int cgroup_enter(const struct cgroup *cgroup)
{
	return cgroup_set(cgroup, "cgroup.procs", "0");
}

/* No process is in it any more. */
static inline void cgroup_remove(struct cgroup *cgroup)
{
	rmdir(cgroup->path);
	umount(cgroup->top);
	rmdir(cgroup->top);
}

/* False: not root, or no memory cgroups. */
static inline bool cgroup_make(struct cgroup *cgroup, const char *name)
{
	mkdir("/tmp", 01777);
	strcpy(cgroup->top, "/tmp/cgroup.XXXXXX");
	if (!mkdtemp(cgroup->top))
		return false;
	snprintf(cgroup->path, sizeof(cgroup->path), "%s/%s", cgroup->top,
		 name);
	if (!mount("none", cgroup->top, "cgroup2", 0, NULL) &&
	    !write_file(cgroup->top, "cgroup.subtree_control", "+memory") &&
	    !mkdir(cgroup->path, 0755))
		return true;
	cgroup_remove(cgroup);
	return false;
}

#endif /* SELFTESTS_CGROUP_H */
