/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * attempt_hint: a descriptor without success is tried ever more rarely, but
 * never given up.
 */
#include "kselftest_harness.h"

#include "ring/ring.h"

/* How often it is asked in so many times, where that is always @got_eagain. */
static int nr_asked(struct pl__attempt_hint *g, int nr_times, bool got_eagain)
{
	int nr = 0;

	for (; nr_times; nr_times--) {
		if (!pl__attempt_hint_allows(g))
			continue;
		pl__attempt_hint_learn(g, got_eagain);
		nr++;
	}
	return nr;
}

TEST(successful_attempts_are_always_made)
{
	struct pl__attempt_hint g = { 0 };

	EXPECT_EQ(100, nr_asked(&g, 100, false));
}

TEST(failed_attempts_become_rarer)
{
	struct pl__attempt_hint g = { 0 };

	/* One, and then 2, 4, 8 and 16 that pass. */
	EXPECT_EQ(1, nr_asked(&g, 3, true));
	EXPECT_EQ(1, nr_asked(&g, 5, true));
	EXPECT_EQ(1, nr_asked(&g, 9, true));
	EXPECT_EQ(1, nr_asked(&g, 17, true));
	EXPECT_EQ(100, nr_asked(&g, 1700, true));
}

TEST(success_restores_each_attempt)
{
	struct pl__attempt_hint g = { 0 };

	EXPECT_EQ(5, nr_asked(&g, 35, true));
	EXPECT_EQ(1, nr_asked(&g, 17, false));
	EXPECT_EQ(100, nr_asked(&g, 100, false));
	EXPECT_EQ(1, nr_asked(&g, 3, true));
}

TEST(reset_allows_the_next_attempt)
{
	struct pl__attempt_hint g = { 0 };

	nr_asked(&g, 35, true);
	pl__attempt_hint_reset(&g);
	EXPECT_EQ(1, nr_asked(&g, 17, true));
}

TEST(alternating_success_is_followed)
{
	struct pl__attempt_hint g = { 0 };
	int nr, nr_of_use = 0;

	for (nr = 0; nr < 400; nr++) {
		if (!pl__attempt_hint_allows(&g))
			continue;
		pl__attempt_hint_learn(&g, nr % 2 == 0);
		nr_of_use += nr % 2;
	}
	EXPECT_LE(90, nr_of_use);
}

TEST_HARNESS_MAIN
