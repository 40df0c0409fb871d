// SPDX-License-Identifier: GPL-2.0-only
/*
 * deque: what is pushed is taken once, by the owner or by a thief.
 */
#include "kselftest_harness.h"
#include "lib.h"
#include "ds/deque.h"
#include "base/sys.h"

#include <sys/mman.h>

#define NR_THIEVES	3

/* Plain, so that TSan sees whether taking orders them. */
struct element {
	uint64_t	value;
};

struct race {
	struct pl__deque	deque;
	struct element		*elements;
	_Atomic uint8_t		*taken;
	size_t			nr;
	_Atomic uint64_t	bad;		/* wrong values seen */
	_Atomic bool		over;
	_Atomic uint64_t	noise __pl_cacheline;
};

static void race_init(struct __test_metadata *_metadata, struct race *r,
		      size_t nr)
{
	memset(r, 0, sizeof(*r));
	r->nr = nr;
	r->elements = calloc(nr, sizeof(*r->elements));
	r->taken = calloc(nr, sizeof(*r->taken));
	ASSERT_TRUE(r->elements && r->taken);
	ASSERT_EQ(0, pl__deque_init(&r->deque, 0));
}

static void race_check(struct __test_metadata *_metadata, struct race *r)
{
	size_t i, once = 0;

	for (i = 0; i < r->nr; i++)
		once += r->taken[i] == 1;
	EXPECT_EQ(r->nr, once);
	EXPECT_EQ(0, r->bad);
	EXPECT_TRUE(pl__deque_empty(&r->deque));
	pl__deque_fini(&r->deque);
	free(r->elements);
	free((void *)r->taken);
}

static bool push(struct race *r, size_t i)
{
	r->elements[i].value = ~i;
	return pl__deque_push(&r->deque, &r->elements[i]);
}

static void take(struct race *r, struct element *e)
{
	size_t i = (size_t)(e - r->elements);

	if (e->value != ~i)
		r->bad++;
	atomic_fetch_add(&r->taken[i], 1);
}

static void thief(unsigned int nth, void *arg)
{
	struct race *r = arg;
	struct element *e;
	bool over;

	do {
		/* First, so that what it finds then is all there was. */
		over = r->over;
		while ((e = pl__deque_steal(&r->deque))) {
			take(r, e);
			store_relaxed(&r->noise, nth);
		}
	} while (!over || !pl__deque_empty(&r->deque));
}

/* From every place of the ring at which growing may find it. */
TEST(growing_keeps_elements_and_order)
{
	struct pl__deque d;
	char p[256];
	size_t shift, i;

	for (shift = 0; shift < 40; shift++) {
		ASSERT_EQ(0, pl__deque_init(&d, 0));
		for (i = 0; i < shift; i++) {
			ASSERT_TRUE(pl__deque_push(&d, &p[i]));
			ASSERT_EQ(&p[i], pl__deque_steal(&d));
		}
		for (i = 0; i < ARRAY_SIZE(p); i++)
			ASSERT_TRUE(pl__deque_push(&d, &p[i]));
		for (i = 0; i < ARRAY_SIZE(p) / 2; i++) {
			ASSERT_EQ(&p[i], pl__deque_steal(&d));
			ASSERT_EQ(&p[ARRAY_SIZE(p) - 1 - i],
				  pl__deque_pop(&d));
		}
		ASSERT_EQ(NULL, pl__deque_pop(&d));
		pl__deque_fini(&d);
	}
}

/* A ring that never holds much never grows, however much passes through. */
TEST(short_queue_takes_no_memory)
{
	struct pl__deque d;
	struct pl__deque_array *array;
	char p[16];
	size_t i;

	ASSERT_EQ(0, pl__deque_init(&d, ARRAY_SIZE(p)));
	array = d.array;
	for (i = 0; i < ARRAY_SIZE(p); i++)
		ASSERT_TRUE(pl__deque_push(&d, &p[i]));
	for (i = 0; i < 100000; i++) {
		ASSERT_EQ(&p[i % ARRAY_SIZE(p)], pl__deque_steal(&d));
		ASSERT_TRUE(pl__deque_push(&d, &p[i % ARRAY_SIZE(p)]));
	}
	EXPECT_EQ(array, d.array);
	pl__deque_fini(&d);
}

TEST(push_without_memory_fails_and_loses_nothing)
{
	const uintptr_t max = 16 << 20;
	struct pl__deque d;
	uintptr_t i, nr;

	if (!limit_memory(8 << 20))
		SKIP(return, "memory cannot be limited here");
	ASSERT_EQ(0, pl__deque_init(&d, 0));
	for (nr = 0; nr < max && pl__deque_push(&d, (void *)(nr + 1)); nr++)
		;
	ASSERT_LT(nr, max);
	EXPECT_FALSE(pl__deque_push(&d, (void *)max));

	/* A place that gets free can be used, though it cannot grow. */
	EXPECT_EQ(1, (uintptr_t)pl__deque_steal(&d));
	EXPECT_TRUE(pl__deque_push(&d, (void *)++nr));
	EXPECT_FALSE(pl__deque_push(&d, (void *)max));
	EXPECT_EQ(nr - 1, pl__deque_len(&d));
	for (i = nr; i > 1; i--)
		ASSERT_EQ(i, (uintptr_t)pl__deque_pop(&d));
	EXPECT_EQ(NULL, pl__deque_pop(&d));
	pl__deque_fini(&d);
}

/* An emulator may only say that it gave a page back. */
static bool can_give_back(void)
{
	char *page = pl__map(pl__page_size());
	bool can;

	if (!page)
		return false;
	*page = 1;
	pl__advise(page, pl__page_size(), MADV_DONTNEED);
	can = !*page;
	pl__unmap(page, pl__page_size());
	return can;
}

static size_t nr_full_slots(struct pl__deque_array *a)
{
	size_t nr = 0;
	int64_t i;

	for (i = 0; i <= a->mask; i++)
		nr += !!load_relaxed(&a->slots[i]);
	return nr;
}

static void fill(struct __test_metadata *_metadata, struct pl__deque *d,
		 uintptr_t nr)
{
	uintptr_t i;

	for (i = 1; i <= nr; i++)
		ASSERT_TRUE(pl__deque_push(d, (void *)i));
}

TEST(emptied_queue_frees_its_memory)
{
	const uintptr_t nr = 4 * PL__DEQUE_KEEP;
	struct pl__deque_array *large;
	struct pl__deque d;
	uintptr_t i;
	int again;

	ASSERT_EQ(0, pl__deque_init(&d, 0));
	for (again = 0; again < 2; again++) {
		fill(_metadata, &d, nr);
		large = d.array;
		for (i = nr; i > 1; i--)
			ASSERT_EQ(i, (uintptr_t)pl__deque_pop(&d));
		pl__deque_trim(&d);
		ASSERT_EQ(large, d.array);
		ASSERT_EQ(1, (uintptr_t)pl__deque_steal(&d));
		pl__deque_trim(&d);
		EXPECT_EQ(PL__DEQUE_KEEP, d.array->mask + 1);
		/* But for what shares a page with something else. */
		if (can_give_back())
			EXPECT_GE(2 * pl__page_size() / sizeof(void *),
				  nr_full_slots(large));
	}
	pl__deque_fini(&d);
}

/* From where the large ring was left to where the small one goes on. */
TEST(shrinking_keeps_elements_and_order)
{
	const uintptr_t nr = 2 * PL__DEQUE_KEEP;
	struct pl__deque d;
	uintptr_t i, extra;

	ASSERT_EQ(0, pl__deque_init(&d, 0));
	for (extra = 0; extra < 4; extra++) {
		fill(_metadata, &d, nr + extra);
		for (i = 1; i <= nr + extra; i++)
			ASSERT_EQ(i, (uintptr_t)pl__deque_steal(&d));
		pl__deque_trim(&d);
		fill(_metadata, &d, nr + extra);
		for (i = 1; i <= nr / 2; i++)
			ASSERT_EQ(i, (uintptr_t)pl__deque_steal(&d));
		for (i = nr + extra; i > nr / 2; i--)
			ASSERT_EQ(i, (uintptr_t)pl__deque_pop(&d));
		pl__deque_trim(&d);
	}
	pl__deque_fini(&d);
}

/* Pops some, or all that the thieves have left. */
static void push_and_pop(struct __test_metadata *_metadata, struct race *r,
			 size_t *i, uint64_t *rnd)
{
	struct element *e;
	size_t n;

	n = next_random(rnd) % (8 * PL__DEQUE_KEEP);
	for (; n && *i < r->nr; n--, ++*i)
		ASSERT_TRUE(push(r, *i));
	for (n = next_random(rnd) % (16 * PL__DEQUE_KEEP); n; n--) {
		e = pl__deque_pop(&r->deque);
		if (!e)
			break;
		take(r, e);
	}
	pl__deque_trim(&r->deque);
}

/* Thieves that are late look into pages that were given back. */
TEST(resizing_queue_gives_each_element_once)
{
	size_t i = 0, nr = ROUNDS(1000000);
	uint64_t rnd = 1;
	struct team team;
	struct race r;

	race_init(_metadata, &r, nr);
	team_start(&team, NR_THIEVES, thief, &r);
	while (i < nr)
		push_and_pop(_metadata, &r, &i, &rnd);
	r.over = true;
	team_join(&team);
	race_check(_metadata, &r);
}

/*
 * One or two elements, pushed and popped at once.  A thief's line is written
 * just before: that store delays the next one, that of bottom, and without
 * a barrier the load of top would not wait for it.
 */
TEST(last_element_is_taken_once)
{
	size_t i, nr = ROUNDS(10000000);
	struct team team;
	struct element *e;
	struct race r;

	race_init(_metadata, &r, nr);
	team_start(&team, 2, thief, &r);
	for (i = 0; i < nr;) {
		ASSERT_TRUE(push(&r, i++));
		if (i % 3 && i < nr)
			ASSERT_TRUE(push(&r, i++));
		do {
			store_relaxed(&r.noise, i);
			e = pl__deque_pop(&r.deque);
			if (e)
				take(&r, e);
		} while (e);
	}
	r.over = true;
	team_join(&team);
	race_check(_metadata, &r);
}

static void until_empty(unsigned int nth, void *arg)
{
	struct race *r = arg;
	struct element *e;
	bool lost = true;

	(void)nth;
	do {
		e = pl__deque_steal_once(&r->deque, &lost);
		if (e)
			take(r, e);
	} while (e || lost);
}

/* Thieves that leave when a steal finds it empty leave it empty. */
TEST(lost_race_is_told_from_empty)
{
	size_t i, nr = ROUNDS(500000);
	struct race r;

	race_init(_metadata, &r, nr);
	for (i = 0; i < nr; i++)
		ASSERT_TRUE(push(&r, i));
	team_run(NR_THIEVES, until_empty, &r);
	race_check(_metadata, &r);
}

TEST_HARNESS_MAIN
