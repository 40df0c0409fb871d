/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dump of tasks that run: whether each computes, or what blocks its worker.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "dump.h"

#include <sys/syscall.h>

RT_FIXTURE(dump_worker);

/* Lets all go. */
static atomic_bool may_go;

static void busy(void *arg)
{
	(void)arg;
	EXPECT_TRUE(UNTIL_BUSY(may_go));
}

static int blocking_fds[2];
static pthread_mutex_t blocking_mutex = PTHREAD_MUTEX_INITIALIZER;

static void block_in_read(void *arg)
{
	char byte;

	(void)arg;
	EXPECT_EQ(1, read(blocking_fds[0], &byte, 1));
}

static void block_in_futex(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&blocking_mutex);
	pthread_mutex_unlock(&blocking_mutex);
}

static void block_in_sleep(void *arg)
{
	struct timespec ts = { .tv_nsec = 100 * NSEC_PER_MSEC };

	(void)arg;
	while (!may_go)
		syscall(SYS_nanosleep, &ts, NULL);
}

TEST_REAL(dump_names_call_and_descriptor_that_block_a_worker,
	  "/proc names the real call")
TEST_F(dump_worker, dump_names_call_and_descriptor_that_block_a_worker)
{
	char words[64];
	pl_task_t t;

	NEEDS_DUMP();
	ASSERT_EQ(0, pipe(blocking_fds));
	t = spawn_named("reads", block_in_read, NULL);
	snprintf(words, sizeof(words), ", blocked in read(2), fd %d",
		 blocking_fds[0]);
	ASSERT_TRUE(UNTIL(dumped() && line_of("reads", words)));
	EXPECT_SAYS("reads", "runs on worker ");
	/* The first look has no time; each later one a longer. */
	ASSERT_TRUE(UNTIL(dumped() &&
			  line_of("reads", ", since at least ")));
	ASSERT_EQ(1, write(blocking_fds[1], "", 1));
	join(t);
	close(blocking_fds[0]);
	close(blocking_fds[1]);
}

TEST_REAL(dump_names_calls_without_a_descriptor, "/proc names the real call")
TEST_F(dump_worker, dump_names_calls_without_a_descriptor)
{
	pl_task_t t[2];
	int i;

	start_with(2, 2);
	NEEDS_DUMP();
	pthread_mutex_lock(&blocking_mutex);
	t[0] = spawn_named("locks", block_in_futex, NULL);
	t[1] = spawn_named("sleeps", block_in_sleep, NULL);
	EXPECT_TRUE(UNTIL(dumped() &&
			  line_of("locks", ", blocked in futex(2)")));
	EXPECT_TRUE(UNTIL(dumped() &&
			  line_of("sleeps", ", blocked in nanosleep(2)")));
	EXPECT_EQ(NULL, line_of("sleeps", " fd "));
	pthread_mutex_unlock(&blocking_mutex);
	may_go = true;
	for (i = 0; i < 2; i++)
		join(t[i]);
}

TEST_F(dump_worker, dump_tells_computing_tasks_from_blocked_ones)
{
	pl_task_t t;

	NEEDS_DUMP();
	t = spawn_named("busy", busy, NULL);
	EXPECT_TRUE(UNTIL(dumped() &&
			  line_of("busy", ", computes, since at least ")));
	EXPECT_EQ(NULL, line_of("busy", "blocked"));
	may_go = true;
	join(t);
}

/* Without a descriptor for /proc. */
static void dump_without_files(void)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	struct rlimit old, none;
	ssize_t n;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &old));
	none = old;
	none.rlim_cur = 0;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_EQ(0, pl_dump(fd));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &old));
	n = pread(fd, text, sizeof(text) - 1, 0);
	ASSERT_LT(0, n);
	text[n] = '\0';
	close(fd);
}

/*
 * A task has run in the place of one that blocks the only worker.  Sysmon may
 * have seen that one blocked earlier, on its way to the call, and back since;
 * it looks again while another task waits.
 */
static bool dumped_after_another(void)
{
	join(spawn_named("next", nothing, NULL));
	dump_without_files();
	return true;
}

TEST_REAL(dump_without_proc_says_what_sysmon_knows, "/proc names the real call")
TEST_F(dump_worker, dump_without_proc_says_what_sysmon_knows)
{
	pl_task_t t;

	start_with(1, 2);
	NEEDS_DUMP();
	ASSERT_EQ(0, pipe(blocking_fds));
	t = spawn_named("reads", block_in_read, NULL);
	/* On its way there it may stall, and would be relieved as stalled. */
	ASSERT_TRUE(UNTIL(dumped() && line_of("reads", ", blocked in read(2)")));
	/* Of a crew the kernel knows, and counts, but does not tell which. */
	EXPECT_TRUE(UNTIL(dumped_after_another() &&
			  (rt_stat().backend != PL_BACKEND_FUTEX ||
			   line_of("reads", ", blocked"))));
	EXPECT_SAYS("reads", "runs on worker ");
	EXPECT_EQ(NULL, line_of("reads", " read(2)"));
	ASSERT_EQ(1, write(blocking_fds[1], "", 1));
	join(t);
	close(blocking_fds[0]);
	close(blocking_fds[1]);
}

TEST_HARNESS_MAIN
