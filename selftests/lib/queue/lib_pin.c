/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Workers that are pinned: each to its CPU, those beyond to none, and again
 * when the CPUs on which the process may run have changed.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"

#include "base/sys.h"
#include "base/topology.h"
#include "queue/rt.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "forbid.h"

RT_FIXTURE(pin)

static struct pl__topology topology;
static uint16_t order[PL__CPUS_MAX];

/* ---- what is ---- */

static struct pl__cpu_set affinity_of(int tid)
{
	struct pl__cpu_set set = { { 0 } };

	EXPECT_LT(0, syscall(SYS_sched_getaffinity, tid, sizeof(set), &set));
	return set;
}

static bool is_same_set(const struct pl__cpu_set *a,
			const struct pl__cpu_set *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* The order of the CPUs of this thread. */
static uint32_t read_order(void)
{
	struct pl__cpu_set cpus = affinity_of(0);

	pl__topology_read(&topology, PL__TOPOLOGY_ROOT, &cpus);
	pl__topology_order(&topology, order);
	return topology.nr_cpus;
}

static bool is_pinned_to(struct pl__worker *w, uint32_t cpu)
{
	struct pl__cpu_set set = affinity_of(load_relaxed(&w->tid));

	return pl__cpu_set_count(&set) == 1 && pl__cpu_set_has(&set, cpu);
}

/* Worker i of @nr_cpus on CPU order[i]; the others on all of them. */
static bool is_each_pinned(uint32_t nr_cpus)
{
	uint32_t nr = load_acquire(&pl__rt.main.nr_started), i;
	struct pl__cpu_set set;
	struct pl__worker *w;

	for (i = 0; i < nr; i++) {
		w = pl__rt.main.workers[i];
		set = affinity_of(load_relaxed(&w->tid));
		if (i < nr_cpus ? !is_pinned_to(w, order[i]) :
				  !is_same_set(&set, &topology.cpus))
			return false;
	}
	return true;
}

static bool are_started(uint32_t nr)
{
	uint32_t i;

	if (load_acquire(&pl__rt.main.nr_started) < nr)
		return false;
	for (i = 0; i < nr; i++)
		if (!load_relaxed(&pl__rt.main.workers[i]->tid))
			return false;
	return true;
}

static void start_pinned(uint32_t nr_workers)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	set_env("PARKLOT_WORKERS", nr_workers);
	cfg.min_workers = nr_workers;
	cfg.pin_workers = 1;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	ASSERT_TRUE(UNTIL(are_started(nr_workers)));
}

/* ---- at the start ---- */

TEST_F(pin, each_worker_has_its_cpu_and_those_beyond_all)
{
	uint32_t nr = read_order();

	start_pinned(nr + 2);
	EXPECT_TRUE(UNTIL(is_each_pinned(nr)));
}

TEST_F(pin, workers_are_not_pinned_by_default)
{
	uint32_t i;

	read_order();
	start_with(2, 0);
	run_in_task(nothing, NULL);
	for (i = 0; i < load_acquire(&pl__rt.main.nr_started); i++) {
		struct pl__cpu_set set =
			affinity_of(load_relaxed(&pl__rt.main.workers[i]->tid));

		EXPECT_TRUE(is_same_set(&set, &topology.cpus));
	}
}

/* What the program makes itself it may place itself. */
TEST_F(pin, workers_of_other_groups_are_not_pinned)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	struct pl_group_config cfg = PL_GROUP_CONFIG_INIT;
	struct pl__cpu_set set;
	pl_task_t t;

	read_order();
	start_pinned(1);
	cfg.nr_workers = cfg.max_workers = 1;
	ASSERT_EQ(0, pl_group_create(&opts.group, &cfg));
	ASSERT_EQ(0, pl_spawn(&t, nothing, NULL, &opts));
	EXPECT_EQ(0, pl_join(t));
	ASSERT_EQ(2, load_acquire(&pl__rt.nr_started));
	set = affinity_of(load_relaxed(&pl__rt.workers[1]->tid));
	EXPECT_TRUE(is_same_set(&set, &topology.cpus));
	EXPECT_TRUE(is_pinned_to(pl__rt.workers[0], order[0]));
}

TEST_F(pin, environment_overrides_the_configuration)
{
	uint32_t nr = read_order();

	setenv("PARKLOT_PIN", "1", 1);
	start_with(1, 0);
	run_in_task(nothing, NULL);
	EXPECT_TRUE(UNTIL(is_each_pinned(nr)));
	EXPECT_EQ(0, pl_runtime_stop());
	setenv("PARKLOT_PIN", "0", 1);
	start_pinned(2);
	EXPECT_TRUE(is_each_pinned(0));
	EXPECT_EQ(0, pl_runtime_stop());
	setenv("PARKLOT_PIN", "2", 1);
	EXPECT_EQ(-EINVAL, pl_runtime_start(NULL));
	unsetenv("PARKLOT_PIN");
}

/* A pinned worker may run on one CPU alone, the process on all. */
static void set_default_target(void *arg)
{
	EXPECT_EQ(0, pl_runtime_set_workers(0));
}

TEST_F(pin, default_target_of_a_pinned_task_is_all_cpus)
{
	uint32_t nr = pl__cpus_usable();

	start_pinned(1);
	run_in_task(set_default_target, NULL);
	EXPECT_EQ(nr, load_relaxed(&pl__rt.main.target));
	EXPECT_EQ(nr, pl__cpus_usable());
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(nr, pl__cpus_usable());
}

TEST_REAL(start_fails_where_threads_cannot_be_bound, "it forbids a system call")
TEST_F(pin, start_fails_where_threads_cannot_be_bound)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.pin_workers = 1;
	if (!forbid_call(SYS_sched_setaffinity, EPERM))
		SKIP(return, "no seccomp in this kernel");
	EXPECT_EQ(-EPERM, pl_runtime_start(&cfg));
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
	EXPECT_EQ(0, pl_runtime_start(NULL));
}

/* Keeps sysmon awake: tasks wait, as more are ready than workers run. */
static atomic_bool is_over;

static void busy(void *arg)
{
	while (!atomic_load(&is_over)) {
		spin_ns(20 * NSEC_PER_USEC);
		pl_yield();
	}
}

static void busy_start(struct mixed *m, int nr)
{
	atomic_store(&is_over, false);
	mixed_start(m, nr, 0, busy, NULL);
}

static void busy_end(struct mixed *m)
{
	atomic_store(&is_over, true);
	mixed_join(m);
}

/* ---- locations ---- */

static void run_a_while(void *arg)
{
	int i;

	for (i = 0; i < 20; i++) {
		spin_ns(20 * NSEC_PER_USEC);
		pl_yield();
	}
}

/* Each worker that ran has looked for more then, and noted where it is. */
static bool is_each_located(uint32_t nr_cpus)
{
	uint32_t i;

	mixed_run(64, 0, run_a_while, NULL);
	for (i = 0; i < nr_cpus; i++)
		if (load_relaxed(&pl__rt.main.locations[i]) !=
		    load_relaxed(&topology.location[order[i]]))
			return false;
	return true;
}

TEST_TIMED(pinned_worker_is_located_on_its_cpu,
	   "needs two processors, or samples /proc")
TEST_F_TIMEOUT(pin, pinned_worker_is_located_on_its_cpu, 120)
{
	uint32_t nr = read_order();

	/* One worker alone has nowhere to look. */
	NEEDS_CPUS();
	start_pinned(nr);
	/* As if this machine had all levels. */
	store_relaxed(&pl__rt.levels, 0xf);
	EXPECT_TRUE(UNTIL(is_each_located(nr)));
}

/* ---- the CPUs change ---- */

/* Of all threads of this process, as "taskset -a -p" does. */
static void set_affinity_of_all(const struct pl__cpu_set *set)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;

	ASSERT_NE(NULL, dir);
	while ((e = readdir(dir)))
		if (atoi(e->d_name))
			syscall(SYS_sched_setaffinity, atoi(e->d_name),
				sizeof(*set), set);
	closedir(dir);
}

/* As when a change comes to sysmon first, and to a worker later. */
TEST_TIMED(worker_that_is_bound_elsewhere_is_pinned_again, "time that passed")
TEST_F_TIMEOUT(pin, worker_that_is_bound_elsewhere_is_pinned_again, 120)
{
	uint32_t nr = read_order();
	static struct mixed m;

	NEEDS_CPUS();
	if (!rt_has_sysmon())
		SKIP(return, "PARKLOT_WATCH=0");
	start_pinned(nr);
	busy_start(&m, 64);
	EXPECT_TRUE(UNTIL(is_each_pinned(nr)));
	EXPECT_EQ(0, pl__affinity_set(load_relaxed(&pl__rt.workers[0]->tid),
				      &topology.cpus));
	EXPECT_TRUE(UNTIL(is_each_pinned(nr)));
	busy_end(&m);
}

TEST_TIMED(workers_follow_the_affinity_of_the_process, "time that passed")
TEST_F_TIMEOUT(pin, workers_follow_the_affinity_of_the_process, 120)
{
	struct pl__cpu_set all = affinity_of(0), some = { { 0 } };
	uint32_t nr = read_order(), last = order[nr - 1];
	static struct mixed m;

	NEEDS_CPUS();
	if (!rt_has_sysmon())
		SKIP(return, "PARKLOT_WATCH=0");
	start_pinned(nr);
	busy_start(&m, 64);
	EXPECT_TRUE(UNTIL(is_each_pinned(nr)));

	pl__cpu_set_add(&some, last);
	set_affinity_of_all(&some);
	EXPECT_EQ(1, read_order());
	EXPECT_TRUE(UNTIL(is_each_pinned(1) &&
			  pl__cpus_usable() == 1));

	set_affinity_of_all(&all);
	EXPECT_EQ(nr, read_order());
	EXPECT_TRUE(UNTIL(is_each_pinned(nr)));
	EXPECT_TRUE(UNTIL(pl__cpus_usable() > 1));
	busy_end(&m);
}

/* ---- in a guest, which has the device, and of which the test is root ---- */

#define NEEDS_GUEST() do { \
	if (access("/dev/parklot", R_OK | W_OK) || geteuid()) \
		SKIP(return, "no /dev/parklot"); \
	NEEDS_CPUS(); \
} while (0)

static bool write_to(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	bool ok;

	if (!f)
		return false;
	ok = fputs(text, f) >= 0;
	return !fclose(f) && ok;
}

static bool set_online(uint32_t cpu, bool is_online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online",
		 cpu);
	return write_to(path, is_online ? "1" : "0");
}

TEST_REAL(workers_follow_cpus_that_go_offline, "processors are the kernel's")
TEST_F_TIMEOUT(pin, workers_follow_cpus_that_go_offline, 120)
{
	uint32_t nr = read_order(), last = order[nr - 1];
	static struct mixed m;

	NEEDS_GUEST();
	start_pinned(nr);
	busy_start(&m, 64);
	EXPECT_TRUE(UNTIL(is_each_pinned(nr)));
	EXPECT_TRUE(set_online(last, false));
	EXPECT_EQ(nr - 1, read_order());
	EXPECT_TRUE(UNTIL(is_each_pinned(nr - 1)));
	EXPECT_TRUE(set_online(last, true));
	EXPECT_EQ(nr, read_order());
	EXPECT_TRUE(UNTIL(is_each_pinned(nr)));
	busy_end(&m);
}

#define CGROUP	"/tmp/lib_pin.cgroup"

static bool mount_cpusets(void)
{
	mkdir(CGROUP, 0700);
	return !mount("none", CGROUP, "cgroup2", 0, NULL) &&
	       write_to(CGROUP "/cgroup.subtree_control", "+cpuset");
}

/* A group of this process, with a cpuset of @cpus. */
static bool enter_cpuset(const char *cpus)
{
	return !mkdir(CGROUP "/pin", 0700) &&
	       write_to(CGROUP "/pin/cpuset.cpus", cpus) &&
	       write_to(CGROUP "/pin/cgroup.procs", "0");
}

static void leave_cpuset(void)
{
	EXPECT_TRUE(write_to(CGROUP "/cgroup.procs", "0"));
	EXPECT_EQ(0, rmdir(CGROUP "/pin"));
	EXPECT_EQ(0, umount(CGROUP));
	EXPECT_EQ(0, rmdir(CGROUP));
}

TEST_REAL(workers_follow_the_cpuset, "processors are the kernel's")
TEST_F_TIMEOUT(pin, workers_follow_the_cpuset, 120)
{
	uint32_t nr = read_order(), last = order[nr - 1];
	static struct mixed m;
	char text[16];

	NEEDS_GUEST();
	if (!mount_cpusets())
		SKIP(return, "no cpusets in this kernel");
	snprintf(text, sizeof(text), "0-%u", last);
	ASSERT_TRUE(enter_cpuset(text));
	start_pinned(nr);
	busy_start(&m, 64);
	EXPECT_TRUE(UNTIL(is_each_pinned(nr)));

	/* Narrow, elsewhere, and wide again. */
	EXPECT_TRUE(write_to(CGROUP "/pin/cpuset.cpus", "0"));
	EXPECT_EQ(1, read_order());
	EXPECT_TRUE(UNTIL(is_each_pinned(1)));
	snprintf(text, sizeof(text), "%u", last);
	EXPECT_TRUE(write_to(CGROUP "/pin/cpuset.cpus", text));
	EXPECT_EQ(1, read_order());
	EXPECT_EQ(last, order[0]);
	EXPECT_TRUE(UNTIL(is_each_pinned(1)));
	snprintf(text, sizeof(text), "0-%u", last);
	EXPECT_TRUE(write_to(CGROUP "/pin/cpuset.cpus", text));
	EXPECT_EQ(nr, read_order());
	EXPECT_TRUE(UNTIL(is_each_pinned(nr)));
	busy_end(&m);
	EXPECT_EQ(0, pl_runtime_stop());
	leave_cpuset();
}

TEST_HARNESS_MAIN
