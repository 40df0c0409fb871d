/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the kernel can start no thread, io_uring refuses what would need one,
 * such as an open(2) and most writes to files.  The library makes these calls,
 * once each.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define NOBODY	65534

FIXTURE(io_refused) { char unused; };
RT_IO_VARIANTS(io_refused)

static char dir[64], path[80];
static struct rlimit threads;

/* Only root is not limited. */
static bool become_nobody(void)
{
	if (geteuid())
		return true;
	return !setresgid(NOBODY, NOBODY, NOBODY) &&
	       !setresuid(NOBODY, NOBODY, NOBODY) &&
	       !prctl(PR_SET_DUMPABLE, 1);
}

FIXTURE_SETUP(io_refused)
{
	rt_begin_io(_metadata, variant->io, variant->wait);
	if (!become_nobody())
		SKIP(return, "threads cannot be limited here");
	snprintf(dir, sizeof(dir), "/tmp/lib_io_refused.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	ASSERT_EQ(0, getrlimit(RLIMIT_NPROC, &threads));
	start_with(1, 4);
}

FIXTURE_TEARDOWN(io_refused)
{
	unlink(path);
	EXPECT_EQ(0, rmdir(dir));
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

	(void)arg;
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

	(void)arg;
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
