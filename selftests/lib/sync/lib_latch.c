/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The latch: waiters go on when all is done, and not before.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(latch)

static struct pl_latch latch;
static atomic_int nr_back;

TEST_F(latch, latch_counts_down_to_0)
{
	struct pl_latch init = PL_LATCH_INIT(0), three = PL_LATCH_INIT(3), l;

	EXPECT_EQ(0, memcmp(&init, &latch, sizeof(latch)));
	EXPECT_EQ(0, pl_latch_wait(&latch));
	EXPECT_EQ(0, pl_latch_wait_until(&latch, 0));
	EXPECT_EQ(0, pl_latch_init(&l, 3));
	EXPECT_EQ(0, memcmp(&three, &l, sizeof(l)));
	EXPECT_EQ(0, pl_latch_done(&l));
	EXPECT_EQ(0, pl_latch_add(&l, 2));
	EXPECT_EQ(0, pl_latch_done(&l));
	EXPECT_EQ(0, pl_latch_done(&l));
	EXPECT_EQ(0, pl_latch_done(&l));
	EXPECT_EQ(-ETIMEDOUT, pl_latch_wait_until(&l, 0));
	EXPECT_EQ(0, pl_latch_done(&l));
	EXPECT_EQ(0, pl_latch_wait_until(&l, 0));
}

TEST_F(latch, done_below_0_is_refused)
{
	EXPECT_EQ(-EINVAL, pl_latch_done(&latch));
	EXPECT_EQ(0, pl_latch_wait_until(&latch, 0));
	EXPECT_EQ(0, pl_latch_add(&latch, 1));
	EXPECT_EQ(-ETIMEDOUT, pl_latch_wait_until(&latch, 0));
	EXPECT_EQ(0, pl_latch_done(&latch));
	EXPECT_EQ(-EINVAL, pl_latch_done(&latch));
	EXPECT_EQ(0, pl_latch_wait_until(&latch, 0));
}

TEST_F(latch, add_beyond_the_most_adds_nothing)
{
	EXPECT_EQ(0, pl_latch_init(&latch, PL_LATCH_MAX - 1));
	EXPECT_EQ(-EOVERFLOW, pl_latch_add(&latch, 2));
	EXPECT_EQ(-EOVERFLOW, pl_latch_add(&latch, UINT32_MAX));
	EXPECT_EQ(0, pl_latch_add(&latch, 1));
	/* Waited for once, which changes nothing. */
	EXPECT_EQ(-ETIMEDOUT, pl_latch_wait_until(&latch, in_ms(1)));
	EXPECT_EQ(-EOVERFLOW, pl_latch_add(&latch, 1));
	EXPECT_EQ(0, pl_latch_done(&latch));
	EXPECT_EQ(0, pl_latch_add(&latch, 1));
	EXPECT_EQ(-EOVERFLOW, pl_latch_add(&latch, 1));
}

/* ---- which waiters are woken, and when ---- */

static void wait_for_0(void *arg)
{
	(void)arg;
	EXPECT_EQ(0, pl_latch_wait(&latch));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(latch, last_done_releases_all)
{
	static struct mixed m;
	pl_task_t t;
	int i;

	EXPECT_EQ(0, pl_latch_init(&latch, 10));
	mixed_start(&m, 50, 4, wait_for_0, NULL);
	t = spawn_as(PL_STACK_WORKER, wait_for_0, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&latch.word) == 55));
	for (i = 0; i < 20; i++) {
		/* One more before every other that is done. */
		if (i % 2)
			EXPECT_EQ(0, pl_latch_add(&latch, 1));
		EXPECT_EQ(0, pl_latch_done(&latch));
		if (i == 18)
			break;
		EXPECT_EQ(55, nr_waiters(&latch.word));
		EXPECT_EQ(0, nr_back);
	}
	join(t);
	mixed_join(&m);
	EXPECT_EQ(55, nr_back);
	EXPECT_EQ(-EINVAL, pl_latch_done(&latch));
}

TEST_HARNESS_MAIN
