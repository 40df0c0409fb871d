/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that block their workers in the kernel delay no other task.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"
#include "run_at_once.h"
#include "thread.h"
#include "work.h"

#include <sys/syscall.h>

BLOCKED_FIXTURE(blocked)

/* ---- ways to block ---- */

static void end_nothing(void)
{
}

static void sleep_in_kernel(void *arg)
{
	struct timespec ts = { .tv_nsec = 10 * NSEC_PER_MSEC };

	atomic_fetch_add(&nr_begun, 1);
	while (!may_go)
		nanosleep(&ts, NULL);
}

TEST_F(blocked, nanosleep_is_seen_as_blocked)
{
	check_call(sleep_in_kernel, end_nothing);
}

static void touch(void *arg)
{
	atomic_fetch_add(&nr_begun, 1);
	EXPECT_EQ(0, *(volatile char *)slow_page);
}

TEST_REAL(page_fault_is_seen_as_blocked, "page faults are not simulated")
TEST_F(blocked, page_fault_is_seen_as_blocked)
{
	if (!make_page_slow())
		SKIP(return, "no userfaultfd here");
	check_call(touch, bring_page);
}

static char path[] = "/tmp/parklot-blocked-XXXXXX";

static void write_and_sync(void *arg)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), i;

	ASSERT_LE(0, fd);
	for (i = 0; i < 20; i++) {
		EXPECT_EQ(1, pwrite(fd, "x", 1, i));
		EXPECT_EQ(0, fsync(fd));
	}
	close(fd);
}

TEST_F(blocked, fsync_is_seen_as_blocked)
{
	static struct mixed m;

	ASSERT_LE(0, mkostemp(path, O_CLOEXEC));
	start_with(2, 0);
	mixed_start(&m, 4, 0, write_and_sync, NULL);
	spawn_tiny(1000);
	EXPECT_TRUE(UNTIL(nr_ran == 1000));
	mixed_join(&m);
	unlink(path);
}

/* ---- what is not blocked ---- */

static atomic_uint nr_computing;

/* So many that some always wait: else sysmon looks for no blocked worker. */
static pl_task_t computing[32];
static atomic_int tids[ARRAY_SIZE(computing) + 1], nr_tids;

static void compute(void *arg)
{
	tids[nr_tids++] = (int)syscall(SYS_gettid);
	atomic_fetch_add(&nr_computing, 1);
	while (!may_go)
		pl__cpu_relax();
}

/* Without reliefs, which run beside tasks that compute, ever more of them. */
static void start_without_reliefs(uint32_t nr)
{
	set_env("PARKLOT_STALL_US", 0);
	start_with(nr, 0);
	unsetenv("PARKLOT_STALL_US");
}

static void start_computing(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(computing); i++)
		computing[i] = spawn(compute, NULL);
}

static void end_computing(void)
{
	size_t i;

	may_go = 1;
	for (i = 0; i < ARRAY_SIZE(computing); i++)
		join(computing[i]);
}

/*
 * @target workers compute, and more only if some have been blocked on their
 * way there; @nr_in_call are blocked, and all the others are parked.
 */
static bool is_settled(struct pl_stat *st, uint32_t target, uint32_t nr_in_call)
{
	uint32_t nr = nr_computing;

	*st = rt_stat();
	return nr >= target && st->workers_blocked == nr_in_call &&
	       st->workers == st->workers_parked + nr_in_call + nr;
}

static long nr_sleeps(void)
{
	long sum = 0;
	int i;

	for (i = 0; i < nr_tids; i++)
		sum += thread_nr_switches(tids[i]);
	return sum;
}

/*
 * False: the kernel had them sleep meanwhile, say for a page that it moved, or
 * a reserve came for one that slept before.
 */
static bool compute_for_a_while(struct pl_stat *before, struct pl_stat *after)
{
	uint32_t nr, ran, nr_now, ran_now;
	long sleeps;

	ASSERT_TRUE(UNTIL(is_settled(before, 2, 0)));
	sleeps = nr_sleeps();
	nr = nr_computing;
	ran = nr_ran;
	if (!is_settled(before, 2, 0))
		return false;
	spin_ns(300 * NSEC_PER_MSEC);
	nr_now = nr_computing;
	ran_now = nr_ran;
	*after = rt_stat();
	if (nr_sleeps() != sleeps || after->workers != before->workers)
		return false;
	EXPECT_EQ(nr, nr_now);
	EXPECT_EQ(ran, ran_now);
	return true;
}

TEST_TIMED(computing_worker_is_not_seen_as_blocked,
	   "switches of a thread; counts what the scheduler did meanwhile; one of several tries")
TEST_F(blocked, computing_worker_is_not_seen_as_blocked)
{
	struct pl_stat before, after;
	uint64_t nr_blocks;
	int left = 10;
	uint32_t nr;

	start_without_reliefs(2);
	start_computing();
	ASSERT_TRUE(UNTIL(is_settled(&before, 2, 0)));
	nr_blocks = before.blocks;
	nr = nr_computing;
	if (!rt_stat().blocks)
		EXPECT_EQ(2, nr);
	spawn_tiny(10);
	while (!compute_for_a_while(&before, &after))
		ASSERT_LT(0, --left);
	EXPECT_EQ(before.blocks, after.blocks);
	EXPECT_EQ(0, after.workers_blocked);
	if (after.blocks == nr_blocks)
		EXPECT_EQ(0, nr_ran);
	end_computing();
}

static void read_and_compute(void *arg)
{
	read_byte(arg);
	compute(arg);
}

TEST_TIMED(computing_after_a_call_ends_the_block,
	   "counts what the scheduler did meanwhile")
TEST_F(blocked, computing_after_a_call_ends_the_block)
{
	struct pl_stat before;
	uint32_t nr;

	start_without_reliefs(1);
	ASSERT_EQ(0, pipe2(pipes[0], O_CLOEXEC));
	readers[0] = spawn(read_and_compute, pipes[0]);
	EXPECT_TRUE(UNTIL(nr_begun == 1));
	start_computing();
	ASSERT_TRUE(UNTIL(is_settled(&before, 1, 1)));
	nr = nr_computing;
	spawn_tiny(1);
	EXPECT_EQ(1, write(pipes[0][1], "x", 1));
	EXPECT_TRUE(UNTIL(nr_computing > nr));
	EXPECT_TRUE(UNTIL(rt_stat().workers_blocked == 0));
	EXPECT_EQ(nr + 1, nr_computing);
	EXPECT_EQ(0, nr_ran);
	end_computing();
	join(readers[0]);
	EXPECT_TRUE(UNTIL(nr_ran == 1));
}

/* ---- in the hook that it starts with ---- */

static pthread_mutex_t hook_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pl_mutex hook_mutex;
static atomic_int nr_hooks;

/* All workers but one; the timer thread has more to do. */
static void block_in_hook(void *by_library)
{
	if (!pl__self() || !nr_hooks++)
		return;
	if (by_library) {
		pl_mutex_lock(&hook_mutex);
		pl_mutex_unlock(&hook_mutex);
	} else {
		pthread_mutex_lock(&hook_lock);
		pthread_mutex_unlock(&hook_lock);
	}
}

static void start_blocked_in_hook(void *by_library)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.nr_workers = 3;
	cfg.min_workers = 3;
	cfg.fixed_workers = 1;
	cfg.worker_start = block_in_hook;
	cfg.worker_start_arg = by_library;
	pthread_mutex_lock(&hook_lock);
	pl_mutex_lock(&hook_mutex);
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	ASSERT_TRUE(UNTIL(nr_hooks == 3));
}

/* One comes for the one that reads, and for no other, however often. */
static void check_hook(void *by_library)
{
	int i;

	start_blocked_in_hook(by_library);
	for (i = 1; i <= 20; i++) {
		block_in_read(1);
		ASSERT_TRUE(UNTIL(nr_begun == i));
		spawn_tiny(1);
		EXPECT_TRUE(UNTIL(nr_hooks == 4));
		EXPECT_TRUE(UNTIL(rt_stat().workers_blocked == 4));
		let_reader_go(0);
		EXPECT_TRUE(UNTIL(nr_ran == i));
	}
	EXPECT_EQ(4, rt_stat().workers);
	EXPECT_EQ(4, nr_hooks);
	pl_mutex_unlock(&hook_mutex);
	pthread_mutex_unlock(&hook_lock);
	spawn_tiny(100);
	EXPECT_TRUE(UNTIL(nr_ran == 120));
}

TEST_TIMED(block_in_the_start_hook_starts_no_worker,
	   "counts what the scheduler did meanwhile")
TEST_F(blocked, block_in_the_start_hook_starts_no_worker)
{
	check_hook(NULL);
}

TEST_TIMED(block_during_worker_setup_starts_no_worker,
	   "counts what the scheduler did meanwhile")
TEST_F(blocked, block_during_worker_setup_starts_no_worker)
{
	check_hook(&hook_mutex);
}

/* ---- afterwards ---- */

TEST_TIMED(returning_worker_parks_if_enough_run,
	   "counts what the scheduler did meanwhile")
TEST_F_TIMEOUT(blocked, returning_worker_parks_if_enough_run, 120)
{
	static struct mixed m;
	int i;

	start_with(1, 0);
	block_in_read(4);
	EXPECT_TRUE(UNTIL(nr_begun == 4));
	mixed_start(&m, 10, 0, run_and_yield, NULL);
	EXPECT_TRUE(UNTIL(most_of(100) >= 1));
	for (i = 0; i < 4; i++)
		let_reader_go(i);
	EXPECT_TRUE(UNTIL(most_of(1000 + scaled(4000)) == 1));
	EXPECT_TRUE(UNTIL(rt_stat().workers_blocked == 0));
	is_over = 1;
	mixed_join(&m);
}

TEST_HARNESS_MAIN
