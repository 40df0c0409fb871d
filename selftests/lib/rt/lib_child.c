/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * child: a process that a task creates has the signal mask of the program, and
 * not that of the worker, which blocks signals.  Compiled as a program is that
 * includes <parklot.h>.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include <fcntl.h>
#include <spawn.h>

extern char **environ;

/* SIGUSR1, which the program blocks. */
#define MASK	(1ULL << (SIGUSR1 - 1))

static uint64_t seen;
static bool asks_for_mask, has_attr;

static void read_mask(FILE *f)
{
	unsigned long long mask = 0;

	ASSERT_NE(NULL, f);
	EXPECT_EQ(1, fscanf(f, "SigBlk: %llx", &mask));
	seen = mask;
}

static void open_command(void *arg)
{
	FILE *f = popen("exec grep SigBlk: /proc/self/status", "r");
	sigset_t now;

	read_mask(f);
	EXPECT_EQ(0, pclose(f));
	/* The worker's is what it was. */
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	EXPECT_EQ(!!pl_self(), sigismember(&now, SIGTERM));
}

static int spawn_grep(pid_t *pid, posix_spawn_file_actions_t *actions,
		      posix_spawnattr_t *attr)
{
	static char *const argv[] = {
		"grep", "SigBlk:", "/proc/self/status", NULL,
	};

	return posix_spawnp(pid, "grep", actions, attr, argv, environ);
}

static void spawn_command(void *arg)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int fds[2], status = -1;
	sigset_t all;
	pid_t pid = -1;
	FILE *f;

	ASSERT_EQ(0, pipe2(fds, O_CLOEXEC));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawnattr_init(&attr);
	sigfillset(&all);
	if (asks_for_mask) {
		posix_spawnattr_setsigmask(&attr, &all);
		posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	}
	ASSERT_EQ(0, spawn_grep(&pid, &actions, has_attr ? &attr : NULL));
	close(fds[1]);
	f = fdopen(fds[0], "r");
	read_mask(f);
	fclose(f);
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
}

static void spawn_nothing(void *arg)
{
	char *const argv[] = { "nothing", NULL };
	int ret, status = 0;
	pid_t pid;

	ret = posix_spawn(&pid, "/nothing/there", NULL, NULL, argv, environ);
	/* An emulator's vfork() is a fork(): the child alone knows. */
	if (!ret && getenv("TEST_EMULATED")) {
		EXPECT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 127);
		return;
	}
	EXPECT_EQ(ENOENT, ret);
}

static void block_usr1(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	ASSERT_EQ(0, pthread_sigmask(SIG_SETMASK, &set, NULL));
}

RT_FIXTURE(child)

TEST_F(child, popen_in_a_task_gives_the_child_the_mask_of_the_program)
{
	block_usr1();
	start_with(2, 2);
	run_in_task(open_command, NULL);
	EXPECT_EQ(MASK, seen);
}

TEST_F(child, posix_spawn_in_a_task_gives_the_child_the_mask_of_the_program)
{
	block_usr1();
	start_with(2, 2);
	run_in_task(spawn_command, NULL);
	EXPECT_EQ(MASK, seen);
	has_attr = true;
	run_in_task(spawn_command, NULL);
	EXPECT_EQ(MASK, seen);
	run_in_task(spawn_nothing, NULL);
}

TEST_F(child, mask_that_is_asked_for_is_the_mask_of_the_child)
{
	block_usr1();
	start_with(2, 2);
	has_attr = asks_for_mask = true;
	run_in_task(spawn_command, NULL);
	EXPECT_TRUE(seen & 1ULL << (SIGTERM - 1));
	EXPECT_TRUE(seen & 1ULL << (SIGINT - 1));
}

TEST_F(child, child_of_a_thread_has_the_mask_of_the_thread)
{
	start_with(2, 2);
	block_usr1();
	open_command(NULL);
	EXPECT_EQ(MASK, seen);
	seen = 0;
	spawn_command(NULL);
	EXPECT_EQ(MASK, seen);
}

TEST_HARNESS_MAIN
