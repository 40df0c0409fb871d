// SPDX-License-Identifier: GPL-2.0-only
/*
 * inbox: what any thread pushes is taken once, complete, in order.
 */
#include "kselftest_harness.h"
#include "lib.h"
#include "ds/mpsc.h"

#define NR_PUSHERS	3
#define NR_TAKERS	2

struct letter {
	struct pl__link		link;
	uint32_t		pusher;		/* plain: TSan looks on */
	uint32_t		nth;
	_Atomic uint32_t	taken;
};

TEST(newest_entry_comes_first)
{
	struct pl__inbox i = { NULL };
	struct pl__link a, b, c;

	EXPECT_TRUE(pl__inbox_empty(&i));
	EXPECT_EQ(NULL, pl__inbox_take(&i));
	pl__inbox_push(&i, &a);
	pl__inbox_push(&i, &b);
	pl__inbox_push(&i, &c);
	EXPECT_FALSE(pl__inbox_empty(&i));
	EXPECT_EQ(&c, pl__inbox_take(&i));
	EXPECT_EQ(&b, c.next);
	EXPECT_EQ(&a, b.next);
	EXPECT_EQ(NULL, a.next);
	EXPECT_TRUE(pl__inbox_empty(&i));
	EXPECT_EQ(NULL, pl__inbox_take(&i));
}

TEST(push_tells_whether_the_inbox_was_empty)
{
	struct pl__inbox i = { NULL };
	struct pl__link a, b;

	EXPECT_TRUE(pl__inbox_push(&i, &a));
	EXPECT_FALSE(pl__inbox_push(&i, &b));
	EXPECT_EQ(&b, pl__inbox_take(&i));
	EXPECT_TRUE(pl__inbox_push(&i, &a));
}

TEST(chain_keeps_its_order)
{
	struct pl__inbox i = { NULL };
	struct pl__link a, b, c, d;

	c.next = &b;
	EXPECT_TRUE(pl__inbox_push(&i, &a));
	EXPECT_FALSE(pl__inbox_push_list(&i, &c, &b));
	EXPECT_FALSE(pl__inbox_push(&i, &d));
	EXPECT_EQ(&d, pl__inbox_take(&i));
	EXPECT_EQ(&c, d.next);
	EXPECT_EQ(&b, c.next);
	EXPECT_EQ(&a, b.next);
	EXPECT_EQ(NULL, a.next);
}

struct post {
	struct pl__inbox	inbox;
	struct letter		*letters;
	uint32_t		nr;		/* a pusher */
	_Atomic uint32_t	pushers;	/* still at it */
	_Atomic uint64_t	nr_empty;	/* pushes that found it empty */
	_Atomic uint64_t	nr_takes;	/* that found something */
	_Atomic uint64_t	disordered;
};

static void pusher(struct post *p, uint32_t nth)
{
	struct letter *l = p->letters + (size_t)nth * p->nr;
	uint32_t i, k;

	for (i = 0; i < p->nr; i += k) {
		/* Now one, now a chain of some. */
		for (k = 0; k < 1 + i % 3 && i + k < p->nr; k++) {
			l[i + k].pusher = nth;
			l[i + k].nth = i + k;
			if (k)
				l[i + k].link.next = &l[i + k - 1].link;
		}
		if (pl__inbox_push_list(&p->inbox, &l[i + k - 1].link,
					&l[i].link))
			p->nr_empty++;
	}
	p->pushers--;
}

/* In one taking, what a pusher pushed later stands before. */
static void taker(struct post *p)
{
	uint32_t before[NR_PUSHERS];
	struct pl__link *link, *next;
	struct letter *l;
	bool over;

	do {
		over = !p->pushers;
		link = pl__inbox_take(&p->inbox);
		p->nr_takes += !!link;
		memset(before, 0xff, sizeof(before));
		for (; link; link = next) {
			next = link->next;
			l = container_of(link, struct letter, link);
			if (l->nth >= before[l->pusher])
				p->disordered++;
			before[l->pusher] = l->nth;
			l->taken++;
		}
	} while (!over);
}

static void push_or_take(unsigned int nth, void *arg)
{
	if (nth < NR_PUSHERS)
		pusher(arg, nth);
	else
		taker(arg);
}

TEST_REAL(concurrent_pushes_are_taken_once_in_order,
	  "it spins on a variable, without a call")
TEST(concurrent_pushes_are_taken_once_in_order)
{
	struct post p = { .nr = ROUNDS(500000), .pushers = NR_PUSHERS };
	size_t i, once = 0;

	p.letters = calloc((size_t)NR_PUSHERS * p.nr, sizeof(*p.letters));
	ASSERT_NE(NULL, p.letters);
	team_run(NR_PUSHERS + NR_TAKERS, push_or_take, &p);

	for (i = 0; i < (size_t)NR_PUSHERS * p.nr; i++)
		once += p.letters[i].taken == 1;
	EXPECT_EQ((size_t)NR_PUSHERS * p.nr, once);
	EXPECT_EQ(0, p.disordered);
	EXPECT_TRUE(pl__inbox_empty(&p.inbox));
	/* To each taking belongs the one push that began it. */
	EXPECT_EQ(p.nr_empty, p.nr_takes);
	free(p.letters);
}

TEST_HARNESS_MAIN
