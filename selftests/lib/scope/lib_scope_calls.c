/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The deadline of a scope ends each public call that waits: of the scope's
 * owner, of its children, in a scope within it, and in threads.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "calls.h"

CALLS_FIXTURE(scope_calls, 64)

/* ---- where they are called ---- */

struct trial {
	const struct kind *kind;
	uint64_t	deadline_ns;
	atomic_bool	is_done;
};

static intptr_t call_it(void *trial)
{
	struct trial *t = trial;
	long ret = t->kind->call();

	if (ret != -ECANCELED)
		TH_LOG("%s: %ld", t->kind->name, ret);
	EXPECT_EQ(-ECANCELED, ret);
	EXPECT_LE(t->deadline_ns, pl_now());
	return 0;
}

static void enter(struct trial *t, struct pl_scope *s)
{
	t->deadline_ns = in_ms(3);
	EXPECT_EQ(0, pl_scope_enter(s, t->deadline_ns, 0));
}

static void leave(struct trial *t, struct pl_scope *s)
{
	EXPECT_EQ(-ETIMEDOUT, pl_scope_leave(s));
	t->is_done = true;
}

static void as_owner(void *trial)
{
	struct pl_scope s = PL_SCOPE_INIT;

	enter(trial, &s);
	call_it(trial);
	leave(trial, &s);
}

/* In a scope of its own, which is cancelled with the child. */
static intptr_t call_as_child(void *trial)
{
	struct pl_scope s = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	call_it(trial);
	EXPECT_EQ(-ECANCELED, pl_scope_leave(&s));
	return 0;
}

/* On a slow machine the deadline comes before the child does. */
static void as_child(void *trial)
{
	struct pl_scope s = PL_SCOPE_INIT;
	int ret;

	enter(trial, &s);
	ret = pl_scope_spawn(&s, NULL, call_as_child, trial, NULL);
	EXPECT_TRUE(!ret || ret == -ECANCELED);
	leave(trial, &s);
}

static void in_inner_scope(void *trial)
{
	struct pl_scope outer = PL_SCOPE_INIT, inner = PL_SCOPE_INIT;

	enter(trial, &outer);
	EXPECT_EQ(0, pl_scope_enter(&inner, PL_FOREVER, 0));
	call_it(trial);
	EXPECT_EQ(-ECANCELED, pl_scope_leave(&inner));
	leave(trial, &outer);
}

static void *in_thread(void *trial)
{
	as_owner(trial);
	return NULL;
}

static void expect_done(struct trial *t, const char *where)
{
	uint64_t late_ns;

	if (!UNTIL(t->is_done)) {
		TH_LOG("%s: stuck %s", t->kind->name, where);
		ASSERT_TRUE(t->is_done);
	}
	late_ns = pl_now() - t->deadline_ns;
	if (late_ns > stuck_ns() / 4)
		TH_LOG("%s: late %s", t->kind->name, where);
	EXPECT_GE(stuck_ns() / 4, late_ns);
	until_no_fillers(1);
}

static void try_in_task(const struct kind *k, void (*place)(void *trial),
			uint32_t stack, const char *where)
{
	struct trial t = { .kind = k };
	pl_task_t task = spawn_as(stack, place, &t);

	expect_done(&t, where);
	/* If it ended in a later trial, there would be room for one more. */
	join(task);
}

static void try_in_thread(const struct kind *k)
{
	struct trial t = { .kind = k };
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, in_thread, &t));
	expect_done(&t, "in a thread");
	pthread_join(thread, NULL);
}

TEST_TIMED(deadline_ends_each_call, "time that passed")
TEST_F(scope_calls, deadline_ends_each_call)
{
	const struct kind *k;

	for_each_kind(k) {
		try_in_task(k, as_owner, PL_STACK_NORMAL, "as the owner");
		try_in_task(k, as_owner, PL_STACK_WORKER, "on a worker");
		try_in_task(k, as_child, PL_STACK_NORMAL, "as a child");
		try_in_task(k, in_inner_scope, PL_STACK_NORMAL, "further in");
		try_in_thread(k);
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

	(void)arg;
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

TEST_F(scope_calls, locks_without_a_deadline_are_waited_for)
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

#define NR_LOCKS	4

static atomic_int nr_had, nr_given_up;
static atomic_bool are_given;

static void take_lock(int nth)
{
	switch (nth) {
	case 0:
		pl_mutex_lock(&locked);
		pl_mutex_unlock(&locked);
		break;
	case 1:
		pl_rwlock_rdlock(&rwlock);
		pl_rwlock_rdunlock(&rwlock);
		break;
	case 2:
		pl_rwlock_wrlock(&rwlock);
		pl_rwlock_wrunlock(&rwlock);
		break;
	default:
		pass_once(&may_pass);
	}
}

static void take_lock_through_stop(void *arg)
{
	take_lock((int)(uintptr_t)arg);
	EXPECT_TRUE(are_given);
	EXPECT_EQ(-ECANCELED, pl_sleep_until(0));
	nr_had++;
}

static void give_up_at_stop(void *arg)
{
	EXPECT_EQ(-ECANCELED, pl_rwlock_rdlock_until(&rwlock, PL_FOREVER));
	nr_given_up++;
	(void)arg;
}

/* Once those that may have given up. */
static void give_locks_when_stopping(void *arg)
{
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	EXPECT_TRUE(UNTIL(nr_given_up == PL_STACK_WORKER + 1));
	are_given = true;
	pl_mutex_unlock(&locked);
	pl_rwlock_wrunlock(&rwlock);
	may_pass = true;
	(void)arg;
}

TEST_F(scope_calls, locks_without_a_deadline_are_waited_for_in_the_stop)
{
	pl_task_t t;
	uint32_t cls;
	uintptr_t i;

	spawn(pass_once, &may_pass);
	ASSERT_TRUE(UNTIL(is_in_once));
	for (cls = 0; cls <= PL_STACK_WORKER; cls++)
		for (i = 0; i < NR_LOCKS; i++) {
			t = spawn_as(cls, take_lock_through_stop, (void *)i);
			ASSERT_TRUE(UNTIL(is_waiting(t)));
		}
	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		t = spawn_as(cls, give_up_at_stop, NULL);
		ASSERT_TRUE(UNTIL(is_waiting(t)));
	}
	spawn(give_locks_when_stopping, NULL);
	EXPECT_EQ(0, pl_sem_post(&none, 1));
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ((PL_STACK_WORKER + 1) * NR_LOCKS, nr_had);
	/* As the fixture has them. */
	sleeper = spawn(sleep_in_shield, &none);
	pl_mutex_lock(&locked);
	pl_rwlock_wrlock(&rwlock);
}

TEST_HARNESS_MAIN
