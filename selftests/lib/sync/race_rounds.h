/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rounds of a race: in each, a waiter waits while strikers strike, each once
 * and at about the same time.  They meet before and after, so that between two
 * rounds all strikes have happened.  rt.h is included before this.
 */
#ifndef SELFTESTS_RACE_ROUNDS_H
#define SELFTESTS_RACE_ROUNDS_H

#include "wait_end.h"

#define RACE_NS		80000	/* within which a round's strikes fall */

struct race {
	atomic_int	nr_rounds;	/* fewer if they take long */
	uint64_t	last_ns;	/* then the last one begins */
	pl_task_t	waiter;
	int		nr_strikers;
	atomic_int	begun, struck;	/* rounds; strikes in this one */
	atomic_int	nr_by[NR_WAIT_ENDS];	/* how the waits ended */
};

struct striker {
	struct race	*race;
	void		(*strike)(struct race *r);
	uint64_t	seed;
};

/*
 * By the waiter: no striker runs before a round begins or once it has ended.
 * Each striker waits for a processor in each round, and where other programs
 * compute the rounds together may take longer than a test has.
 */
static inline void race_rounds_begin(struct race *r, int nth)
{
	if (pl_now() >= r->last_ns)
		r->nr_rounds = nth;
	atomic_store(&r->struck, 0);
	atomic_store(&r->begun, nth);
}

/* @ret is how its wait ended; the interrupt of a round is never lost. */
static inline void race_rounds_end(struct race *r, int ret)
{
	ASSERT_TRUE(UNTIL(r->struck == r->nr_strikers));
	atomic_fetch_add(&r->nr_by[wait_end_of(ret)], 1);
	EXPECT_EQ(ret == -EINTR ? 0 : -EINTR, pl_sleep_until(0));
}

static inline void race_strike(void *arg)
{
	struct striker *s = arg;
	struct race *r = s->race;
	int i;

	for (i = 1; i <= r->nr_rounds; i++) {
		ASSERT_TRUE(UNTIL(r->begun >= i));
		spin_ns(next_random(&s->seed) % RACE_NS);
		s->strike(r);
		atomic_fetch_add(&r->struck, 1);
		ASSERT_TRUE(UNTIL(r->struck == r->nr_strikers ||
				  r->begun > i));
	}
}

static inline void *race_thread(void *arg)
{
	race_strike(arg);
	return NULL;
}

static inline void strike_interrupt(struct race *r)
{
	EXPECT_EQ(0, pl_interrupt(r->waiter));
}

/*
 * @waiter(race) is a task on stack @cls; the strikers are an interrupter and
 * those in @strikes, ended by NULL, in tasks and threads by turns.
 */
static inline void run_race_rounds(uint32_t cls, void (*waiter)(void *race),
				   void (*const *strikes)(struct race *r))
{
	static struct race r;
	static struct striker s[4];
	pthread_t thread[4];
	pl_task_t task[4];
	int i, nr = 1;

	memset(&r, 0, sizeof(r));
	s[0] = (struct striker){ &r, strike_interrupt, 7777 };
	for (; strikes[nr - 1]; nr++)
		s[nr] = (struct striker){ &r, strikes[nr - 1],
					  123457U * (uint32_t)nr };
	r.nr_rounds = scaled(1000);
	r.last_ns = pl_now() + stuck_ns() / 2;
	r.nr_strikers = nr;
	r.waiter = spawn_as(cls, waiter, &r);
	for (i = 0; i < nr; i++)
		if (i % 2)
			ASSERT_EQ(0, pthread_create(&thread[i], NULL,
						    race_thread, &s[i]));
		else
			task[i] = spawn(race_strike, &s[i]);
	join(r.waiter);
	for (i = 0; i < nr; i++)
		if (i % 2)
			pthread_join(thread[i], NULL);
		else
			join(task[i]);
	EXPECT_EQ(0, r.nr_by[BY_NONE]);
	EXPECT_EQ(0, r.nr_by[BY_CANCEL]);
	EXPECT_EQ(r.nr_rounds, r.nr_by[BY_WAKE] + r.nr_by[BY_DEADLINE] +
			       r.nr_by[BY_INTERRUPT]);
	TH_LOG("woken %d timed out %d interrupted %d", r.nr_by[BY_WAKE],
	       r.nr_by[BY_DEADLINE], r.nr_by[BY_INTERRUPT]);
}

static inline uint64_t race_deadline(uint64_t *seed)
{
	return pl_now() + next_random(seed) % RACE_NS;
}

#endif /* SELFTESTS_RACE_ROUNDS_H */
