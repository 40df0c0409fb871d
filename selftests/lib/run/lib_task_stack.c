/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stacks as tasks see them: a first run that finds none waits until one is
 * given back, and a task that runs over its stack is reported by its name.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "run/run.h"

#include <sys/resource.h>

#define MORE		(96UL << 20)
#define TASKS_MAX	500

static struct pl_word gate;
static atomic_int nr_begun, nr_ended;

static void pass_gate(void *arg)
{
	atomic_fetch_add(&nr_begun, 1);
	while (!pl_word_wait(&gate, 0, PL_FOREVER))
		;
	atomic_fetch_add(&nr_ended, 1);
}

static void open_gate(void)
{
	atomic_store(&gate.value, 1);
	pl_word_wake(&gate, UINT32_MAX);
}

/* From now on no more than @more bytes are mapped. */
static void limit_memory(unsigned long more)
{
	struct rlimit limit = { .rlim_max = RLIM_INFINITY };
	unsigned long pages = 0;
	FILE *f;

	f = fopen("/proc/self/statm", "r");
	ASSERT_NE(NULL, f);
	ASSERT_EQ(1, fscanf(f, "%lu", &pages));
	fclose(f);
	limit.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + more;
	ASSERT_EQ(0, setrlimit(RLIMIT_AS, &limit));
}

/* Spawns until a first run has found no stack; how many, or TASKS_MAX. */
static int spawn_until_refused(pl_task_t *t)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	int nr = 0, ret;

	opts.stack = PL_STACK_LARGE;
	while (nr < TASKS_MAX) {
		ret = pl_spawn(&t[nr], pass_gate, NULL, &opts);
		if (ret == -EAGAIN)
			break;
		ASSERT_EQ(0, ret);
		nr++;
		/* It runs, or it has been found that it cannot. */
		ASSERT_TRUE(UNTIL(nr_begun == nr || pl__rt.stackless.nr));
	}
	return nr;
}

RT_FIXTURE(task_stack)

TEST_F(task_stack, task_without_a_free_stack_waits_for_a_stack)
{
	static pl_task_t t[TASKS_MAX];
	int i, nr;

	if (RT_ASAN || RT_TSAN)
		SKIP(return, "memory cannot be limited here");
	start_with(2, 2);
	run_in_task(nothing, NULL);
	limit_memory(MORE);
	nr = spawn_until_refused(t);
	if (nr == TASKS_MAX) {
		open_gate();
		for (i = 0; i < nr; i++)
			join(t[i]);
		SKIP(return, "memory cannot be limited here");
	}
	EXPECT_LT(nr_begun, nr);

	open_gate();
	for (i = 0; i < nr; i++)
		join(t[i]);
	EXPECT_EQ(nr, nr_begun);
	EXPECT_EQ(nr, nr_ended);

	/* With no task waiting, tasks are taken again. */
	run_as(PL_STACK_LARGE, nothing, NULL);
}

/* Spawns tasks of which none finds a stack, until one is refused. */
static int spawn_without_stacks(pl_task_t *t)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	int nr = 0;

	opts.stack = PL_STACK_LARGE;
	limit_memory(1UL << 20);
	while (nr < TASKS_MAX && !pl_spawn(&t[nr], pass_gate, NULL, &opts))
		nr++;
	EXPECT_TRUE(UNTIL(nr_begun || pl__rt.stackless.nr));
	return nr;
}

TEST_F(task_stack, tasks_start_when_there_is_memory_again)
{
	static pl_task_t t[TASKS_MAX];
	int i, nr;

	if (RT_ASAN || RT_TSAN)
		SKIP(return, "memory cannot be limited here");
	start_with(2, 2);
	run_in_task(nothing, NULL);
	nr = spawn_without_stacks(t);
	if (nr_begun)
		SKIP(return, "memory cannot be limited here");
	give_memory_back();
	/* All of them, at a time. */
	EXPECT_TRUE(UNTIL(nr_begun == nr));
	EXPECT_EQ(0, nr_ended);
	open_gate();
	for (i = 0; i < nr; i++)
		join(t[i]);
}

static atomic_int is_short = 1, nr_accepted;

/* Each has begun, or has found no stack. */
static bool are_all_tried(void)
{
	int nr = nr_accepted;

	return nr && nr_begun + (int)pl__rt.stackless.nr >= nr;
}

static void end_soon_or_pass_gate(void *arg)
{
	if (!is_short) {
		pass_gate(arg);
		return;
	}
	/* The first ends next; others keep their stacks until none is left. */
	if (!atomic_fetch_add(&nr_begun, 1))
		EXPECT_TRUE(UNTIL(are_all_tried()));
	else if (!pl__rt.stackless.nr)
		pl_word_wait(&gate, 0, PL_FOREVER);
	else
		spin_ns(300 * NSEC_PER_USEC);
	atomic_fetch_add(&nr_ended, 1);
}

/* All tasks that were accepted, a part of which finds stacks. */
static int spawn_many_short(void)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	int nr;

	opts.stack = PL_STACK_LARGE;
	limit_memory(MORE);
	nr = pl_spawn_many(NULL, TASKS_MAX, end_soon_or_pass_gate, NULL, &opts);
	ASSERT_LT(0, nr);
	nr_accepted = nr;
	return nr;
}

/*
 * Each task that ends passes its stack on, also to a task for which the timer
 * thread had no memory; that is to try again all the same.
 */
TEST_F(task_stack, tasks_start_all_after_stacks_were_passed_on)
{
	int nr;

	if (RT_ASAN || RT_TSAN)
		SKIP(return, "memory cannot be limited here");
	start_with(1, 1);
	run_in_task(nothing, NULL);
	nr = spawn_many_short();
	EXPECT_TRUE(UNTIL(nr_begun >= nr / 2));
	is_short = 0;
	give_memory_back();
	EXPECT_TRUE(UNTIL(nr_begun == nr));
	open_gate();
	EXPECT_TRUE(UNTIL(nr_ended == nr));
}

/* They run on the worker's stack, to end as they choose. */
TEST_F(task_stack, stop_ends_tasks_that_found_no_stack)
{
	static pl_task_t t[TASKS_MAX];
	int nr;

	if (RT_ASAN || RT_TSAN)
		SKIP(return, "memory cannot be limited here");
	start_with(2, 2);
	run_in_task(nothing, NULL);
	nr = spawn_without_stacks(t);
	if (nr_begun)
		SKIP(return, "memory cannot be limited here");
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(nr, nr_begun);
	EXPECT_EQ(nr, nr_ended);
}

/* ---- I/O of threads ---- */

static int pipe_fds[2];
static atomic_bool may_read;
static atomic_long nr_read;

static void *read_in_thread(void *arg)
{
	char c;

	while (!may_read)
		breathe();
	nr_read = pl_read_until(pipe_fds[0], &c, 1, in_ms(1));
	return NULL;
}

/* The first task of all is the one that reads for the thread. */
TEST_F(task_stack, thread_is_told_that_there_is_no_stack_for_its_io)
{
	pthread_t thread;
	char c;

	if (RT_ASAN || RT_TSAN)
		SKIP(return, "memory cannot be limited here");
	ASSERT_EQ(0, pipe(pipe_fds));
	start_with(2, 2);
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_in_thread, NULL));
	limit_memory(1UL << 20);
	may_read = true;
	EXPECT_TRUE(UNTIL(nr_read));
	EXPECT_EQ(0, pl__rt.stackless.nr);
	give_memory_back();
	pthread_join(thread, NULL);
	if (nr_read == -ETIMEDOUT)
		SKIP(return, "memory cannot be limited here");
	EXPECT_EQ(-ENOMEM, nr_read);
	EXPECT_EQ(-ETIMEDOUT, pl_read_until(pipe_fds[0], &c, 1, in_ms(1)));
}

/* ---- overflow ---- */

__attribute__((noinline, no_sanitize_address, no_sanitize_thread))
static size_t recurse(size_t depth)
{
	volatile char frame[200];
	size_t i;

	for (i = 0; i < sizeof(frame); i++)
		frame[i] = (char)depth;
	if (depth == SIZE_MAX)
		return 0;
	return recurse(depth + 1) + (size_t)frame[depth % 200];
}

/* Before it dies: what it is called. */
static void say_expected(int fd)
{
	dprintf(fd, "parklot: task 'deep' (0x%llx) overflowed",
		(unsigned long long)pl_self());
}

static void overflow_by_depth(void *arg)
{
	say_expected(*(int *)arg);
	recurse(0);
}

/* 0, at run time: of an array with only [0] in use clang keeps one byte. */
static volatile int first;

__attribute__((noinline, no_sanitize_address, no_sanitize_thread))
static void overflow_by_36000(void *arg)
{
	volatile char buf[36000];

	buf[first] = (char)*(int *)arg;
	*(int *)arg = buf[first];
}

__attribute__((noinline, no_sanitize_address, no_sanitize_thread))
static void overflow_by_270000(void *arg)
{
	volatile char buf[270000];

	buf[first] = (char)*(int *)arg;
	*(int *)arg = buf[first];
}

static void overflow_small(void *arg)
{
	say_expected(*(int *)arg);
	overflow_by_36000(arg);
}

static void overflow_normal(void *arg)
{
	say_expected(*(int *)arg);
	overflow_by_270000(arg);
}

static void __attribute__((noreturn))
die(void (*overflow)(void *), uint32_t stack, int said, int expected)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t;

	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	dup2(said, STDERR_FILENO);
	opts.stack = stack;
	opts.name = "deep";
	if (!pl_spawn(&t, overflow, &expected, &opts))
		pl_join(t);
	_exit(1);
}

static void read_all(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
}

static void is_named(void (*overflow)(void *), uint32_t stack)
{
	char said[4096], expected[128];
	int to_said[2], to_expected[2], status = -1;
	pid_t pid;

	ASSERT_EQ(0, pipe(to_said));
	ASSERT_EQ(0, pipe(to_expected));
	pid = fork();
	if (!pid)
		die(overflow, stack, to_said[1], to_expected[1]);
	close(to_said[1]);
	close(to_expected[1]);
	read_all(to_expected[0], expected, sizeof(expected));
	read_all(to_said[0], said, sizeof(said));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGSEGV, WTERMSIG(status));
	EXPECT_LT(30, (int)strlen(expected));
	EXPECT_EQ(0, strncmp(said, expected, strlen(expected))) {
		TH_LOG("wanted %s, was said %s", expected, said);
	}
}

TEST_REAL(overflow_names_the_spawned_task, "other processes are not simulated")
TEST_F(task_stack, overflow_names_the_spawned_task)
{
	is_named(overflow_by_depth, PL_STACK_SMALL);
}

TEST_REAL(frame_wider_than_the_stack_names_the_spawned_task,
	  "other processes are not simulated")
TEST_F(task_stack, frame_wider_than_the_stack_names_the_spawned_task)
{
	is_named(overflow_small, PL_STACK_SMALL);
	is_named(overflow_normal, PL_STACK_NORMAL);
}

/* As a function with an array that it uses the low end of first. */
__attribute__((noinline, no_sanitize_address, no_sanitize_thread))
static void overflow_thread(void *arg)
{
	volatile char *here = __builtin_frame_address(0);
	pthread_attr_t attr;
	size_t size = 0;

	if (!pthread_getattr_np(pthread_self(), &attr))
		pthread_attr_getstacksize(&attr, &size);
	say_expected(*(int *)arg);
	*(here - size) = 1;
}

TEST_REAL(overflow_of_a_workers_stack_names_the_task,
	  "other processes are not simulated")
TEST_F(task_stack, overflow_of_a_workers_stack_names_the_task)
{
	is_named(overflow_by_depth, PL_STACK_WORKER);
}

TEST_REAL(frame_wider_than_a_workers_stack_names_the_task,
	  "other processes are not simulated")
TEST_F(task_stack, frame_wider_than_a_workers_stack_names_the_task)
{
	is_named(overflow_thread, PL_STACK_WORKER);
}

static struct pl__thread_stack stack_seen;

static void *see_thread_stack(void *arg)
{
	pl__thread_stack(pthread_self(), &stack_seen);
	return arg;
}

static void see_stack_of_a_thread(void)
{
	pthread_t thread;

	ASSERT_EQ(0, pl__thread_start(&thread, see_thread_stack, NULL));
	pthread_join(thread, NULL);
	EXPECT_NE(NULL, stack_seen.base);
	EXPECT_LT(0, stack_seen.size);
}

TEST_F(task_stack, thread_starts_where_a_wide_guard_does_not_fit)
{
	size_t size = 0, guard;
	pthread_attr_t attr;

	if (RT_ASAN || RT_TSAN)
		SKIP(return, "memory cannot be limited here");
	ASSERT_EQ(0, pthread_attr_init(&attr));
	ASSERT_EQ(0, pthread_attr_getstacksize(&attr, &size));
	guard = size < 8 << 20 ? size : 8 << 20;
	limit_memory(size + guard / 2);
	see_stack_of_a_thread();
	if (stack_seen.guard >= guard)
		SKIP(return, "memory cannot be limited here");
	EXPECT_GT(guard / 2, stack_seen.guard);
	give_memory_back();
	see_stack_of_a_thread();
}

TEST_HARNESS_MAIN
