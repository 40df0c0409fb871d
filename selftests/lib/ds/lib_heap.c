// SPDX-License-Identifier: GPL-2.0-only
/*
 * heap: the earliest comes first, and room that was reserved is there.
 */
#include "kselftest_harness.h"
#include "lib.h"
#include "ds/heap.h"

#define NR	20000

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The pointers point at the deadlines. */
static void check_sorting(struct __test_metadata *_metadata, uint64_t *d,
			  size_t nr)
{
	struct pl__heap h = { 0 };
	uint64_t *seen, *p;
	size_t i;

	ASSERT_TRUE(pl__heap_reserve(&h, (uint32_t)nr));
	seen = calloc(nr, sizeof(*seen));
	ASSERT_NE(NULL, seen);
	for (i = 0; i < nr; i++)
		pl__heap_push(&h, d[i], &d[i]);
	for (i = 0; i < nr; i++) {
		uint64_t deadline = pl__heap_deadline(&h);

		p = pl__heap_pop(&h);
		ASSERT_NE(NULL, p);
		ASSERT_EQ(deadline, *p);
		seen[i] = *p;
	}
	EXPECT_EQ(NULL, pl__heap_pop(&h));
	EXPECT_EQ(UINT64_MAX, pl__heap_deadline(&h));
	qsort(d, nr, sizeof(*d), compare);
	EXPECT_EQ(0, memcmp(d, seen, nr * sizeof(*d)));
	free(seen);
	pl__heap_fini(&h);
}

TEST(empty_heap_has_no_deadline)
{
	struct pl__heap h = { 0 };

	EXPECT_EQ(UINT64_MAX, pl__heap_deadline(&h));
	EXPECT_EQ(NULL, pl__heap_pop(&h));
	pl__heap_fini(&h);
}

TEST(earliest_deadline_comes_first)
{
	static uint64_t d[NR];
	uint64_t rnd = 7;
	size_t i, nr;

	for (nr = 1; nr < 70; nr++) {
		for (i = 0; i < nr; i++)
			d[i] = next_random(&rnd) % 50;
		check_sorting(_metadata, d, nr);
	}
	for (i = 0; i < NR; i++)
		d[i] = next_random(&rnd);
	check_sorting(_metadata, d, NR);
	check_sorting(_metadata, d, NR);	/* sorted now */
	for (i = 0; i < NR; i++)
		d[i] = NR - i;
	check_sorting(_metadata, d, NR);
	for (i = 0; i < NR; i++)
		d[i] = i % 3 ? UINT64_MAX : 0;
	check_sorting(_metadata, d, NR);
}

/* Against counting how many of each small deadline are in it. */
TEST(pushes_and_pops_may_alternate)
{
	uint32_t count[100] = { 0 };
	struct pl__heap h = { 0 };
	uint64_t rnd = 3, want;
	static uint64_t d[100];
	uint64_t *p;
	int i;

	ASSERT_TRUE(pl__heap_reserve(&h, 1000));
	for (i = 0; i < 100; i++)
		d[i] = (uint64_t)i;
	for (i = 0; i < 200000; i++) {
		if (h.nr < 1000 && next_random(&rnd) % 100 < 52) {
			want = next_random(&rnd) % 100;
			count[want]++;
			pl__heap_push(&h, want, &d[want]);
			continue;
		}
		for (want = 0; want < 100 && !count[want]; want++)
			;
		p = pl__heap_pop(&h);
		if (want == 100) {
			ASSERT_EQ(NULL, p);
			continue;
		}
		ASSERT_NE(NULL, p);
		ASSERT_EQ(want, *p);
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

TEST_HARNESS_MAIN
