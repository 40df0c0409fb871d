// SPDX-License-Identifier: GPL-2.0-only
/*
 * slab: an object a slot, found by its number, never moved or unmapped.
 */
#include "kselftest_harness.h"
#include "lib.h"
#include "mem/slab.h"

struct thing {
	struct pl__slab_obj	obj;
	_Atomic uint32_t	owner;
	uint32_t		value;		/* plain: TSan looks on */
	_Atomic uint64_t	version;
	uint64_t		rest[12];
};
_Static_assert(sizeof(struct thing) == 128, "a multiple of 64");

static struct pl__slab slab;
static struct pl__slab_cache cache;	/* empty */

TEST(bad_sizes_are_refused)
{
	struct pl__slab s;

	EXPECT_EQ(-EINVAL, pl__slab_init(&s, 0, 1));
	EXPECT_EQ(-EINVAL, pl__slab_init(&s, 63, 1));
	EXPECT_EQ(-EINVAL, pl__slab_init(&s, 65, 1));
	EXPECT_EQ(-EINVAL, pl__slab_init(&s, 1UL << 40, 1));
	EXPECT_EQ(-EINVAL, pl__slab_init(&s, 64, 0));
	EXPECT_EQ(0, pl__slab_init(&s, 64, UINT32_MAX));
	pl__slab_fini(&s);
}

static void check_slots(struct __test_metadata *_metadata, uint32_t nr,
			struct pl__slab_cache *c)
{
	struct thing *t;
	uint8_t *seen = calloc(nr, 1);
	uint32_t i;

	ASSERT_NE(NULL, seen);
	ASSERT_EQ(0, pl__slab_init(&slab, sizeof(*t), nr));
	EXPECT_EQ(NULL, pl__slab_get(&slab, 0));
	for (i = 0; i < nr; i++) {
		t = pl__slab_alloc(&slab, c);
		ASSERT_NE(NULL, t);
		ASSERT_EQ(0, (uintptr_t)t % 64);
		ASSERT_LT(t->obj.slot, nr);
		ASSERT_EQ(t, pl__slab_get(&slab, t->obj.slot));
		ASSERT_EQ(0, seen[t->obj.slot]++);
	}
	EXPECT_EQ(nr, pl__slab_nr_slots(&slab));
	EXPECT_EQ(NULL, pl__slab_alloc(&slab, c));
	EXPECT_EQ(NULL, pl__slab_alloc(&slab, NULL));
	EXPECT_EQ(NULL, pl__slab_get(&slab, nr));
	EXPECT_EQ(NULL, pl__slab_get(&slab, UINT32_MAX));

	/* What comes back can be had again, and nothing beyond. */
	t = pl__slab_get(&slab, nr / 2);
	pl__slab_free(&slab, c, t);
	EXPECT_EQ(t, pl__slab_alloc(&slab, c));
	EXPECT_EQ(NULL, pl__slab_alloc(&slab, c));
	pl__slab_fini(&slab);
	free(seen);
}

TEST(objects_have_slots_of_their_own_until_full)
{
	static const uint32_t nr[] = { 1, 31, 32, 33, 100, 4096, 10001 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nr); i++) {
		check_slots(_metadata, nr[i], NULL);
		memset(&cache, 0, sizeof(cache));
		check_slots(_metadata, nr[i], &cache);
	}
}

TEST(new_objects_are_zero_and_reused_ones_unchanged)
{
	struct thing *t, *again;
	size_t i;

	ASSERT_EQ(0, pl__slab_init(&slab, sizeof(*t), 1));
	t = pl__slab_alloc(&slab, &cache);
	ASSERT_NE(NULL, t);
	for (i = sizeof(t->obj); i < sizeof(*t); i++)
		EXPECT_EQ(0, ((char *)t)[i]);
	memset((char *)t + sizeof(t->obj), 0x5a, sizeof(*t) - sizeof(t->obj));

	pl__slab_free(&slab, &cache, t);
	EXPECT_EQ(t, pl__slab_get(&slab, 0));
	pl__slab_cache_drain(&slab, &cache);
	again = pl__slab_alloc(&slab, NULL);
	EXPECT_EQ(t, again);
	EXPECT_EQ(0, again->obj.slot);
	for (i = sizeof(t->obj); i < sizeof(*t); i++)
		EXPECT_EQ(0x5a, ((char *)t)[i]);
	pl__slab_fini(&slab);
}

static uint32_t alloc_all(struct pl__slab_cache *c, struct thing **out)
{
	struct thing *t;
	uint32_t nr = 0;

	while ((t = pl__slab_alloc(&slab, c)))
		out[nr++] = t;
	return nr;
}

TEST(full_cache_returns_a_batch_and_drains_the_rest)
{
	const uint32_t nr = 2 * PL__SLAB_BATCH + 1;
	struct pl__slab_cache other = { 0 };
	struct thing *things[2 * PL__SLAB_BATCH + 1];
	uint32_t i;

	ASSERT_EQ(0, pl__slab_init(&slab, sizeof(struct thing), nr));
	ASSERT_EQ(nr, alloc_all(NULL, things));
	for (i = 0; i < nr - 1; i++)
		pl__slab_free(&slab, &cache, things[i]);
	EXPECT_EQ(NULL, pl__slab_alloc(&slab, &other));
	pl__slab_free(&slab, &cache, things[i]);
	EXPECT_EQ(PL__SLAB_BATCH + 1, cache.nr);

	/* The batch comes whole; the newest stayed in the cache. */
	EXPECT_EQ(PL__SLAB_BATCH, alloc_all(&other, things));
	pl__slab_cache_drain(&slab, &cache);
	EXPECT_EQ(0, cache.nr);
	EXPECT_EQ(PL__SLAB_BATCH + 1, alloc_all(&other, things));

	/* Batches can be broken for those without a cache. */
	for (i = 0; i < PL__SLAB_BATCH + 1; i++)
		pl__slab_free(&slab, NULL, things[i]);
	EXPECT_EQ(PL__SLAB_BATCH + 1, alloc_all(NULL, things));
	pl__slab_fini(&slab);
}

/* Of 10 at a time, then of 40, then of 10 again. */
TEST(each_batch_says_how_many_it_has)
{
	struct pl__slab_cache other = { 0 };
	struct thing *things[90];
	uint32_t i;

	ASSERT_EQ(0, pl__slab_init(&slab, sizeof(struct thing), 90));
	pl__slab_set_batch(&slab, 10);
	ASSERT_EQ(90, alloc_all(NULL, things));
	for (i = 0; i < 21; i++)
		pl__slab_free(&slab, &cache, things[i]);
	EXPECT_EQ(11, cache.nr);
	pl__slab_set_batch(&slab, 40);
	for (; i < 90; i++)
		pl__slab_free(&slab, &cache, things[i]);
	EXPECT_EQ(80, cache.nr);
	EXPECT_EQ(10, alloc_all(&other, things));
	pl__slab_free(&slab, &cache, things[0]);
	EXPECT_EQ(41, cache.nr);
	pl__slab_set_batch(&slab, 10);
	/* All at once, which is more than two by now. */
	things[0] = pl__slab_alloc(&slab, &other);
	ASSERT_NE(NULL, things[0]);
	EXPECT_EQ(39, other.nr);
	pl__slab_free(&slab, &other, things[0]);
	EXPECT_EQ(11, other.nr);
	EXPECT_EQ(41 + 29, alloc_all(&cache, things));
	EXPECT_EQ(11, alloc_all(&other, things));
	pl__slab_fini(&slab);
}

static uintptr_t page_of(const struct thing *t)
{
	return (uintptr_t)t / 4096;
}

/* A page is on the node of the thread that touched it first. */
TEST(pages_of_new_objects_are_of_one_caller)
{
	struct pl__slab_cache caches[3] = { { 0 } };
	struct thing *t, *single[2];
	uintptr_t pages[ARRAY_SIZE(caches)];
	int i, nr;

	ASSERT_EQ(0, pl__slab_init(&slab, sizeof(struct thing), 1000));
	single[0] = pl__slab_alloc(&slab, NULL);
	for (i = 0; i < (int)ARRAY_SIZE(caches); i++) {
		t = pl__slab_alloc(&slab, &caches[i]);
		pages[i] = page_of(t);
		EXPECT_NE(page_of(single[0]), pages[i]);
		if (i)
			EXPECT_NE(pages[i - 1], pages[i]);
		for (nr = 1; nr < PL__SLAB_BATCH; nr++) {
			t = pl__slab_alloc(&slab, &caches[i]);
			EXPECT_EQ(pages[i], page_of(t));
		}
	}
	single[1] = pl__slab_alloc(&slab, NULL);
	EXPECT_EQ(page_of(single[0]), page_of(single[1]));
	pl__slab_fini(&slab);
}

TEST(failed_allocation_is_null_and_harmless)
{
	const uint32_t max = 4 << 20;
	struct thing *t, *first;
	uint32_t nr;

	ASSERT_EQ(0, pl__slab_init(&slab, sizeof(*t), max));
	first = pl__slab_alloc(&slab, &cache);
	ASSERT_NE(NULL, first);
	if (!limit_memory(8 << 20))
		SKIP(return, "memory cannot be limited here");
	for (nr = 1; (t = pl__slab_alloc(&slab, &cache)); nr++)
		ASSERT_LT(nr, max);
	EXPECT_EQ(nr, pl__slab_nr_slots(&slab));
	EXPECT_EQ(NULL, pl__slab_alloc(&slab, NULL));
	pl__slab_free(&slab, &cache, first);
	EXPECT_EQ(first, pl__slab_alloc(&slab, &cache));
	pl__slab_fini(&slab);
}

#define NR_THREADS	4
#define NR_HELD		150
#define NR_SLOTS	(NR_THREADS * (NR_HELD + 2 * PL__SLAB_BATCH))

static _Atomic uint64_t clashes, misplaced;
static _Atomic bool over;

static struct thing *take_one(struct pl__slab_cache *c, uint32_t me)
{
	struct thing *t = pl__slab_alloc(&slab, c);

	if (!t)
		return NULL;
	/* Relaxed: it is the slab that must order value. */
	if (atomic_exchange_explicit(&t->owner, me, memory_order_relaxed))
		clashes++;
	t->value++;
	misplaced += pl__slab_get(&slab, t->obj.slot) != t;
	return t;
}

static void give_back(struct pl__slab_cache *c, struct thing *t, uint32_t me)
{
	if (load_relaxed(&t->owner) != me)
		clashes++;
	t->value++;
	counter_inc(&t->version);
	store_relaxed(&t->owner, 0);
	pl__slab_free(&slab, c, t);
}

/* Looks at any slot at any time; versions only grow. */
static void look(void)
{
	static uint64_t seen[NR_SLOTS];
	struct thing *t;
	uint32_t i;

	for (i = 0; !over; i = (i + 1) % NR_SLOTS) {
		t = pl__slab_get(&slab, i);
		if (!t)
			continue;
		misplaced += load_relaxed(&t->version) < seen[i];
		seen[i] = load_relaxed(&t->version);
	}
}

static void churn(unsigned int nth, void *arg)
{
	struct thing *held[NR_HELD] = { NULL };
	struct pl__slab_cache own = { 0 }, *c;
	uint64_t rnd = nth + 1;
	_Atomic uint32_t *nr_null = arg;
	int i, k;

	if (nth == NR_THREADS) {
		look();
		return;
	}
	for (i = 0; i < ROUNDS(2000000); i++) {
		k = (int)(next_random(&rnd) % NR_HELD);
		c = next_random(&rnd) % 16 ? &own : NULL;
		if (held[k]) {
			give_back(c, held[k], nth + 1);
			held[k] = NULL;
		} else {
			held[k] = take_one(c, nth + 1);
			*nr_null += !held[k];
		}
	}
	for (k = 0; k < NR_HELD; k++)
		if (held[k])
			give_back(&own, held[k], nth + 1);
	pl__slab_cache_drain(&slab, &own);
}

/* As many slots as can be held or cached: there is always one. */
TEST_REAL(threads_share_a_slab_without_sharing_an_object,
	  "it spins on a variable, without a call")
TEST(threads_share_a_slab_without_sharing_an_object)
{
	static struct thing *things[NR_SLOTS];
	_Atomic uint32_t nr_null = 0;
	struct team team;
	unsigned int i;

	ASSERT_EQ(0, pl__slab_init(&slab, sizeof(struct thing), NR_SLOTS));
	team_start(&team, NR_THREADS + 1, churn, &nr_null);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(team.threads[i], NULL);
	over = true;
	pthread_join(team.threads[NR_THREADS], NULL);

	EXPECT_EQ(0, clashes);
	EXPECT_EQ(0, misplaced);
	EXPECT_EQ(0, nr_null);
	/* None was lost. */
	EXPECT_EQ(NR_SLOTS, alloc_all(&cache, things));
	pl__slab_fini(&slab);
}

TEST_HARNESS_MAIN
