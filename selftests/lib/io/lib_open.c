/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pl_open(): as open(2), and it blocks the task only.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"

#include <fcntl.h>
#include <sys/stat.h>

FIXTURE(open) { char unused; };
RT_IO_VARIANTS(open)

static char dir[64], path[80];

FIXTURE_SETUP(open)
{
	rt_begin_io(_metadata, variant->io, variant->wait);
	snprintf(dir, sizeof(dir), "/tmp/lib_open.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
}

FIXTURE_TEARDOWN(open)
{
	unlink(path);
	EXPECT_EQ(0, rmdir(dir));
	rt_end();
}

/* ---- as open(2) ---- */

static void check_open(void *arg)
{
	struct stat st;
	int fd;

	(void)arg;
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

	(void)arg;
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
	(void)arg;
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

TEST_HARNESS_MAIN
