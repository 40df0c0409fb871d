// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fuzzer of the whole device.
 *
 *	mod_fuzz [--seconds N] [--seed S] [--round R]
 *
 * or MOD_FUZZ_SECONDS, MOD_FUZZ_SEED and MOD_FUZZ_ROUND in the environment.
 * Without these it runs short tests of a fixed seed and of a new seed, which it
 * prints. A seed repeats the same operations, from its first round or from
 * round R on; fuzz/fuzz.h has the terms.
 *
 * A round is a tame team beside wild ones, one after the other, and a stranger,
 * which gets their descriptors. If root starts it, all of these run as nobody
 * in three rounds of four. After the round no process and no reference to the
 * module may be left. With MOD_FUZZ_MODULE=FILE.ko the module is unloaded after
 * each round and loaded again, and an administrator (fuzz/admin.h) works
 * meanwhile; the machine should run nothing else. The kernel's log has to be
 * checked as well: "make fuzz" does so, in a machine of its own.
 */
#include "kselftest_harness.h"

#include "manual_run.h"
#include "fuzz/fuzz.h"
#include "fuzz/admin.h"
#include "fuzz/group.h"

#include <dirent.h>
#include <grp.h>

#define STUCK_S		60
#define NOBODY		65534
#define PROGRESS_NS	(5 * NSEC_PER_SEC)

static uint64_t stuck_ns(void)
{
	return STUCK_S * NSEC_PER_SEC * time_factor();
}

/* ---- processes ---- */

static void print_stack(int pid, const char *tid)
{
	char path[300], line[200];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stack", pid, tid);
	TH_LOG("%s", path);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		TH_LOG("  %s", line);
	}
	if (file)
		fclose(file);
}

/* Shows where the threads of a process that does not end sleep. */
static void print_stacks(int pid)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			print_stack(pid, entry->d_name);
	if (dir)
		closedir(dir);
}

/* Waits until the process ends by itself, with status 0. */
static void wait_end(pid_t pid)
{
	uint64_t end = now_ns() + stuck_ns();
	int status = 0;

	while (!waitpid(pid, &status, WNOHANG)) {
		if (now_ns() > end) {
			print_stacks(pid);
			ASSERT_GE(end, now_ns());
		}
		sleep_ns(NSEC_PER_MSEC);
	}
	EXPECT_EQ(0, status)
		note_fault();
}

static void print_children(void)
{
	char path[64];
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", gettid());
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &pid) == 1)
		print_stacks(pid);
	if (file)
		fclose(file);
}

/* Waits for orphaned grandchildren, which end by themselves. */
static void wait_orphans(void)
{
	uint64_t end = now_ns() + stuck_ns();

	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		if (now_ns() > end) {
			print_children();
			ASSERT_GE(end, now_ns());
		}
		sleep_ns(NSEC_PER_MSEC);
	}
}

/* ---- the module ---- */

static bool nr_open_becomes(int nr)
{
	uint64_t end = now_ns() + stuck_ns();

	while (nr_open() != nr && now_ns() < end)
		sleep_ns(NSEC_PER_MSEC);
	return nr_open() == nr;
}

static void set_tracing(bool is_on)
{
	int fd = open("/sys/kernel/tracing/events/parklot/enable",
		      O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return;
	n = write(fd, is_on ? "1" : "0", 1);
	(void)n;
	close(fd);
}

static int crew_fd = -1;

/*
 * The first worker that joins has the scheduler's code patched, and so has the
 * last one that leaves. This worker stays joined, so that neither happens.
 */
static void crew_hold(void)
{
	struct parklot_setup setup = { .nr_lots = 1, .nr_workers = 1 };
	struct parklot_worker worker = {};
	int err;

	crew_fd = dev_open();
	ASSERT_LE(0, crew_fd);
	err = dev_ioctl(crew_fd, PARKLOT_IOC_SETUP, &setup);
	if (!err)
		err = dev_ioctl(crew_fd, PARKLOT_IOC_WORKER_JOIN, &worker);
	if (err != -EOPNOTSUPP)
		EXPECT_EQ(0, err);
}

static void crew_release(void)
{
	struct parklot_worker worker = {};

	dev_ioctl(crew_fd, PARKLOT_IOC_WORKER_LEAVE, &worker);
	close(crew_fd);
}

/*
 * Unloads and loads the module; traced or not, as the dice decide. Both patch
 * code that other processors run. An emulator drops its translation before the
 * byte is written; another processor may translate the old byte again, and keep
 * it (QEMU 10: an int3 was hit that was no longer in memory). So one processor
 * is online meanwhile.
 */
static void reload(const char *file, bool is_traced)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	ASSERT_LE(0, fd);
	set_online(false);
	crew_release();
	set_tracing(false);
	ASSERT_EQ(0, syscall(SYS_delete_module, "parklot", O_NONBLOCK)) {
		TH_LOG("round %u: not unloaded, error %d", world->round, errno);
	}
	ASSERT_EQ(0, syscall(SYS_finit_module, fd, "", 0)) {
		TH_LOG("not loaded, error %d", errno);
	}
	set_tracing(is_traced);
	crew_hold();
	set_online(true);
	close(fd);
}

/* ---- rounds ---- */

/* The processes of a round, and what they are given. */
struct cast {
	int	post[2];
	bool	are_nobody;
};

/* Drops all privileges of root. */
static void become_nobody(void)
{
	ASSERT_EQ(0, setgroups(0, NULL));
	ASSERT_EQ(0, setresgid(NOBODY, NOBODY, NOBODY));
	ASSERT_EQ(0, setresuid(NOBODY, NOBODY, NOBODY));
	prctl(PR_SET_DUMPABLE, 1);
}

static pid_t start(void (*fn)(int post, uint64_t seed), struct cast *cast,
		   int end, enum cgroup group, uint64_t seed)
{
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (pid)
		return pid;
	cgroup_join(group);
	if (cast->are_nobody)
		become_nobody();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(cast->post[!end]);
	fn(cast->post[end], seed);
	_exit(1);
}

static void stranger(int post, uint64_t seed)
{
	(void)seed;
	stranger_main(post);
}

static void admin(int post, uint64_t seed)
{
	close(post);
	admin_main(seed);
}

static void play_teams(struct dice *d)
{
	struct cast cast = { .are_nobody = !once_in(d, 4) && !geteuid() };
	struct cast root = {};
	pid_t tame, breeder, other, boss = 0;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, cast.post));
	memcpy(root.post, cast.post, sizeof(root.post));
	other = start(stranger, &cast, 1, TAME_GROUP, 0);
	tame = start(tame_main, &cast, 0, TAME_GROUP, roll(d));
	breeder = start(breeder_main, &cast, 0, WILD_GROUP, roll(d));
	if (world->is_ours)
		boss = start(admin, &root, 1, NR_GROUPS, roll(d));
	close(cast.post[0]);
	close(cast.post[1]);
	wait_end(tame);
	wait_end(breeder);
	atomic_store(&world->is_late, 1);
	if (boss)
		wait_end(boss);
	wait_end(other);
	wait_orphans();
}

static void play_round(uint64_t seed, uint32_t round)
{
	const char *module = getenv("MOD_FUZZ_MODULE");
	struct dice d = dice_of(seed, round);
	int before = nr_open();

	world->round = round;
	atomic_store(&world->digest, 0);
	atomic_store(&world->is_late, 0);
	play_teams(&d);
	set_features(~0UL);
	EXPECT_TRUE(nr_open_becomes(before)) {
		note_fault();
		TH_LOG("round %u: %d references are left, %d before", round,
		       nr_open(), before);
	}
	if (module && *module)
		reload(module, once_in(&d, 4));
}

static void say_progress(uint64_t seed, uint32_t round)
{
	static const char *const names[NR_TALLIES] = {
		"calls", "parks", "wakes", "mappings", "signals", "forks",
		"killed", "passed",
	};
	char text[256];
	int i, len = 0;

	for (i = 0; i < NR_TALLIES; i++)
		len += snprintf(text + len, sizeof(text) - len, ", %ld %s",
				atomic_load(&world->tally[i]), names[i]);
	TH_LOG("seed %llu, up to round %u%s", (unsigned long long)seed, round,
	       text);
}

/* Until the time is over, or a check failed. */
static void play(uint64_t seed, uint32_t first, uint64_t ns)
{
	uint64_t end = now_ns() + ns, next = 0;
	uint32_t round = first;

	TH_LOG("MOD_FUZZ_SEED=%llu MOD_FUZZ_ROUND=%u",
	       (unsigned long long)seed, first);
	for (; !atomic_load(&world->has_fault) && now_ns() < end; round++) {
		play_round(seed, round);
		if (now_ns() < next)
			continue;
		next = now_ns() + PROGRESS_NS;
		say_progress(seed, round);
	}
	say_progress(seed, round - 1);
	EXPECT_EQ(0, atomic_load(&world->has_fault));
	EXPECT_LT(0, atomic_load(&world->tally[PARKS]));
	EXPECT_LT(0, atomic_load(&world->tally[WAKES]));
}

FIXTURE(fuzz)
{
	int fd;
};

FIXTURE_SETUP(fuzz)
{
	const char *module = getenv("MOD_FUZZ_MODULE");

	fuzz_begin(_metadata);
	self->fd = dev_open();
	if (self->fd == -ENOENT)
		SKIP_ALL("no " DEVICE);
	ASSERT_LE(0, self->fd);
	close(self->fd);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, world);
	world->is_ours = module && *module && !geteuid();
	if (!world->is_ours) {
		crew_hold();
		return;
	}
	set_online(false);
	crew_hold();
	cgroups_open();
	set_online(true);
	fail_prepare();
}

FIXTURE_TEARDOWN(fuzz)
{
	if (world->is_ours)
		set_online(false);
	crew_release();
	cgroups_close();
	if (world->is_ours)
		set_online(true);
	munmap(world, sizeof(*world));
}

static uint64_t told_ns = NSEC_PER_SEC, told_seed, told_round = 1;

TEST_F_TIMEOUT(fuzz, same_seed_repeats_the_operations, 120)
{
	unsigned long digest[3];
	int i;

	for (i = 0; i < 3; i++) {
		play_round(i < 2 ? 7 : 8, 1);
		digest[i] = atomic_load(&world->digest);
	}
	EXPECT_EQ(digest[0], digest[1]);
	EXPECT_NE(digest[0], digest[2]);
}

TEST_F_TIMEOUT(fuzz, fixed_seed_finds_no_fault, 120)
{
	play(1, 1, 5 * NSEC_PER_SEC);
}

TEST_F_TIMEOUT(fuzz, new_seed_finds_no_fault, 120)
{
	play(now_ns() / 1000, 1, 5 * NSEC_PER_SEC);
}

TEST_F_TIMEOUT(fuzz, given_seed_finds_no_fault, 7 * 24 * 3600)
{
	play(told_seed ? told_seed : now_ns() / 1000, told_round, told_ns);
}

int main(int argc, char **argv)
{
	static const struct setting settings[] = {
		{ "--seconds", "MOD_FUZZ_SECONDS", &told_ns, NSEC_PER_SEC },
		{ "--seed", "MOD_FUZZ_SEED", &told_seed, 1 },
		{ "--round", "MOD_FUZZ_ROUND", &told_round, 1 },
	};

	return manual_run_main(argc, argv,
			       "given_seed_finds_no_fault",
			       settings, ARRAY_SIZE(settings));
}
