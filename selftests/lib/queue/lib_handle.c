/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Handles of tasks: good ones, stale ones, and such as never were.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "run/run.h"

RT_FIXTURE(handle)

static void no_task_is_invalid(void *arg)
{
	(void)arg;
	EXPECT_EQ(-EINVAL, pl_join(0));
	EXPECT_EQ(-EINVAL, pl_join_until(0, PL_FOREVER));
	EXPECT_EQ(-EINVAL, pl_interrupt(0));
	EXPECT_EQ(-EINVAL, pl_cancel(0));
}

TEST_F(handle, handle_0_is_invalid)
{
	no_task_is_invalid(NULL);
	mixed_run(1, 1, no_task_is_invalid, NULL);
}

static void look_at(pl_task_t t, int join_says)
{
	EXPECT_EQ(join_says, pl_join(t));
	EXPECT_EQ(join_says, pl_join_until(t, 0));
	EXPECT_EQ(-ESRCH, pl_interrupt(t));
	EXPECT_EQ(-ESRCH, pl_cancel(t));
	EXPECT_EQ(0, pl_sleep(1));
}

static void look_at_stale(void *arg)
{
	look_at(*(pl_task_t *)arg, 0);
}

TEST_F(handle, stale_handle_is_refused)
{
	pl_task_t t = spawn(nothing, NULL);

	join(t);
	look_at_stale(&t);
	run_in_task(look_at_stale, &t);
}

static void look_at_invented(void *arg)
{
	look_at(*(pl_task_t *)arg, -ESRCH);
}

TEST_F(handle, invented_handle_is_of_no_task)
{
	/* No such slot, with versions that are odd and even; even of slot 0. */
	static pl_task_t invented[] = {
		0x7fffffff00000001ULL, 0xffffffffffffffffULL, 1,
		0x1ffffffffULL, 0x200000000ULL,
	};
	pl_task_t next = spawn(nothing, NULL) + (2ULL << 32);
	size_t i;

	join(next - (2ULL << 32));
	for (i = 0; i < ARRAY_SIZE(invented); i++) {
		look_at_invented(&invented[i]);
		run_in_task(look_at_invented, &invented[i]);
	}
	look_at_invented(&next);
}

/* As if the slot of @h, which is free, had been used 2^31 times less one. */
static void use_slot_for_long(pl_task_t h)
{
	struct pl__task *t = pl__task_slot(h);

	EXPECT_EQ(0, atomic_load(&t->version) % 2);
	atomic_store(&t->version, UINT32_MAX - 1);
}

static void use_slot_to_its_end(void *arg)
{
	pl_task_t first, last, next;

	(void)arg;
	first = spawn(nothing, NULL);
	join(first);
	use_slot_for_long(first);
	last = spawn(nothing, NULL);
	EXPECT_EQ((uint32_t)first, (uint32_t)last);
	EXPECT_EQ(UINT32_MAX, last >> 32);
	EXPECT_EQ(0, pl_interrupt(last));
	join(last);
	EXPECT_EQ(-ESRCH, pl_cancel(last));

	next = spawn(nothing, NULL);
	EXPECT_EQ((uint32_t)first, (uint32_t)next);
	EXPECT_NE(0, next);
	EXPECT_EQ(1, next >> 32);
	EXPECT_EQ(-ESRCH, pl_interrupt(last));
	EXPECT_EQ(0, pl_join(last));
	EXPECT_EQ(0, pl_cancel(next));
	join(next);
}

TEST_F(handle, slot_is_reused_2_to_the_31_times)
{
	/* Another worker would have free slots of its own. */
	start_with(1, 1);
	run_in_task(use_slot_to_its_end, NULL);
}

static void tell_self(void *arg)
{
	*(pl_task_t *)arg = pl_self();
	pl_yield();
	EXPECT_EQ(*(pl_task_t *)arg, pl_self());
}

TEST_F(handle, self_is_the_handle_from_spawn)
{
	pl_task_t t, seen;
	uint32_t cls;

	EXPECT_EQ(0, pl_self());
	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		t = spawn_as(cls, tell_self, &seen);
		join(t);
		EXPECT_EQ(t, seen);
	}
}

TEST_HARNESS_MAIN
