// SPDX-License-Identifier: GPL-2.0-only
/*
 * heap: the earliest comes first, and room that was reserved is there.
 * inbox: what any thread pushes is taken once, complete, in order.
 */
#include "kselftest_harness.h"
#include "lib.h"
#include "ds/heap.h"
#include "ds/mpsc.h"

/* ---- heap ---- */

/* Against counting how many of each deadline are in it; to and fro. */
TEST(pushes_and_pops_may_alternate)
{
	uint32_t count[100] = { 0 };
	struct pl__heap h = { 0 };
	uint64_t rnd = 3, want;
	static uint64_t d[100];
	uint64_t *p;
	int i;

	ASSERT_TRUE(pl__heap_reserve(&h, 1000));
	for (i = 0; i < 99; i++)
		d[i] = (uint64_t)i;
	d[99] = UINT64_MAX;
	for (i = 0; i < 200000; i++) {
		if (h.nr < 1000 &&
		    next_random(&rnd) % 100 < (i / 5000 % 2 ? 40 : 60)) {
			want = next_random(&rnd) % 100;
			count[want]++;
			pl__heap_push(&h, d[want], &d[want]);
			continue;
		}
		for (want = 0; want < 100 && !count[want]; want++)
			;
		ASSERT_EQ(want == 100 ? UINT64_MAX : d[want],
			  pl__heap_deadline(&h));
		p = pl__heap_pop(&h);
		ASSERT_EQ(want == 100 ? NULL : &d[want], p);
		if (p)
			count[want]--;
	}
	pl__heap_fini(&h);
}

static bool keep_odd(void *ptr, void *asked)
{
	++*(uint32_t *)asked;
	return *(uint64_t *)ptr % 2;
}

TEST(filter_visits_each_entry_once_and_keeps_order)
{
	uint64_t rnd = 5, last, *p;
	struct pl__heap h = { 0 };
	uint32_t nr, asked, left;
	static uint64_t d[500];

	for (nr = 0; nr <= 500; nr += 1 + nr / 5) {
		ASSERT_TRUE(pl__heap_reserve(&h, 500));
		left = asked = 0;
		for (uint32_t i = 0; i < nr; i++) {
			d[i] = next_random(&rnd) % 1000;
			left += d[i] % 2;
			pl__heap_push(&h, d[i], &d[i]);
		}
		pl__heap_filter(&h, keep_odd, &asked);
		EXPECT_EQ(nr, asked);
		EXPECT_EQ(left, h.nr);
		for (last = 0; left; left--) {
			p = pl__heap_pop(&h);
			ASSERT_NE(NULL, p);
			ASSERT_EQ(1, *p % 2);
			ASSERT_LE(last, *p);
			last = *p;
		}
		ASSERT_EQ(NULL, pl__heap_pop(&h));
	}
	pl__heap_fini(&h);
}

/* Reservers run ahead of the pusher; permits say how far it may go. */
struct growth {
	struct pl__heap		heap;
	_Atomic uint32_t	permits;
	_Atomic uint32_t	failed;
	uint32_t		nr;
};

static void reserve_or_push(unsigned int nth, void *arg)
{
	struct growth *g = arg;
	uint32_t i = 0;

	if (nth) {
		while ((i = load_relaxed(&g->permits)) < g->nr) {
			if (!pl__heap_reserve(&g->heap, i + 1))
				g->failed++;
			atomic_compare_exchange_strong(&g->permits, &i, i + 1);
		}
		return;
	}
	while (i < g->nr) {
		if (i < g->permits) {
			pl__heap_push(&g->heap, g->nr - i, g);
			i++;
		} else {
			/* The reservers may need this CPU. */
			sched_yield();
		}
	}
}

TEST(concurrent_reservations_are_safe)
{
	struct growth g = { .nr = 100000 };
	uint32_t i;

	team_run(3, reserve_or_push, &g);
	EXPECT_EQ(0, g.failed);
	for (i = 1; i <= g.nr; i++) {
		ASSERT_EQ(i, pl__heap_deadline(&g.heap));
		ASSERT_EQ(&g, pl__heap_pop(&g.heap));
	}
	pl__heap_fini(&g.heap);
}

TEST(reservation_without_memory_fails_and_changes_nothing)
{
	struct pl__heap h = { 0 };
	static int x;
	uint32_t i;

	ASSERT_TRUE(pl__heap_reserve(&h, 1000));
	for (i = 0; i < 1000; i++)
		pl__heap_push(&h, i, &x);
	EXPECT_FALSE(pl__heap_reserve(&h, UINT32_MAX));
	if (limit_memory(8 << 20)) {
		EXPECT_FALSE(pl__heap_reserve(&h, 4 << 20));
		EXPECT_TRUE(pl__heap_reserve(&h, 1001));
	}
	for (i = 0; i < 1000; i++) {
		EXPECT_EQ(i, pl__heap_deadline(&h));
		EXPECT_EQ(&x, pl__heap_pop(&h));
	}
	pl__heap_fini(&h);
}

/* ---- inbox ---- */

#define NR_PUSHERS	3
#define NR_TAKERS	2

struct letter {
	struct pl__link		link;
	uint32_t		pusher;		/* plain: TSan looks on */
	uint32_t		nth;
	_Atomic uint32_t	taken;
};

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
	EXPECT_FALSE(pl__inbox_empty(&i));
	EXPECT_EQ(&d, pl__inbox_take(&i));
	EXPECT_EQ(&c, d.next);
	EXPECT_EQ(&b, c.next);
	EXPECT_EQ(&a, b.next);
	EXPECT_EQ(NULL, a.next);
	EXPECT_TRUE(pl__inbox_empty(&i));
	EXPECT_EQ(NULL, pl__inbox_take(&i));
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
