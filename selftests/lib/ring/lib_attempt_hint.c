/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * guess: who is asked in vain is asked ever more rarely, but never given up.
 */
#include "kselftest_harness.h"

#include "ring/attempt_hint.h"

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

TEST(of_use_it_is_asked_each_time)
{
	struct pl__attempt_hint g = { 0 };

	EXPECT_EQ(100, nr_asked(&g, 100, false));
}

TEST(in_vain_it_is_asked_ever_more_rarely)
{
	struct pl__attempt_hint g = { 0 };

	/* One, and then 2, 4, 8 and 16 that pass. */
	EXPECT_EQ(1, nr_asked(&g, 3, true));
	EXPECT_EQ(1, nr_asked(&g, 5, true));
	EXPECT_EQ(1, nr_asked(&g, 9, true));
	EXPECT_EQ(1, nr_asked(&g, 17, true));
	EXPECT_EQ(100, nr_asked(&g, 1700, true));
}

TEST(of_use_once_it_is_asked_each_time_again)
{
	struct pl__attempt_hint g = { 0 };

	EXPECT_EQ(5, nr_asked(&g, 35, true));
	EXPECT_EQ(1, nr_asked(&g, 17, false));
	EXPECT_EQ(100, nr_asked(&g, 100, false));
	EXPECT_EQ(1, nr_asked(&g, 3, true));
}

TEST(for_a_reason_it_is_asked_the_next_time)
{
	struct pl__attempt_hint g = { 0 };

	nr_asked(&g, 35, true);
	pl__attempt_hint_reset(&g);
	EXPECT_EQ(1, nr_asked(&g, 17, true));
}

TEST(of_use_each_second_time_it_is_asked_then)
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
