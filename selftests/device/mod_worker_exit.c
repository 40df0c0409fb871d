// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a worker: its thread exits or runs another program while others
 * take its slot, close the space, or open many more. The scheduler's notifier
 * of that thread runs for the last time after pthread_join() has returned, so
 * the memory that it uses must still exist.
 */
#include "kselftest_harness.h"

#include <linux/membarrier.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "mod_crew.h"

#define RACE_NS		(3 * NSEC_PER_SEC)
#define EXEC_ENV	"MOD_WORKER_EXIT_FD"
#define NR_GRACE	10
#define NR_CLOSES	50
#define NR_TRIES	5
#define NR_LOOPS	200	/* more than a user may have at a time */
#define NOBODY		65534
#define STEP_NS		(10 * 1000)

FIXTURE(exit)
{
	int nr_open;
	char linger_ms[16];
};

/* As the machine of the test has it. */
static void read_linger(char *ms, int size)
{
	FILE *file = fopen("/sys/module/parklot/parameters/crew_linger_ms",
			   "re");

	if (!file || !fgets(ms, size, file))
		*ms = 0;
	if (file)
		fclose(file);
}

FIXTURE_SETUP(exit)
{
	struct space s;

	CREW_SETUP(&s, 1, 1);
	space_close(&s);
	self->nr_open = nr_open();
	read_linger(self->linger_ms, sizeof(self->linger_ms));
}

FIXTURE_TEARDOWN(exit)
{
	set_parameter("crew_linger_ms", self->linger_ms);
	set_online(true);
	UNTIL(nr_open() <= self->nr_open);
}

static void spin_ns(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

static void *join_and_exit(void *arg)
{
	struct space *s = arg;

	return (void *)(intptr_t)dev_join(s->fd, 0);
}

/* A debug build is slow where a notifier has read the pool. */
static bool slow_notifiers(void)
{
	return set_parameter("inject_at", "worker-b") &&
	       set_parameter("inject_us", "2000");
}

static void usual_notifiers(void)
{
	set_parameter("inject_at", "all");
	set_parameter("inject_us", "20");
}

/*
 * The slot is taken over while the thread exits, so that the pool has no
 * worker when its space is closed, but the thread's notifier still uses it.
 */
TEST_TIMED(close_after_takeover_waits_for_notifier,
	   "both ends of a race must be seen")
TEST_F_TIMEOUT(exit, close_after_takeover_waits_for_notifier, 60)
{
	uint64_t end = now_ns() + RACE_NS;
	int nr_rounds = 0;
	pthread_t thread;
	struct space s;
	void *err;

	slow_notifiers();
	for (; now_ns() < end; nr_rounds++) {
		ASSERT_EQ(0, space_open_crew(&s, 1, 1));
		ASSERT_EQ(0, pthread_create(&thread, NULL, join_and_exit, &s));
		pthread_join(thread, &err);
		EXPECT_EQ(0, (intptr_t)err);
		/* The thread may be in its last notifier now, or soon. */
		spin_ns(nr_rounds % 64 * STEP_NS);
		EXPECT_EQ(0, dev_join(s.fd, 0));
		EXPECT_EQ(0, dev_leave(s.fd, 0));
		space_close(&s);
	}
	usual_notifiers();
	EXPECT_LT(0, nr_rounds);
	TH_LOG("%d rounds", nr_rounds);
}

static uint64_t max_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* How long the kernel takes for a grace period of RCU. */
static uint64_t grace_period_ns(void)
{
	uint64_t begun = now_ns();
	int i;

	for (i = 0; i < NR_GRACE; i++)
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	/* A single processor needs none: no close waits then. */
	return max_ns((now_ns() - begun) / NR_GRACE, NSEC_PER_MSEC);
}

/*
 * The last worker is still joined when the space is closed, which takes *@ns.
 */
static int join_and_close(uint64_t *ns)
{
	struct space s;
	uint64_t begun;
	int err;

	err = space_open_crew(&s, 1, 1);
	if (err)
		return err;
	err = dev_join(s.fd, 0);
	munmap((void *)s.counters, s.setup.counters_size);
	munmap(s.words, s.setup.words_size);
	begun = now_ns();
	close(s.fd);
	*ns += now_ns() - begun;
	return err;
}

/* True: many closes take far less than a grace period each. */
static bool closes_share_a_grace_period(struct __test_metadata *_metadata)
{
	uint64_t grace = grace_period_ns(), ns = 0;
	int i;

	for (i = 0; i < NR_CLOSES; i++)
		ASSERT_EQ(0, join_and_close(&ns));
	TH_LOG("%d closes: %llu us, a grace period: %llu us", NR_CLOSES,
	       (unsigned long long)ns / 1000,
	       (unsigned long long)grace / 1000);
	return NR_CLOSES * grace / 2 > ns;
}

/*
 * Otherwise a process that exits with many spaces takes that long, at each try;
 * a machine that stands still delays one.
 */
TEST_TIMED(many_closes_share_a_grace_period,
	   "time that passed; one of several tries")
TEST_F(exit, many_closes_share_a_grace_period)
{
	bool do_share = false;
	int i;

	for (i = 0; i < NR_TRIES && !do_share; i++)
		do_share = closes_share_a_grace_period(_metadata);
	EXPECT_TRUE(do_share);
}

/*
 * Spaces that wait to be freed count; a setup waits for them before it fails.
 */
TEST_F_TIMEOUT(exit, closed_spaces_never_count_against_the_limit, 120)
{
	struct rlimit few = { 64 << 10, 64 << 10 };
	int i, err, status = 0;
	uint64_t ns = 0;
	pid_t pid = fork();

	if (!pid) {
		if (setrlimit(RLIMIT_MEMLOCK, &few) ||
		    setresuid(NOBODY, NOBODY, NOBODY))
			_exit(1);
		for (i = 0; i < NR_LOOPS; i++) {
			err = join_and_close(&ns);
			if (err)
				_exit(-err);
		}
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* The other program of the tests below: lives until its descriptor ends. */
static void __attribute__((constructor)) exec_main(void)
{
	const char *text = getenv(EXEC_ENV);
	char c;

	if (text)
		_exit(read(atoi(text), &c, 1) ? 1 : 0);
}

/* What a child shares with the test: it joins, then runs the program. */
struct runner {
	struct space	*space;
	int		pipe[2];
	atomic_int	err;
	atomic_int	has_joined, may_exec;
	pid_t		pid;
	char		stack[64 * 1024] __attribute__((aligned(16)));
};

static int run_other(void *arg)
{
	char *argv[] = { "other", NULL }, env[32], *envp[] = { env, NULL };
	struct runner *r = arg;

	atomic_store(&r->err, dev_join(r->space->fd, 0));
	atomic_store(&r->has_joined, 1);
	while (!atomic_load(&r->may_exec))
		sched_yield();
	fcntl(r->pipe[0], F_SETFD, 0);
	snprintf(env, sizeof(env), EXEC_ENV "=%d", r->pipe[0]);
	execve("/proc/self/exe", argv, envp);
	_exit(104);
}

/* A process in the test's memory that has joined; returns its pid, or 0. */
static pid_t runner_start(struct runner *r, struct space *s)
{
	r->space = s;
	if (pipe2(r->pipe, O_CLOEXEC))
		return 0;
	r->pid = clone(run_other, r->stack + sizeof(r->stack),
		       CLONE_VM | SIGCHLD, r);
	if (r->pid < 0)
		return 0;
	UNTIL(atomic_load(&r->has_joined));
	return r->pid;
}

/* Returns when the child runs another program. */
static void runner_exec(struct runner *r)
{
	char path[64], text[16] = "";
	int fd;

	atomic_store(&r->may_exec, 1);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", r->pid);
	do {
		sleep_ns(50000);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (read(fd, text, sizeof(text) - 1) < 0)
			text[0] = 0;
		close(fd);
	} while (strcmp(text, "other"));
}

static int runner_end(struct runner *r)
{
	int status = -1;

	close(r->pipe[1]);
	close(r->pipe[0]);
	waitpid(r->pid, &status, 0);
	return status;
}

TEST_F(exit, slot_of_a_thread_that_ran_exec_is_free)
{
	static struct runner r;
	struct space s;

	ASSERT_EQ(0, space_open_crew(&s, 1, 1));
	ASSERT_LT(0, runner_start(&r, &s));
	EXPECT_EQ(0, atomic_load(&r.err));
	EXPECT_EQ(-EBUSY, dev_join(s.fd, 0));
	runner_exec(&r);
	EXPECT_EQ(0, dev_join(s.fd, 0));
	EXPECT_EQ(1, nr_running(&s));
	EXPECT_EQ(0, dev_leave(s.fd, 0));
	EXPECT_EQ(0, runner_end(&r));
	space_close(&s);
}

/* The space does not belong to that program, which may run for long. */
TEST_F(exit, thread_that_ran_exec_does_not_hold_the_module)
{
	static struct runner r;
	int before = nr_open();
	struct space s;

	ASSERT_EQ(0, space_open_crew(&s, 1, 1));
	ASSERT_LT(0, runner_start(&r, &s));
	runner_exec(&r);
	space_close(&s);
	UNTIL(nr_open() == before);
	EXPECT_EQ(before, nr_open());
	EXPECT_EQ(0, runner_end(&r));
}

TEST_F(exit, thread_of_a_closed_space_does_not_hold_the_module)
{
	int before = nr_open();
	uint64_t ns = 0;

	ASSERT_EQ(0, join_and_close(&ns));
	UNTIL(nr_open() == before);
	EXPECT_EQ(before, nr_open());
}

/* Does the scheduler call notifiers, for any process? */
static bool is_watched(void)
{
	FILE *file = fopen("/sys/module/parklot/parameters/crew_is_watched",
			   "re");
	int c = file ? fgetc(file) : EOF;

	if (file)
		fclose(file);
	return c == 'Y';
}

/* Each context switch of the machine pays for notifiers. */
TEST_TIMED(notifiers_are_off_after_the_last_worker, "time that passed")
TEST_F(exit, notifiers_are_off_after_the_last_worker)
{
	struct worker w[2] = {};
	bool is_lingering;
	uint64_t begun;
	struct space s;

	set_online(false);
	set_parameter("crew_linger_ms", "1000");
	ASSERT_EQ(0, space_open_crew(&s, 1, 2));
	ASSERT_EQ(0, worker_start(&w[0], &s, 0, NULL));
	ASSERT_EQ(0, worker_start(&w[1], &s, 1, NULL));
	EXPECT_TRUE(is_watched());
	EXPECT_EQ(0, worker_finish(&w[0]));
	sleep_ns(2 * NSEC_PER_SEC);
	EXPECT_TRUE(is_watched());
	EXPECT_EQ(0, worker_finish(&w[1]));
	UNTIL(!is_watched());
	/* Not as often as a loop can: each change patches the kernel's text. */
	EXPECT_EQ(0, dev_join(s.fd, 0));
	EXPECT_TRUE(is_watched());
	begun = now_ns();
	EXPECT_EQ(0, dev_leave(s.fd, 0));
	is_lingering = is_watched();
	/* Unless this thread has got no processor meanwhile. */
	if (now_ns() - begun < NSEC_PER_SEC / 2)
		EXPECT_TRUE(is_lingering);
	UNTIL(!is_watched());
	EXPECT_LT(NSEC_PER_SEC / 2, now_ns() - begun);
	space_close(&s);
}

/* The same for threads that are killed without leaving. */
TEST_F(exit, notifiers_are_off_after_a_killed_worker)
{
	struct space s;
	pid_t pid;

	set_online(false);
	set_parameter("crew_linger_ms", "1000");
	pid = fork();
	if (!pid) {
		if (space_open_crew(&s, 1, 1) || dev_join(s.fd, 0))
			_exit(1);
		raise(SIGKILL);
	}
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	UNTIL(!is_watched());
	EXPECT_FALSE(is_watched());
}

TEST_HARNESS_MAIN
