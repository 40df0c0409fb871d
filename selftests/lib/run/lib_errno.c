/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * errno is the task's: another task that runs meanwhile, here or elsewhere,
 * does not change it, and a loop that reads it reads its own.  Compiled as a
 * program is that includes <parklot.h>, with all of errno's pitfalls.
 */
#include "parklot.h"

#include <errno.h>
#include <unistd.h>

#include "kselftest_harness.h"

#define NR_TASKS	8
#define NR_ROUNDS	2000

static _Atomic int nr_lost;

/* Ways to wait, after which a task may be on another worker. */
static void wait_somehow(int way)
{
	if (way % 16 == 0)
		pl_sleep(1000);
	else
		pl_yield();
}

/* The address of errno is the same all through this loop, to a compiler. */
static void keep_own(void *arg)
{
	const int mine = (int)(intptr_t)arg;
	int i;

	for (i = 0; i < NR_ROUNDS; i++) {
		errno = mine;
		wait_somehow(i);
		if (errno != mine)
			nr_lost++;
	}
}

static void fail_own(void *arg)
{
	const bool is_read = arg;
	char c;
	int i;

	for (i = 0; i < NR_ROUNDS; i++) {
		if (is_read)
			(void)!read(-1, &c, 1);
		else
			(void)!lseek(0, 0, -1);
		wait_somehow(i);
		if (errno != (is_read ? EBADF : EINVAL))
			nr_lost++;
	}
}

static void run(struct __test_metadata *_metadata, void (*fn)(void *arg),
		bool is_number, uint32_t nr_workers)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	pl_task_t t[NR_TASKS];
	intptr_t i;

	cfg.nr_workers = nr_workers;
	nr_lost = 0;
	ASSERT_EQ(pl_runtime_start(&cfg), 0);
	for (i = 0; i < NR_TASKS; i++)
		ASSERT_EQ(pl_spawn(&t[i], fn,
				   (void *)(is_number ? 1000 + i : i % 2),
				   NULL), 0);
	for (i = 0; i < NR_TASKS; i++)
		ASSERT_EQ(pl_join(t[i]), 0);
	ASSERT_EQ(pl_runtime_stop(), 0);
	EXPECT_EQ(nr_lost, 0);
}

TEST(written_errno_is_kept_on_one_worker)
{
	run(_metadata, keep_own, true, 1);
}

TEST(written_errno_is_kept_on_several_workers)
{
	run(_metadata, keep_own, true, 4);
}

TEST(errno_of_a_failed_call_is_kept_on_several_workers)
{
	run(_metadata, fail_own, false, 4);
}

static void nothing(void *arg)
{
}

TEST(functions_of_the_library_change_nothing)
{
	struct pl_word w = { 0 };
	pl_timer_t timer;
	pl_task_t t;

	errno = 4711;
	EXPECT_EQ(pl_runtime_start(NULL), 0);
	EXPECT_EQ(errno, 4711);
	pl_yield();
	EXPECT_EQ(pl_spawn(&t, nothing, NULL, NULL), 0);
	EXPECT_EQ(pl_join(t), 0);
	EXPECT_EQ(pl_word_wait(&w, 0, pl_now() + 1000000), -ETIMEDOUT);
	EXPECT_EQ(pl_timer_add(&timer, PL_FOREVER, nothing, NULL), 0);
	EXPECT_EQ(pl_timer_del(timer), 0);
	EXPECT_EQ(errno, 4711);
	EXPECT_EQ(pl_sleep(1000), 0);
	EXPECT_EQ(pl_read(-1, &(char){ 0 }, 1), -EBADF);
	EXPECT_EQ(pl_close(-1), -EBADF);
	EXPECT_EQ(errno, 4711);
	EXPECT_EQ(pl_runtime_stop(), 0);
	EXPECT_EQ(errno, 4711);
}

TEST_HARNESS_MAIN
