// SPDX-License-Identifier: GPL-2.0-only
/*
 * The slice of the timer thread, which is short, so that it runs before workers
 * when it is woken; and of the threads that it starts, which is not.  Before
 * Linux 6.12 all threads have one slice, and the kernel calls it 0.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include <sys/syscall.h>

RT_FIXTURE(slice)

#define SHORT_NS	(100 * NSEC_PER_USEC)

/* struct sched_attr, as it was at first. */
struct attr {
	uint32_t	size, policy;
	uint64_t	flags;
	int32_t		nice;
	uint32_t	priority;
	uint64_t	runtime_ns, deadline_ns, period_ns;
};

/* Of the calling thread; 0: the kernel does not say. */
static uint64_t slice_now(void)
{
	struct attr a = { .size = sizeof(a) };

	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0))
		return 0;
	return a.policy == SCHED_OTHER ? a.runtime_ns : 0;
}

/* What a thread has that asks for a short one. */
static void *ask_for_short(void *ns)
{
	struct attr a = { .size = sizeof(a) };

	if (!syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0)) {
		a.runtime_ns = SHORT_NS;
		syscall(SYS_sched_setattr, 0, &a, 0);
	}
	*(uint64_t *)ns = slice_now();
	return NULL;
}

static uint64_t short_slice(void)
{
	pthread_t thread;
	uint64_t ns = 0;

	if (!pthread_create(&thread, NULL, ask_for_short, &ns))
		pthread_join(thread, NULL);
	return ns;
}

static _Atomic uint64_t in_timer, in_task;
static atomic_int nr_seen;

static void see_in_task(void *arg)
{
	in_task = slice_now();
	atomic_fetch_add(&nr_seen, 1);
}

static void see_in_timer(void *arg)
{
	in_timer = slice_now();
	/* Nor does the kernel let it sleep on for a while. */
	EXPECT_EQ(1, prctl(PR_GET_TIMERSLACK));
	pl_spawn(NULL, see_in_task, NULL, NULL);
	atomic_fetch_add(&nr_seen, 1);
}

static atomic_bool is_busy, is_over;

static void be_busy(void *arg)
{
	is_busy = true;
	while (!is_over)
		pl__cpu_relax();
}

/*
 * The only worker is busy when the callback spawns: it starts another one, if
 * no other thread has done so.
 */
TEST_F(slice, timer_thread_has_a_short_one_and_its_workers_do_not)
{
	uint64_t ordinary = slice_now();
	struct pl_config cfg = PL_CONFIG_INIT;
	pl_task_t busy;

	cfg.nr_workers = 2;
	cfg.min_workers = 1;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	ASSERT_TRUE(UNTIL(is_all_parked()));
	busy = spawn(be_busy, NULL);
	ASSERT_TRUE(UNTIL(is_busy));
	ASSERT_EQ(0, pl_timer_add(NULL, 0, see_in_timer, NULL));
	EXPECT_TRUE(UNTIL(nr_seen == 2));
	is_over = true;
	join(busy);
	EXPECT_EQ(short_slice(), in_timer);
	EXPECT_EQ(ordinary, in_task);
	EXPECT_EQ(ordinary, slice_now());
	TH_LOG("%llu ns, timer thread %llu", (unsigned long long)ordinary,
	       (unsigned long long)in_timer);
}

static void be_batch(void *arg)
{
	struct sched_param param = { .sched_priority = 0 };

	EXPECT_EQ(0, syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &param));
}

static _Atomic int policy_in_timer;

static void see_policy(void *arg)
{
	policy_in_timer = (int)syscall(SYS_sched_getscheduler, 0);
	see_in_timer(arg);
}

TEST_F(slice, policy_of_the_hook_stays)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.worker_start = be_batch;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	ASSERT_EQ(0, pl_timer_add(NULL, 0, see_policy, NULL));
	EXPECT_TRUE(UNTIL(nr_seen == 2));
	EXPECT_EQ(SCHED_BATCH, policy_in_timer);
}

TEST_HARNESS_MAIN
