// SPDX-License-Identifier: GPL-2.0-only
/*
 * No signal is lost. Wakers leave tokens and follow the protocol of the UAPI
 * header to the letter: no call for an empty lot. Parkers take tokens and
 * park for ever when they see none. In every round each waker leaves one token,
 * and the round ends when all are taken: so nothing later makes up for a
 * signal that was lost, and the test stands still and says so.
 *
 *	parker				waker
 *	s = seq
 *	take a token			leave a token
 *	PARK		[park-a]	seq += 2		[park-b]
 *					if (nr_parked)
 *					    WAKE
 *
 * Between the steps both sides dawdle for random times, since a race that is
 * merely run often proves little. MOD_LOST_SEED chooses other times; the
 * module has more of them when built with PARKLOT_INJECT=1.
 */
#include "kselftest_harness.h"

#include "mod.h"

#define MAX_THREADS	8
#define DAWDLE_NS	20000
#define STUCK_NS	(10 * NSEC_PER_SEC * time_factor())
#define MATCH_NS	(20 * NSEC_PER_SEC)	/* then the rounds end */
#define EDGE_NS		(8 * NSEC_PER_SEC)

struct match {
	struct space		*s;
	bool			is_skipping;	/* no call for an empty lot */
	bool			is_fused;	/* wakers call WAKE_PARK */
	uint32_t		lot;
	int			nr_wakers, nr_parkers, nr_rounds;
	pthread_barrier_t	round;
	uint64_t		end;
	atomic_int		tokens;		/* left, not taken */
	atomic_int		nr_left, nr_taken, nr_calls, nr_skipped;
	atomic_int		nr_woken;	/* counted by WAKE */
	atomic_int		nr_waking;	/* counted by PARK */
	atomic_int		is_late, is_stuck, is_over;
};

struct player {
	struct match		*match;
	uint64_t		random;		/* xorshift */
	pthread_t		thread;
};

FIXTURE(lost)
{
	struct space s;
	struct match match;
};

FIXTURE_SETUP(lost)
{
	SPACE_SETUP(&self->s, 4);
	self->match.s = &self->s;
	self->match.is_skipping = true;
	self->match.lot = 1;
}

FIXTURE_TEARDOWN(lost)
{
	EXPECT_EQ(0, nr_parked(&self->s, self->match.lot));
	space_close(&self->s);
}

/* Between two steps: no time in half of the cases, else up to DAWDLE_NS. */
static void dawdle(struct player *p)
{
	uint64_t end;

	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	if (p->random & 1)
		return;
	end = now_ns() + (p->random >> 1) % DAWDLE_NS;
	while (now_ns() < end)
		;
}

static bool token_take(struct match *m)
{
	int left = atomic_load(&m->tokens);

	while (left > 0)
		if (atomic_compare_exchange_weak(&m->tokens, &left, left - 1))
			return true;
	return false;
}

static void *parker_loop(void *arg)
{
	struct player *p = arg;
	struct match *m = p->match;
	uint32_t seq;
	int reason;

	while (!atomic_load(&m->is_over)) {
		seq = seq_read(m->s, m->lot);
		dawdle(p);
		if (token_take(m)) {
			atomic_fetch_add(&m->nr_taken, 1);
			continue;
		}
		if (seq & 1)
			break;
		dawdle(p);
		reason = dev_park(m->s->fd, m->lot, seq, PARKLOT_FOREVER);
		atomic_fetch_add(&m->nr_waking, reason == PARKLOT_WOKEN);
	}
	return NULL;
}

/*
 * A loss shows only as a very long time without progress. After a while the
 * waiter sleeps, since the thread that it waits for may need this processor.
 */
static void wait_taken(struct match *m)
{
	uint64_t end = now_ns() + STUCK_NS;
	int i;

	for (i = 0; atomic_load(&m->tokens) > 0; i++) {
		if (now_ns() > end)
			atomic_store(&m->is_stuck, 1);
		if (atomic_load(&m->is_stuck))
			return;
		if (i > 100)
			sleep_ns(20000);
	}
}

/* Wakes a sleeper and polls another lot, in the call under test. */
static int wake_fused(struct match *m)
{
	struct parklot_wake_entry entry = { .lot = m->lot, .nr = 1 };
	struct parklot_wake_park both = {
		.wake = {
			.entries = (uintptr_t)&entry, .nr_entries = 1,
			.limit = 1,
		},
		.park = { .pollfd = -1 },
	};

	dev_ioctl(m->s->fd, PARKLOT_IOC_WAKE_PARK, &both);
	return both.wake.woken;
}

static void signal_one(struct player *p)
{
	struct match *m = p->match;

	atomic_fetch_add(&m->nr_left, 1);
	atomic_fetch_add(&m->tokens, 1);
	dawdle(p);
	/* [park-b]: full barriers, pair with [park-a] in the module. */
	seq_signal(m->s, m->lot);
	atomic_thread_fence(memory_order_seq_cst);
	dawdle(p);
	if (m->is_skipping && !nr_parked(m->s, m->lot)) {
		atomic_fetch_add(&m->nr_skipped, 1);
		return;
	}
	dawdle(p);
	atomic_fetch_add(&m->nr_calls, 1);
	atomic_fetch_add(&m->nr_woken, m->is_fused ? wake_fused(m) :
				       dev_wake(m->s->fd, m->lot, 1));
}

/* With several parkers, or one processor, one is always parked. */
static bool must_skip(struct match *m)
{
	return m->is_skipping && m->nr_parkers == 1 &&
	       sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

/* Both paths were taken, otherwise the match proves little. */
static bool is_proof(struct match *m)
{
	return atomic_load(&m->nr_left) >= 100 && atomic_load(&m->nr_calls) &&
	       (!must_skip(m) || atomic_load(&m->nr_skipped));
}

static void *waker_loop(void *arg)
{
	struct player *p = arg;
	struct match *m = p->match;
	int i;

	for (i = 0; i < m->nr_rounds; i++) {
		pthread_barrier_wait(&m->round);
		if (atomic_load(&m->is_stuck) || atomic_load(&m->is_late))
			break;
		signal_one(p);
		/*
		 * One parker notifies the others, which look behind the next
		 * barrier.
		 */
		if (pthread_barrier_wait(&m->round) && now_ns() > m->end &&
		    is_proof(m))
			atomic_store(&m->is_late, 1);
		wait_taken(m);
	}
	return NULL;
}

static uint64_t seed(void)
{
	const char *env = getenv("MOD_LOST_SEED");

	return env ? strtoull(env, NULL, 0) : 1;
}

/* Stops the lot: each parker returns, even after an earlier failure. */
static void stop(struct match *m)
{
	atomic_store(&m->is_over, 1);
	__atomic_or_fetch(&m->s->words->lot[m->lot].seq, 1, __ATOMIC_SEQ_CST);
	atomic_fetch_add(&m->nr_woken, dev_wake(m->s->fd, m->lot, ~0U));
}

static void play(struct match *m, int nr_wakers, int nr_parkers, int nr_rounds)
{
	struct player player[MAX_THREADS] = {};
	int i, nr = nr_wakers + nr_parkers;

	m->nr_wakers = nr_wakers;
	m->nr_parkers = nr_parkers;
	m->nr_rounds = nr_rounds;
	m->end = now_ns() + MATCH_NS;
	pthread_barrier_init(&m->round, NULL, nr_wakers);
	for (i = 0; i < nr; i++) {
		player[i].match = m;
		player[i].random = (seed() + i) * 0x9e3779b97f4a7c15ULL | 1;
		pthread_create(&player[i].thread, NULL, i < nr_wakers ?
			       waker_loop : parker_loop, &player[i]);
	}
	for (i = 0; i < nr_wakers; i++)
		pthread_join(player[i].thread, NULL);
	stop(m);
	for (; i < nr; i++)
		pthread_join(player[i].thread, NULL);
}

/* Each token was taken in its round; each counted sleeper was woken. */
static void check(struct __test_metadata *_metadata, struct match *m)
{
	EXPECT_EQ(0, atomic_load(&m->is_stuck)) {
		TH_LOG("lost after %d of %d, %d calls, %d skipped",
		       atomic_load(&m->nr_taken), atomic_load(&m->nr_left),
		       atomic_load(&m->nr_calls), atomic_load(&m->nr_skipped));
	}
	EXPECT_EQ(atomic_load(&m->nr_left), atomic_load(&m->nr_taken));
	EXPECT_EQ(atomic_load(&m->nr_woken), atomic_load(&m->nr_waking));
	EXPECT_TRUE(is_proof(m)) {
		TH_LOG("%d left, %d calls, %d skipped",
		       atomic_load(&m->nr_left), atomic_load(&m->nr_calls),
		       atomic_load(&m->nr_skipped));
	}
}

TEST_F_TIMEOUT(lost, no_wake_is_lost_of_one_waker_to_one_parker, 120)
{
	play(&self->match, 1, 1, 20000);
	check(_metadata, &self->match);
}

TEST_F_TIMEOUT(lost, no_wake_is_lost_of_one_waker_to_three_parkers, 120)
{
	play(&self->match, 1, 3, 10000);
	check(_metadata, &self->match);
}

TEST_F_TIMEOUT(lost, no_wake_is_lost_of_three_wakers_to_one_parker, 120)
{
	play(&self->match, 3, 1, 5000);
	check(_metadata, &self->match);
}

TEST_F_TIMEOUT(lost, no_wake_is_lost_of_two_wakers_to_four_parkers, 120)
{
	play(&self->match, 2, 4, 5000);
	check(_metadata, &self->match);
}

/* The module's own check of the count, in WAKE. */
TEST_F_TIMEOUT(lost, no_wake_is_lost_if_each_signal_calls, 120)
{
	self->match.is_skipping = false;
	play(&self->match, 1, 1, 20000);
	check(_metadata, &self->match);
}

TEST_F_TIMEOUT(lost, no_wake_is_lost_of_wake_park, 120)
{
	self->match.is_fused = true;
	play(&self->match, 1, 2, 10000);
	check(_metadata, &self->match);
}

/*
 * One parker, and one waker that aims: it signals so long after the parker
 * began that the signal sometimes comes before nr_parked is raised and
 * sometimes after. There the two stores and the two loads of the protocol
 * coincide within a few ns, again and again; a missing barrier shows only
 * there.
 */
struct edge {
	struct space	*s;
	atomic_int	nr_rounds;		/* lowered on a slow machine */
	atomic_int	nr_begun, nr_ended;	/* the parker's rounds */
	atomic_int	delay;			/* the waker's; < 0: parker's */
	int		nr_calls, nr_skipped;
	bool		is_stuck;
};

/*
 * Reads the count for no result: the read takes the cache line from the
 * parker's processor, and the parker's store then waits in the store buffer.
 */
static void edge_look(struct edge *d)
{
	(void)__atomic_load_n(&d->s->counters->lot[1].nr_parked,
			      __ATOMIC_RELAXED);
}

static void *edge_parker(void *arg)
{
	struct edge *d = arg;
	int i, j;

	for (i = 0; i < atomic_load(&d->nr_rounds); i++) {
		atomic_store(&d->nr_begun, i + 1);
		for (j = atomic_load(&d->delay); j < 0; j++)
			edge_look(d);
		/* The wake of the last round may come late. */
		while (seq_read(d->s, 1) == 2U * i)
			dev_park(d->s->fd, 1, 2 * i, PARKLOT_FOREVER);
		atomic_store(&d->nr_ended, i + 1);
	}
	return NULL;
}

/* Returns false if the parker never got there. */
static bool edge_wait(struct edge *d, atomic_int *nr, int round)
{
	uint64_t end = 0;
	int i;

	for (i = 0; atomic_load(nr) != round; i++) {
		edge_look(d);
		if (i < 10000)
			continue;
		if (!end)
			end = now_ns() + STUCK_NS;
		if (now_ns() > end)
			return false;
		sleep_ns(20000);
	}
	return true;
}

static void edge_waker(struct edge *d)
{
	uint64_t end = now_ns() + EDGE_NS;
	int i, j, step;

	for (i = 0; i < atomic_load(&d->nr_rounds); i++) {
		if (!edge_wait(d, &d->nr_begun, i + 1))
			break;
		/* Until both paths were taken, however long that takes. */
		if (i % 64 == 0 && now_ns() > end && d->nr_calls &&
		    d->nr_skipped)
			atomic_store(&d->nr_rounds, i + 1);
		for (j = atomic_load(&d->delay); j > 0; j--)
			edge_look(d);
		/* [park-b], as above. */
		seq_signal(d->s, 1);
		step = 1 + i % 7;
		if (nr_parked(d->s, 1)) {
			dev_wake(d->s->fd, 1, 1);
			d->nr_calls++;
			step = -step;
		} else {
			d->nr_skipped++;
		}
		/* The delay stays bounded when a processor is descheduled. */
		if (abs(atomic_load(&d->delay) + step) < 20000)
			atomic_fetch_add(&d->delay, step);
		if (!edge_wait(d, &d->nr_ended, i + 1))
			break;
	}
	d->is_stuck = i < atomic_load(&d->nr_rounds);
}

TEST_TIMED(no_wake_is_lost_at_the_edge_of_sleep,
	   "both ends of a race must be seen")
TEST_F_TIMEOUT(lost, no_wake_is_lost_at_the_edge_of_sleep, 180)
{
	struct edge d = { .s = &self->s, .nr_rounds = 300000 };
	pthread_t thread;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "takes two processors");
	ASSERT_EQ(0, pthread_create(&thread, NULL, edge_parker, &d));
	edge_waker(&d);
	ASSERT_FALSE(d.is_stuck) {
		TH_LOG("lost in round %d, %d calls, %d skipped",
		       atomic_load(&d.nr_begun), d.nr_calls, d.nr_skipped);
	}
	pthread_join(thread, NULL);
	EXPECT_EQ(atomic_load(&d.nr_rounds), atomic_load(&d.nr_ended));
	EXPECT_LT(0, d.nr_calls);
	EXPECT_LT(0, d.nr_skipped);
}

TEST_HARNESS_MAIN
