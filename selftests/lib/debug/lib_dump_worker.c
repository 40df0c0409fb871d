/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dump of tasks that run: whether each computes, or what blocks its worker.
 * dump_signal: at a signal everything is dumped, even if all threads block it.
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
	EXPECT_TRUE(UNTIL_BUSY(may_go));
}

static int blocking_fds[2];
static pthread_mutex_t blocking_mutex = PTHREAD_MUTEX_INITIALIZER;

static void block_in_read(void *arg)
{
	char byte;

	EXPECT_EQ(1, read(blocking_fds[0], &byte, 1));
}

static void block_in_futex(void *arg)
{
	pthread_mutex_lock(&blocking_mutex);
	pthread_mutex_unlock(&blocking_mutex);
}

static void block_in_sleep(void *arg)
{
	struct timespec ts = { .tv_nsec = 100 * NSEC_PER_MSEC };

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

/* ---- at a signal ---- */

RT_FIXTURE(dumper);

/* Standard error is a file from now on. */
static int take_stderr(void)
{
	int fd = memfd_create("stderr", 0);

	ASSERT_LE(0, fd);
	ASSERT_EQ(2, dup2(fd, 2));
	return fd;
}

static bool has_said(int fd, const char *words)
{
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return strstr(text, words);
}

TEST_REAL(dumper, "signals are not simulated")
TEST_F(dumper, signal_dumps_to_standard_error)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	pl_task_t t;
	int fd, i;

	NEEDS_DUMP();
	ASSERT_EQ(0, pl_runtime_stop());
	cfg.dump_signal = SIGUSR2;
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pl_runtime_start(&cfg));
		t = spawn_named("sleeper", sleep_long, NULL);
		ASSERT_TRUE(UNTIL(is_waiting(t)));
		fd = take_stderr();
		ASSERT_EQ(0, kill(getpid(), SIGUSR2));
		/* A late signal of the first round may have told before. */
		EXPECT_TRUE(UNTIL(has_said(fd, "parklot: 1 tasks") &&
				  line_of("sleeper", "waits for sleep")));
		EXPECT_TRUE(UNTIL(nr_threads_named("pl-dump") == 1));
		cancel_and_join(&t, 1);
		ASSERT_EQ(0, pl_runtime_stop());
		/* A joined thread may be listed for a moment longer. */
		EXPECT_TRUE(UNTIL(!nr_threads_named("pl-dump")));
		/* Late ones do no harm. */
		ASSERT_EQ(0, kill(getpid(), SIGUSR2));
		close(fd);
	}
}

TEST_F(dumper, thread_that_blocks_the_signal_is_dumped)
{
	sigset_t all;
	int fd;

	NEEDS_DUMP();
	ASSERT_EQ(0, pl_runtime_stop());
	sigfillset(&all);
	ASSERT_EQ(0, pthread_sigmask(SIG_SETMASK, &all, NULL));
	setenv("PARKLOT_DUMP_SIGNAL", "SIGUSR2", 1);
	ASSERT_EQ(0, pl_runtime_start(NULL));
	fd = take_stderr();
	ASSERT_EQ(0, kill(getpid(), SIGUSR2));
	EXPECT_TRUE(UNTIL(has_said(fd, "parklot: 0 tasks")));
	close(fd);
}

TEST_F(dumper, environment_takes_names_and_numbers)
{
	static const char *const good[] = { "USR1", "SIGHUP", "12", "64", "0",
					    "" };
	static const char *const bad[] = { "USR3", "9", "11", "32", "33", "65",
					   "4294967306", "-1" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		setenv("PARKLOT_DUMP_SIGNAL", good[i], 1);
		EXPECT_EQ(0, pl_runtime_start(NULL));
		EXPECT_TRUE(UNTIL(nr_threads_named("pl-dump") == (i < 4)));
		EXPECT_EQ(0, pl_runtime_stop());
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		setenv("PARKLOT_DUMP_SIGNAL", bad[i], 1);
		EXPECT_EQ(-EINVAL, pl_runtime_start(NULL));
	}
	unsetenv("PARKLOT_DUMP_SIGNAL");
}

TEST_F(dumper, forked_child_may_enable_the_dump_again)
{
	int status, fd;
	pid_t pid;

	NEEDS_DUMP();
	if (RT_TSAN || RT_ASAN)
		SKIP(return, "no threads after a fork of several here");
	ASSERT_EQ(0, pl_runtime_stop());
	setenv("PARKLOT_DUMP_SIGNAL", "USR2", 1);
	ASSERT_EQ(0, pl_runtime_start(NULL));
	pid = fork();
	if (!pid) {
		fd = take_stderr();
		if (pl_runtime_start(NULL) || kill(getpid(), SIGUSR2))
			_exit(1);
		_exit(!UNTIL(has_said(fd, "parklot: 0 tasks")));
	}
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_HARNESS_MAIN
