/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pl_open() opens files as open(2) does; one that waits parks the task, as in a
 * FIFO without a writer: from tasks, tasks on the worker's stack and threads.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include <fcntl.h>
#include <sys/stat.h>

FIXTURE(open) { char dir[32]; };
RT_IO_VARIANTS(open)

static char path[64], fifo[64];

FIXTURE_SETUP(open)
{
	rt_begin_io(_metadata, variant->io, variant->wait);
	strcpy(self->dir, "/tmp/lib_open.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->dir));
	snprintf(path, sizeof(path), "%s/file", self->dir);
	snprintf(fifo, sizeof(fifo), "%s/fifo", self->dir);
	ASSERT_EQ(0, mkfifo(fifo, 0600));
}

FIXTURE_TEARDOWN(open)
{
	rt_end();
	unlink(path);
	unlink(fifo);
	EXPECT_EQ(0, rmdir(self->dir));
}

static void use_file(void *arg)
{
	struct stat st;
	char c = 0;
	int fd, dir;

	(void)arg;
	unlink(path);
	umask(022);
	EXPECT_EQ(-ENOENT, pl_open(path, O_RDONLY, 0));
	fd = pl_open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(0644, st.st_mode & 07777);
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	EXPECT_EQ(1, pl_write(fd, "x", 1));
	EXPECT_EQ(0, pl_close(fd));
	EXPECT_EQ(-EEXIST, pl_open(path, O_WRONLY | O_CREAT | O_EXCL, 0666));

	*strrchr(path, '/') = '\0';
	dir = pl_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	path[strlen(path)] = '/';
	ASSERT_LE(0, dir);
	fd = pl_openat(dir, "file", O_RDONLY | O_CLOEXEC, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, fcntl(fd, F_GETFL) & O_WRONLY);
	EXPECT_EQ(1, pl_read(fd, &c, 1));
	EXPECT_EQ('x', c);
	EXPECT_EQ(0, pl_close(fd));
	EXPECT_EQ(0, pl_close(dir));
	EXPECT_EQ(-EBADF, pl_openat(dir, "file", O_RDONLY, 0));
	EXPECT_EQ(-EFAULT, pl_open(NULL, O_RDONLY, 0));
	EXPECT_EQ(-ENXIO, pl_open(fifo, O_WRONLY | O_NONBLOCK, 0));
}

TEST_F(open, file_is_opened_as_by_the_system_call)
{
	run_in_task(use_file, NULL);
	run_as(PL_STACK_WORKER, use_file, NULL);
	use_file(NULL);
}

static void read_fifo(void *arg)
{
	int fd = pl_open(fifo, O_RDONLY | O_CLOEXEC, 0);
	char c = 0;

	(void)arg;
	ASSERT_LE(0, fd);
	EXPECT_EQ(1, pl_read(fd, &c, 1));
	EXPECT_EQ('y', c);
	EXPECT_EQ(0, pl_close(fd));
}

static bool has_uring(void)
{
	EXPECT_EQ(-ENOENT, pl_open(path, O_RDONLY, 0));
	return rt_stat().io == PL_IO_URING;
}

static void write_fifo(void *arg)
{
	int fd = pl_open(fifo, O_WRONLY | O_CLOEXEC, 0);

	(void)arg;
	ASSERT_LE(0, fd);
	EXPECT_EQ(1, pl_write(fd, "y", 1));
	EXPECT_EQ(0, pl_close(fd));
}

/* Elsewhere the reader blocks its worker, which may be the only one. */
static void write_in_thread(void)
{
	int fd = open(fifo, O_WRONLY | O_CLOEXEC);

	ASSERT_LE(0, fd);
	EXPECT_EQ(1, write(fd, "y", 1));
	EXPECT_EQ(0, close(fd));
}

TEST_F(open, task_that_waits_for_a_writer_lets_the_writer_run)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	bool has;
	pl_task_t t;

	cfg.nr_workers = cfg.max_workers = 1;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	has = has_uring();
	ASSERT_EQ(0, pl_spawn(&t, read_fifo, NULL, NULL));
	if (has)
		run_in_task(write_fifo, NULL);
	else
		write_in_thread();
	EXPECT_EQ(0, pl_join(t));
}

static atomic_int nr_opens;

static void open_without_writer(void *arg)
{
	(void)arg;
	EXPECT_EQ(-ETIMEDOUT, pl_open_until(fifo, O_RDONLY, 0, in_ms(5)));
	EXPECT_EQ(-ETIMEDOUT, pl_openat_until(AT_FDCWD, fifo, O_RDONLY, 0, 0));
	nr_opens++;
	EXPECT_EQ(-EINTR, pl_open(fifo, O_RDONLY, 0));
	nr_opens++;
	EXPECT_EQ(-ECANCELED, pl_open(fifo, O_RDONLY, 0));
}

static void open_past_deadline(void *arg)
{
	int fd = pl_open_until(fifo, O_RDONLY, 0, in_ms(1));

	(void)arg;
	EXPECT_LE(0, fd);
	EXPECT_EQ(0, pl_close(fd));
}

/* As pl_io(3) has it: the call blocks the worker, and nothing ends it. */
static void let_writer_end_it(void)
{
	pl_task_t t;
	int fd = -1;

	ASSERT_EQ(0, pl_spawn(&t, open_past_deadline, NULL, NULL));
	EXPECT_EQ(0, pl_sleep(5 * NSEC_PER_MSEC));
	EXPECT_TRUE(UNTIL((fd = open(fifo, O_WRONLY | O_NONBLOCK)) >= 0));
	EXPECT_EQ(0, pl_join(t));
	EXPECT_EQ(0, close(fd));
}

TEST_F(open, wait_for_a_writer_ends_by_deadline_interrupt_and_cancel)
{
	pl_task_t t;

	if (!has_uring()) {
		let_writer_end_it();
		return;
	}
	ASSERT_EQ(0, pl_spawn(&t, open_without_writer, NULL, NULL));
	EXPECT_TRUE(UNTIL(nr_opens == 1));
	EXPECT_EQ(0, pl_interrupt(t));
	EXPECT_TRUE(UNTIL(nr_opens == 2));
	EXPECT_EQ(0, pl_cancel(t));
	EXPECT_EQ(0, pl_join(t));
}

TEST_HARNESS_MAIN
