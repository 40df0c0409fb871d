/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/park/lot: parking and waking, on each back end that there is.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "park/lot.h"
#include "base/sys.h"
#include "thread.h"

#include <linux/parklot.h>
#include <sys/syscall.h>

#define NR_LOTS		3
#define MAX_PARKERS	16

struct parker {
	struct pl__lots		*lots;
	struct pl__lot_entry	entry;
	uint32_t		lot, seq;
	int			nth;
	atomic_int		tid;
	atomic_int		reason;		/* -1: not back yet */
	pthread_t		thread;
};

static struct parker parker[MAX_PARKERS];
static atomic_int nr_ordered, nr_back, order[MAX_PARKERS];

FIXTURE(lot)
{
	struct pl__lots lots;
};

FIXTURE_VARIANT(lot)
{
	bool is_device;
};

FIXTURE_VARIANT_ADD(lot, futex) { .is_device = false };
FIXTURE_VARIANT_ADD(lot, device) { .is_device = true };

FIXTURE_SETUP(lot)
{
	rt_begin(_metadata);
	if (variant->is_device && access("/dev/parklot", R_OK | W_OK))
		SKIP(return, "no /dev/parklot");
	ASSERT_EQ(0, pl__lots_init(&self->lots, NR_LOTS, variant->is_device,
				   0));
}

FIXTURE_TEARDOWN(lot)
{
	pl__lots_fini(&self->lots);
}

static uint32_t nr_parked(struct pl__lots *lots, uint32_t lot)
{
	uint32_t nr = atomic_load(&lots->lot[lot].nr_parked);

	if (lots->counters)
		nr += __atomic_load_n(&lots->counters->lot[lot].nr_parked,
				      __ATOMIC_SEQ_CST);
	return nr;
}

static uint32_t nr_parked_in_all(struct pl__lots *lots)
{
	uint32_t i, nr = 0;

	for (i = 0; i < lots->nr; i++)
		nr += nr_parked(lots, i);
	return nr;
}

static void *park_thread(void *arg)
{
	struct parker *p = arg;

	p->tid = (int)syscall(SYS_gettid);
	p->reason = (int)pl__lot_park(p->lots, p->lot, &p->entry, UINT64_MAX,
				      p->seq);
	order[atomic_fetch_add(&nr_ordered, 1)] = p->nth;
	atomic_fetch_add(&nr_back, 1);
	return NULL;
}

static void start_parker(struct pl__lots *lots, int nth, uint32_t lot,
			 uint32_t seq)
{
	struct parker *p = &parker[nth];

	list_init(&p->entry.list);
	p->lots = lots;
	p->lot = lot;
	p->seq = seq;
	p->nth = nth;
	p->tid = 0;
	p->reason = -1;
	ASSERT_EQ(0, pthread_create(&p->thread, NULL, park_thread, p));
}

/*
 * Comes back once it is listed, and has compared seq, both of which is done
 * under a lock: the library's, or the kernel's, which then puts it to sleep.
 */
static void park_one(struct pl__lots *lots, int nth, uint32_t lot)
{
	uint32_t nr = nr_parked(lots, lot);

	start_parker(lots, nth, lot, pl__lot_peek(lots, lot));
	ASSERT_TRUE(UNTIL(nr_parked(lots, lot) == nr + 1));
	pl__lock(&lots->lot[lot].lock);
	pl__unlock(&lots->lot[lot].lock);
	ASSERT_TRUE(UNTIL(thread_is_asleep(parker[nth].tid)));
}

static void join_parkers(int nr)
{
	int i;

	ASSERT_TRUE(UNTIL(nr_back == nr));
	for (i = 0; i < nr; i++) {
		pthread_join(parker[i].thread, NULL);
		EXPECT_EQ(PL__LOT_WOKEN, parker[i].reason);
	}
}

/* ---- counts and order ---- */

TEST_F(lot, signal_without_sleepers_wakes_none)
{
	struct pl__lots *lots = &self->lots;
	uint32_t i, seq[NR_LOTS];

	for (i = 0; i < NR_LOTS; i++)
		seq[i] = pl__lot_peek(lots, i);
	EXPECT_EQ(0, pl__lots_signal(lots, 0, 1));
	EXPECT_EQ(0, pl__lots_signal(lots, 2, UINT32_MAX));
	for (i = 0; i < NR_LOTS; i++)
		EXPECT_EQ(seq[i] + 4, pl__lot_peek(lots, i));
	/* Nor did it enter the kernel to find out. */
	EXPECT_EQ(0, lots->nr_empty);
}

TEST_F(lot, signal_that_wakes_as_many_moves_no_sequence)
{
	struct pl__lots *lots = &self->lots;
	uint32_t seq[NR_LOTS];
	int i;

	for (i = 0; i < NR_LOTS; i++)
		seq[i] = pl__lot_peek(lots, (uint32_t)i);
	for (i = 0; i < 3; i++)
		park_one(lots, i, 1);
	EXPECT_EQ(1, pl__lots_signal(lots, 0, 1));
	EXPECT_EQ(1, pl__lots_signal(lots, 1, 1));
	for (i = 0; i < NR_LOTS; i++)
		EXPECT_EQ(seq[i], pl__lot_peek(lots, (uint32_t)i));
	EXPECT_EQ(1, pl__lots_signal(lots, 0, 2));
	for (i = 0; i < NR_LOTS; i++)
		EXPECT_EQ(seq[i] + 2, pl__lot_peek(lots, (uint32_t)i));
	join_parkers(3);
}

TEST_F(lot, park_with_another_sequence_does_not_sleep)
{
	struct pl__lots *lots = &self->lots;
	uint32_t seq = pl__lot_peek(lots, 1);

	start_parker(lots, 0, 1, seq + 2);
	pthread_join(parker[0].thread, NULL);
	EXPECT_EQ(PL__LOT_CHANGED, parker[0].reason);
	pl__lots_signal(lots, 0, 1);
	start_parker(lots, 1, 1, seq);
	pthread_join(parker[1].thread, NULL);
	EXPECT_EQ(PL__LOT_CHANGED, parker[1].reason);
	EXPECT_EQ(0, nr_parked_in_all(lots));
}

TEST_F(lot, signal_returns_the_number_woken)
{
	struct pl__lots *lots = &self->lots;
	int i;

	for (i = 0; i < 10; i++)
		park_one(lots, i, 0);
	EXPECT_EQ(1, pl__lots_signal(lots, 0, 1));
	EXPECT_EQ(9, nr_parked(lots, 0));
	EXPECT_EQ(3, pl__lots_signal(lots, 0, 3));
	EXPECT_EQ(6, nr_parked(lots, 0));
	EXPECT_EQ(0, pl__lots_signal(lots, 0, 0));
	EXPECT_EQ(6, pl__lots_signal(lots, 0, 100));
	EXPECT_EQ(0, nr_parked(lots, 0));
	EXPECT_EQ(0, pl__lots_signal(lots, 0, 100));
	join_parkers(10);
}

TEST_F(lot, last_parked_is_woken_first)
{
	struct pl__lots *lots = &self->lots;
	int i;

	for (i = 0; i < 10; i++)
		park_one(lots, i, 1);
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(1, pl__lots_signal(lots, 1, 1));
		ASSERT_TRUE(UNTIL(nr_back == i + 1));
		EXPECT_EQ(9 - i, order[i]);
	}
	join_parkers(10);
}

TEST_F(lot, signal_searches_the_lots_from_the_first)
{
	struct pl__lots *lots = &self->lots;
	int i;

	for (i = 0; i < 9; i++)
		park_one(lots, i, i % NR_LOTS);
	EXPECT_EQ(1, pl__lots_signal(lots, 1, 1));
	EXPECT_EQ(3, nr_parked(lots, 0));
	EXPECT_EQ(2, nr_parked(lots, 1));
	EXPECT_EQ(3, nr_parked(lots, 2));
	EXPECT_EQ(4, pl__lots_signal(lots, 1, 4));
	EXPECT_EQ(3, nr_parked(lots, 0));
	EXPECT_EQ(0, nr_parked(lots, 1));
	EXPECT_EQ(1, nr_parked(lots, 2));
	EXPECT_EQ(2, pl__lots_signal(lots, 2, 2));
	EXPECT_EQ(2, nr_parked(lots, 0));
	EXPECT_EQ(0, nr_parked(lots, 2));
	EXPECT_EQ(2, pl__lots_signal(lots, 1, 9));
	join_parkers(9);
}

TEST_F(lot, stop_wakes_all_and_refuses_parks)
{
	struct pl__lots *lots = &self->lots;
	uint32_t seq = pl__lot_peek(lots, 1);
	int i;

	for (i = 0; i < 9; i++)
		park_one(lots, i, i % NR_LOTS);
	for (i = 0; i < NR_LOTS; i++)
		EXPECT_FALSE(pl__lot_is_stopped(pl__lot_peek(lots, i)));
	pl__lots_stop(lots);
	join_parkers(9);
	for (i = 0; i < NR_LOTS; i++)
		EXPECT_TRUE(pl__lot_is_stopped(pl__lot_peek(lots, i)));
	start_parker(lots, 9, 1, seq);
	pthread_join(parker[9].thread, NULL);
	EXPECT_EQ(PL__LOT_CHANGED, parker[9].reason);
	pl__lots_signal(lots, 0, 1);
	EXPECT_TRUE(pl__lot_is_stopped(pl__lot_peek(lots, 0)));
}

TEST_F(lot, park_ends_at_its_deadline)
{
	struct pl__lots *lots = &self->lots;
	struct pl__lot_entry e = { 0 };
	uint32_t seq = pl__lot_peek(lots, 1);
	uint64_t then = pl__now_ns() + 5 * NSEC_PER_MSEC;

	list_init(&e.list);
	EXPECT_EQ(PL__LOT_LATE, pl__lot_park(lots, 1, &e, 0, seq));
	EXPECT_EQ(PL__LOT_LATE, pl__lot_park(lots, 1, &e, then, seq));
	EXPECT_LE(then, pl__now_ns());
	EXPECT_EQ(0, nr_parked(lots, 1));
	EXPECT_EQ(0, pl__lots_signal(lots, 1, 1));
	EXPECT_EQ(PL__LOT_CHANGED, pl__lot_park(lots, 1, &e, UINT64_MAX, seq));
}

/* ---- asleep in a ring ---- */

TEST_F(lot, sleeper_in_a_ring_is_woken_or_leaves)
{
	struct pl__lots *lots = &self->lots;
	struct pl__bell bell = { .eventfd = pl__eventfd() };
	struct pl__lot_entry e = { 0 };
	uint32_t seq = pl__lot_peek(lots, 2);
	uint64_t rung = 0;

	list_init(&e.list);
	ASSERT_LE(0, bell.eventfd);
	EXPECT_FALSE(pl__lot_list(lots, 2, &e, &bell, seq + 2));
	EXPECT_EQ(0, nr_parked(lots, 2));

	/* Leaves by itself: then no sleeper is there to be woken. */
	EXPECT_TRUE(pl__lot_list(lots, 2, &e, &bell, seq));
	EXPECT_EQ(1, nr_parked(lots, 2));
	EXPECT_TRUE(pl__lot_unlist(lots, 2, &e));
	EXPECT_EQ(0, nr_parked(lots, 2));
	EXPECT_FALSE(pl__parker_is_woken(&e.parker));
	EXPECT_EQ(0, pl__lots_signal(lots, 2, 1));

	/* Is woken: by its bell. */
	seq = pl__lot_peek(lots, 2);
	EXPECT_TRUE(pl__lot_list(lots, 2, &e, &bell, seq));
	EXPECT_EQ(1, pl__lots_signal(lots, 0, 5));
	EXPECT_FALSE(pl__lot_unlist(lots, 2, &e));
	EXPECT_TRUE(pl__parker_is_woken(&e.parker));
	EXPECT_EQ(8, pl__fd_read(bell.eventfd, &rung, 8));
	EXPECT_EQ(1, rung);
	pl__close(bell.eventfd);
}

TEST(readable_descriptor_ends_a_device_park)
{
	struct pl__lots lots;
	uint64_t one = 1;
	uint32_t seq;
	int fd;

	rt_begin(_metadata);
	if (access("/dev/parklot", R_OK | W_OK))
		SKIP(return, "no /dev/parklot");
	ASSERT_EQ(0, pl__lots_init(&lots, NR_LOTS, true, 0));
	ASSERT_TRUE(lots.can_poll);
	fd = pl__eventfd();
	ASSERT_LE(0, fd);
	seq = pl__lot_peek(&lots, 1);
	EXPECT_EQ(PL__LOT_LATE, pl__lot_park_polling(&lots, 1, fd,
						     pl__now_ns(), seq));
	EXPECT_EQ(PL__LOT_CHANGED, pl__lot_park_polling(&lots, 1, fd,
							UINT64_MAX, seq + 2));
	EXPECT_EQ(8, pl__fd_write(fd, &one, sizeof(one)));
	EXPECT_EQ(PL__LOT_POLLED, pl__lot_park_polling(&lots, 1, fd,
						       UINT64_MAX, seq));
	EXPECT_EQ(0, nr_parked(&lots, 1));
	pl__close(fd);
	pl__lots_fini(&lots);
}

/* ---- no lost wakeup ---- */

/*
 * Signallers leave tokens, one a signal; parkers take them, and park when they
 * see none.  A round ends when all are taken, so that nothing later makes up
 * for a signal that was lost.
 */
static atomic_int tokens, nr_taken, nr_woken, nr_late;
static atomic_uint nr_signalled;
static atomic_bool is_hasty;	/* parks with deadlines that nearly come */
static atomic_int nr_rounds;	/* fewer if they take long */
static uint64_t last_ns;		/* then the last one begins */

static bool consume_token(void)
{
	int n = atomic_load(&tokens);

	while (n > 0)
		if (atomic_compare_exchange_weak(&tokens, &n, n - 1))
			return true;
	return false;
}

static uint64_t soon(uint32_t nth)
{
	return is_hasty ? pl__now_ns() + nth % 16 * 5 * NSEC_PER_USEC :
			  UINT64_MAX;
}

static void *take_tokens(void *arg)
{
	struct parker *p = arg;
	uint32_t seq, nth;

	for (nth = 0;; nth++) {
		seq = pl__lot_peek(p->lots, p->lot);
		if (pl__lot_is_stopped(seq))
			break;
		if (consume_token()) {
			atomic_fetch_add(&nr_taken, 1);
			continue;
		}
		switch (pl__lot_park(p->lots, p->lot, &p->entry, soon(nth),
				     seq)) {
		case PL__LOT_WOKEN:
			atomic_fetch_add(&nr_woken, 1);
			break;
		case PL__LOT_LATE:
			atomic_fetch_add(&nr_late, 1);
			break;
		default:
			break;
		}
	}
	return NULL;
}

/*
 * A round needs both signallers: the first to begin the last one says so before
 * its token, without which the other does not come to the end of that round.
 */
static void *signal_rounds(void *arg)
{
	struct parker *s = arg;
	int i;

	for (i = 1; i <= nr_rounds; i++) {
		if (pl__now_ns() >= last_ns)
			nr_rounds = i;
		atomic_fetch_add(&tokens, 1);
		atomic_fetch_add(&nr_signalled,
				 pl__lots_signal(s->lots, i % NR_LOTS, 1));
		ASSERT_TRUE(UNTIL_BUSY(nr_taken >= 2 * i));
	}
	return NULL;
}

static void signal_and_park(struct pl__lots *lots, int nr_parkers, int nr)
{
	struct parker signaller[2];
	int i;

	nr_rounds = nr;
	last_ns = pl__now_ns() + stuck_ns() / 2;
	for (i = 0; i < nr_parkers; i++) {
		parker[i].lots = lots;
		parker[i].lot = i % NR_LOTS;
		list_init(&parker[i].entry.list);
		ASSERT_EQ(0, pthread_create(&parker[i].thread, NULL,
					    take_tokens, &parker[i]));
	}
	for (i = 0; i < 2; i++) {
		signaller[i].lots = lots;
		ASSERT_EQ(0, pthread_create(&signaller[i].thread, NULL,
					    signal_rounds, &signaller[i]));
	}
	for (i = 0; i < 2; i++)
		pthread_join(signaller[i].thread, NULL);

	EXPECT_EQ(2 * nr_rounds, nr_taken);
	is_hasty = false;
	ASSERT_TRUE(UNTIL(nr_parked_in_all(lots) == (uint32_t)nr_parkers));
	EXPECT_EQ(nr_signalled, (unsigned int)nr_woken);
	pl__lots_stop(lots);
	for (i = 0; i < nr_parkers; i++)
		pthread_join(parker[i].thread, NULL);
}

TEST_F(lot, no_signal_is_lost_for_one_parker)
{
	struct pl__lots *lots = &self->lots;

	signal_and_park(lots, 1, scaled(5000));
}

TEST_F(lot, no_signal_is_lost_for_many_parkers)
{
	struct pl__lots *lots = &self->lots;

	signal_and_park(lots, 5, scaled(3000));
}

TEST_TIMED(no_signal_is_lost_to_a_deadline, "both ends of a race must be seen")
TEST_F(lot, no_signal_is_lost_to_a_deadline)
{
	struct pl__lots *lots = &self->lots;

	is_hasty = true;
	signal_and_park(lots, 3, scaled(3000));
	EXPECT_LT(0, nr_late);
}

TEST_HARNESS_MAIN
