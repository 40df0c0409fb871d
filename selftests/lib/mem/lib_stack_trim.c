/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/mem/stack_trim: stacks are cleaned with the pool's lock dropped; threads
 * that want a stack meanwhile get one, and guards stay.
 */
#include "kselftest_harness.h"

#include "lib.h"
#include "base/sys.h"
#include "mem/stack.h"

#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
# define MADV_POPULATE_READ	22
#endif

#define KIB		1024UL
#define MIB		(1024 * KIB)
#define NR		16	/* stacks of an area */
#define DIRTY		(64 * KIB)	/* bytes of each that are written */

static const size_t sizes[PL__STACK_CLASSES] = {
	256 * KIB, 32 * KIB, 8 * MIB,
};

enum { NORMAL, SMALL, LARGE };

FIXTURE(trim) { struct pl__stacks s; };
FIXTURE_VARIANT(trim) { enum pl__stack_guard guard; };
FIXTURE_VARIANT_ADD(trim, best) { .guard = PL__STACK_GUARD_BEST };
FIXTURE_VARIANT_ADD(trim, mprotect) { .guard = PL__STACK_GUARD_MPROTECT };
FIXTURE_VARIANT_ADD(trim, canary) { .guard = PL__STACK_GUARD_CANARY };

FIXTURE_SETUP(trim)
{
	pl__stack_force_guard(variant->guard);
	ASSERT_EQ(0, pl__stacks_init(&self->s, sizes));
}

FIXTURE_TEARDOWN(trim) { pl__stacks_fini(&self->s); }

static struct pl__stack *held[NR];

/* False: there was none, though no other thread has one. */
static bool hold_all(struct pl__stacks *s, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		held[i] = pl__stack_get(s, NULL, NORMAL);
		if (!held[i])
			return false;
		memset(held[i]->base, 0x5a, DIRTY);
	}
	return true;
}

static void put_all(struct pl__stacks *s, size_t nr)
{
	while (nr--)
		pl__stack_put(s, NULL, held[nr]);
}

static _Atomic bool is_over;

static void *trim_on(void *arg)
{
	while (!is_over)
		pl__stacks_trim(arg);
	return NULL;
}

/*
 * There is one area, of which a stack is in use, and no memory for another: so
 * all stacks of it are there, or are being cleaned.
 */
TEST_F(trim, stack_that_is_being_cleaned_is_waited_for)
{
	size_t nr = NR - 1, nr_failed = 0;
	pthread_t trimmer;
	int i;

	ASSERT_TRUE(hold_all(&self->s, NR));
	put_all(&self->s, nr);
	ASSERT_EQ(0, pthread_create(&trimmer, NULL, trim_on, &self->s));
	if (!limit_memory(2 * MIB)) {
		is_over = true;
		pthread_join(trimmer, NULL);
		pl__stack_put(&self->s, NULL, held[nr]);
		SKIP(return, "memory cannot be limited here");
	}
	for (i = 0; i < ROUNDS(500) && !nr_failed; i++) {
		nr_failed += !hold_all(&self->s, nr);
		if (!nr_failed)
			put_all(&self->s, nr);
	}
	EXPECT_EQ(0, nr_failed);
	is_over = true;
	EXPECT_EQ(0, pthread_join(trimmer, NULL));
	pl__stack_put(&self->s, NULL, held[nr]);
}

/* The page below @st cannot be read. */
static bool is_guarded(const struct pl__stack *st)
{
	char *guard = (char *)st->base - pl__page_size();

	return pl__advise(guard, pl__page_size(), MADV_POPULATE_READ) < 0;
}

/* Stacks beside each other are cleaned in one call, with what is between. */
TEST_F(trim, guards_between_cleaned_stacks_stay)
{
	bool was_guarded[NR];
	size_t i, j, nr_dirty = 0;

	ASSERT_TRUE(hold_all(&self->s, NR));
	for (i = 0; i < NR; i++)
		was_guarded[i] = is_guarded(held[i]);
	put_all(&self->s, NR - 1);
	EXPECT_LT(0, pl__stacks_trim(&self->s));
	for (i = 0; i < NR - 1; i++) {
		held[i] = pl__stack_get(&self->s, NULL, NORMAL);
		ASSERT_NE(NULL, held[i]);
		EXPECT_EQ(was_guarded[0], is_guarded(held[i]));
		for (j = 0; j < DIRTY; j++)
			nr_dirty += ((char *)held[i]->base)[j] != 0;
	}
	EXPECT_EQ(0, nr_dirty);
	EXPECT_EQ(0x5a, ((char *)held[NR - 1]->base)[0]);
	put_all(&self->s, NR);
}

TEST_HARNESS_MAIN
