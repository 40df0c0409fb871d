/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pl_open(): as open(2), and it blocks the task only.
 *
 * Where the kernel can start no thread, io_uring refuses what would need one,
 * such as an open(2) and most writes to files.  The library makes these calls,
 * once each.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "nobody.h"

#include <fcntl.h>
#include <sys/stat.h>

static char dir[64], path[80];

static void make_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/lib_open.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
}

static void remove_dir(void)
{
	unlink(path);
	EXPECT_EQ(0, rmdir(dir));
}

FIXTURE(open) { char unused; };
RT_IO_VARIANTS(open)

FIXTURE_SETUP(open)
{
	rt_begin_io(_metadata, variant->io, variant->wait);
	make_dir();
}

FIXTURE_TEARDOWN(open)
{
	remove_dir();
	rt_end();
}

/* ---- as open(2) ---- */

static void check_open(void *arg)
{
	struct stat st;
	int fd;

	EXPECT_EQ(-ENOENT, pl_open(path, O_RDONLY, 0));
	umask(0);
	fd = pl_open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0640);
	ASSERT_LE(0, fd);
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	EXPECT_EQ(O_WRONLY, fcntl(fd, F_GETFL) & O_ACCMODE);
	EXPECT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(0640, st.st_mode & 07777);
	EXPECT_EQ(3, pl_write(fd, "abc", 3));
	EXPECT_EQ(0, pl_close(fd));
	EXPECT_EQ(-EEXIST, pl_open(path, O_CREAT | O_EXCL | O_RDWR, 0600));
	fd = pl_open(path, O_TRUNC | O_RDWR, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(0, st.st_size);
	EXPECT_EQ(0, close(fd));
	EXPECT_EQ(-ENOTDIR, pl_open(path, O_DIRECTORY | O_RDONLY, 0));
	EXPECT_EQ(-EFAULT, pl_open((const char *)8, O_RDONLY, 0));
	EXPECT_EQ(-EINVAL, pl_open(NULL, O_RDONLY, 0));
}

TEST_F(open, task_gets_what_open_gives)
{
	run_in_task(check_open, NULL);
}

TEST_F(open, thread_gets_what_open_gives)
{
	check_open(NULL);
}

static atomic_int nr_opened;

/* How many descriptors are of the file. */
static int nr_open(void)
{
	char name[40], to[sizeof(path)];
	int fd, nr = 0;
	ssize_t n;

	for (fd = 0; fd < 1024; fd++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n = readlink(name, to, sizeof(to) - 1);
		to[n < 0 ? 0 : n] = '\0';
		nr += !strcmp(to, path);
	}
	return nr;
}

static void open_many(void *arg)
{
	int i, fd;

	for (i = 0; i < 20; i++) {
		fd = pl_open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
		EXPECT_LE(0, fd);
		EXPECT_EQ(0, pl_close(fd));
		nr_opened += fd >= 0;
	}
}

TEST_F(open, many_tasks_open_and_leave_no_descriptor)
{
	mixed_run(50, 0, open_many, NULL);
	EXPECT_EQ(50 * 20, nr_opened);
	EXPECT_EQ(0, nr_open());
}

/* ---- what waits ---- */

static int fifo_fd = -1;
static atomic_int nr_begun;

static void open_fifo(void *arg)
{
	atomic_fetch_add(&nr_begun, 1);
	fifo_fd = pl_open(path, O_RDONLY, 0);
	atomic_fetch_add(&nr_ran, 1);
}

TEST_REAL(fifo_without_writer_blocks_the_task_only, "open() waits by itself")
TEST_F(open, fifo_without_writer_blocks_the_task_only)
{
	int fd;

	ASSERT_EQ(0, mkfifo(path, 0600));
	start_with(1, 4);
	spawn(open_fifo, NULL);
	ASSERT_TRUE(UNTIL(nr_begun == 1));
	run_in_task(count, NULL);
	EXPECT_EQ(1, nr_ran);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(UNTIL(nr_ran == 2));
	EXPECT_LE(0, fifo_fd);
	EXPECT_EQ(0, close(fifo_fd));
	EXPECT_EQ(0, close(fd));
}

/* ---- where no thread can be started ---- */

FIXTURE(io_refused) { char unused; };
RT_IO_VARIANTS(io_refused)

static struct rlimit threads;

FIXTURE_SETUP(io_refused)
{
	rt_begin_io(_metadata, variant->io, variant->wait);
	if (!become_nobody())
		SKIP(return, "threads cannot be limited here");
	make_dir();
	ASSERT_EQ(0, getrlimit(RLIMIT_NPROC, &threads));
	start_with(1, 4);
}

FIXTURE_TEARDOWN(io_refused)
{
	remove_dir();
	EXPECT_EQ(0, setrlimit(RLIMIT_NPROC, &threads));
	rt_end();
}

/* The ring of the task's worker is there by then. */
static void take_threads(void)
{
	struct rlimit none = { 0, threads.rlim_max };
	char c;

	EXPECT_EQ(-EBADF, pl_read(-1, &c, 1));
	EXPECT_EQ(0, setrlimit(RLIMIT_NPROC, &none));
}

static void open_write_read(void *arg)
{
	char text[4] = "";
	int fd;

	take_threads();
	EXPECT_EQ(-ENOENT, pl_open(path, O_RDONLY, 0));
	fd = pl_open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EEXIST, pl_open(path, O_CREAT | O_EXCL | O_RDWR, 0600));
	EXPECT_EQ(3, pl_write(fd, "abc", 3));
	EXPECT_EQ(2, pl_pwrite(fd, "xy", 2, 1));
	EXPECT_EQ(3, lseek(fd, 0, SEEK_CUR));
	EXPECT_EQ(3, pl_pread(fd, text, 3, 0));
	EXPECT_STREQ("axy", text);
	EXPECT_EQ(0, lseek(fd, 0, SEEK_SET));
	EXPECT_EQ(3, pl_read(fd, text, 3));
	EXPECT_EQ(0, pl_read(fd, text, 3));
	EXPECT_EQ(0, pl_close(fd));
	EXPECT_EQ(-EBADF, pl_write(fd, "abc", 3));
}

TEST_F(io_refused, calls_on_files_are_made_all_the_same)
{
	run_in_task(open_write_read, NULL);
}

/* ---- once ---- */

#define NR_WRITES	200

static atomic_int is_open, is_over;
static int nr_written, nr_interrupted;

static void append(void *arg)
{
	int fd, i, nr = scaled(NR_WRITES);
	ssize_t ret;

	take_threads();
	fd = pl_open(path, O_CREAT | O_EXCL | O_WRONLY | O_APPEND, 0600);
	is_open = 1;
	ASSERT_LE(0, fd);
	for (i = 0; i < nr; i++) {
		ret = pl_write(fd, "abc", 3);
		EXPECT_TRUE(ret == 3 || ret == -EINTR);
		nr_written += ret == 3;
		nr_interrupted += ret == -EINTR;
	}
	close(fd);
	is_over = 1;
}

TEST_F(io_refused, interrupted_writes_are_made_once_or_not)
{
	pl_task_t t = spawn(append, NULL);
	struct stat st;
	unsigned int i;

	/*
	 * The kernel tries for milliseconds before it refuses: an open that
	 * is made again might be interrupted for good.
	 */
	ASSERT_TRUE(UNTIL(is_open));
	for (i = 0; !is_over; i++) {
		pl_interrupt(t);
		usleep(i % 8 * 3000);
	}
	join(t);
	EXPECT_EQ(scaled(NR_WRITES), nr_written + nr_interrupted);
	EXPECT_EQ(0, stat(path, &st));
	EXPECT_EQ(3 * nr_written, st.st_size);
	TH_LOG("%d written, %d interrupted", nr_written, nr_interrupted);
}

TEST_HARNESS_MAIN
