/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shields: sections that cancels, interrupts and the stop do not reach; and
 * sections that alone an interrupt is meant for.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(shield)

static struct pl_sem sem;
static atomic_int step;

static intptr_t nothing(void *arg)
{
	return (intptr_t)arg;
}

static intptr_t sleep_on(void *arg)
{
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	return 0;
}

/* ---- what does not reach into a shield ---- */

/* All kinds of wait; the test lets them end. */
static void wait_in_shield(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct pl_child c;
	pl_task_t t;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, PL_SCOPE_SHIELD));
	step = 1;
	EXPECT_EQ(0, pl_sem_wait(&sem));
	EXPECT_FALSE(pl_cancelled());
	EXPECT_EQ(0, pl_sleep(1));
	EXPECT_EQ(-ETIMEDOUT, pl_sem_wait_until(&sem, in_ms(1)));
	EXPECT_EQ(0, pl_scope_spawn(&s, &c, nothing, (void *)7, NULL));
	EXPECT_EQ(0, pl_join(c.task));
	EXPECT_EQ(0, pl_spawn(&t, arg, NULL, NULL));
	EXPECT_EQ(0, pl_join(t));
	EXPECT_EQ(0, pl_scope_leave(&s));
	EXPECT_EQ(7, c.result);
}

static void yield_some(void *arg)
{
	pl_yield();
	pl_yield();
}

static void cancelled_outside(void *arg)
{
	wait_in_shield(yield_some);
	EXPECT_TRUE(pl_cancelled());
	EXPECT_EQ(-ECANCELED, pl_sleep(1));
	/* Also if it was cancelled before. */
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	wait_in_shield(yield_some);
	EXPECT_EQ(-ECANCELED, pl_sleep(1));
}

TEST_F(shield, cancel_counts_after_it)
{
	pl_task_t t = spawn(cancelled_outside, NULL);

	EXPECT_TRUE(UNTIL(nr_waiters(&sem.word) == 1));
	EXPECT_EQ(0, pl_cancel(t));
	EXPECT_EQ(0, pl_cancel(t));
	EXPECT_EQ(1, nr_waiters(&sem.word));
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	join(t);
}

static void interrupted_outside(void *arg)
{
	wait_in_shield(yield_some);
	EXPECT_EQ(-EINTR, pl_sleep(1));
	EXPECT_EQ(0, pl_sleep(1));
}

TEST_F(shield, interrupt_counts_after_it)
{
	pl_task_t t = spawn(interrupted_outside, NULL);

	EXPECT_TRUE(UNTIL(nr_waiters(&sem.word) == 1));
	EXPECT_EQ(0, pl_interrupt(t));
	EXPECT_EQ(1, nr_waiters(&sem.word));
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	join(t);
}

static intptr_t wait_for_stop(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, PL_SCOPE_SHIELD));
	step = 1;
	EXPECT_EQ(0, pl_sem_wait(&sem));
	EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	EXPECT_EQ(0, pl_scope_leave(&s));
	EXPECT_EQ(-ECANCELED, pl_sleep(1));
	step = 2;
	return 0;
}

static void post_once_stopping(void *arg)
{
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
}

static void wait_in_stop(void *arg)
{
	wait_for_stop(arg);
}

TEST_F(shield, stop_waits_for_it)
{
	spawn(wait_in_stop, NULL);
	EXPECT_TRUE(UNTIL(nr_waiters(&sem.word) == 1));
	spawn(post_once_stopping, NULL);
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(2, step);
}

/* ---- scopes around it, and in it ---- */

static void in_failed_scope(void *arg)
{
	struct pl_scope outer = PL_SCOPE_INIT, shield = PL_SCOPE_INIT;
	struct pl_scope inner = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&outer, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_cancel(&outer, -EIO));
	EXPECT_TRUE(pl_cancelled());
	EXPECT_EQ(0, pl_scope_enter(&shield, PL_FOREVER, PL_SCOPE_SHIELD));
	EXPECT_FALSE(pl_cancelled());
	EXPECT_EQ(0, pl_sleep(1));
	EXPECT_EQ(0, pl_scope_enter(&inner, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_sleep(1));
	EXPECT_EQ(0, pl_scope_spawn(&inner, NULL, sleep_on, NULL, NULL));
	EXPECT_EQ(0, pl_scope_cancel(&inner, -EPIPE));
	EXPECT_EQ(-ECANCELED, pl_sleep(1));
	EXPECT_EQ(-EPIPE, pl_scope_leave(&inner));
	EXPECT_EQ(0, pl_sleep(1));
	EXPECT_EQ(0, pl_scope_leave(&shield));
	EXPECT_EQ(-ECANCELED, pl_sleep(1));
	EXPECT_EQ(-EIO, pl_scope_leave(&outer));
	EXPECT_EQ(0, pl_sleep(1));
}

TEST_F(shield, failed_scope_around_it_does_not_reach_in)
{
	run_in_task(in_failed_scope, NULL);
	in_failed_scope(NULL);
}

static intptr_t fail_after(void *arg)
{
	EXPECT_EQ(0, pl_sem_wait(&sem));
	return (intptr_t)arg;
}

static void scope_fails_meanwhile(void *arg)
{
	struct pl_scope outer = PL_SCOPE_INIT, shield = PL_SCOPE_INIT;
	struct pl_child c;

	EXPECT_EQ(0, pl_scope_enter(&outer, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&outer, &c, fail_after, (void *)-EIO,
				    NULL));
	EXPECT_EQ(0, pl_scope_enter(&shield, PL_FOREVER, PL_SCOPE_SHIELD));
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(0, pl_join(c.task));
	EXPECT_EQ(-EIO, pl_scope_error(&outer));
	EXPECT_EQ(0, pl_scope_error(&shield));
	EXPECT_EQ(0, pl_sleep(1));
	EXPECT_EQ(0, pl_scope_leave(&shield));
	EXPECT_EQ(-ECANCELED, pl_sleep(1));
	EXPECT_EQ(-EIO, pl_scope_leave(&outer));
}

TEST_F(shield, failure_meanwhile_counts_after_it)
{
	run_in_task(scope_fails_meanwhile, NULL);
	scope_fails_meanwhile(NULL);
}

static void say_goodbye(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;
	uint64_t deadline = in_ms(5);

	EXPECT_EQ(0, pl_cancel(pl_self()));
	EXPECT_EQ(0, pl_scope_enter(&s, deadline, PL_SCOPE_SHIELD));
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	EXPECT_LE(deadline, pl_now());
	EXPECT_EQ(-ETIMEDOUT, pl_scope_leave(&s));
}

TEST_F(shield, deadline_of_its_own_counts)
{
	run_in_task(say_goodbye, NULL);
}

/* ---- sections ---- */

static atomic_uint section;

static void two_sections(void *arg)
{
	uint32_t first = pl_section_begin();

	EXPECT_NE(0, first);
	section = first;
	EXPECT_EQ(-EINTR, pl_sem_wait(&sem));
	EXPECT_EQ(-ETIMEDOUT, pl_sem_wait_until(&sem, in_ms(1)));
	EXPECT_EQ(0, pl_section_interrupt(pl_self(), first));
	pl_section_end();
	/* It came in the section, for none of its calls. */
	EXPECT_EQ(0, pl_sleep(1));
	EXPECT_EQ(-ESRCH, pl_section_interrupt(pl_self(), first));
	/* Between two sections no number is right. */
	EXPECT_EQ(-ESRCH, pl_section_interrupt(pl_self(), first + 1));
	EXPECT_EQ(0, pl_sleep(1));
	EXPECT_NE(first, pl_section_begin());
	EXPECT_EQ(-ESRCH, pl_section_interrupt(pl_self(), first));
	EXPECT_EQ(0, pl_sleep(1));
	/* The other kind is for whatever comes. */
	EXPECT_EQ(0, pl_interrupt(pl_self()));
	pl_section_end();
	EXPECT_EQ(-EINTR, pl_sleep(1));
}

TEST_F(shield, section_interrupt_ends_calls_of_the_section_only)
{
	pl_task_t t = spawn(two_sections, NULL);

	EXPECT_TRUE(UNTIL(nr_waiters(&sem.word) == 1));
	EXPECT_EQ(-ESRCH, pl_section_interrupt(t, section + 1));
	EXPECT_EQ(1, nr_waiters(&sem.word));
	EXPECT_EQ(0, pl_section_interrupt(t, section));
	join(t);
	EXPECT_EQ(-ESRCH, pl_section_interrupt(t, section));
	EXPECT_EQ(-EINVAL, pl_section_interrupt(t, 0));
	EXPECT_EQ(-EINVAL, pl_section_interrupt(0, 1));
	EXPECT_EQ(0, pl_section_begin());
	pl_section_end();
}

static void use_all_numbers(void *arg)
{
	struct pl__task *t = pl__current();

	atomic_fetch_or(&t->state,
			PL__TASK_SECTION_MAX << PL__TASK_SECTION_SHIFT);
	EXPECT_EQ(1, pl_section_begin());
	EXPECT_EQ(0, pl_section_interrupt(pl_self(), 1));
	EXPECT_EQ(-EINTR, pl_sleep(1));
}

TEST_F(shield, section_0_is_none)
{
	run_in_task(use_all_numbers, NULL);
}

/* A reader is interrupted, in the midst of I/O or just after. */
static int fds[2];

static void read_in_sections(void *arg)
{
	uint64_t end = pl_now() + stuck_ns() / 2;
	int i, nr = scaled(2000);
	char c;

	/* Beside other programs each round may take a time slice of theirs. */
	for (i = 0; i < nr && pl_now() < end; i++) {
		section = pl_section_begin();
		EXPECT_EQ(-EINTR, pl_read(fds[0], &c, 1));
		section = 0;
		pl_section_end();
		/* Here it must not arrive. */
		EXPECT_EQ(0, pl_sleep(i % 3 * 1000));
	}
	step = 1;
}

TEST_REAL(late_section_interrupt_ends_no_other_call,
	  "it spins on a variable, without a call")
TEST_F(shield, late_section_interrupt_ends_no_other_call)
{
	pl_task_t t;
	uint32_t at;

	ASSERT_EQ(0, pipe(fds));
	t = spawn(read_in_sections, NULL);
	while (!step) {
		at = section;
		if (at)
			pl_section_interrupt(t, at);
	}
	join(t);
	close(fds[0]);
	close(fds[1]);
}

TEST_HARNESS_MAIN
