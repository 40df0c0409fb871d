/* SPDX-License-Identifier: GPL-2.0-only */
/* Deadlines that workers keep, of waits of all kinds: none is lost. */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"
#include "pace/kept.h"
#include "time/timer_impl.h"

#include <sys/socket.h>

BLOCKED_FIXTURE(kept_waits)

static struct pl_mutex held, mutex;
static struct pl_cond cond;
static int sockets[2];
static atomic_int nr_added, nr_fired, nr_early, nr_back;
static _Atomic uint64_t seeds;

static void fire(void *arg)
{
	nr_early += pl_now() < (uintptr_t)arg;
	nr_fired++;
}

static void wait_until(uint64_t end, uint32_t what)
{
	int ret = -ETIMEDOUT;
	char c;

	switch (what) {
	case 0:
		ret = pl_mutex_lock_until(&held, end);
		break;
	case 1:
		pl_mutex_lock(&mutex);
		ret = pl_cond_wait_until(&cond, &mutex, end);
		pl_mutex_unlock(&mutex);
		break;
	case 2:
		ret = (int)pl_recv_until(sockets[0], &c, 1, 0, end);
		break;
	case 3:
		EXPECT_EQ(0, pl_timer_add(NULL, end, fire,
					  (void *)(uintptr_t)end));
		nr_added++;
		/* fallthrough */
	default:
		EXPECT_EQ(0, pl_sleep_until(end));
		break;
	}
	EXPECT_EQ(-ETIMEDOUT, ret);
	nr_early += pl_now() < end;
}

static void wait_often(void *arg)
{
	uint64_t rnd = ++seeds;
	int i, nr = scaled(200);

	for (i = 0; i < nr; i++) {
		wait_until(pl_now() + next_random(&rnd) % 1000000,
			   (uint32_t)(next_random(&rnd) % 6));
		if (next_random(&rnd) % 8 == 0)
			spin_ns(next_random(&rnd) % 500000);
	}
	nr_back++;
}

static void hold_mutex(void *arg)
{
	pl_mutex_lock(&held);
	mixed_run(40, 2, wait_often, NULL);
	pl_mutex_unlock(&held);
}

static void check_all_kinds(void)
{
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				sockets));
	run_in_task(hold_mutex, NULL);
	EXPECT_EQ(42, nr_back);
	EXPECT_TRUE(UNTIL(nr_fired == nr_added));
	EXPECT_EQ(0, nr_early);
}

static void start_with_buckets(uint32_t nr)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.nr_workers = 4;
	cfg.nr_timer_buckets = nr;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
}

TEST_F_TIMEOUT(kept_waits, no_wait_is_lost, 120)
{
	start_fixed(4, 0);
	check_all_kinds();
}

TEST_F_TIMEOUT(kept_waits, no_wait_is_lost_with_one_bucket, 120)
{
	start_with_buckets(1);
	EXPECT_EQ(0, pl__rt.nr_keepers);
	check_all_kinds();
}

TEST_F_TIMEOUT(kept_waits, no_wait_is_lost_with_one_keeper, 120)
{
	start_with_buckets(PL__NR_THREAD_BUCKETS + 1);
	EXPECT_EQ(1, pl__rt.nr_keepers);
	check_all_kinds();
}

#define NR_BLOCKED	300

static void block_in_usleep(void *arg)
{
	nr_begun++;
	while (!may_go)
		usleep(100000);
}

/* Their numbers are above those of the buckets, and of those that run now. */
TEST_F_TIMEOUT(kept_waits, no_wait_is_lost_with_many_workers, 240)
{
	static pl_task_t t[NR_BLOCKED];
	int i;

	start_fixed(4, 512);
	ASSERT_LT(pl__rt.cfg.nr_timer_buckets, NR_BLOCKED);
	for (i = 0; i < NR_BLOCKED; i++)
		t[i] = spawn(block_in_usleep, NULL);
	ASSERT_TRUE(UNTIL_NO_MORE(nr_begun == NR_BLOCKED, (uint64_t)nr_begun));
	check_all_kinds();
	may_go = 1;
	for (i = 0; i < NR_BLOCKED; i++)
		join(t[i]);
}

TEST_HARNESS_MAIN
