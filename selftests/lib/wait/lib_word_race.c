/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A wait may be ended by a wake, its deadline, an interrupt and a cancel, all
 * in the same moment.  It ends once, for one of them; a wake that is counted
 * has ended a wait, and an interrupt without effect is kept.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "wait_end.h"

RT_FIXTURE(race)

/* Where processors are short a round takes long: then fewer are made. */
#define ENOUGH_MS	8000

/*
 * A round: the waiter waits, and at about the same time the attackers strike.
 * They meet before and after, so that whatever they did is done.
 */
struct match {
	struct pl_word	word;
	atomic_int	begun, struck;	/* rounds; strikes in this one */
	atomic_bool	is_over;	/* no other round begins */
	int		nr_attackers;
	int		nr_rounds;
	pl_task_t	waiter;
	atomic_int	nr_woken;	/* says pl_word_wake() */
	atomic_int	is_interrupted;	/* in this round */
	int		nr_by[NR_WAIT_ENDS];	/* as the waiter says */
};

static void wait_in_rounds(void *arg)
{
	struct match *m = arg;
	uint64_t seed = 99991, end = in_ms(ENOUGH_MS), ns;
	int i, ret, woken;

	for (i = 1; i <= m->nr_rounds && pl_now() < end; i++) {
		atomic_store(&m->struck, 0);
		atomic_store(&m->is_interrupted, 0);
		woken = m->nr_woken;
		ns = next_random(&seed) % 80000;
		atomic_store(&m->begun, i);
		ret = pl_word_wait(&m->word, 0, pl_now() + ns);
		ASSERT_TRUE(UNTIL(m->struck == m->nr_attackers));

		m->nr_by[wait_end_of(ret)]++;
		/* Exactly those that were counted as woken were. */
		EXPECT_EQ(m->nr_woken - woken, ret == 0);
		if (m->is_interrupted && ret != -EINTR)
			EXPECT_EQ(-EINTR, pl_sleep_until(0));
		else
			EXPECT_EQ(0, pl_sleep_until(0));
	}
	m->is_over = true;
}

struct attacker {
	struct match	*match;
	void		(*strike)(struct match *m);
	uint64_t	seed;
};

static void attack(void *arg)
{
	struct attacker *a = arg;
	struct match *m = a->match;
	int i;

	for (i = 1; i <= m->nr_rounds; i++) {
		ASSERT_TRUE(UNTIL(m->begun >= i || m->is_over));
		if (m->begun < i)
			return;
		spin_ns(next_random(&a->seed) % 80000);
		a->strike(m);
		atomic_fetch_add(&m->struck, 1);
		ASSERT_TRUE(UNTIL(m->struck == m->nr_attackers ||
				  m->begun > i));
	}
}

static void *attack_thread(void *arg)
{
	attack(arg);
	return NULL;
}

static void strike_wake(struct match *m)
{
	atomic_fetch_add(&m->nr_woken, pl_word_wake(&m->word, 1));
}

static void strike_interrupt(struct match *m)
{
	atomic_store(&m->is_interrupted, 1);
	EXPECT_EQ(0, pl_interrupt(m->waiter));
}

static struct match match;

static void run_match(uint32_t cls, int nr_rounds)
{
	struct attacker a[2] = {
		{ &match, strike_wake, 7777 },
		{ &match, strike_interrupt, 123457 },
	};
	pthread_t thread;
	pl_task_t task;

	match.nr_rounds = nr_rounds;
	match.nr_attackers = 2;
	match.waiter = spawn_as(cls, wait_in_rounds, &match);
	ASSERT_EQ(0, pthread_create(&thread, NULL, attack_thread, &a[0]));
	task = spawn(attack, &a[1]);
	join(match.waiter);
	join(task);
	pthread_join(thread, NULL);
	EXPECT_EQ(match.nr_woken, match.nr_by[BY_WAKE]);
	EXPECT_EQ(0, match.nr_by[BY_NONE]);
	EXPECT_EQ(match.begun, match.nr_by[BY_WAKE] +
			       match.nr_by[BY_DEADLINE] +
			       match.nr_by[BY_INTERRUPT]);
	TH_LOG("woken %d timed out %d interrupted %d", match.nr_by[BY_WAKE],
	       match.nr_by[BY_DEADLINE], match.nr_by[BY_INTERRUPT]);
}

TEST_F_TIMEOUT(race, wake_deadline_and_interrupt_end_a_tasks_wait_once, 120)
{
	run_match(PL_STACK_NORMAL, scaled(3000));
}

TEST_F_TIMEOUT(race, wake_deadline_and_interrupt_end_a_workers_wait_once, 120)
{
	/* It keeps one worker to itself. */
	start_with(2, 0);
	run_match(PL_STACK_WORKER, scaled(3000));
}

/* ---- cancel, which is for good: a task a round ---- */

struct victim {
	struct pl_word	word;
	atomic_int	is_waiting;
	int		ret;
};

static void wait_once(void *arg)
{
	struct victim *v = arg;
	bool was_cancelled;
	int ret;

	atomic_store(&v->is_waiting, 1);
	v->ret = pl_word_wait(&v->word, 0, PL_FOREVER);
	was_cancelled = pl_cancelled();
	ret = pl_sleep_until(0);
	/* The cancel may come in between, but never goes away. */
	EXPECT_TRUE(ret == -ECANCELED || (!ret && !was_cancelled));
	EXPECT_TRUE(!ret || pl_cancelled());
}

TEST_F_TIMEOUT(race, cancel_and_wake_end_a_wait_once, 120)
{
	int i, nr = scaled(2000), woken, nr_woken = 0;
	uint64_t seed = 4711, end = in_ms(ENOUGH_MS);
	struct victim v;
	pl_task_t t;

	for (i = 0; i < nr && pl_now() < end; i++) {
		memset(&v, 0, sizeof(v));
		t = spawn_as(i % 5 ? PL_STACK_NORMAL : PL_STACK_WORKER,
			     wait_once, &v);
		if (i % 2)
			ASSERT_TRUE(UNTIL(v.is_waiting));
		spin_ns(next_random(&seed) % 20000);
		if (i % 3 == 0) {
			EXPECT_EQ(0, pl_cancel(t));
			woken = pl_word_wake(&v.word, 1);
		} else {
			woken = pl_word_wake(&v.word, 1);
			pl_cancel(t);
		}
		join(t);
		EXPECT_EQ(woken ? 0 : -ECANCELED, v.ret);
		nr_woken += woken;
	}
	TH_LOG("woken %d cancelled %d", nr_woken, i - nr_woken);
}

/* ---- many at once ---- */

static struct pl_word shared;
static atomic_int nr_waits, nr_by_wake, nr_by_deadline, nr_left, is_over;

static void wait_often(void *arg)
{
	uint64_t seed = (uintptr_t)&arg | 1, end = in_ms(ENOUGH_MS);
	int i, ret, nr = *(int *)arg;

	for (i = 0; i < nr && pl_now() < end; i++) {
		atomic_fetch_add(&nr_waits, 1);
		ret = pl_word_wait(&shared, 0,
				   pl_now() + next_random(&seed) % 100000);
		if (!ret)
			atomic_fetch_add(&nr_by_wake, 1);
		else if (ret == -ETIMEDOUT)
			atomic_fetch_add(&nr_by_deadline, 1);
		else
			EXPECT_EQ(-ETIMEDOUT, ret);
	}
	atomic_fetch_sub(&nr_left, 1);
}

static void wake_often(void *arg)
{
	int nr, total = 0;

	while (!is_over) {
		nr = pl_word_wake(&shared, 3);
		EXPECT_GE(3, nr);
		total += nr;
		if (!nr)
			breathe();
	}
	atomic_fetch_add((atomic_int *)arg, total);
}

TEST_F(race, counted_wakes_equal_woken_waits)
{
	static struct mixed waiters, wakers;
	int nr = scaled(500);
	atomic_int nr_woken = 0;

	nr_left = 54;
	mixed_start(&waiters, 50, 4, wait_often, &nr);
	mixed_start(&wakers, 2, 2, wake_often, &nr_woken);
	EXPECT_TRUE(UNTIL(nr_left == 0));
	is_over = 1;
	mixed_join(&wakers);
	mixed_join(&waiters);
	EXPECT_EQ(nr_waits, nr_by_wake + nr_by_deadline);
	EXPECT_EQ(nr_woken, nr_by_wake);
}

/* ---- no lost wakeup ---- */

/*
 * Producers count up and wake, consumers wait for the count they last saw to
 * change: nothing later makes up for a wake that is lost.
 */
static struct pl_word turn;
static atomic_int nr_turns;

/* The first that has had enough lets the other have a last turn. */
static void take_turns(void *arg)
{
	static atomic_int next_id;
	uint32_t me = atomic_fetch_add(&next_id, 1), v;
	uint64_t end = in_ms(ENOUGH_MS);
	int i, nr = *(int *)arg;
	bool is_last = false;

	for (i = 0; i < nr && !is_last; i++) {
		for (;;) {
			v = atomic_load(&turn.value);
			if (v % 2 == me % 2)
				break;
			pl_word_wait(&turn, v, PL_FOREVER);
		}
		is_last = is_over || pl_now() >= end;
		is_over = is_last;
		atomic_fetch_add(&nr_turns, 1);
		atomic_fetch_add(&turn.value, 1);
		pl_word_wake(&turn, 1);
	}
}

TEST_F(race, no_wake_is_lost_between_two_tasks)
{
	int nr = scaled(20000);

	mixed_run(2, 0, take_turns, &nr);
	EXPECT_EQ((uint32_t)nr_turns, turn.value);
}

TEST_F(race, no_wake_is_lost_between_a_task_and_a_thread)
{
	int nr = scaled(5000);

	mixed_run(1, 1, take_turns, &nr);
	EXPECT_EQ((uint32_t)nr_turns, turn.value);
}

TEST_F(race, no_wake_is_lost_between_two_threads)
{
	int nr = scaled(5000);

	mixed_run(0, 2, take_turns, &nr);
	EXPECT_EQ((uint32_t)nr_turns, turn.value);
}

TEST_HARNESS_MAIN
