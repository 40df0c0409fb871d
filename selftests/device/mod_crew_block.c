// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations that block a worker and operations that do not, one at a time. A
 * worker starts the operation, is seen as blocked, is released, and runs again.
 */
#include "kselftest_harness.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "uffd_page.h"
#include "mod_crew.h"
#include "fuse_fsync.h"

FIXTURE(block)
{
	struct space s;
	struct worker w;
};

FIXTURE_SETUP(block)
{
	CREW_SETUP(&self->s, 1, 2);
}

FIXTURE_TEARDOWN(block)
{
	EXPECT_EQ(0, nr_running(&self->s));
	EXPECT_EQ(0, nr_blocked(&self->s));
	space_close(&self->s);
}

#define EXPECT_BLOCKED(s) do { \
	UNTIL(nr_blocked(s) == 1 && nr_running(s) == 0); \
	EXPECT_EQ(0, nr_idle_workers(s)); \
} while (0)

#define EXPECT_BACK(s, w) do { \
	UNTIL(atomic_load(&(w)->is_done)); \
	EXPECT_EQ(0, nr_blocked(s)); \
	EXPECT_EQ(1, nr_running(s)); \
	EXPECT_EQ(0, worker_finish(w)); \
} while (0)

TEST_F(block, read_blocks_the_worker)
{
	ASSERT_EQ(0, worker_block(&self->w, &self->s, 0));
	EXPECT_BLOCKED(&self->s);
	EXPECT_TRUE(worker_unblock(&self->w));
	EXPECT_BACK(&self->s, &self->w);
}

static void do_poll(struct worker *w)
{
	struct pollfd pollfd = { .fd = w->fd[0], .events = POLLIN };

	poll(&pollfd, 1, -1);
}

TEST_F(block, poll_blocks_the_worker)
{
	ASSERT_EQ(0, pipe(self->w.fd));
	ASSERT_EQ(0, worker_start(&self->w, &self->s, 0, do_poll));
	worker_begin(&self->w);
	EXPECT_BLOCKED(&self->s);
	EXPECT_TRUE(worker_unblock(&self->w));
	EXPECT_BACK(&self->s, &self->w);
}

static void ignore(int sig)
{
	(void)sig;
}

static void do_sleep(struct worker *w)
{
	atomic_int *is_over = w->arg;

	while (!atomic_load(is_over))
		sleep(1000);
}

TEST_F(block, nanosleep_blocks_the_worker)
{
	struct sigaction action = { .sa_handler = ignore };
	atomic_int is_over = 0;

	sigaction(SIGUSR1, &action, NULL);
	self->w.arg = &is_over;
	ASSERT_EQ(0, worker_start(&self->w, &self->s, 0, do_sleep));
	worker_begin(&self->w);
	EXPECT_BLOCKED(&self->s);
	atomic_store(&is_over, 1);
	/* The worker may still be about to sleep. */
	while (!atomic_load(&self->w.is_done)) {
		pthread_kill(self->w.thread, SIGUSR1);
		sleep_ns(NSEC_PER_MSEC);
	}
	EXPECT_BACK(&self->s, &self->w);
}

static void do_futex(struct worker *w)
{
	uint32_t *word = w->arg;

	while (!__atomic_load_n(word, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL);
}

TEST_F(block, futex_blocks_the_worker)
{
	uint32_t word = 0;

	self->w.arg = &word;
	ASSERT_EQ(0, worker_start(&self->w, &self->s, 0, do_futex));
	worker_begin(&self->w);
	EXPECT_BLOCKED(&self->s);
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
	EXPECT_BACK(&self->s, &self->w);
}

static void do_flock(struct worker *w)
{
	atomic_store(&w->result, flock(w->fd[0], LOCK_EX));
}

TEST_F(block, file_lock_blocks_the_worker)
{
	char path[] = "/tmp/mod_crew.XXXXXX";
	int fd;

	mkdir("/tmp", 01777);
	fd = mkstemp(path);
	ASSERT_LE(0, fd);
	self->w.fd[0] = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->w.fd[0]);
	ASSERT_EQ(0, flock(fd, LOCK_EX));
	ASSERT_EQ(0, worker_start(&self->w, &self->s, 0, do_flock));
	worker_begin(&self->w);
	EXPECT_BLOCKED(&self->s);
	EXPECT_EQ(0, flock(fd, LOCK_UN));
	EXPECT_BACK(&self->s, &self->w);
	unlink(path);
}

static void do_fsync(struct worker *w)
{
	atomic_store(&w->result, fsync(w->fd[0]));
}

TEST_F(block, fsync_blocks_the_worker)
{
	struct fuse_fsync file;
	int err = fuse_fsync_open(&file);

	if (err == -ENOENT || err == -ENODEV)
		SKIP(return, "this kernel has no FUSE built in");
	ASSERT_EQ(0, err);
	self->w.fd[0] = file.fd;
	atomic_store(&self->w.result, -1);
	ASSERT_EQ(0, worker_start(&self->w, &self->s, 0, do_fsync));
	worker_begin(&self->w);
	EXPECT_BLOCKED(&self->s);
	fuse_fsync_let_through(&file);
	EXPECT_BACK(&self->s, &self->w);
	EXPECT_EQ(0, atomic_load(&self->w.result));
	fuse_fsync_close(&file);
}

static void do_touch(struct worker *w)
{
	atomic_store(&w->result, *(volatile unsigned char *)w->arg);
}

TEST_F(block, page_fault_blocks_the_worker)
{
	struct uffd_page page;

	if (uffd_page_open(&page, 0))
		SKIP(return, "no userfaultfd");
	self->w.arg = page.mem;
	ASSERT_EQ(0, worker_start(&self->w, &self->s, 0, do_touch));
	worker_begin(&self->w);
	EXPECT_BLOCKED(&self->s);
	EXPECT_EQ(0, uffd_page_bring(&page, "", 1));
	EXPECT_BACK(&self->s, &self->w);
	uffd_page_close(&page);
}

static void *read_into(void *arg)
{
	struct worker *w = arg;

	return (void *)read(w->fd[0], w->arg, 16);
}

static void do_seek(struct worker *w)
{
	atomic_store(&w->result, lseek(w->fd[0], 0, SEEK_SET));
}

/*
 * A mutex of the kernel's: that of the file's position, held in a page fault by
 * another thread, which is not in the crew.
 */
TEST_F(block, contended_mutex_blocks_the_worker)
{
	char path[] = "/tmp/mod_crew.XXXXXX";
	struct worker *w = &self->w;
	struct uffd_page page;
	pthread_t reader;

	if (uffd_page_open(&page, 0))
		SKIP(return, "no userfaultfd");
	mkdir("/tmp", 01777);
	w->fd[0] = mkstemp(path);
	ASSERT_EQ(16, write(w->fd[0], "sixteen letters", 16));
	ASSERT_EQ(0, lseek(w->fd[0], 0, SEEK_SET));
	w->arg = page.mem;
	ASSERT_EQ(0, pthread_create(&reader, NULL, read_into, w));
	/* The thread holds the mutex once the fault has been reported. */
	uffd_page_await(&page);
	ASSERT_EQ(0, worker_start(w, &self->s, 0, do_seek));
	worker_begin(w);
	EXPECT_BLOCKED(&self->s);
	EXPECT_EQ(0, uffd_page_bring(&page, "", 1));
	EXPECT_BACK(&self->s, w);
	pthread_join(reader, NULL);
	uffd_page_close(&page);
	unlink(path);
}

static void do_vfork(struct worker *w)
{
	pid_t pid = vfork();
	char c;

	if (!pid) {
		/* This thread shares our memory, but has not joined. */
		c = read(w->fd[0], &c, 1);
		_exit(0);
	}
	atomic_store(&w->result, pid);
	while (waitpid(pid, NULL, WNOHANG) == 0)
		;
}

TEST_F(block, vfork_blocks_the_worker)
{
	ASSERT_EQ(0, pipe(self->w.fd));
	ASSERT_EQ(0, worker_start(&self->w, &self->s, 0, do_vfork));
	worker_begin(&self->w);
	EXPECT_BLOCKED(&self->s);
	EXPECT_TRUE(worker_unblock(&self->w));
	EXPECT_LT(0, atomic_load(&self->w.result));
	EXPECT_BACK(&self->s, &self->w);
}

/*
 * Stopped from outside: a process with a computing and a reading worker. The
 * parent stops the process and looks by fdinfo. The computing worker counts as
 * running all the while.
 */
struct victim {
	pid_t pid, tid;		/* of the process, of the computing worker */
	int fd;
};

static void do_compute(struct worker *w)
{
	spin_until(w->arg);
}

static void __attribute__((noreturn)) be_victim(int out)
{
	static struct worker w[2];
	static atomic_int never;
	struct victim victim;
	struct space s;

	if (space_open_crew(&s, 1, 2))
		_exit(100);
	w[0].arg = &never;
	if (worker_start(&w[0], &s, 0, do_compute) ||
	    worker_block(&w[1], &s, 1))
		_exit(101);
	worker_begin(&w[0]);
	victim = (struct victim){ getpid(), atomic_load(&w[0].tid), s.fd };
	if (write(out, &victim, sizeof(victim)) != sizeof(victim))
		_exit(102);
	for (;;)
		pause();
}

static bool make_victim(struct victim *victim)
{
	int pipefd[2];
	bool is_there;

	if (pipe(pipefd))
		return false;
	if (!fork())
		be_victim(pipefd[1]);
	is_there = read(pipefd[0], victim, sizeof(*victim)) == sizeof(*victim);
	close(pipefd[0]);
	close(pipefd[1]);
	return is_there;
}

static void end_victim(const struct victim *victim)
{
	kill(victim->pid, SIGKILL);
	waitpid(victim->pid, NULL, 0);
}

/* Returns the letter of a thread's state in the kernel. */
static char state_of(const struct victim *victim, pid_t tid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", victim->pid, tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state;
}

static long of(const struct victim *victim, const char *noun)
{
	return fdinfo(victim->pid, victim->fd, noun);
}

TEST_F(block, stop_signal_does_not_block_the_worker)
{
	struct victim v;
	int status;

	ASSERT_TRUE(make_victim(&v));
	EXPECT_EQ(1, of(&v, "blocked"));
	EXPECT_EQ(0, kill(v.pid, SIGSTOP));
	EXPECT_EQ(v.pid, waitpid(v.pid, &status, WUNTRACED));
	UNTIL(state_of(&v, v.tid) == 'T');
	/*
	 * The whole process is stopped; the reading worker has left read() for
	 * that.
	 */
	UNTIL(of(&v, "running") == 2 && of(&v, "blocked") == 0);
	EXPECT_EQ(0, kill(v.pid, SIGCONT));
	UNTIL(of(&v, "blocked") == 1 && of(&v, "running") == 1);
	end_victim(&v);
}

TEST_F(block, debugger_stop_does_not_block_the_worker)
{
	struct victim v;
	int status;

	ASSERT_TRUE(make_victim(&v));
	if (ptrace(PTRACE_SEIZE, v.tid, 0, 0))
		SKIP(goto out, "no ptrace");
	EXPECT_EQ(0, ptrace(PTRACE_INTERRUPT, v.tid, 0, 0));
	EXPECT_EQ(v.tid, waitpid(v.tid, &status, __WALL));
	UNTIL(state_of(&v, v.tid) == 't');
	EXPECT_EQ(1, of(&v, "running"));
	EXPECT_EQ(1, of(&v, "blocked"));
	EXPECT_EQ(0, ptrace(PTRACE_DETACH, v.tid, 0, 0));
out:
	end_victim(&v);
}

static bool write_to(const char *dir, const char *name, const char *text)
{
	char path[128];
	bool is_written;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "we");
	if (!file)
		return false;
	is_written = fputs(text, file) >= 0;
	return !fclose(file) && is_written;
}

static bool is_frozen(const char *cgroup)
{
	char path[128], line[64];
	bool is = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.events", cgroup);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		is |= !strcmp(line, "frozen 1\n");
	if (file)
		fclose(file);
	return is;
}

TEST_F(block, freezer_does_not_block_the_worker)
{
	char dir[] = "/tmp/mod_crew.XXXXXX", cgroup[64], pid[16];
	struct victim v;

	mkdir("/tmp", 01777);
	if (!mkdtemp(dir) || mount("none", dir, "cgroup2", 0, NULL))
		SKIP(return, "no cgroup2");
	snprintf(cgroup, sizeof(cgroup), "%s/frozen", dir);
	ASSERT_EQ(0, mkdir(cgroup, 0755));
	ASSERT_TRUE(make_victim(&v));
	snprintf(pid, sizeof(pid), "%d", v.pid);
	ASSERT_TRUE(write_to(cgroup, "cgroup.procs", pid));
	UNTIL(of(&v, "blocked") == 1);
	EXPECT_TRUE(write_to(cgroup, "cgroup.freeze", "1"));
	UNTIL(is_frozen(cgroup));
	UNTIL(of(&v, "running") == 2 && of(&v, "blocked") == 0);
	EXPECT_TRUE(write_to(cgroup, "cgroup.freeze", "0"));
	UNTIL(of(&v, "blocked") == 1 && of(&v, "running") == 1);
	end_victim(&v);
	rmdir(cgroup);
	umount(dir);
	rmdir(dir);
}

TEST_HARNESS_MAIN
