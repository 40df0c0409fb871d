/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * guess: who is asked in vain is asked ever more rarely, but never given up.
 */
#include "harness.h"

#include "guess.h"

/* How often it is asked in so many times, where that is always @was_vain. */
static int nr_asked(struct pl__guess *g, int nr_times, bool was_vain)
{
	int nr = 0;

	for (; nr_times; nr_times--) {
		if (!pl__guess_asks(g))
			continue;
		pl__guess_learn(g, was_vain);
		nr++;
	}
	return nr;
}

TEST(of_use_it_is_asked_each_time)
{
	struct pl__guess g = { 0 };

	EXPECT_EQ(100, nr_asked(&g, 100, false));
}

TEST(in_vain_it_is_asked_ever_more_rarely)
{
	struct pl__guess g = { 0 };

	/* One, and then 1, 3, 7 and 15 that pass. */
	EXPECT_EQ(1, nr_asked(&g, 2, true));
	EXPECT_EQ(1, nr_asked(&g, 4, true));
	EXPECT_EQ(1, nr_asked(&g, 8, true));
	EXPECT_EQ(1, nr_asked(&g, 16, true));
	EXPECT_EQ(100, nr_asked(&g, 1600, true));
}

TEST(of_use_once_it_is_asked_each_time_again)
{
	struct pl__guess g = { 0 };

	EXPECT_EQ(5, nr_asked(&g, 31, true));
	EXPECT_EQ(1, nr_asked(&g, 16, false));
	EXPECT_EQ(100, nr_asked(&g, 100, false));
	EXPECT_EQ(1, nr_asked(&g, 2, true));
}

TEST_HARNESS_MAIN
