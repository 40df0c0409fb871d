/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dump_signal: at a signal everything is dumped, even if all threads block it.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "dump.h"

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
