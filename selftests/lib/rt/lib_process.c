/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The library in a process that ends, that gets signals, and with threads that
 * end, while tasks run.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "work.h"

#include <fcntl.h>

RT_FIXTURE(process)

static struct pl_word word;
static struct pl_mutex mutex;
static atomic_int nr_begun, nr_ran, may_end;

/* ---- the end of the process ---- */

static void be_busy(void *arg)
{
	nr_begun++;
	for (;;) {
		pl_mutex_lock(&mutex);
		pl_yield();
		pl_mutex_unlock(&mutex);
		pl_sleep(NSEC_PER_USEC);
	}
}

static void block(void *arg)
{
	nr_begun++;
	pl_sleep_until(PL_FOREVER);
}

static void leave(void *arg)
{
	exit((int)(uintptr_t)arg);
}

static void leave_by_timer(void *arg)
{
	ASSERT_EQ(0, pl_timer_add(NULL, 0, leave, arg));
}

static void leave_by_task(void *arg)
{
	spawn(leave, arg);
}

static void leave_by_worker_task(void *arg)
{
	spawn_as(PL_STACK_WORKER, leave, arg);
}

/* How a process ends that is left so by a thread of it, in the midst of it. */
static int end_of(void (*how)(void *arg), int status)
{
	static struct mixed busy, blocked;
	pid_t pid = fork();

	if (!pid) {
		limit_time();
		start_with(2, 0);
		mixed_start(&busy, 4, 2, be_busy, NULL);
		mixed_start(&blocked, 4, 2, block, NULL);
		ASSERT_TRUE(UNTIL(nr_begun == 12));
		how((void *)(uintptr_t)status);
		pl_sleep_until(PL_FOREVER);
	}
	return reap(pid);
}

static void check_end(void (*how)(void *arg))
{
	int i, nr = scaled(10), status;

	for (i = 0; i < nr; i++) {
		status = end_of(how, i);
		EXPECT_TRUE(WIFEXITED(status));
		EXPECT_EQ(i, WEXITSTATUS(status));
	}
}

/* As main() does that returns. */
TEST_F(process, exit_of_a_thread_ends_the_process)
{
	check_end(leave);
}

TEST_F(process, exit_of_a_task_ends_the_process)
{
	check_end(leave_by_task);
	check_end(leave_by_worker_task);
}

TEST_F(process, exit_of_a_timer_ends_the_process)
{
	check_end(leave_by_timer);
}

/* ---- descriptors ---- */

#define NUMBERS_MAX	4096

static bool was_open[NUMBERS_MAX];
static int lowest, lowest_allowed;	/* of the library's descriptors */

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int lowest_now(void)
{
	int fd;

	for (fd = 0; fd < NUMBERS_MAX; fd++)
		if (is_open(fd) && !was_open[fd])
			break;
	return fd;
}

static void read_and_look(void *arg)
{
	char c;

	EXPECT_EQ(1, pl_read(*(int *)arg, &c, 1));
	/* It blocks its worker, so that sysmon opens the worker's file. */
	usleep(20000);
	/* Sysmon may have just opened it, and not moved it up yet. */
	UNTIL_BUSY((lowest = lowest_now()) >= lowest_allowed);
}

static int lowest_in_use(const char *io, int allowed)
{
	int fd[2], i;
	pl_task_t t;

	ASSERT_EQ(0, pipe(fd));
	for (i = 0; i < NUMBERS_MAX; i++)
		was_open[i] = is_open(i);
	lowest_allowed = allowed;
	setenv("PARKLOT_IO", io, 1);
	start_with(2, 2);
	t = spawn(read_and_look, &fd[0]);
	EXPECT_EQ(-ETIMEDOUT, pl_join_until(t, in_ms(10)));
	EXPECT_EQ(1, write(fd[1], "x", 1));
	join(t);
	EXPECT_EQ(0, pl_runtime_stop());
	close(fd[0]);
	close(fd[1]);
	return lowest;
}

/*
 * A program that uses a number after its close() must not hit the library's
 * ring: the lowest free numbers stay free, also where few may be open.
 */
TEST_F(process, librarys_descriptors_have_high_numbers)
{
	struct rlimit few = { 64, 64 };

	EXPECT_LE(64, lowest_in_use("auto", 64));
	EXPECT_LE(64, lowest_in_use("poll", 64));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &few));
	EXPECT_LE(48, lowest_in_use("auto", 48));
}

/* ---- the end of threads ---- */

static void *wait_and_exit(void *arg)
{
	EXPECT_EQ(0, pl_sleep(1));
	if (arg)
		pthread_exit(NULL);
	return NULL;
}

TEST_F(process, ended_threads_leave_nothing)
{
	int i, nr = scaled(2000);
	pthread_t thread;
	uint32_t before;

	EXPECT_EQ(0, pl_sleep(1));
	before = pl__slab_nr_slots(&pl__rt.tasks);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, wait_and_exit,
					    i % 2 ? &nr : NULL));
		pthread_join(thread, NULL);
	}
	EXPECT_LE(pl__slab_nr_slots(&pl__rt.tasks), before + 2);
}

static void end_thread(void *arg)
{
	pthread_exit(NULL);
}

static int end_of_worker(uint32_t stack)
{
	pid_t pid = fork();

	if (!pid) {
		limit_time();
		start_with(2, 0);
		spawn_as(stack, end_thread, NULL);
		pl_sleep_until(PL_FOREVER);
	}
	return reap(pid);
}

/* A sanitizer may have its own say first: it saw no switch off the stack. */
static bool is_fatal(int status)
{
	if (RT_ASAN || RT_TSAN)
		return status && WTERMSIG(status) != SIGALRM;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* It takes the worker away: a mistake that is said, not a hang later. */
TEST_F(process, pthread_exit_of_a_task_is_fatal)
{
	EXPECT_TRUE(is_fatal(end_of_worker(PL_STACK_NORMAL)));
	EXPECT_TRUE(is_fatal(end_of_worker(PL_STACK_WORKER)));
}

/* ---- signals ---- */

static atomic_int nr_signals;
static pthread_t taker;
static atomic_int nr_astray;

static void on_signal(int sig)
{
	(void)sig;
	nr_signals++;
	if (!pthread_equal(pthread_self(), taker))
		nr_astray++;
}

static void *send_signals(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (!may_end) {
		kill(getpid(), SIGUSR1);
		breathe();
	}
	return NULL;
}

static void wake_later(void *arg)
{
	pl_sleep(2 * NSEC_PER_MSEC);
	pl_mutex_unlock(&mutex);
	nr_ran++;
}

static void send_later(void *arg)
{
	pl_sleep(2 * NSEC_PER_MSEC);
	EXPECT_EQ(1, write(*(int *)arg, "x", 1));
}

/* One of each; a signal comes every 20 us or so. */
static void block_under_signals(void)
{
	uint64_t deadline = in_ms(3);
	int fds[2], to;
	pl_task_t t;
	char byte;

	EXPECT_EQ(-ETIMEDOUT, pl_word_wait(&word, 0, deadline));
	EXPECT_LE(deadline, pl_now());
	EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));

	pl_mutex_lock(&mutex);
	t = spawn(wake_later, NULL);
	pl_mutex_lock(&mutex);
	pl_mutex_unlock(&mutex);
	EXPECT_EQ(0, pl_join(t));

	ASSERT_EQ(0, pipe(fds));
	to = fds[1];
	t = spawn(send_later, &to);
	EXPECT_EQ(1, pl_read(fds[0], &byte, 1));
	EXPECT_EQ(0, pl_join(t));
	close(fds[0]);
	close(fds[1]);
}

/* The library's threads take none, and a thread that blocks in it is none. */
TEST_F(process, signals_interrupt_no_call)
{
	struct sigaction sa = { .sa_handler = on_signal };
	pthread_t sender;
	int i;

	start_with(2, 0);
	taker = pthread_self();
	sigaction(SIGUSR1, &sa, NULL);
	ASSERT_EQ(0, pthread_create(&sender, NULL, send_signals, NULL));
	for (i = 0; i < scaled(20); i++)
		block_under_signals();
	EXPECT_TRUE(UNTIL(nr_signals > 10));
	may_end = 1;
	pthread_join(sender, NULL);
	EXPECT_EQ(0, nr_astray);
	EXPECT_EQ(0, pl_runtime_stop());
}

/* ---- again and again ---- */

TEST_F(process, runtime_starts_after_each_stop)
{
	int i, before = nr_entries("/proc/self/fd");

	for (i = 0; i < scaled(60); i++) {
		work_run();
		EXPECT_EQ(0, pl_runtime_stop());
		EXPECT_EQ(before, nr_entries("/proc/self/fd"));
	}
	EXPECT_TRUE(UNTIL(nr_threads_named("pl-") == 0));
}

TEST_HARNESS_MAIN
