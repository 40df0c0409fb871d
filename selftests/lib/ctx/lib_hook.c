/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hook: what another library keeps for each thread goes with the task, over
 * each wait and to another worker; a task begins with none and leaves none.
 */
#include "kselftest_harness.h"

#include "rt.h"

#define NR_TASKS	16
#define NR_ROUNDS	500

static _Atomic int nr_lost, nr_dropped, nr_saves;

/* ---- a library with a number for each thread ---- */

static __thread intptr_t number;

static __attribute__((noinline)) intptr_t number_get(void)
{
	return number;
}

static __attribute__((noinline)) void number_set(intptr_t n)
{
	number = n;
}

static void *number_save(void)
{
	intptr_t n = number_get();

	nr_saves++;
	number_set(0);
	return (void *)n;
}

static void number_restore(void *state)
{
	number_set((intptr_t)state);
}

static void number_drop(void *state)
{
	nr_dropped += !!state;
}

static void keep_number(void *arg)
{
	intptr_t mine = (intptr_t)arg;
	int i;

	nr_lost += number_get() != 0;
	for (i = 0; i < NR_ROUNDS; i++) {
		number_set(mine + i);
		if (i % 16)
			pl_yield();
		else
			pl_sleep(1000);
		nr_lost += number_get() != mine + i;
	}
	number_set(mine);
}

static void keep_number_and_exit(void *arg)
{
	keep_number(arg);
	pl_exit();
}

/* Each with a number of its own. */
static void run_numbered(void (*fn)(void *), uint32_t stack)
{
	pl_task_t t[NR_TASKS];
	intptr_t i;

	for (i = 0; i < NR_TASKS; i++)
		t[i] = spawn_as(stack, fn, (void *)(1000 * (i + 1)));
	for (i = 0; i < NR_TASKS; i++)
		join(t[i]);
}

RT_FIXTURE(hook)

TEST_F(hook, state_goes_with_the_task)
{
	uint32_t nr;

	for (nr = 1; nr <= 4; nr += 3) {
		start_with(nr, nr);
		if (nr == 1)
			ASSERT_EQ(0, pl_hook_add(number_save, number_restore,
						 number_drop));
		nr_lost = nr_dropped = 0;
		run_numbered(keep_number, PL_STACK_NORMAL);
		EXPECT_EQ(0, nr_lost);
		EXPECT_EQ(NR_TASKS, nr_dropped);
		run_numbered(keep_number_and_exit, PL_STACK_SMALL);
		EXPECT_EQ(0, nr_lost);
		EXPECT_EQ(2 * NR_TASKS, nr_dropped);
		EXPECT_EQ(0, pl_runtime_stop());
	}
}

static void leave_number(void *arg)
{
	nr_lost += number_get() != 0;
	number_set((intptr_t)arg);
}

TEST_F(hook, task_on_the_worker_stack_leaves_no_state)
{
	start_with(1, 1);
	ASSERT_EQ(0, pl_hook_add(number_save, number_restore, number_drop));
	run_numbered(leave_number, PL_STACK_WORKER);
	EXPECT_EQ(0, nr_lost);
	EXPECT_EQ(NR_TASKS, nr_dropped);
}

/* ---- added while tasks wait ---- */

static struct pl_word gate;
static _Atomic int nr_waiting;

static void wait_at_gate(void *arg)
{
	nr_waiting++;
	while (!pl_word_wait(&gate, 0, PL_FOREVER))
		;
	nr_lost += number_get() != 0;
}

TEST_F(hook, task_that_waited_before_the_hook_resumes_without_state)
{
	pl_task_t t;

	start_with(1, 1);
	ASSERT_EQ(0, pl_spawn(&t, wait_at_gate, NULL, NULL));
	ASSERT_TRUE(UNTIL(nr_waiting == 1 && rt_stat().workers_running == 0));
	ASSERT_EQ(0, pl_hook_add(number_save, number_restore, number_drop));
	run_numbered(keep_number, PL_STACK_NORMAL);
	atomic_store(&gate.value, 1);
	pl_word_wake(&gate, UINT32_MAX);
	join(t);
	EXPECT_EQ(0, nr_lost);
}

/* ---- order and limits ---- */

static char order[64];

static void *save_a(void)
{
	strcat(order, "a");
	return order;
}

static void restore_a(void *state)
{
	EXPECT_EQ(order, state);
	strcat(order, "A");
}

static void *save_b(void)
{
	strcat(order, "b");
	return NULL;
}

static void restore_b(void *state)
{
	EXPECT_EQ(NULL, state);
	strcat(order, "B");
}

static void sleep_once(void *arg)
{
	errno = ENOTTY;
	EXPECT_EQ(-EINTR, pl_sleep_until(PL_FOREVER));
	EXPECT_EQ(ENOTTY, errno);
}

/* It has switched away before it is woken: a deadline may pass too early. */
static void run_sleeper(void)
{
	pl_task_t t = spawn(sleep_once, NULL);

	ASSERT_TRUE(UNTIL(is_waiting(t) && is_all_parked()));
	EXPECT_EQ(0, pl_interrupt(t));
	join(t);
}

TEST_F(hook, hooks_are_restored_in_the_opposite_order)
{
	start_with(1, 1);
	ASSERT_EQ(0, pl_hook_add(save_a, restore_a, NULL));
	ASSERT_EQ(0, pl_hook_add(save_b, restore_b, NULL));
	run_sleeper();
	/* The last two at the end of the task. */
	EXPECT_STREQ("abBAab", order);
}

TEST_F(hook, bad_or_too_many_hooks_are_refused)
{
	int i;

	EXPECT_EQ(-EINVAL, pl_hook_add(NULL, number_restore, NULL));
	EXPECT_EQ(-EINVAL, pl_hook_add(number_save, NULL, number_drop));
	for (i = 0; i < PL_HOOKS_MAX; i++)
		EXPECT_EQ(0, pl_hook_add(number_save, number_restore, NULL));
	EXPECT_EQ(-EAGAIN, pl_hook_add(number_save, number_restore, NULL));
	nr_saves = 0;
	run_sleeper();
	EXPECT_EQ(2 * PL_HOOKS_MAX, nr_saves);
}

TEST_HARNESS_MAIN
