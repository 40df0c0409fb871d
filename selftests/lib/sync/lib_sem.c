/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The semaphore: units for tasks and threads alike, none lost, none made up.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "race_rounds.h"
#include "uaf_page.h"

RT_FIXTURE(sem)

static struct pl_sem sem;
static atomic_int nr_waiting, nr_back, nr_inside, nr_most;

TEST_F(sem, semaphore_starts_with_its_units)
{
	struct pl_sem init = PL_SEM_INIT(0), three = PL_SEM_INIT(3), s;
	int i;

	EXPECT_EQ(0, memcmp(&init, &sem, sizeof(sem)));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
	EXPECT_EQ(0, pl_sem_init(&s, 3));
	EXPECT_EQ(0, memcmp(&three, &s, sizeof(s)));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, i == 1 ? pl_sem_wait_until(&s, 0) : i ?
			     pl_sem_wait(&s) : pl_sem_trywait(&s));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&s));
	EXPECT_EQ(0, pl_sem_post(&s, 2));
	EXPECT_EQ(0, pl_sem_trywait(&s));
	EXPECT_EQ(0, pl_sem_trywait(&s));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&s));
}

TEST_F(sem, bad_arguments_are_refused)
{
	EXPECT_EQ(-EINVAL, pl_sem_init(NULL, 1));
	EXPECT_EQ(-EINVAL, pl_sem_init(&sem, PL_SEM_MAX + 1));
	EXPECT_EQ(-EINVAL, pl_sem_trywait(NULL));
	EXPECT_EQ(-EINVAL, pl_sem_wait(NULL));
	EXPECT_EQ(-EINVAL, pl_sem_wait_until(NULL, 0));
	EXPECT_EQ(-EINVAL, pl_sem_post(NULL, 1));
	EXPECT_EQ(-EINVAL, pl_sem_post(&sem, PL_SEM_MAX + 1));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
}

TEST_F(sem, post_beyond_the_maximum_is_refused)
{
	EXPECT_EQ(0, pl_sem_init(&sem, PL_SEM_MAX - 1));
	EXPECT_EQ(-EOVERFLOW, pl_sem_post(&sem, 2));
	EXPECT_EQ(-EOVERFLOW, pl_sem_post(&sem, PL_SEM_MAX));
	EXPECT_EQ(-EINVAL, pl_sem_post(&sem, UINT32_MAX));
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(-EOVERFLOW, pl_sem_post(&sem, 1));
	EXPECT_EQ(0, pl_sem_trywait(&sem));
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(PL_SEM_MAX, sem.word.value);
}

/* ---- which waiters are woken ---- */

static void wait_for_one(void *arg)
{
	(void)arg;
	EXPECT_EQ(0, pl_sem_wait(&sem));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(sem, post_releases_as_many_waiters)
{
	static struct mixed m;
	int i, nr = 0;

	mixed_start(&m, 50, 4, wait_for_one, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == 54));
	for (i = 0; nr < 54; i = i % 4 + 1) {
		/* A post of no unit wakes none, and no waiter is forgotten. */
		EXPECT_EQ(0, pl_sem_post(&sem, i));
		nr += i;
		if (nr > 54)
			break;
		ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == 54 - nr));
		ASSERT_TRUE(UNTIL(nr_back == nr));
		EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
	}
	mixed_join(&m);
	EXPECT_EQ(54, nr_back);
	for (i = 54; i < nr; i++)
		EXPECT_EQ(0, pl_sem_trywait(&sem));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
}

static int order[50];

static void wait_in_order(void *arg)
{
	EXPECT_EQ(0, pl_sem_wait(&sem));
	order[nr_back] = (int)(uintptr_t)arg;
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(sem, post_releases_the_longest_waiting)
{
	int i;

	for (i = 0; i < 50; i++) {
		spawn_as(i % 10 == 9 ? PL_STACK_WORKER : PL_STACK_SMALL,
			 wait_in_order, (void *)(uintptr_t)i);
		ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == i + 1));
	}
	for (i = 0; i < 50; i++) {
		EXPECT_EQ(0, pl_sem_post(&sem, 1));
		ASSERT_TRUE(UNTIL(nr_back == i + 1));
		EXPECT_EQ(i, order[i]);
	}
}

/*
 * On one worker: each post but the first finds no mark, since the woken waiter
 * has not run yet.
 */
static void post_one_by_one(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 20; i++)
		spawn(wait_for_one, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == 20));
	for (i = 0; i < 20; i++)
		EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(19, nr_waiters(&sem.word));
	EXPECT_EQ(0, nr_back);
	EXPECT_TRUE(UNTIL(nr_back == 20));
}

TEST_F(sem, each_post_releases_one_waiter)
{
	start_with(1, 1);
	run_in_task(post_one_by_one, NULL);
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
}

/* A woken waiter finds the unit gone, waits again, and is woken again. */
static void take_it_away(void *arg)
{
	(void)arg;
	spawn(wait_for_one, NULL);
	spawn(wait_for_one, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == 2));
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(0, pl_sem_trywait(&sem));
	ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == 2));
	EXPECT_EQ(0, nr_back);
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	ASSERT_TRUE(UNTIL(nr_back == 1));
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_TRUE(UNTIL(nr_back == 2));
}

TEST_F(sem, running_task_may_take_the_unit_first)
{
	start_with(1, 1);
	run_in_task(take_it_away, NULL);
}

static void note_place(void *arg)
{
	EXPECT_EQ(0, pl_sem_wait(&sem));
	order[nr_back++] = (int)(uintptr_t)arg;
}

static void overtake_the_first(void *arg)
{
	uintptr_t i;

	(void)arg;
	for (i = 0; i < 3; i++) {
		spawn(note_place, (void *)i);
		ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == (int)i + 1));
	}
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(0, pl_sem_trywait(&sem));
	ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == 3));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, pl_sem_post(&sem, 1));
		ASSERT_TRUE(UNTIL(nr_back == (int)i + 1));
		EXPECT_EQ(i, order[i]);
	}
}

TEST_F(sem, overtaken_waiter_stays_the_first)
{
	start_with(1, 1);
	run_in_task(overtake_the_first, NULL);
}

static void late_wake(void *arg)
{
	pl_task_t t = spawn_as((uint32_t)(uintptr_t)arg, wait_for_one, NULL);
	int i;

	for (i = 0; i < 20; i++) {
		ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == 1));
		wake_late(t);
	}
	EXPECT_EQ(-ETIMEDOUT, pl_join_until(t, in_ms(1)));
	EXPECT_EQ(0, nr_back);
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	join(t);
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
}

TEST_F(sem, late_wake_of_another_wait_gives_no_unit)
{
	uintptr_t cls;

	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		nr_back = 0;
		late_wake((void *)cls);
	}
}

/* ---- many ---- */

static void enter_and_leave(void *arg)
{
	uint64_t seed = (uintptr_t)&arg | 1;
	int i, nr = *(int *)arg, inside, most;

	for (i = 0; i < nr; i++) {
		EXPECT_EQ(0, pl_sem_wait(&sem));
		inside = atomic_fetch_add(&nr_inside, 1) + 1;
		EXPECT_GE(3, inside);
		most = nr_most;
		while (inside > most &&
		       !atomic_compare_exchange_weak(&nr_most, &most, inside))
			;
		if (next_random(&seed) % 8 == 0)
			pl_yield();
		atomic_fetch_sub(&nr_inside, 1);
		EXPECT_EQ(0, pl_sem_post(&sem, 1));
	}
}

static void check_units(int nr)
{
	while (nr--)
		EXPECT_EQ(0, pl_sem_trywait(&sem));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
}

TEST_TIMED(units_bound_the_number_inside, "both ends of a race must be seen")
TEST_F(sem, units_bound_the_number_inside)
{
	int nr = scaled(1500);

	EXPECT_EQ(0, pl_sem_init(&sem, 3));
	mixed_run(20, 4, enter_and_leave, &nr);
	EXPECT_LE(2, nr_most);
	check_units(3);
}

TEST_F(sem, semaphore_works_before_the_runtime_starts)
{
	int nr = scaled(1500);

	EXPECT_EQ(0, pl_sem_init(&sem, 3));
	mixed_run(0, 6, enter_and_leave, &nr);
	check_units(3);
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
}

/* Units are posted one or a few at a time: a waiter waits almost always. */
static void take_many(void *arg)
{
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, pl_sem_wait(&sem));
}

static void post_many(void *arg)
{
	uint64_t seed = (uintptr_t)&arg | 1;
	int left = *(int *)arg;
	uint32_t nr;

	while (left) {
		nr = (uint32_t)(next_random(&seed) % 4);
		nr = nr > (uint32_t)left ? (uint32_t)left : nr;
		EXPECT_EQ(0, pl_sem_post(&sem, nr));
		left -= (int)nr;
		if (next_random(&seed) % 16 == 0)
			breathe();
	}
}

static void post_and_take(int nr_tasks, int nr_threads, int nr)
{
	static struct mixed takers, posters;

	mixed_start(&takers, nr_tasks, nr_threads, take_many, &nr);
	mixed_start(&posters, nr_tasks, nr_threads, post_many, &nr);
	mixed_join(&posters);
	mixed_join(&takers);
	check_units(0);
}

TEST_F(sem, no_unit_is_lost_between_tasks)
{
	post_and_take(10, 0, scaled(3000));
}

TEST_F(sem, no_unit_is_lost_between_threads)
{
	post_and_take(0, 4, scaled(1500));
}

TEST_F(sem, no_unit_is_lost_between_tasks_and_threads)
{
	post_and_take(6, 3, scaled(1500));
}

/* ---- how a wait ends ---- */

static void wait_past_deadline(void *arg)
{
	uint64_t deadline = in_ms(2);

	(void)arg;
	EXPECT_EQ(-ETIMEDOUT, pl_sem_wait_until(&sem, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_sem_wait_until(&sem, deadline));
	EXPECT_LE(deadline, pl_now());
}

TEST_F(sem, wait_until_ends_at_its_deadline)
{
	mixed_run(10, 3, wait_past_deadline, NULL);
	run_as(PL_STACK_WORKER, wait_past_deadline, NULL);
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(0, pl_sem_wait_until(&sem, 0));
}

static void wait_until_ended(void *arg)
{
	(void)arg;
	nr_waiting = 1;
	EXPECT_EQ(-EINTR, pl_sem_wait(&sem));
	nr_waiting = 2;
	EXPECT_EQ(-ECANCELED, pl_sem_wait_until(&sem, PL_FOREVER));
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(-ECANCELED, pl_sem_wait(&sem));
	EXPECT_EQ(-ECANCELED, pl_sem_wait_until(&sem, 0));
	/* pl_sem_trywait() does not block: no point of cancellation. */
	EXPECT_EQ(0, pl_sem_trywait(&sem));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
}

TEST_F(sem, wait_is_interrupted_and_cancelled)
{
	uint32_t cls;
	pl_task_t t;

	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		nr_waiting = 0;
		t = spawn_as(cls, wait_until_ended, NULL);
		ASSERT_TRUE(UNTIL(nr_waiting == 1));
		EXPECT_EQ(0, pl_interrupt(t));
		ASSERT_TRUE(UNTIL(nr_waiting == 2));
		EXPECT_EQ(0, pl_cancel(t));
		join(t);
	}
	check_units(0);
}

static void wait_until_stop(void *arg)
{
	(void)arg;
	EXPECT_EQ(-ECANCELED, pl_sem_wait(&sem));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(sem, wait_ends_when_the_runtime_stops)
{
	static struct mixed m;
	struct hold hold = { &nr_back, 54 };

	hold_stop_until(&hold);
	mixed_start(&m, 50, 4, wait_until_stop, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&sem.word) == 54));
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_TRUE(UNTIL(nr_back == 54));
	mixed_join(&m);
	check_units(0);
}

/* ---- races ---- */


static void wait_in_rounds(void *arg)
{
	struct race *r = arg;
	uint64_t seed = 99991;
	int i, ret;

	for (i = 1; i <= r->nr_rounds; i++) {
		race_rounds_begin(r, i);
		ret = pl_sem_wait_until(&sem, race_deadline(&seed));
		race_rounds_end(r, ret);
		/* The unit that it did not take is there. */
		if (ret)
			EXPECT_EQ(0, pl_sem_trywait(&sem));
		EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
	}
}

static void strike_post(struct race *r)
{
	(void)r;
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
}

static void strike_wait(struct race *r)
{
	(void)r;
	EXPECT_EQ(0, pl_sem_wait(&sem));
}

TEST_F(sem, post_deadline_and_interrupt_end_a_tasks_wait_once)
{
	run_race_rounds(PL_STACK_NORMAL, wait_in_rounds,
			(void (*[])(struct race *)){ strike_post, NULL });
}

TEST_F(sem, post_deadline_and_interrupt_end_a_workers_wait_once)
{
	start_with(2, 0);
	run_race_rounds(PL_STACK_WORKER, wait_in_rounds,
			(void (*[])(struct race *)){ strike_post, NULL });
}

/* A unit for each of two; one of them is patient, and gets it. */
TEST_F(sem, timed_out_waiter_takes_no_unit)
{
	run_race_rounds(PL_STACK_NORMAL, wait_in_rounds,
			(void (*[])(struct race *)){ strike_post, strike_wait,
					      strike_post, NULL });
}

static void wait_to_be_cancelled(void *arg)
{
	*(int *)arg = pl_sem_wait(&sem);
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(sem, cancel_and_post_end_a_wait_once)
{
	int i, nr = scaled(2000), ret, nr_cancelled = 0;
	uint64_t seed = 4711;
	pl_task_t t;

	for (i = 0; i < nr; i++) {
		t = spawn_as(i % 5 ? PL_STACK_NORMAL : PL_STACK_WORKER,
			     wait_to_be_cancelled, &ret);
		spin_ns(next_random(&seed) % 20000);
		if (i % 2) {
			EXPECT_EQ(0, pl_sem_post(&sem, 1));
			pl_cancel(t);
		} else {
			pl_cancel(t);
			EXPECT_EQ(0, pl_sem_post(&sem, 1));
		}
		join(t);
		EXPECT_TRUE(ret == 0 || ret == -ECANCELED);
		check_units(ret ? 1 : 0);
		nr_cancelled += ret != 0;
	}
	TH_LOG("woken %d cancelled %d", nr - nr_cancelled, nr_cancelled);
}

/* ---- freed by the taker of the unit ---- */

static void wait_and_free(void *arg)
{
	struct pl_sem *s = arg;

	EXPECT_EQ(0, pl_sem_wait(s));
	free_for_good(s);
	atomic_fetch_add(&nr_back, 1);
}

static void post_once(void *arg)
{
	EXPECT_EQ(0, pl_sem_post(arg, 1));
}

TEST_F(sem, semaphore_may_be_freed_by_a_released_waiter)
{
	int i, nr = scaled(2000);
	struct pl_sem *s;

	for (i = 0; i < nr; i++) {
		s = new_zeroed(sizeof(*s));
		if (i % 2)
			spawn_as(i % 7 ? PL_STACK_NORMAL : PL_STACK_WORKER,
				 wait_and_free, s);
		if (i % 3)
			spawn(post_once, s);
		else
			post_once(s);
		if (i % 2 == 0)
			wait_and_free(s);
	}
	EXPECT_TRUE(UNTIL(nr_back == nr));
}

TEST_HARNESS_MAIN
