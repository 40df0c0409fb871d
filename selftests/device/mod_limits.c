// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits of a user's memory, and of the delay that one user's load causes
 * another: pinned pages count against RLIMIT_MEMLOCK, and no lock is held
 * during an allocation. SECURITY.md has the table.
 */
#include "kselftest_harness.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "mod_crew.h"
#include "cgroup.h"

#define USER		65533	/* used by no other test */
#define LIMIT		(64 << 10)
#define NR_FILES	4000
/* The request of libparklot on 6 processors. */
#define LIB_LOTS	4
#define LIB_WORKERS	262

FIXTURE(limits)
{
	int fd;
};

FIXTURE_SETUP(limits)
{
	self->fd = dev_open();
	if (self->fd == -ENOENT)
		SKIP_ALL("no " DEVICE);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(limits)
{
	close(self->fd);
}

static bool limit_to(int resource, rlim_t nr)
{
	struct rlimit limit = { .rlim_cur = nr, .rlim_max = nr };

	return !setrlimit(resource, &limit);
}

/* From here on the process is of a user that may lock @bytes. */
static bool become_user(rlim_t memlock)
{
	return limit_to(RLIMIT_NOFILE, NR_FILES) &&
	       limit_to(RLIMIT_MEMLOCK, memlock) &&
	       !setgid(USER) && !setuid(USER);
}

/* A value of /proc/self/status in kB, or -1. */
static long status_kb(const char *name)
{
	FILE *file = fopen("/proc/self/status", "re");
	size_t len = strlen(name);
	char line[128];
	long value = -1;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, len) && line[len] == ':')
			value = atol(line + len + 1);
	fclose(file);
	return value;
}

/* A new space; returns 0, or -errno of its SETUP. */
static int make_space(uint32_t nr_lots, uint32_t nr_workers, int *fd)
{
	struct parklot_setup setup = {
		.nr_lots = nr_lots, .nr_workers = nr_workers,
	};

	*fd = dev_open();
	return *fd < 0 ? *fd : dev_ioctl(*fd, PARKLOT_IOC_SETUP, &setup);
}

/* The least that @nr_lots pin: both areas. */
static long area_bytes(uint32_t nr_lots)
{
	long page = sysconf(_SC_PAGESIZE);

	return ((1 + nr_lots) * 64L + page - 1) / page * page * 2;
}

TEST_F(limits, pinned_pages_are_shown_and_given_back)
{
	long before = status_kb("VmPin");
	int fd;

	if (before < 0 || !become_user(1 << 20))
		SKIP(return, "not root");
	ASSERT_EQ(0, make_space(1024, 0, &fd));
	EXPECT_LE(before + area_bytes(1024) / 1024, status_kb("VmPin"));
	close(fd);
	UNTIL(status_kb("VmPin") == before);
	EXPECT_EQ(before, status_kb("VmPin"));
}

TEST_F(limits, user_pins_at_most_rlimit_memlock)
{
	int i, nr = 0, fd[64], err = 0;

	if (!become_user(LIMIT))
		SKIP(return, "not root");
	for (i = 0; i < 64 && !err; i++) {
		err = make_space(64, 0, &fd[i]);
		nr += !err;
	}
	EXPECT_EQ(-ENOMEM, err);
	EXPECT_LT(0, nr);
	EXPECT_LE(nr * area_bytes(64), LIMIT);
	/* Pages that one space returns are free for another. */
	close(fd[0]);
	EXPECT_EQ(0, dev_setup(fd[i - 1], 64));
	EXPECT_EQ(-ENOMEM, make_space(64, 0, &fd[0]));
}

/* Another process of the same user has no limit of its own. */
TEST_F(limits, processes_of_a_user_share_the_limit)
{
	int fd, nr = 0, status = -1;
	pid_t pid;

	if (!become_user(LIMIT))
		SKIP(return, "not root");
	while (!make_space(64, 0, &fd) && nr < 64)
		nr++;
	EXPECT_LT(0, nr);
	pid = fork();
	if (!pid)
		_exit(make_space(64, 0, &fd) != -ENOMEM);
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(limits, space_of_the_library_fits_in_64_kib)
{
	bool has_crew = dev_features(self->fd) & PARKLOT_FEAT_CREW;
	int fd;

	if (!become_user(LIMIT))
		SKIP(return, "not root");
	EXPECT_EQ(0, make_space(LIB_LOTS, has_crew ? LIB_WORKERS : 0, &fd));
}

TEST_F(limits, limit_of_zero_pins_nothing)
{
	int fd;

	if (!become_user(0))
		SKIP(return, "not root");
	EXPECT_EQ(-ENOMEM, make_space(1, 0, &fd));
	/* This is no SETUP: there is nothing to map, and no lot to park on. */
	EXPECT_EQ(-ENXIO, dev_park(fd, 0, 0, 0));
}

TEST_F(limits, largest_space_is_refused_at_4_mib)
{
	int fd;

	if (!(dev_features(self->fd) & PARKLOT_FEAT_CREW))
		SKIP(return, "no crew");
	if (!become_user(4 << 20))
		SKIP(return, "not root");
	EXPECT_EQ(-ENOMEM, make_space(1024, 65536, &fd));
	EXPECT_EQ(0, make_space(1024, 32768, &fd));
}

/*
 * In kB: 4820 with pages of 4 KiB, and 64 more in kernels that debug locks;
 * larger pages round up five times.
 */
#define LARGEST_KB	5120L

/* 65536 workers of 72 bytes, 1024 lots of 192, and pointers to the pages. */
TEST_F(limits, largest_space_takes_less_than_5_mib)
{
	long before = status_kb("VmPin"), taken;
	int fd;

	if (!(dev_features(self->fd) & PARKLOT_FEAT_CREW))
		SKIP(return, "no crew");
	if (geteuid())
		SKIP(return, "not root");
	ASSERT_EQ(0, make_space(1024, 65536, &fd));
	taken = status_kb("VmPin") - before;
	TH_LOG("%ld kB", taken);
	EXPECT_LT(0, taken);
	EXPECT_GE(LARGEST_KB + 5 * sysconf(_SC_PAGESIZE) / 1024, taken);
}

/* In a cgroup of 8 MiB: make spaces until SETUP fails, exit with its errno. */
static void take_all(const struct cgroup *cgroup, unsigned int nr_slots)
{
	int err = 0, fd, i;

	if (cgroup_enter(cgroup))
		_exit(1);
	for (i = 0; i < 256 && !err; i++)
		err = make_space(1024, nr_slots, &fd);
	_exit(-err);
}

/* The process is not killed, and the kernel logs nothing. */
TEST_F(limits, setup_beyond_the_memory_of_a_cgroup_is_enomem)
{
	bool has_crew = dev_features(self->fd) & PARKLOT_FEAT_CREW;
	struct cgroup cgroup;
	int status = 0;
	pid_t pid;

	if (!cgroup_make(&cgroup, "limits"))
		SKIP(return, "no memory cgroup");
	EXPECT_EQ(0, cgroup_set(&cgroup, "memory.max", "8M"));
	pid = fork();
	if (!pid)
		take_all(&cgroup, has_crew ? 30000 : 0);
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(ENOMEM, WEXITSTATUS(status));
	cgroup_remove(&cgroup);
}

TEST_F(limits, cap_ipc_lock_is_exempt)
{
	int fd;

	if (geteuid() || !limit_to(RLIMIT_MEMLOCK, 0))
		SKIP(return, "not root");
	EXPECT_EQ(0, make_space(1024, 0, &fd));
}

/* A space without SETUP pins nothing: it takes a file only. */
TEST_F(limits, open_alone_is_bounded_by_rlimit_nofile)
{
	int fd, last = -1;

	if (!become_user(0))
		SKIP(return, "not root");
	while ((fd = dev_open()) >= 0)
		last = fd;
	EXPECT_EQ(-EMFILE, fd);
	EXPECT_EQ(NR_FILES - 1, last);
}

#define PF_KTHREAD	0x00200000
#define NR_CREWS	200
#define NR_MORE		16	/* threads: other things start some too */

/* Of the kernel's. */
static int nr_kernel_threads(void)
{
	DIR *proc = opendir("/proc");
	unsigned int flags;
	struct dirent *entry;
	char path[300];
	FILE *file;
	int nr = 0;

	while (proc && (entry = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		/* A name may have blanks, but no parenthesis in the kernel. */
		if (fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %u",
			   &flags) == 1 && flags & PF_KTHREAD)
			nr++;
		fclose(file);
	}
	if (proc)
		closedir(proc);
	return nr;
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *join_and_wait(void *arg)
{
	struct worker *w = arg;

	atomic_store(&w->err, dev_join(w->fd[0], 0));
	atomic_store(&w->is_done, 1);
	/* Hundreds that poll would leave no time to any. */
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return NULL;
}

/* Each with a worker, so that it is freed by a work item. */
TEST_TIMED(closes_of_many_crews_start_few_kernel_threads,
	   "needs two processors, or samples /proc")
TEST_F_TIMEOUT(limits, closes_of_many_crews_start_few_kernel_threads, 60)
{
	static struct worker w[NR_CREWS];
	int i, nr, before, most;

	if (!(dev_features(self->fd) & PARKLOT_FEAT_CREW))
		SKIP(return, "no crew");
	pthread_mutex_lock(&gate);
	for (i = 0; i < NR_CREWS; i++) {
		ASSERT_EQ(0, make_space(1, 1, &w[i].fd[0]));
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, join_and_wait,
					    &w[i]));
		UNTIL(atomic_load(&w[i].is_done));
		ASSERT_EQ(0, atomic_load(&w[i].err));
	}
	before = most = nr_kernel_threads();
	ASSERT_LT(0, before);
	for (i = 0; i < NR_CREWS; i++)
		close(w[i].fd[0]);
	for (i = 0; i < 20; i++) {
		nr = nr_kernel_threads();
		most = nr > most ? nr : most;
		sleep_ns(10 * NSEC_PER_MSEC);
	}
	pthread_mutex_unlock(&gate);
	for (i = 0; i < NR_CREWS; i++)
		pthread_join(w[i].thread, NULL);
	TH_LOG("%d kernel threads before, %d at most", before, most);
	EXPECT_GE(before + NR_MORE, most);
}

#define NR_IDLE		16
#define NR_BUSY		8
#define NR_TRIES	3
#define LATEST_NS	(75 * (NSEC_PER_SEC / 1000) * time_factor())

static void __attribute__((noreturn)) open_and_close_for_ever(void)
{
	struct sched_param param = {};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sched_setscheduler(0, SCHED_IDLE, &param))
		_exit(1);
	for (;;)
		close(dev_open());
}

static void __attribute__((noreturn)) spin_for_ever(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		__asm__ volatile("" ::: "memory");
}

/* All are killed before any is reaped, else some might never get to die. */
static void stop_load(const pid_t *pid)
{
	int i;

	for (i = 0; i < NR_IDLE + NR_BUSY; i++)
		kill(pid[i], SIGKILL);
	for (i = 0; i < NR_IDLE + NR_BUSY; i++)
		waitpid(pid[i], NULL, 0);
}

/* The first processor is theirs alone, and too small for them. */
static bool bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

static void start_load(pid_t *pid)
{
	int i;

	for (i = 0; i < NR_IDLE + NR_BUSY; i++) {
		pid[i] = fork();
		if (pid[i])
			continue;
		bind_to(0);
		if (i < NR_IDLE)
			open_and_close_for_ever();
		spin_for_ever();
	}
}

/* Returns the longest open and close of some seconds. */
static uint64_t longest_open(void)
{
	uint64_t begin, now = now_ns(), end = now + 5 * NSEC_PER_SEC, most = 0;
	int fd;

	while (now < end) {
		begin = now;
		fd = dev_open();
		if (fd < 0)
			return UINT64_MAX;
		close(fd);
		now = now_ns();
		if (now - begin > most)
			most = now - begin;
		/* So that the others get to run as well. */
		sleep_ns(NSEC_PER_MSEC);
		now = now_ns();
	}
	return most;
}

/*
 * Openers that rarely get a processor, and are preempted anywhere, against an
 * opener that never waits for a processor: it waits for none of them. A machine
 * that stands still delays it at one try.
 */
TEST_TIMED(open_waits_for_no_preempted_opener,
	   "time that passed; one of several tries")
TEST_F_TIMEOUT(limits, open_waits_for_no_preempted_opener, 60)
{
	struct sched_param param = { .sched_priority = 1 };
	pid_t pid[NR_IDLE + NR_BUSY];
	uint64_t most;
	int i = 0;

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param))
		SKIP(return, "not root");
	if (!bind_to(1))
		SKIP(return, "takes two processors");
	start_load(pid);
	do {
		most = longest_open();
		TH_LOG("at most %llu us", (unsigned long long)most / 1000);
	} while (most >= LATEST_NS && ++i < NR_TRIES);
	stop_load(pid);
	EXPECT_GT(LATEST_NS, most);
}

TEST_HARNESS_MAIN
