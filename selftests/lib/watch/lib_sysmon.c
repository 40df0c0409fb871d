/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sysmon, which sees blocked workers: when no more workers can be started, what
 * it costs, its races, with the device's crew, and without what helps it.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"
#include "switches.h"
#include "work.h"

#include <sys/socket.h>

BLOCKED_FIXTURE(sysmon)

/* ---- when there are no more ---- */

static int said[2], old_stderr;

static void listen_to_stderr(void)
{
	ASSERT_EQ(0, pipe2(said, O_CLOEXEC | O_NONBLOCK));
	old_stderr = dup(2);
	ASSERT_EQ(2, dup2(said[1], 2));
}

/* What was said since, as a string. */
static const char *heard(void)
{
	static char text[512];
	ssize_t n = read(said[0], text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

TEST_F(sysmon, all_blocked_workers_are_named_once_and_recover)
{
	const char *text;
	uint64_t before;
	int i;

	start_with(1, 3);
	listen_to_stderr();
	for (i = 0; i < 2; i++) {
		before = rt_stat().all_blocked;
		block_in_read(3);
		ASSERT_TRUE(UNTIL(nr_begun == 3 * (i + 1)));
		spawn_tiny(1);
		EXPECT_TRUE(UNTIL(rt_stat().all_blocked > before));
		EXPECT_EQ(3, rt_stat().workers);
		EXPECT_EQ(3, rt_stat().workers_blocked);
		EXPECT_EQ(i, nr_ran);
		let_reader_go(1);
		EXPECT_TRUE(UNTIL(nr_ran == i + 1));
		text = heard();
		EXPECT_EQ(!i, !!strstr(text, "max_workers, 3, are too few"));
		EXPECT_EQ(!i, !!strstr(text, ": 3 reader\n"));
		let_reader_go(0);
		let_reader_go(2);
		/* It has seen that none waits: what follows is another time. */
		ASSERT_TRUE(UNTIL(atomic_load(&pl__rt.sysmon) ==
				  PL__SYSMON_ASLEEP));
	}
	dup2(old_stderr, 2);
}

TEST_F(sysmon, workers_blocked_beside_one_that_computes_are_told)
{
	pl_task_t t;

	start_with(1, 3);
	listen_to_stderr();
	t = spawn(compute_until_may_go, NULL);
	ASSERT_TRUE(UNTIL(nr_begun == 1));
	/* By a relief. */
	spawn_tiny(1);
	ASSERT_TRUE(UNTIL(nr_ran == 1));
	block_in_read(2);
	ASSERT_TRUE(UNTIL(nr_begun == 3));
	spawn_tiny(1);
	EXPECT_TRUE(UNTIL(rt_stat().all_blocked));
	EXPECT_EQ(1, nr_ran);
	let_reader_go(0);
	EXPECT_TRUE(UNTIL(nr_ran == 2));
	EXPECT_NE(NULL, strstr(heard(), "in calls of: 2 reader\n"));
	let_reader_go(1);
	may_go = 1;
	join(t);
	dup2(old_stderr, 2);
}

TEST_F(sysmon, full_stderr_does_not_stop_the_recovery)
{
	char byte = 'x';

	start_with(1, 1);
	listen_to_stderr();
	while (write(said[1], &byte, 1) == 1)
		;
	ASSERT_EQ(0, fcntl(said[1], F_SETFL, 0));
	block_in_read(1);
	ASSERT_TRUE(UNTIL(nr_begun == 1));
	spawn_tiny(1);
	EXPECT_TRUE(UNTIL(rt_stat().all_blocked == 1));
	let_reader_go(0);
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	dup2(old_stderr, 2);
}

static atomic_int nr_warm;

/* So many stacks are there for other tasks afterwards. */
static void be_one_of_five(void *arg)
{
	for (atomic_fetch_add(&nr_warm, 1); nr_warm < 5;)
		pl_yield();
}

/*
 * There are stacks, and one worker: more, if it seemed to be blocked on the
 * way, would run what is to wait.
 */
static bool take_all_but_one_worker(void)
{
	bool is_taken;

	for (;;) {
		start_with(1, 8);
		nr_warm = 0;
		mixed_run(5, 0, be_one_of_five, NULL);
		is_taken = take_all_memory();
		pl__lock(&pl__rt.start_lock);
		pl__unlock(&pl__rt.start_lock);
		if (!is_taken || rt_stat().workers == 1)
			return is_taken;
		give_memory_back();
		EXPECT_EQ(0, pl_runtime_stop());
	}
}

TEST_F(sysmon, worker_that_cannot_be_started_is_told)
{
	const char *text;

	if (!take_all_but_one_worker())
		SKIP(return, "memory cannot be limited here");
	listen_to_stderr();
	block_in_read(1);
	spawn_tiny(1);
	EXPECT_TRUE(UNTIL(rt_stat().all_blocked == 1));
	EXPECT_EQ(0, nr_ran);
	text = heard();
	EXPECT_NE(NULL, strstr(text, "no worker can be started ("));
	EXPECT_NE(NULL, strstr(text, " reader\n"));

	give_memory_back();
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	EXPECT_TRUE(UNTIL(!pl__rt.main.start_error));
	let_reader_go(0);
	dup2(old_stderr, 2);
}

/* ---- what it costs ---- */

/*
 * It sleeps for good, and did not look for so long.  While it says that it
 * sleeps it may wait for a processor still, on its way there.
 */
static bool has_slept(uint64_t ns)
{
	struct timespec ts = { .tv_nsec = (long)ns };
	bool is_asleep;
	long before;

	if (atomic_load(&pl__rt.sysmon) != PL__SYSMON_ASLEEP)
		return false;
	before = nr_switches_of("pl-sysmon", &is_asleep);
	nanosleep(&ts, NULL);
	return is_asleep && nr_switches_of("pl-sysmon", &is_asleep) == before &&
	       is_asleep;
}

/* Longer than from one look for blocked workers to the next. */
#define LAST_LOOK_NS	(200 * NSEC_PER_MSEC)

#define NR_ECHOES	1000

static void echo(void *arg)
{
	const int *fds = arg;
	char c;

	while (pl_read(fds[1], &c, 1) == 1)
		EXPECT_EQ(1, pl_write(fds[1], &c, 1));
}

/*
 * A look is a switch; after the first few there are 2 ms between two, or 0.5
 * where it tries another number of workers.  To be woken for each request would
 * be more than two of them.
 */
TEST_TIMED(events_do_not_wake_sysmon_each, "switches of a thread by time")
TEST_F(sysmon, events_do_not_wake_sysmon_each)
{
	struct timespec pause = { .tv_nsec = 100 * 1000 };
	bool is_asleep;
	int fds[2], i;
	uint64_t ms;
	pl_task_t t;
	char c = 0;

	start_with(2, 0);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	t = spawn(echo, fds);
	ms = pl_now() / NSEC_PER_MSEC;
	for (i = 0; i < NR_ECHOES; i++) {
		EXPECT_EQ(1, write(fds[0], &c, 1));
		EXPECT_EQ(1, read(fds[0], &c, 1));
		nanosleep(&pause, NULL);
	}
	ms = pl_now() / NSEC_PER_MSEC - ms;
	EXPECT_LE(nr_switches_of("pl-sysmon", &is_asleep), 2 * (long)ms + 20);
	close(fds[0]);
	join(t);
	close(fds[1]);
}

static void read_for_ever(void *arg)
{
	char c;

	EXPECT_EQ(-ECANCELED, pl_read(*(int *)arg, &c, 1));
}

TEST_TIMED(sysmon_sleeps_beside_a_blocked_worker_with_io,
	   "switches of a thread")
TEST_F(sysmon, sysmon_sleeps_beside_a_blocked_worker_with_io)
{
	pl_task_t t[8];
	int fds[2], i;

	start_with(1, 0);
	ASSERT_EQ(0, pipe2(fds, O_CLOEXEC));
	for (i = 0; i < 8; i++)
		t[i] = spawn(read_for_ever, &fds[0]);
	block_in_read(2);
	ASSERT_TRUE(UNTIL(nr_begun == 2));
	ASSERT_TRUE(UNTIL(has_slept(LAST_LOOK_NS)));
	EXPECT_TRUE(has_slept(300 * NSEC_PER_MSEC));
	for (i = 0; i < 8; i++)
		EXPECT_EQ(0, pl_cancel(t[i]));
	for (i = 0; i < 8; i++)
		join(t[i]);
	for (i = 0; i < 2; i++)
		let_reader_go(i);
}

/* The kernel's table of the process's descriptors has so many places. */
static int nr_fd_places(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[100];
	int nr = 0;

	ASSERT_NE(NULL, f);
	while (!nr && fgets(line, sizeof(line), f))
		if (sscanf(line, "FDSize: %d", &nr) != 1)
			nr = 0;
	fclose(f);
	return nr;
}

/* The kernel lets a thread wait for 10 ms, where others use it as well. */
TEST_F(sysmon, look_at_a_blocked_worker_does_not_grow_the_descriptor_table)
{
	int i, nr;

	start_with(1, 0);
	nr = nr_fd_places();
	block_in_read(2);
	spawn_tiny(1);
	EXPECT_TRUE(UNTIL(nr_ran == 1 && nr_begun == 2));
	EXPECT_EQ(nr, nr_fd_places());
	for (i = 0; i < 2; i++)
		let_reader_go(i);
}

/* ---- races ---- */

static atomic_int nr_spinning, is_over;

static void spin_until_over(void *arg)
{
	atomic_fetch_add(&nr_spinning, 1);
	while (!is_over)
		pl__cpu_relax();
}

/* A new worker maps its signal stack, and waits for threads such as this. */
static void *map_and_unmap(void *may_end)
{
	size_t size = 8 << 20;
	void *p;

	while (!*(atomic_bool *)may_end) {
		p = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (p != MAP_FAILED)
			munmap(p, size);
	}
	return NULL;
}

/* Sysmon looks but a few times where no task waits: so it is made to. */
static bool are_two_seen_to_run(void)
{
	if (nr_spinning < 2)
		return false;
	pl__sysmon_kick();
	return !rt_stat().workers_blocked;
}

/* It may sleep on its way into the crew; sysmon looks at no crew member. */
TEST_REAL(joining_worker_is_not_seen_as_blocked_for_long,
	  "it spins on a variable, without a call")
TEST_F_TIMEOUT(sysmon, joining_worker_is_not_seen_as_blocked_for_long, 120)
{
	static atomic_bool may_end;
	int nr = scaled(60), i, round;
	bool is_well = true;
	pthread_t mapper;
	pl_task_t t[4];

	ASSERT_EQ(0, pthread_create(&mapper, NULL, map_and_unmap, &may_end));
	for (round = 0; round < nr && is_well; round++) {
		is_over = 0;
		nr_spinning = 0;
		start_with(2, 0);
		for (i = 0; i < 4; i++)
			t[i] = spawn(spin_until_over, NULL);
		is_well = UNTIL(are_two_seen_to_run());
		EXPECT_TRUE(is_well);
		is_over = 1;
		for (i = 0; i < 4; i++)
			join(t[i]);
		rt_end();
	}
	may_end = true;
	pthread_join(mapper, NULL);
}

TEST_F(sysmon, late_work_is_seen)
{
	int i, nr = scaled(RT_INJECT ? 40 : 100);
	uint64_t seed = 42;

	start_with(1, 0);
	for (i = 1; i <= nr; i++) {
		block_in_read(1);
		usleep((useconds_t)(next_random(&seed) % 300));
		spawn_tiny(1);
		ASSERT_TRUE(UNTIL(nr_ran == i));
		let_reader_go(0);
		/* Until after it has gone to sleep, and before. */
		usleep((useconds_t)(next_random(&seed) % 15000));
	}
}

static void block_for(void *arg)
{
	struct timespec ts = { .tv_nsec = (long)(uintptr_t)arg };

	nanosleep(&ts, NULL);
}

/* It is found blocked just when it is not any more, and goes to sleep. */
TEST_F(sysmon, parking_worker_does_not_count_as_blocked)
{
	int i, nr = scaled(RT_INJECT ? 2000 : 1000);
	uint64_t seed = 7;

	start_with(1, 2);
	for (i = 1; i <= nr; i++) {
		spawn(block_for, (void *)(uintptr_t)(next_random(&seed) %
						     (200 * 1000)));
		spawn_tiny(1);
		ASSERT_TRUE(UNTIL(rt_stat().tasks_alive == 0));
		ASSERT_TRUE(UNTIL(is_all_parked()));
		ASSERT_TRUE(UNTIL(rt_stat().workers_blocked == 0));
	}
}

static void block_shortly(void *arg)
{
	uint64_t seed = (uintptr_t)arg;
	struct timespec ts = { 0 };
	int i;

	for (i = 0; i < 30; i++) {
		ts.tv_nsec = (long)(next_random(&seed) % 300000);
		nanosleep(&ts, NULL);
		pl_yield();
		if (next_random(&seed) % 4 == 0)
			EXPECT_EQ(0, pl_sleep(ts.tv_nsec));
	}
	atomic_fetch_add(&nr_ran, 1);
}

TEST_F(sysmon, racing_workers_are_counted_once)
{
	int i, nr = scaled(200);

	start_with(3, 12);
	for (i = 0; i < nr; i++)
		spawn_as(i % 8 ? PL_STACK_NORMAL : PL_STACK_WORKER,
			 block_shortly, (void *)(uintptr_t)(i + 1));
	EXPECT_TRUE(UNTIL_NO_MORE(nr_ran == nr, rt_stat().switches));
	EXPECT_TRUE(UNTIL(is_all_parked()));
	/* Sysmon counts first, and may find then that it was too late. */
	EXPECT_TRUE(UNTIL(rt_stat().workers_blocked == 0));
	EXPECT_TRUE(UNTIL(atomic_load(&pl__rt.main.nr_seen) == 0));
}

/* ---- the device's crew ---- */

static void queue_and_read(void *arg)
{
	spawn_tiny(1);
	spin_ns(100 * NSEC_PER_USEC);
	read_byte(arg);
}

TEST_TIMED(crew_wakes_a_parked_worker,
	   "both ends of a race must be seen; one of several tries")
TEST_F(sysmon, crew_wakes_a_parked_worker)
{
	const char *is_without = getenv("MOD_WITHOUT_CREW");
	struct pl_config cfg = PL_CONFIG_INIT;
	int i = 0;

	if (access("/dev/parklot", R_OK | W_OK))
		SKIP(return, "no /dev/parklot");
	if (is_without && *is_without)
		SKIP(return, "no crew");
	unsetenv("PARKLOT_WORKERS");
	unsetenv("PARKLOT_MAX_WORKERS");
	cfg.nr_workers = 1;
	cfg.min_workers = 3;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	ASSERT_LT(0, pl__rt.main.lots.nr_members);
	ASSERT_EQ(0, pipe2(pipes[0], O_CLOEXEC));
	do {
		readers[0] = spawn(queue_and_read, pipes[0]);
		ASSERT_TRUE(UNTIL(nr_ran == i + 1));
		let_reader_go(0);
	} while (!atomic_load(&pl__rt.main.lots.nr_called) && ++i < 1000);
	EXPECT_LT(0, atomic_load(&pl__rt.main.lots.nr_called));
	EXPECT_TRUE(UNTIL(rt_stat().workers_blocked == 0));
}

/* ---- without what helps ---- */

TEST_F(sysmon, sysmon_does_not_run_when_disabled)
{
	setenv("PARKLOT_WATCH", "0", 1);
	start_with(1, 0);
	ASSERT_EQ(0, pl_runtime_set_workers(2));
	block_in_read(2);
	ASSERT_TRUE(UNTIL(nr_begun == 2));
	spawn_tiny(10);
	EXPECT_EQ(0, nr_threads_named("pl-sysmon"));
	EXPECT_EQ(0, pl__rt.main.lots.nr_members);
	EXPECT_EQ(2, rt_stat().workers);
	EXPECT_EQ(0, rt_stat().workers_blocked);
	EXPECT_EQ(0, nr_ran);
	let_reader_go(0);
	EXPECT_TRUE(UNTIL(nr_ran == 10));
	EXPECT_EQ(2, rt_stat().workers);
	EXPECT_EQ(0, rt_stat().blocks);
	let_reader_go(1);
}

TEST_F(sysmon, forked_child_has_no_descriptor_of_sysmon)
{
	int before = nr_entries("/proc/self/fd");
	pid_t pid;

	start_with(1, 0);
	block_in_read(1);
	spawn_tiny(1);
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	EXPECT_LE(before + 3, nr_entries("/proc/self/fd"));
	/* One that it opens just now is not noted yet: the child keeps it. */
	EXPECT_TRUE(UNTIL(!rt_stat().workers_running &&
			  atomic_load(&pl__rt.sysmon) == PL__SYSMON_ASLEEP));
	pid = fork();
	if (!pid)
		_exit(nr_entries("/proc/self/fd") == before + 2 ? 0 : 1);
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, reap(pid));
	let_reader_go(0);
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(before + 2, nr_entries("/proc/self/fd"));
}

TEST_HARNESS_MAIN
