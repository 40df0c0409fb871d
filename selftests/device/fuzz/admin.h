/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mod_fuzz: an administrator, a process of its own that works on the teams from
 * outside. It freezes and thaws their control groups, limits their share of the
 * processors and the memory of wild teams, and takes processors offline and
 * online. This needs root, version 2 of control groups, and a machine that runs
 * nothing else.
 *
 * The memory is limited by memory.high. Beyond memory.max the kernel would log
 * a stack for each team that it kills.
 */
#ifndef SELFTESTS_FUZZ_ADMIN_H
#define SELFTESTS_FUZZ_ADMIN_H

#include "fuzz.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#define ADMIN_NS	20000000	/* at most, between two steps */
#define FREEZE_NS	8000000
#define OFFLINE_NS	50000000

enum cgroup { TAME_GROUP, WILD_GROUP, NR_GROUPS, LIMITED_GROUP = NR_GROUPS,
	      NR_DIRS };

static const char *const cgroup_names[NR_DIRS] = { "tame", "wild", "limited" };

static char cgroup_root[] = "/tmp/mod_fuzz.XXXXXX";
static bool has_cgroups;

static inline bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool is_written;

	if (fd < 0)
		return false;
	is_written = write(fd, text, strlen(text)) > 0;
	close(fd);
	return is_written;
}

static inline void cgroup_path(char *path, size_t size, enum cgroup group,
			      const char *file)
{
	snprintf(path, size, "%s/fuzz-%s%s%s", cgroup_root, cgroup_names[group],
		 *file ? "/" : "", file);
}

static inline void cgroup_set(enum cgroup group, const char *file,
			     const char *text)
{
	char path[96];

	cgroup_path(path, sizeof(path), group, file);
	write_text(path, text);
}

/*
 * Limits the group to @ms of each 100 ms; 0 lifts the limit. The kernel warns
 * of a period that passes while its timer is late, with locks held that forbid
 * that.
 */
static inline void set_quota(enum cgroup group, uint32_t ms)
{
	char text[32];

	snprintf(text, sizeof(text), "%u 100000", ms * 1000);
	cgroup_set(group, "cpu.max", ms ? text : "max 100000");
}

/* ---- there and away ---- */

/*
 * The first limit has the scheduler's code patched, and so has the end of the
 * last one. One group without processes is limited all the time, so that an
 * administrator does neither. The caller has one processor online.
 */
static inline void cgroups_open(void)
{
	char path[96];
	int i;

	if (!mkdtemp(cgroup_root))
		return;
	if (mount("none", cgroup_root, "cgroup2", 0, NULL)) {
		rmdir(cgroup_root);
		return;
	}
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", cgroup_root);
	write_text(path, "+cpu");
	write_text(path, "+memory");
	has_cgroups = true;
	for (i = 0; i < NR_DIRS; i++) {
		cgroup_path(path, sizeof(path), i, "");
		has_cgroups &= !mkdir(path, 0755);
	}
	set_quota(LIMITED_GROUP, 50);
}

static inline void cgroups_close(void)
{
	char path[96];
	int i;

	if (!has_cgroups)
		return;
	for (i = 0; i < NR_DIRS; i++) {
		cgroup_path(path, sizeof(path), i, "");
		rmdir(path);
	}
	umount2(cgroup_root, MNT_DETACH);
	rmdir(cgroup_root);
}

/* Moves the caller, and its future children. */
static inline void cgroup_join(enum cgroup group)
{
	if (has_cgroups && group < NR_GROUPS)
		cgroup_set(group, "cgroup.procs", "0");
}

/* ---- one step ---- */

static inline void freeze_for(enum cgroup group, uint32_t ns)
{
	cgroup_set(group, "cgroup.freeze", "1");
	sleep_ns(ns);
	cgroup_set(group, "cgroup.freeze", "0");
}

/*
 * Linux 6.1 crashes by itself if a processor comes online while a ring begins:
 * io_wq_create() lists the queue for that before it has memory for the queue's
 * nodes, and __io_wq_cpu_online() reads NULL. 6.12 lists it last.
 */
static inline bool may_change_cpus(void)
{
	int major = 0, minor = 0;
	struct utsname name;

	if (uname(&name) || sscanf(name.release, "%d.%d", &major, &minor) != 2)
		return false;
	return major > 6 || (major == 6 && minor >= 4);
}

static inline void offline_for(int cpu, uint32_t ns)
{
	if (!may_change_cpus() || !cpu_set_online(cpu, false))
		return;
	sleep_ns(ns);
	cpu_set_online(cpu, true);
}

static inline void set_memory(uint32_t kib)
{
	char text[32];

	snprintf(text, sizeof(text), "%u", kib << 10);
	cgroup_set(WILD_GROUP, "memory.high", kib ? text : "max");
}

static inline void admin_step(struct dice *d)
{
	uint32_t how = pick(d, 8), nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	enum cgroup group = pick(d, NR_GROUPS);
	uint32_t ms = 5 + pick(d, 40), kib = 64 + pick(d, 4096);
	uint32_t cpu = 1 + pick(d, nr_cpus), ns = pick(d, OFFLINE_NS);

	switch (how) {
	case 0 ... 2:
		freeze_for(group, ns % FREEZE_NS);
		break;
	case 3:
		set_quota(group, ms);
		break;
	case 4:
		set_quota(group, 0);
		break;
	case 5:
		set_memory(kib);
		break;
	case 6:
		set_memory(0);
		break;
	case 7:
		offline_for(cpu, ns);
		break;
	}
}

/* Until the round is over; all changes are undone then. */
static inline void admin_main(uint64_t seed)
{
	struct dice d = dice_of(seed, 0);

	while (!atomic_load(&world->is_late)) {
		sleep_ns(pick(&d, ADMIN_NS));
		admin_step(&d);
	}
	set_quota(TAME_GROUP, 0);
	set_quota(WILD_GROUP, 0);
	set_memory(0);
	_exit(0);
}

#endif /* SELFTESTS_FUZZ_ADMIN_H */
