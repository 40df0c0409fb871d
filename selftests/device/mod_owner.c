// SPDX-License-Identifier: GPL-2.0-only
/*
 * A space belongs to one address space and ends with it: fork, exec, passing,
 * closing and killing. A leak shows in the module's reference count, two for
 * each open file.
 */
#include "kselftest_harness.h"

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "mod.h"
#include "send_fd.h"

#define EXEC_ENV	"MOD_OWNER_EXEC_FD"

FIXTURE(owner)
{
	struct space s;
};

FIXTURE_SETUP(owner)
{
	SPACE_SETUP(&self->s, 2);
}

FIXTURE_TEARDOWN(owner)
{
	space_close(&self->s);
}

static int map_error(int fd, off_t offset)
{
	void *p = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd,
		       offset);

	return p == MAP_FAILED ? -errno : 0;
}

/* How many calls of the device return an error other than -EIO. */
static int nr_not_eio(int fd)
{
	struct parklot_query query = {};
	struct parklot_wake_park both = { .park = { .pollfd = -1 } };
	struct parklot_crew crew = {};
	struct parklot_worker worker = {};
	int nr = 0;

	nr += dev_ioctl(fd, PARKLOT_IOC_QUERY, &query) != -EIO;
	nr += dev_setup(fd, 1) != -EIO;
	nr += dev_park(fd, 0, 0, 0) != -EIO;
	nr += dev_wake(fd, 0, 1) != -EIO;
	nr += dev_ioctl(fd, PARKLOT_IOC_WAKE_PARK, &both) != -EIO;
	nr += dev_ioctl(fd, PARKLOT_IOC_CREW, &crew) != -EIO;
	nr += dev_ioctl(fd, PARKLOT_IOC_WORKER_JOIN, &worker) != -EIO;
	nr += dev_ioctl(fd, PARKLOT_IOC_WORKER_LEAVE, &worker) != -EIO;
	nr += map_error(fd, PARKLOT_OFF_COUNTERS) != -EIO;
	nr += map_error(fd, PARKLOT_OFF_WORDS) != -EIO;
	return nr;
}

/* The program run by exec: reports by its exit status, before any main(). */
static void __attribute__((constructor)) exec_main(void)
{
	const char *fd = getenv(EXEC_ENV);

	if (fd)
		_exit(nr_not_eio(atoi(fd)));
}

/* The exit status, or 256 + the signal. */
static int child_status(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? 256 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

/* The last reference to a file may be put after its process is gone. */
static bool nr_open_becomes(int nr)
{
	int i;

	for (i = 0; i < 5000 && nr_open() != nr; i++)
		sleep_ns(NSEC_PER_MSEC);
	return nr_open() == nr;
}

TEST_F(owner, forked_child_is_refused)
{
	pid_t pid = fork();

	if (!pid)
		_exit(nr_not_eio(self->s.fd));
	EXPECT_EQ(0, child_status(pid));
	EXPECT_EQ(10, nr_not_eio(self->s.fd));
}

/* A child's close is not the owner's: the sleepers stay parked. */
TEST_F(owner, forked_child_closes_without_effect)
{
	struct parker parker;
	pid_t pid;

	ASSERT_EQ(0, parker_start(&parker, &self->s, 0, PARKLOT_FOREVER));
	pid = fork();
	if (!pid)
		_exit(close(self->s.fd));
	EXPECT_EQ(0, child_status(pid));
	EXPECT_EQ(1, nr_parked(&self->s, 0));
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker));
}

TEST_F(owner, forked_child_opens_its_own_space)
{
	pid_t pid = fork();

	if (!pid) {
		struct space s;

		if (space_open(&s, 1))
			_exit(1);
		_exit(dev_park(s.fd, 0, 0, 0) != PARKLOT_TIMEDOUT);
	}
	EXPECT_EQ(0, child_status(pid));
}

TEST_F(owner, exec_ends_the_space)
{
	char fd[16];
	char *argv[] = { "exec", NULL };
	pid_t pid = fork();

	if (!pid) {
		struct space s;

		if (space_open(&s, 1) || fcntl(s.fd, F_SETFD, 0))
			_exit(100);
		snprintf(fd, sizeof(fd), "%d", s.fd);
		setenv(EXEC_ENV, fd, 1);
		execv("/proc/self/exe", argv);
		_exit(101);
	}
	EXPECT_EQ(0, child_status(pid));
}

static void *park_forever(void *arg)
{
	struct space *s = arg;

	dev_park(s->fd, 0, 0, PARKLOT_FOREVER);
	return NULL;
}

/* A process with its own space and three threads parked in it. */
static void become_parked(struct space *s)
{
	pthread_t thread;
	int i;

	if (space_open(s, 1))
		_exit(100);
	for (i = 0; i < 3; i++)
		if (pthread_create(&thread, NULL, park_forever, s))
			_exit(101);
	wait_parked(s, 0, 3);
}

TEST_F(owner, exec_ends_parked_threads)
{
	char *argv[] = { "exec", NULL };
	int before = nr_open();
	struct space s;
	pid_t pid = fork();

	if (!pid) {
		become_parked(&s);
		/*
		 * Exec closes the descriptor; the program tries a number that
		 * is none.
		 */
		setenv(EXEC_ENV, "-1", 1);
		execv("/proc/self/exe", argv);
		_exit(102);
	}
	EXPECT_EQ(10, child_status(pid));
	EXPECT_TRUE(nr_open_becomes(before));
}

TEST_F(owner, exit_ends_parked_threads)
{
	int before = nr_open();
	struct space s;
	pid_t pid = fork();

	if (!pid) {
		become_parked(&s);
		_exit(7);
	}
	EXPECT_EQ(7, child_status(pid));
	EXPECT_TRUE(nr_open_becomes(before));
}

TEST_F(owner, kill_ends_parked_threads)
{
	int before = nr_open();
	struct space s;
	int i, pipefd[2];
	pid_t pid;
	char c;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, pipe(pipefd));
		pid = fork();
		if (!pid) {
			become_parked(&s);
			if (write(pipefd[1], "", 1) != 1)
				_exit(103);
			park_forever(&s);
			_exit(104);
		}
		EXPECT_EQ(1, read(pipefd[0], &c, 1));
		EXPECT_EQ(0, kill(pid, SIGKILL));
		EXPECT_EQ(256 + SIGKILL, child_status(pid));
		close(pipefd[0]);
		close(pipefd[1]);
	}
	EXPECT_TRUE(nr_open_becomes(before));
}

/* Opened by the child after the fork, and so not merely inherited. */
TEST_F(owner, passed_descriptor_is_refused)
{
	int fd, sock[2];
	struct space s;
	pid_t pid;
	char c;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	if (!pid) {
		if (space_open(&s, 1) || send_fd(sock[1], s.fd) ||
		    read(sock[1], &c, 1) != 1)
			_exit(100);
		_exit(dev_park(s.fd, 0, 0, 0) != PARKLOT_TIMEDOUT);
	}
	fd = receive_fd(sock[0]);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, nr_not_eio(fd));
	EXPECT_EQ(1, write(sock[0], "", 1));
	EXPECT_EQ(0, child_status(pid));
	/*
	 * The owner is gone, and the space still does not belong to this
	 * process.
	 */
	EXPECT_EQ(0, nr_not_eio(fd));
	EXPECT_EQ(0, close(fd));
}

TEST_F(owner, close_ends_parked_threads)
{
	struct parker parker[3];
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, parker_start(&parker[i], &self->s, i & 1,
					  PARKLOT_FOREVER));
	EXPECT_EQ(0, close(self->s.fd));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(PARKLOT_INTERRUPTED, parker_join(&parker[i]));
	EXPECT_EQ(0, nr_parked(&self->s, 0));
	EXPECT_EQ(0, nr_parked(&self->s, 1));
	EXPECT_EQ(-EBADF, dev_park(self->s.fd, 0, 0, PARKLOT_FOREVER));
	self->s.fd = dev_open();
}

struct closer {
	pthread_barrier_t start;
	int fd, first;
};

/* Parks until the descriptor is gone; keeps the first result. */
static void *park_at_close(void *arg)
{
	struct closer *closer = arg;
	int reason;

	pthread_barrier_wait(&closer->start);
	closer->first = dev_park(closer->fd, 0, 0, PARKLOT_FOREVER);
	reason = closer->first;
	while (reason == PARKLOT_INTERRUPTED)
		reason = dev_park(closer->fd, 0, 0, PARKLOT_FOREVER);
	return (void *)(intptr_t)reason;
}

/*
 * The parker has taken the file and is not on the list yet, or is: it must not
 * stay parked where no waker can reach it. The close aims at the moment when
 * the park begins: later if the parker found no descriptor, else sooner.
 */
TEST_F_TIMEOUT(owner, close_racing_a_park_ends_the_park, 60)
{
	uint64_t end = now_ns() + 15 * NSEC_PER_SEC;
	int i, j, delay = 0, step;
	struct closer closer;
	pthread_t thread;
	void *reason;

	pthread_barrier_init(&closer.start, NULL, 2);
	for (i = 0; i < 5000 && now_ns() < end; i++) {
		closer.fd = dev_open();
		ASSERT_LE(0, closer.fd);
		ASSERT_EQ(0, dev_setup(closer.fd, 1));
		ASSERT_EQ(0, pthread_create(&thread, NULL, park_at_close,
					    &closer));
		pthread_barrier_wait(&closer.start);
		for (j = 0; j < delay; j++)
			__asm__ volatile("" ::: "memory");
		EXPECT_EQ(0, close(closer.fd));
		pthread_join(thread, &reason);
		EXPECT_EQ(-EBADF, (intptr_t)reason);
		step = 1 + i % 97;
		delay += closer.first == -EBADF ? step : -step;
		delay = delay < 0 ? 0 : delay > 100000 ? 100000 : delay;
	}
}

static bool allow_files(rlim_t nr)
{
	struct rlimit limit = { .rlim_cur = nr, .rlim_max = nr };

	return !setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_F(owner, thousand_opens_leave_nothing)
{
	int before = nr_open(), i, round;
	static int fd[1000];

	if (!allow_files(2000))
		SKIP(return, "no 2000 files");
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 1000; i++) {
			fd[i] = dev_open();
			ASSERT_LE(0, fd[i]);
			ASSERT_EQ(0, dev_setup(fd[i], 1 + i % 100));
		}
		EXPECT_EQ(is_built_in() ? -1 : before + 2 * 1000, nr_open());
		for (i = 0; i < 1000; i++)
			EXPECT_EQ(0, close(fd[i]));
		EXPECT_TRUE(nr_open_becomes(before));
	}
}

static long memory_used(const char *cgroup)
{
	char path[128];
	long used = -1;
	FILE *file;

	snprintf(path, sizeof(path), "%s/memory.current", cgroup);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%ld", &used) != 1)
		used = -1;
	fclose(file);
	return used;
}

/* In a cgroup of its own: the bytes that 64 of the largest spaces cost. */
static void __attribute__((noreturn)) charge_me(const char *cgroup, int out)
{
	long before, cost;
	int i;

	if (write_file(cgroup, "cgroup.procs", "0"))
		_exit(1);
	before = memory_used(cgroup);
	for (i = 0; i < 64; i++)
		if (dev_setup(dev_open(), 1024))
			_exit(2);
	cost = memory_used(cgroup) - before;
	_exit(write(out, &cost, sizeof(cost)) != sizeof(cost));
}

/* Both areas and the lots themselves are 64 bytes a lot each. */
TEST_F(owner, space_is_charged_to_its_cgroup)
{
	char dir[] = "/tmp/mod_owner.XXXXXX", cgroup[64];
	int pipefd[2];
	long cost = 0;
	pid_t pid;

	mkdir("/tmp", 01777);
	if (!mkdtemp(dir) || mount("none", dir, "cgroup2", 0, NULL))
		SKIP(return, "no cgroup2");
	snprintf(cgroup, sizeof(cgroup), "%s/parklot", dir);
	if (write_file(dir, "cgroup.subtree_control", "+memory") ||
	    mkdir(cgroup, 0755)) {
		umount(dir);
		SKIP(return, "no memory cgroup");
	}
	ASSERT_EQ(0, pipe(pipefd));
	pid = fork();
	if (!pid)
		charge_me(cgroup, pipefd[1]);
	EXPECT_EQ(0, child_status(pid));
	close(pipefd[1]);
	EXPECT_EQ(sizeof(cost), read(pipefd[0], &cost, sizeof(cost)));
	EXPECT_LE(64 * 3 * 64 * 1024L, cost);
	rmdir(cgroup);
	umount(dir);
	rmdir(dir);
}

TEST_F(owner, module_stays_while_open)
{
	if (geteuid())
		SKIP(return, "not root");
	if (is_built_in())
		SKIP(return, "the device is built in");
	EXPECT_EQ(-1, syscall(SYS_delete_module, "parklot", O_NONBLOCK));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(0, dev_wake(self->s.fd, 0, 1));
}

TEST_F(owner, fdinfo_shows_lots_and_sleepers)
{
	int fd = self->s.fd;
	struct parker parker[2];

	EXPECT_EQ(2, fdinfo(getpid(), fd, "lots"));
	EXPECT_EQ(0, fdinfo(getpid(), fd, "parked"));
	ASSERT_EQ(0, parker_start(&parker[0], &self->s, 1, PARKLOT_FOREVER));
	ASSERT_EQ(0, parker_start(&parker[1], &self->s, 0, PARKLOT_FOREVER));
	EXPECT_EQ(2, fdinfo(getpid(), fd, "parked"));
	EXPECT_EQ(0, fdinfo(getpid(), fd, "wakes"));
	EXPECT_EQ(1, dev_wake(fd, 1, 1));
	EXPECT_EQ(0, dev_wake(fd, 1, 1));
	EXPECT_EQ(1, dev_wake(fd, 0, ~0U));
	EXPECT_EQ(0, fdinfo(getpid(), fd, "parked"));
	EXPECT_EQ(2, fdinfo(getpid(), fd, "wakes"));
	EXPECT_EQ(3, fdinfo(getpid(), fd, "batches"));
	EXPECT_EQ(1, fdinfo(getpid(), fd, "empty-wakes"));
	EXPECT_EQ(-1, fdinfo(getpid(), fd, "running"));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker[0]));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker[1]));
}

TEST_HARNESS_MAIN
