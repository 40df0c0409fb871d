/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What ends each public call that waits: its deadline, that of a scope, an
 * interrupt, a cancel and the stop; and that a late wake of what lay there
 * before does not.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "calls.h"

CALLS_FIXTURE(call_ends, 256)

static void expect_ret(const struct kind *k, long expected)
{
	long ret = k->call();

	if (ret != expected)
		TH_LOG("%s: %ld, not %ld", k->name, ret, expected);
	EXPECT_EQ(expected, ret);
}

/* ---- the call's own deadline ---- */

static void wait_past_deadline(void *arg)
{
	const struct kind *k = arg;
	int ret = k->call == call_sleep_until ? 0 : -ETIMEDOUT;

	until_ns = in_ms(2);
	expect_ret(k, ret);
	EXPECT_LE(until_ns, pl_now());
	until_ns = 1;
	expect_ret(k, ret);
	until_ns = PL_FOREVER;
}

TEST_F(call_ends, deadline_ends_each_call_that_has_one)
{
	const struct kind *k;

	for_each_kind(k) {
		if (!has_deadline(k))
			continue;
		run_as(PL_STACK_NORMAL, wait_past_deadline, (void *)k);
		run_as(PL_STACK_WORKER, wait_past_deadline, (void *)k);
		mixed_run(0, 1, wait_past_deadline, (void *)k);
	}
}

/* ---- the deadline of a scope ---- */

static void wait_in_scope(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;
	uint64_t deadline_ns = in_ms(3);

	EXPECT_EQ(0, pl_scope_enter(&s, deadline_ns, 0));
	expect_ret(arg, -ECANCELED);
	EXPECT_LE(deadline_ns, pl_now());
	EXPECT_EQ(-ETIMEDOUT, pl_scope_leave(&s));
}

TEST_F(call_ends, deadline_of_a_scope_ends_each_call_in_it)
{
	const struct kind *k;

	for_each_kind(k) {
		run_as(PL_STACK_NORMAL, wait_in_scope, (void *)k);
		until_no_fillers(1);
		run_as(PL_STACK_WORKER, wait_in_scope, (void *)k);
		until_no_fillers(1);
		mixed_run(0, 1, wait_in_scope, (void *)k);
		until_no_fillers(1);
	}
}

/* ---- interrupt and cancel ---- */

static atomic_int step;

static void wait_until_ended(void *arg)
{
	const struct kind *k = arg;

	step = 1;
	expect_ret(k, -EINTR);
	until_no_fillers(2);
	step = 2;
	expect_ret(k, -ECANCELED);
	until_no_fillers(2);
	/* A point of cancellation, whether or not it would wait. */
	expect_ret(k, -ECANCELED);
	until_no_fillers(2);
	step = 3;
}

/* Those waits are let go by any wake, as it is documented. */
static bool is_any_wake_its_end(const struct kind *k)
{
	return k->call == call_word_wait || k->call == call_cond_wait ||
	       k->call == call_cond_wait_until;
}

static void expect_waiting(const struct kind *k, pl_task_t t, int at)
{
	int i;

	if (!UNTIL(step == at && is_waiting(t)))
		TH_LOG("%s does not wait", k->name);
	ASSERT_TRUE(is_waiting(t));
	for (i = 0; i < 5 && !is_any_wake_its_end(k); i++) {
		wake_late(t);
		ASSERT_TRUE(UNTIL(is_waiting(t)));
	}
	EXPECT_EQ(at, step);
}

static void end_in_turn(const struct kind *k, uint32_t cls)
{
	pl_task_t t;

	step = 0;
	t = spawn_as(cls, wait_until_ended, (void *)k);
	expect_waiting(k, t, 1);
	EXPECT_EQ(0, pl_interrupt(t));
	ASSERT_TRUE(UNTIL(step >= 2));
	expect_waiting(k, t, 2);
	EXPECT_EQ(0, pl_cancel(t));
	join(t);
	EXPECT_EQ(3, step);
}

TEST_F(call_ends, interrupt_and_cancel_end_each_call_and_late_wakes_do_not)
{
	const struct kind *k;

	for_each_kind(k) {
		end_in_turn(k, PL_STACK_NORMAL);
		end_in_turn(k, PL_STACK_WORKER);
	}
}

/* ---- points of cancellation ---- */

static void call_when_cancelled(void *arg)
{
	struct pl_sem one = PL_SEM_INIT(1);
	struct pl_latch open = PL_LATCH_INIT(0);

	EXPECT_EQ(0, pl_cancel(pl_self()));
	/* They are, whether or not they would wait. */
	EXPECT_EQ(-ECANCELED, pl_sem_wait(&one));
	EXPECT_EQ(-ECANCELED, pl_sem_wait_until(&one, 0));
	EXPECT_EQ(-ECANCELED, pl_latch_wait(&open));
	EXPECT_EQ(-ECANCELED, pl_latch_wait_until(&open, 0));
	/* These do not wait, and are none. */
	EXPECT_EQ(0, pl_sem_trywait(&one));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&one));
	EXPECT_EQ(-EBUSY, pl_mutex_trylock(&locked));
	EXPECT_EQ(-EBUSY, pl_rwlock_tryrdlock(&rwlock));
	EXPECT_EQ(-EAGAIN, pl_chan_tryrecv(empty, &item));
	EXPECT_EQ(0, pl_chan_trysend(empty, NULL));
	EXPECT_EQ(0, pl_chan_tryrecv(empty, &item));
	EXPECT_EQ(0, pl_close(*(int *)arg));
}

TEST_F(call_ends, call_is_or_is_not_a_point_of_cancellation)
{
	uint32_t cls;
	int fd;

	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		fd = dup(never[0]);
		ASSERT_LE(0, fd);
		run_as(cls, call_when_cancelled, &fd);
	}
}

/* ---- calls that are no points of cancellation ---- */

static struct pl_once once;
static atomic_bool may_pass, is_in_once;

static void run_once(void *arg)
{
	is_in_once = true;
	while (!atomic_load((atomic_bool *)arg))
		pl_yield();
}

static void pass_once(void *arg)
{
	EXPECT_EQ(0, pl_once(&once, run_once, arg));
}

static struct pl_rwlock other;
static atomic_int nr_passed;

/* By then it was cancelled by its scope. */
static void take_locks(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&s, in_ms(1), 0));
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	nr_passed = 1;
	pl_mutex_lock(&locked);
	nr_passed = 2;
	pl_rwlock_rdlock(&rwlock);
	nr_passed = 3;
	pl_rwlock_wrlock(&other);
	nr_passed = 4;
	pass_once(&may_pass);
	nr_passed = 5;
	pl_mutex_unlock(&locked);
	pl_rwlock_rdunlock(&rwlock);
	pl_rwlock_wrunlock(&other);
	EXPECT_EQ(-ETIMEDOUT, pl_scope_leave(&s));
	EXPECT_EQ(-ECANCELED, pl_sleep_until(0));
}

/* It waits, and goes on to wait though it is interrupted and cancelled. */
static void expect_patient(pl_task_t t, int nr)
{
	int i;

	ASSERT_TRUE(UNTIL(nr_passed == nr));
	ASSERT_TRUE(UNTIL(is_waiting(t)));
	EXPECT_EQ(0, pl_interrupt(t));
	EXPECT_EQ(0, pl_cancel(t));
	/* Nor does a late wake of what lay there before end it. */
	for (i = 0; i < 5; i++) {
		wake_late(t);
		ASSERT_TRUE(UNTIL(is_waiting(t)));
	}
	EXPECT_EQ(-ETIMEDOUT, pl_join_until(t, in_ms(1)));
	EXPECT_EQ(nr, nr_passed);
	ASSERT_TRUE(is_waiting(t));
}

TEST_F(call_ends, locks_without_a_deadline_are_waited_for)
{
	pl_task_t first, t;
	uint32_t cls;

	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		memset(&once, 0, sizeof(once));
		may_pass = is_in_once = false;
		nr_passed = 0;
		first = spawn(pass_once, &may_pass);
		/* Else the other may be the first, and wait for nobody. */
		ASSERT_TRUE(UNTIL(is_in_once));
		pl_rwlock_wrlock(&other);
		t = spawn_as(cls, take_locks, NULL);
		expect_patient(t, 1);
		pl_mutex_unlock(&locked);
		expect_patient(t, 2);
		pl_rwlock_wrunlock(&rwlock);
		expect_patient(t, 3);
		pl_rwlock_wrunlock(&other);
		expect_patient(t, 4);
		may_pass = true;
		join(t);
		join(first);
		EXPECT_EQ(5, nr_passed);
		/* As the fixture has them. */
		pl_mutex_lock(&locked);
		pl_rwlock_wrlock(&rwlock);
	}
}

/* ---- the stop ---- */

static atomic_int nr_begun, nr_back;

static void wait_until_stop(void *arg)
{
	nr_begun++;
	expect_ret(arg, -ECANCELED);
	/* Nor does any wait from then on. */
	expect_ret(arg, -ECANCELED);
	nr_back++;
}

static void *stop_it(void *arg)
{
	EXPECT_EQ(0, pl_runtime_stop());
	return NULL;
}

/* Few on worker stacks, which keep their workers. */
TEST_F(call_ends, stop_ends_each_call)
{
	static struct mixed m[ARRAY_SIZE(kinds)];
	const struct kind *k;
	char tasks[64] = "";
	pthread_t stopper;
	int i, nr = 0;

	for_each_kind(k) {
		if (is_spawn(k))
			continue;
		mixed_start(&m[k - kinds], 1, 1, wait_until_stop, (void *)k);
		nr += 2;
		if (nr % 16 == 0) {
			spawn_as(PL_STACK_WORKER, wait_until_stop, (void *)k);
			nr++;
		}
	}
	ASSERT_TRUE(UNTIL(nr_begun == nr));
	ASSERT_EQ(0, pthread_create(&stopper, NULL, stop_it, NULL));
	ASSERT_TRUE(UNTIL(nr_back == nr));
	/* For the sleeper and the resolver's tasks the stop waits. */
	EXPECT_EQ(0, pl_sem_post(&none, 1));
	EXPECT_EQ(sizeof(tasks), write(gate[1], tasks, sizeof(tasks)));
	pthread_join(stopper, NULL);
	for (i = 0; i < (int)ARRAY_SIZE(kinds); i++)
		mixed_join(&m[i]);
	/* The fixture ends another one. */
	sleeper = spawn(sleep_in_shield, &none);
}

TEST_HARNESS_MAIN
