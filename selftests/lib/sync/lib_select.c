/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Select: one of several cases is done, and no other is touched.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "sync/chan.h"

#include <limits.h>

RT_FIXTURE(select)

#define NR_CHANS	4

static struct pl_chan *chans[NR_CHANS];
static atomic_int nr_waiting, nr_back;

static void open_chans(size_t capacity)
{
	int i;

	for (i = 0; i < NR_CHANS; i++)
		ASSERT_EQ(0, pl_chan_create(&chans[i], capacity));
}

/* No select is listed any more. */
static void destroy_chans(void)
{
	int i;

	for (i = 0; i < NR_CHANS; i++)
		EXPECT_EQ(0, pl_chan_destroy(chans[i]));
}

static int nr_listed(struct pl_chan *ch, enum pl_chan_op op)
{
	struct pl_chan_case *c;
	int nr = 0;

	pl__lock(&ch->lock);
	for (c = ch->waiting[op].first; c; c = pl__chan_waiting(c)->next)
		nr++;
	pl__unlock(&ch->lock);
	return nr;
}

/* ---- what it says ---- */

static void choose(void *arg)
{
	struct pl_chan_case cases[] = {
		PL_CHAN_CASE_RECV(NULL),
		PL_CHAN_CASE_RECV(chans[2]),
		PL_CHAN_CASE_SEND(chans[1], &cases[0]),
		PL_CHAN_CASE_SEND(chans[0], &cases[1]),
	};
	void *item = NULL;

	/* Only the last is ready: the others' channels are full or empty. */
	EXPECT_EQ(0, pl_chan_send(chans[1], NULL));
	EXPECT_EQ(3, pl_chan_select(cases, 4, 0));
	EXPECT_EQ(0, cases[3].result);
	EXPECT_EQ(-ETIMEDOUT, pl_chan_select(cases, 4, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_chan_select(cases, 4, in_ms(1)));
	EXPECT_EQ(0, pl_chan_tryrecv(chans[0], &item));
	EXPECT_EQ(&cases[1], item);
	EXPECT_EQ(-EAGAIN, pl_chan_tryrecv(chans[0], &item));
	EXPECT_EQ(0, pl_chan_send(chans[0], NULL));
	EXPECT_EQ(0, pl_chan_send(chans[2], &item));
	EXPECT_EQ(1, pl_chan_select(cases, 4, PL_FOREVER));
	EXPECT_EQ(0, cases[1].result);
	EXPECT_EQ(&item, cases[1].item);
	EXPECT_EQ(0, pl_chan_tryrecv(chans[0], NULL));
	EXPECT_EQ(0, pl_chan_tryrecv(chans[1], NULL));
}

TEST_F(select, ready_case_is_done)
{
	int cls;

	open_chans(1);
	choose(NULL);
	for (cls = 0; cls <= PL_STACK_WORKER; cls++)
		run_as(cls, choose, NULL);
	destroy_chans();
}

static void select_nothing(void *arg)
{
	struct pl_chan_case none[2] = {
		PL_CHAN_CASE_RECV(NULL), PL_CHAN_CASE_SEND(NULL, arg),
	};
	uint64_t deadline = in_ms(1);

	EXPECT_EQ(-ETIMEDOUT, pl_chan_select(NULL, 0, 0));
	EXPECT_EQ(-ETIMEDOUT, pl_chan_select(NULL, 0, deadline));
	EXPECT_LE(deadline, pl_now());
	EXPECT_EQ(-ETIMEDOUT, pl_chan_select(none, 2, in_ms(1)));
	EXPECT_EQ(-EINVAL, pl_chan_select(NULL, 1, 0));
	EXPECT_EQ(-EINVAL, pl_chan_select(none, SIZE_MAX, 0));
	none[1].op = 2;
	EXPECT_EQ(-EINVAL, pl_chan_select(none, 2, 0));
}

TEST_F(select, select_without_channels_waits)
{
	select_nothing(NULL);
	run_in_task(select_nothing, NULL);
}

TEST_F(select, closed_channel_is_reported_by_its_case)
{
	struct pl_chan_case cases[] = {
		PL_CHAN_CASE_RECV(chans[0]), PL_CHAN_CASE_RECV(chans[0]),
	};

	open_chans(1);
	cases[0].ch = chans[0];
	cases[0].item = cases[1].item = cases;
	cases[1].ch = chans[1];
	EXPECT_EQ(0, pl_chan_close(chans[1]));
	EXPECT_EQ(1, pl_chan_select(cases, 2, PL_FOREVER));
	EXPECT_EQ(-EPIPE, cases[1].result);
	EXPECT_NULL(cases[1].item);
	EXPECT_EQ(cases, cases[0].item);
	cases[1].op = PL_CHAN_SEND;
	EXPECT_EQ(1, pl_chan_select(cases, 2, PL_FOREVER));
	EXPECT_EQ(-EPIPE, cases[1].result);
	destroy_chans();
}

TEST_F(select, each_ready_case_is_chosen_at_times)
{
	enum { NR = 4000 };
	struct pl_chan_case cases[6] = { { .ch = NULL } };
	int nr_chosen[6] = { 0 }, i, chosen;

	open_chans(1);
	/* Ready are 1, 3 and 4: two of one channel, and one of another. */
	for (i = 0; i < 6; i++)
		cases[i].ch = chans[i % 3];
	cases[3].ch = cases[4].ch = chans[3];
	EXPECT_EQ(0, pl_chan_send(chans[3], NULL));
	for (i = 0; i < NR; i++) {
		EXPECT_EQ(0, pl_chan_trysend(chans[1], NULL));
		chosen = pl_chan_select(cases, 6, 0);
		ASSERT_LE(0, chosen);
		nr_chosen[chosen]++;
		EXPECT_EQ(0, pl_chan_trysend(cases[chosen].ch, NULL));
		EXPECT_EQ(0, pl_chan_tryrecv(chans[1], NULL));
	}
	EXPECT_EQ(NR, nr_chosen[1] + nr_chosen[3] + nr_chosen[4]);
	/* A third of them, by more than ten deviations. */
	for (i = 1; i < 5; i += i == 1 ? 2 : 1) {
		EXPECT_LT(NR / 4, nr_chosen[i]);
		EXPECT_GT(NR * 5 / 12, nr_chosen[i]);
	}
	EXPECT_EQ(0, pl_chan_tryrecv(chans[3], NULL));
	destroy_chans();
}

/* ---- waiting ---- */

static void select_all(struct pl_chan_case *cases, enum pl_chan_op op)
{
	int i;

	for (i = 0; i < NR_CHANS; i++) {
		cases[i].ch = chans[i];
		cases[i].op = op;
		cases[i].item = &chans[i];
	}
}

static void recv_from_any(void *arg)
{
	struct pl_chan_case cases[NR_CHANS];
	int chosen;

	select_all(cases, PL_CHAN_RECV);
	chosen = pl_chan_select(cases, NR_CHANS, PL_FOREVER);
	ASSERT_LE(0, chosen);
	EXPECT_EQ(0, cases[chosen].result);
	EXPECT_EQ(arg, cases[chosen].item);
	EXPECT_EQ(chans[chosen], cases[chosen].ch);
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(select, chosen_case_unlists_the_others)
{
	int i, k, cls;

	open_chans(0);
	for (i = 0; i < 4 * NR_CHANS; i++) {
		cls = i / NR_CHANS;
		spawn_as(cls, recv_from_any, &chans[i % NR_CHANS]);
		for (k = 0; k < NR_CHANS; k++)
			ASSERT_TRUE(UNTIL(nr_listed(chans[k], PL_CHAN_RECV)));
		EXPECT_EQ(0, pl_chan_trysend(chans[i % NR_CHANS],
					     &chans[i % NR_CHANS]));
		EXPECT_EQ(-EAGAIN, pl_chan_trysend(chans[(i + 1) % NR_CHANS],
						   &chans[0]));
		ASSERT_TRUE(UNTIL(nr_back == i + 1));
		for (k = 0; k < NR_CHANS; k++)
			EXPECT_EQ(0, nr_listed(chans[k], PL_CHAN_RECV));
	}
	destroy_chans();
}

static void select_closing(void *arg)
{
	struct pl_chan_case cases[2 * NR_CHANS];
	int chosen;

	select_all(cases, PL_CHAN_RECV);
	select_all(cases + NR_CHANS, PL_CHAN_SEND);
	/* Whether selects meet one another is no matter of this test. */
	chosen = pl_chan_select(cases + (nr_waiting++ & 1 ? NR_CHANS : 0),
				NR_CHANS, PL_FOREVER);
	ASSERT_LE(0, chosen);
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(select, close_releases_each_select_by_one_case)
{
	static struct mixed m;
	int i;

	open_chans(0);
	mixed_start(&m, 20, 4, select_closing, NULL);
	ASSERT_TRUE(UNTIL(nr_waiting == 24));
	for (i = 0; i < NR_CHANS; i++)
		EXPECT_EQ(0, pl_chan_close(chans[i]));
	mixed_join(&m);
	EXPECT_EQ(24, nr_back);
	destroy_chans();
}

/* ---- many at a time ---- */

static atomic_int nr_sent;

/* Done on one channel, it does not touch that again: it is gone. */
static void select_on_doomed(void *arg)
{
	struct pl_chan_case cases[] = {
		PL_CHAN_CASE_RECV(arg), PL_CHAN_CASE_RECV(chans[0]),
		PL_CHAN_CASE_SEND(arg, &nr_back), PL_CHAN_CASE_RECV(arg),
		PL_CHAN_CASE_SEND(arg, &nr_sent),
	};
	int chosen = pl_chan_select(cases, 5, pl_now() + stuck_ns());

	EXPECT_TRUE(chosen == 0 || (chosen >= 2 && chosen <= 4));
	atomic_fetch_add(&nr_back, 1);
}

TEST_F(select, released_select_leaves_a_destroyed_channel)
{
	int i, nr = scaled(4000), ret;
	struct pl_chan *ch;
	pl_task_t t;

	open_chans(0);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, pl_chan_create(&ch, 0));
		t = spawn_as(i % 4, select_on_doomed, ch);
		if (i % 3 == 0)
			ret = pl_chan_send(ch, &i);
		else if (i % 3 == 1)
			ret = pl_chan_recv(ch, NULL);
		else
			ret = UNTIL(nr_listed(ch, PL_CHAN_SEND)) ?
			      pl_chan_close(ch) : -ETIMEDOUT;
		EXPECT_EQ(0, ret);
		EXPECT_EQ(0, pl_chan_destroy(ch));
		join(t);
	}
	EXPECT_EQ(nr, nr_back);
	destroy_chans();
}

TEST_F(select, select_takes_thousands_of_cases)
{
	enum { NR = 3000 };
	static struct pl_chan_case cases[NR];
	static struct pl_chan *many[NR];
	int i;

	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, pl_chan_create(&many[i], 1));
		cases[(i * 7) % NR].ch = many[i];
	}
	EXPECT_EQ(-ETIMEDOUT, pl_chan_select(cases, NR, in_ms(1)));
	for (i = 0; i < 20; i++) {
		EXPECT_EQ(0, pl_chan_send(cases[i * 149].ch, &cases[i]));
		EXPECT_EQ(i * 149, pl_chan_select(cases, NR, PL_FOREVER));
		EXPECT_EQ(&cases[i], cases[i * 149].item);
	}
	for (i = 0; i < NR; i++)
		EXPECT_EQ(0, pl_chan_destroy(many[i]));
}

static struct pl_chan *left_chan;

static void select_two(void *arg)
{
	struct pl_chan_case cases[] = {
		PL_CHAN_CASE_RECV(chans[0]), PL_CHAN_CASE_RECV(left_chan),
	};

	EXPECT_EQ(0, pl_chan_select(cases, 2, PL_FOREVER));
}

/* The select does not run before the channel that it leaves is gone. */
static void destroy_what_is_left(void *arg)
{
	static char junk[sizeof(struct pl_chan)];
	pl_task_t t;
	void *reused;

	ASSERT_EQ(0, pl_chan_create(&left_chan, 0));
	t = spawn(select_two, NULL);
	while (nr_listed(left_chan, PL_CHAN_RECV) != 1)
		pl_yield();
	EXPECT_EQ(0, pl_chan_send(chans[0], NULL));
	EXPECT_EQ(0, pl_chan_close(left_chan));
	EXPECT_EQ(0, pl_chan_destroy(left_chan));
	/* Where it was freed, what is now there looks as if it were locked. */
	reused = malloc(sizeof(struct pl_chan));
	memset(junk, 1, sizeof(junk));
	memcpy(reused, junk, sizeof(junk));
	join(t);
	EXPECT_EQ(0, memcmp(reused, junk, sizeof(junk)));
	free(reused);
}

TEST_F(select, select_served_elsewhere_leaves_a_destroyed_channel)
{
	start_with(1, 1);
	open_chans(0);
	run_in_task(destroy_what_is_left, NULL);
	destroy_chans();
}

TEST_HARNESS_MAIN
