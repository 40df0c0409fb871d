/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/mem/stack: stacks are memory of their own, are used again, are given
 * back, and cost about a page when parked.
 */
#include "kselftest_harness.h"

#include "lib.h"
#include "resident.h"
#include "mem/stack.h"

#define KIB		1024UL
#define MIB		(1024 * KIB)

static const size_t sizes[] = { 256 * KIB, 32 * KIB, 8 * MIB };

enum { NORMAL, SMALL, LARGE };

/* Shadow memory comes and goes in mappings of its own. */
#if defined(PL_ASAN) || defined(PL_TSAN)
# define COUNTS_ARE_OURS	0
#else
# define COUNTS_ARE_OURS	1
#endif

static size_t room(const struct pl__stack *st)
{
	return (size_t)((char *)st - (char *)st->base);
}

static char *top(const struct pl__stack *st)
{
	return (char *)st - 256;
}

FIXTURE(stacks) {
	struct pl__stacks s;
	struct pl__stack_cache c;
};

FIXTURE_SETUP(stacks)
{
	ASSERT_EQ(0, pl__stacks_init(&self->s, sizes));
}

FIXTURE_TEARDOWN(stacks)
{
	pl__stack_cache_drain(&self->s, &self->c);
	pl__stacks_fini(&self->s);
	EXPECT_EQ(0, self->s.nr_out);
	EXPECT_EQ(0, pl__stacks_unguarded(&self->s));
}

/* ---- what a stack is ---- */

TEST(size_out_of_bounds_is_refused)
{
	struct pl__stacks s;

	EXPECT_EQ(-EINVAL, pl__stacks_init(&s, (size_t[]){
		  256 * KIB, 8 * KIB, 8 * MIB }));
	EXPECT_EQ(-EINVAL, pl__stacks_init(&s, (size_t[]){ 0, 0, 0 }));
	EXPECT_EQ(-EINVAL, pl__stacks_init(&s, (size_t[]){
		  256 * KIB, 32 * KIB, SIZE_MAX }));
}

TEST(size_is_rounded_up_to_pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct pl__stack *st;
	struct pl__stacks s;

	ASSERT_EQ(0, pl__stacks_init(&s, (size_t[]){
		  256 * KIB + 1, 128 * KIB - 1, 8 * MIB }));
	st = pl__stack_get(&s, NULL, 0);
	ASSERT_NE(NULL, st);
	EXPECT_EQ(256 * KIB + page, st->size);
	EXPECT_EQ(st->size, room(st) + sizeof(*st));
	EXPECT_EQ(0, (uintptr_t)st->base % page);
	pl__stack_put(&s, NULL, st);
	st = pl__stack_get(&s, NULL, 1);
	ASSERT_NE(NULL, st);
	EXPECT_EQ(128 * KIB, st->size);
	pl__stack_put(&s, NULL, st);
	pl__stacks_fini(&s);
}

TEST_F(stacks, whole_stack_is_writable)
{
	struct pl__stack *st;
	uint32_t cls;

	for (cls = 0; cls < PL__STACK_CLASSES; cls++) {
		st = pl__stack_get(&self->s, &self->c, cls);
		ASSERT_NE(NULL, st);
		EXPECT_EQ(cls, st->cls);
		EXPECT_EQ(sizes[cls] - sizeof(*st), room(st));
		memset(st->base, 0xff, room(st));
		pl__stack_check(st);
		pl__stack_put(&self->s, &self->c, st);
	}
}

TEST_F(stacks, stacks_do_not_overlap)
{
	struct pl__stack *st[300];
	size_t i, bad = 0;

	for (i = 0; i < ARRAY_SIZE(st); i++) {
		st[i] = pl__stack_get(&self->s, &self->c, SMALL);
		ASSERT_NE(NULL, st[i]);
		memset(st[i]->base, (int)i, room(st[i]));
	}
	for (i = 0; i < ARRAY_SIZE(st); i++) {
		bad += *(uint8_t *)st[i]->base != (uint8_t)i;
		bad += ((uint8_t *)st[i])[-1] != (uint8_t)i;
		bad += st[i]->cls != SMALL || st[i]->size != sizes[SMALL];
		pl__stack_put(&self->s, &self->c, st[i]);
	}
	EXPECT_EQ(0, bad);
}

/* ---- use again ---- */

TEST_F(stacks, last_put_is_first_got)
{
	struct pl__stack_cache *caches[] = { &self->c, NULL };
	struct pl__stack *st[4];
	size_t i, k;

	for (k = 0; k < 2; k++) {
		for (i = 0; i < 4; i++)
			st[i] = pl__stack_get(&self->s, caches[k], NORMAL);
		for (i = 0; i < 4; i++)
			pl__stack_put(&self->s, caches[k], st[i]);
		for (i = 4; i--;)
			EXPECT_EQ(st[i], pl__stack_get(&self->s, caches[k],
						       NORMAL));
		for (i = 0; i < 4; i++)
			pl__stack_put(&self->s, caches[k], st[i]);
	}
}

TEST_F(stacks, cache_keeps_few_and_shares_the_rest)
{
	struct pl__stack_cache other = { .nr = { 0 } };
	struct pl__stack *st[500];
	size_t i, mapped;

	for (i = 0; i < ARRAY_SIZE(st); i++)
		st[i] = pl__stack_get(&self->s, &self->c, SMALL);
	for (i = 0; i < ARRAY_SIZE(st); i++)
		pl__stack_put(&self->s, &self->c, st[i]);
	EXPECT_LE(self->c.nr[SMALL], 64);
	EXPECT_LE(1, self->c.nr[SMALL]);

	mapped = statm(0);
	pl__stack_cache_drain(&self->s, &self->c);
	EXPECT_EQ(0, self->c.nr[SMALL]);
	EXPECT_EQ(NULL, self->c.head[SMALL]);
	for (i = 0; i < ARRAY_SIZE(st); i++)
		st[i] = pl__stack_get(&self->s, &other, SMALL);
	EXPECT_EQ(mapped, statm(0));
	for (i = 0; i < ARRAY_SIZE(st); i++)
		pl__stack_put(&self->s, &other, st[i]);
	pl__stack_cache_drain(&self->s, &other);
}

TEST_F(stacks, cache_of_large_stacks_keeps_next_to_none)
{
	struct pl__stack *st[8];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(st); i++)
		st[i] = pl__stack_get(&self->s, &self->c, LARGE);
	for (i = 0; i < ARRAY_SIZE(st); i++)
		pl__stack_put(&self->s, &self->c, st[i]);
	EXPECT_LE(self->c.nr[LARGE], 2);
}

/* ---- giving back ---- */

/* What else is resident moves a little: a tenth is forgiven. */
TEST_F(stacks, trim_gives_memory_back)
{
	struct pl__stack *st[64];
	size_t i, before, full, given;

	for (i = 0; i < ARRAY_SIZE(st); i++)
		st[i] = pl__stack_get(&self->s, &self->c, NORMAL);
	before = resident();
	for (i = 0; i < ARRAY_SIZE(st); i++) {
		memset(st[i]->base, 1, room(st[i]));
		pl__stack_put(&self->s, &self->c, st[i]);
	}
	full = resident() - before;
	EXPECT_LE(64 * 240 * KIB, full);
	EXPECT_FALSE(pl__stacks_is_trim_due(&self->s));

	pl__stack_cache_drain(&self->s, &self->c);
	given = pl__stacks_trim(&self->s);
	EXPECT_LE(64 * 240 * KIB, given);
	if (COUNTS_ARE_OURS)
		EXPECT_LE(resident(), before + full / 10);
	EXPECT_EQ(0, pl__stacks_trim(&self->s));
}

TEST_F(stacks, trim_leaves_stacks_in_use_alone)
{
	struct pl__stack *st[128], *kept[2];
	size_t i, before, used;

	for (i = 0; i < ARRAY_SIZE(st); i++) {
		st[i] = pl__stack_get(&self->s, &self->c, SMALL);
		memset(st[i]->base, 0x5a, room(st[i]));
	}
	kept[0] = st[20];
	kept[1] = st[100];
	before = resident();
	for (i = 0; i < ARRAY_SIZE(st); i++)
		if (i != 20 && i != 100)
			pl__stack_put(&self->s, &self->c, st[i]);
	pl__stack_cache_drain(&self->s, &self->c);
	used = 126 * room(kept[0]);
	EXPECT_LE(used, pl__stacks_trim(&self->s));
	EXPECT_EQ(2, self->s.nr_out);
	if (COUNTS_ARE_OURS)
		EXPECT_LE(resident(), before - used * 8 / 10);
	for (i = 0; i < 2; i++) {
		char *p = kept[i]->base;
		size_t n, bad = 0;

		for (n = 0; n < room(kept[i]); n++)
			bad += p[n] != 0x5a;
		EXPECT_EQ(0, bad);
		EXPECT_EQ(SMALL, kept[i]->cls);
	}
	/* And what was trimmed can be had again, as good as new. */
	for (i = 0; i < 126; i++) {
		st[i] = pl__stack_get(&self->s, &self->c, SMALL);
		ASSERT_NE(NULL, st[i]);
		memset(st[i]->base, 0xa5, room(st[i]));
	}
	for (i = 0; i < 126; i++)
		pl__stack_put(&self->s, &self->c, st[i]);
	pl__stack_put(&self->s, &self->c, kept[0]);
	pl__stack_put(&self->s, &self->c, kept[1]);
}

/* As many stacks as are used in a burst. */
static struct pl__stack *burst[4096];

static bool begin_burst(struct pl__stacks *s, struct pl__stack_cache *c)
{
	size_t i, nr = 0;

	for (i = 0; i < ARRAY_SIZE(burst); i++)
		nr += !!(burst[i] = pl__stack_get(s, c, SMALL));
	return nr == ARRAY_SIZE(burst);
}

static void end_burst(struct pl__stacks *s, struct pl__stack_cache *c)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(burst); i++)
		pl__stack_put(s, c, burst[i]);
}

TEST_F(stacks, stacks_used_in_each_burst_are_kept)
{
	uint64_t now = 0;
	size_t before;
	int i;

	ASSERT_TRUE(begin_burst(&self->s, &self->c));
	before = resident();
	for (i = 0; i < 10; i++) {
		end_burst(&self->s, &self->c);
		EXPECT_EQ(PL__STACKS_AGE_NS, pl__stacks_age(&self->s, now));
		ASSERT_TRUE(begin_burst(&self->s, &self->c));
		if (COUNTS_ARE_OURS)
			EXPECT_GE(before + 64 * KIB, resident());
		now += PL__STACKS_AGE_NS;
	}
	end_burst(&self->s, &self->c);
}

TEST_F(stacks, unused_stacks_are_trimmed_in_steps)
{
	uint64_t now = 0, ns;
	int nr_steps = 0;
	size_t before;

	ASSERT_TRUE(begin_burst(&self->s, &self->c));
	end_burst(&self->s, &self->c);
	before = resident();
	EXPECT_EQ(PL__STACKS_AGE_NS, pl__stacks_age(&self->s, now));
	now += PL__STACKS_AGE_NS / 2;
	EXPECT_EQ(PL__STACKS_AGE_NS / 2, pl__stacks_age(&self->s, now));
	now += PL__STACKS_AGE_NS / 2;
	while ((ns = pl__stacks_age(&self->s, now)) != UINT64_MAX) {
		now += ns;
		nr_steps++;
	}
	EXPECT_LE(2, nr_steps);
	EXPECT_FALSE(pl__stacks_is_trim_due(&self->s));
	if (COUNTS_ARE_OURS)
		EXPECT_LE(resident() + 4000 * 4 * KIB, before);
}

TEST_F(stacks, trim_is_due_after_a_burst)
{
	ASSERT_TRUE(begin_burst(&self->s, &self->c));
	EXPECT_FALSE(pl__stacks_is_trim_due(&self->s));
	end_burst(&self->s, &self->c);
	EXPECT_TRUE(pl__stacks_is_trim_due(&self->s));
	EXPECT_LE(4000 * 28 * KIB, pl__stacks_trim(&self->s));
	EXPECT_FALSE(pl__stacks_is_trim_due(&self->s));
}

TEST_F(stacks, trim_is_due_after_a_small_burst_of_large_stacks)
{
	size_t i;

	for (i = 0; i < 64; i++)
		burst[i] = pl__stack_get(&self->s, NULL, LARGE);
	while (i--)
		pl__stack_put(&self->s, NULL, burst[i]);
	EXPECT_TRUE(pl__stacks_is_trim_due(&self->s));
}

/* ---- many ---- */

static size_t nr_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	size_t nr = 0;
	int ch;

	if (!f)
		abort();
	while ((ch = getc_unlocked(f)) != EOF)
		nr += ch == '\n';
	fclose(f);
	return nr;
}

static size_t max_mappings(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
	size_t nr = 65530;

	if (f && fscanf(f, "%zu", &nr) != 1)
		nr = 65530;
	if (f)
		fclose(f);
	return nr;
}

/* Guards, and they are guards: 22 is MADV_POPULATE_READ. */
static bool has_guard_install(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool has = p != MAP_FAILED && !madvise(p, page, 102) &&
		   madvise(p, page, 22) && errno == EFAULT;

	munmap(p, page);
	return has;
}

/* Each guarded so, and parked in the upper end of its own. */
static void park_many(struct __test_metadata *_metadata, size_t nr,
		      enum pl__stack_guard how, size_t nr_mappings_more,
		      size_t nr_unguarded)
{
	size_t nr_pages = nr * 11 / 10, i, before, mappings, got = 0;
	struct pl__stack *st, *all = NULL;
	struct pl__stacks s;

	pl__stack_force_guard(how);
	ASSERT_EQ(0, pl__stacks_init(&s, sizes));
	nr_pages += reads_take_memory() ? nr_unguarded : 0; /* canaries */
	mappings = nr_mappings();
	before = resident();
	for (i = 0; i < nr; i++) {
		st = pl__stack_get(&s, NULL, SMALL);
		if (!st)
			break;
		memset(top(st), 1, 256);
		pl__stack_check(st);
		st->next = all;
		all = st;
		got++;
	}
	EXPECT_EQ(nr, got);
	if (COUNTS_ARE_OURS)
		EXPECT_LE(nr_mappings(), mappings + nr_mappings_more);
	/* The rest of the last area has no guard either. */
	EXPECT_LE(nr_unguarded, pl__stacks_unguarded(&s));
	EXPECT_GE(nr_unguarded + 63, pl__stacks_unguarded(&s));
	if (COUNTS_ARE_OURS && !getenv("TEST_EMULATED")) /* that has its own */
		EXPECT_LE(resident() - before, nr_pages *
			  (size_t)sysconf(_SC_PAGESIZE));
	while ((st = all)) {
		all = st->next;
		pl__stack_put(&s, NULL, st);
	}
	pl__stacks_fini(&s);
	EXPECT_EQ(0, pl__stacks_unguarded(&s));
	if (COUNTS_ARE_OURS)
		EXPECT_LE(nr_mappings(), mappings + 8);
}

/* 400 MiB of pages, if so much is free. */
static size_t nr_many(void)
{
	size_t free_mem = (size_t)sysconf(_SC_AVPHYS_PAGES) *
			  (size_t)sysconf(_SC_PAGESIZE);

	return free_mem > 700 * MIB ? ROUNDS(100000) : ROUNDS(20000);
}

TEST(many_parked_stacks_with_guards_cost_a_page_each)
{
	if (!has_guard_install())
		SKIP(return, "no MADV_GUARD_INSTALL in this kernel");
	park_many(_metadata, nr_many(), PL__STACK_GUARD_BEST, 64, 0);
}

TEST(many_parked_stacks_with_mprotect_leave_half_the_mappings)
{
	size_t nr = nr_many(), guards = max_mappings() / 4;

	park_many(_metadata, nr, PL__STACK_GUARD_MPROTECT,
		  max_mappings() / 2 + 64, nr > guards ? nr - guards : 0);
}

TEST(many_parked_stacks_with_canaries_cost_a_page_each)
{
	size_t nr = nr_many();

	park_many(_metadata, nr, PL__STACK_GUARD_CANARY, 64, nr);
}

TEST_F(stacks, failed_allocation_is_null_and_loses_nothing)
{
	struct pl__stack *st, *all = NULL;
	unsigned int round, nr[3] = { 0 };

	if (!limit_memory(64 * MIB))
		SKIP(return, "memory cannot be limited here");
	for (round = 0; round < 3; round++) {
		while ((st = pl__stack_get(&self->s, &self->c, LARGE))) {
			st->next = all;
			all = st;
			nr[round]++;
		}
		EXPECT_EQ(NULL, pl__stack_get(&self->s, NULL, LARGE));
		while ((st = all)) {
			all = st->next;
			pl__stack_put(&self->s, &self->c, st);
		}
		if (round == 1) {
			pl__stack_cache_drain(&self->s, &self->c);
			EXPECT_LE(nr[1] * 7 * MIB, pl__stacks_trim(&self->s));
		}
	}
	EXPECT_LE(3, nr[0]);
	EXPECT_GE(4, nr[0]);
	EXPECT_EQ(nr[0], nr[1]);
	EXPECT_EQ(nr[0], nr[2]);
}

TEST_F(stacks, idle_stacks_of_one_class_make_room_for_another)
{
	struct pl__stack *st, *large = NULL, *small = NULL;
	unsigned int nr = 0;

	if (!limit_memory(64 * MIB))
		SKIP(return, "memory cannot be limited here");
	while ((st = pl__stack_get(&self->s, &self->c, LARGE))) {
		st->next = large;
		large = st;
	}
	while ((st = large)) {
		large = st->next;
		pl__stack_put(&self->s, &self->c, st);
	}
	for (; nr < 512; nr++) {
		st = pl__stack_get(&self->s, &self->c, SMALL);
		if (!st)
			break;
		st->next = small;
		small = st;
	}
	EXPECT_EQ(512, nr);
	while ((st = small)) {
		small = st->next;
		pl__stack_put(&self->s, &self->c, st);
	}
}

/* ---- from many threads ---- */

#define NR_HELD		40

struct crowd {
	struct pl__stacks	*s;
	_Atomic unsigned int	nr_bad;
	_Atomic unsigned int	nr_left;
};

static void crowd_round(struct crowd *crowd, struct pl__stack_cache *c,
			uint64_t *seed, struct pl__stack **held)
{
	size_t i = next_random(seed) % NR_HELD;
	struct pl__stack *st = held[i];

	if (!st) {
		st = pl__stack_get(crowd->s, c, SMALL);
		if (!st)
			return;
		memset(top(st), (int)i, 256);
		held[i] = st;
		return;
	}
	if (top(st)[0] != (char)i || top(st)[255] != (char)i)
		crowd->nr_bad++;
	held[i] = NULL;
	pl__stack_put(crowd->s, next_random(seed) % 8 ? c : NULL, st);
}

static void crowd_member(unsigned int nth, void *arg)
{
	struct pl__stack *held[NR_HELD] = { NULL };
	struct pl__stack_cache c = { .nr = { 0 } };
	struct crowd *crowd = arg;
	uint64_t seed = nth + 1;
	unsigned int i;

	if (nth == 4) {
		do {
			pl__stacks_trim(crowd->s);
			sched_yield();
		} while (crowd->nr_left);
		return;
	}
	for (i = 0; i < ROUNDS(200000); i++)
		crowd_round(crowd, &c, &seed, held);
	for (i = 0; i < NR_HELD; i++)
		if (held[i])
			pl__stack_put(crowd->s, &c, held[i]);
	pl__stack_cache_drain(crowd->s, &c);
	crowd->nr_left--;
}

TEST_F(stacks, concurrent_get_put_and_trim_are_safe)
{
	struct crowd crowd = { .s = &self->s, .nr_left = 4 };

	team_run(5, crowd_member, &crowd);
	EXPECT_EQ(0, crowd.nr_bad);
}

/* ---- guards ---- */

static void is_guarded_as_forced(struct __test_metadata *_metadata,
				 enum pl__stack_guard how, bool has_canary,
				 size_t more_mappings)
{
	struct pl__stacks s;
	struct pl__stack *st;
	size_t before;

	pl__stack_force_guard(how);
	ASSERT_EQ(0, pl__stacks_init(&s, sizes));
	before = nr_mappings();
	st = pl__stack_get(&s, NULL, LARGE);
	ASSERT_NE(NULL, st);
	EXPECT_EQ(has_canary, !!st->canary);
	if (COUNTS_ARE_OURS) {
		EXPECT_LE(nr_mappings(), before + 1 + more_mappings);
		EXPECT_LE(before + more_mappings, nr_mappings());
	}
	pl__stack_put(&s, NULL, st);
	pl__stacks_fini(&s);
}

TEST(forced_kind_of_guard_is_used)
{
	if (has_guard_install())
		is_guarded_as_forced(_metadata, PL__STACK_GUARD_BEST, false, 0);
	is_guarded_as_forced(_metadata, PL__STACK_GUARD_MPROTECT, false, 1);
	is_guarded_as_forced(_metadata, PL__STACK_GUARD_CANARY, true, 0);
}

TEST_HARNESS_MAIN
