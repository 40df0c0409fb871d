/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Duels: rounds in which a waiter waits while others strike, each once and at
 * about the same time.  They meet before and after, so that what is looked at
 * between two rounds has all happened.  rt.h is included before this.
 */
#ifndef SELFTESTS_RACE_ROUNDS_H
#define SELFTESTS_RACE_ROUNDS_H

#define DUEL_NS		80000	/* within which a round's strikes fall */

struct duel {
	int		nr_rounds;
	pl_task_t	waiter;
	int		nr_strikers;
	atomic_int	begun, struck;	/* rounds; strikes in this one */
	atomic_int	nr_by[5];	/* how the waits ended */
};

struct striker {
	struct duel	*duel;
	void		(*strike)(struct duel *d);
	uint64_t	seed;
};

enum { BY_WAKE, BY_DEADLINE, BY_INTERRUPT, BY_CANCEL, BY_NONE };

static inline int reason_of(int ret)
{
	switch (ret) {
	case -ETIMEDOUT:
		return BY_DEADLINE;
	case -EINTR:
		return BY_INTERRUPT;
	case -ECANCELED:
		return BY_CANCEL;
	}
	return ret < 0 ? BY_NONE : BY_WAKE;
}

/* By the waiter, which is alone before it begins and once it has ended. */
static inline void race_rounds_begin(struct duel *d, int nth)
{
	atomic_store(&d->struck, 0);
	atomic_store(&d->begun, nth);
}

/* @ret is how its wait ended; the interrupt of a round is never lost. */
static inline void race_rounds_end(struct duel *d, int ret)
{
	ASSERT_TRUE(UNTIL(d->struck == d->nr_strikers));
	atomic_fetch_add(&d->nr_by[reason_of(ret)], 1);
	EXPECT_EQ(ret == -EINTR ? 0 : -EINTR, pl_sleep_until(0));
}

static inline void duel_strike(void *arg)
{
	struct striker *s = arg;
	struct duel *d = s->duel;
	int i;

	for (i = 1; i <= d->nr_rounds; i++) {
		ASSERT_TRUE(UNTIL(d->begun >= i));
		spin_ns(next_random(&s->seed) % DUEL_NS);
		s->strike(d);
		atomic_fetch_add(&d->struck, 1);
		ASSERT_TRUE(UNTIL(d->struck == d->nr_strikers ||
				  d->begun > i));
	}
}

static inline void *duel_thread(void *arg)
{
	duel_strike(arg);
	return NULL;
}

static inline void strike_interrupt(struct duel *d)
{
	EXPECT_EQ(0, pl_interrupt(d->waiter));
}

/*
 * @waiter(duel) is a task on stack @cls; the strikers are an interrupter and
 * those in @strikes, ended by NULL, by turns in threads and tasks.
 */
static inline void run_race_rounds(uint32_t cls, void (*waiter)(void *duel),
				   void (*const *strikes)(struct duel *d))
{
	static struct duel d;
	static struct striker s[4];
	pthread_t thread[4];
	pl_task_t task[4];
	int i, nr = 1;

	memset(&d, 0, sizeof(d));
	s[0] = (struct striker){ &d, strike_interrupt, 7777 };
	for (; strikes[nr - 1]; nr++)
		s[nr] = (struct striker){ &d, strikes[nr - 1],
					  123457U * (uint32_t)nr };
	d.nr_rounds = scaled(1000);
	d.nr_strikers = nr;
	d.waiter = spawn_as(cls, waiter, &d);
	for (i = 0; i < nr; i++)
		if (i % 2)
			ASSERT_EQ(0, pthread_create(&thread[i], NULL,
						    duel_thread, &s[i]));
		else
			task[i] = spawn(duel_strike, &s[i]);
	join(d.waiter);
	for (i = 0; i < nr; i++)
		if (i % 2)
			pthread_join(thread[i], NULL);
		else
			join(task[i]);
	EXPECT_EQ(0, d.nr_by[BY_NONE]);
	EXPECT_EQ(0, d.nr_by[BY_CANCEL]);
	TH_LOG("let go %d timed out %d interrupted %d", d.nr_by[BY_WAKE],
	       d.nr_by[BY_DEADLINE], d.nr_by[BY_INTERRUPT]);
}

static inline uint64_t duel_deadline(uint64_t *seed)
{
	return pl_now() + next_random(seed) % DUEL_NS;
}

#endif /* SELFTESTS_RACE_ROUNDS_H */
