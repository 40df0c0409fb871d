/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What a program of this directory promises; it ends with failed().
 */
#ifndef EXPECT_HPP
#define EXPECT_HPP

#include <atomic>
#include <cstdio>

static std::atomic<int> nr_faults;

static inline void expect(bool is_so, const char *promise)
{
	if (!is_so && nr_faults++ < 10)
		std::printf("not so: %s\n", promise);
}

static inline int failed(void)
{
	if (nr_faults)
		std::printf("%d faults\n", nr_faults.load());
	return nr_faults != 0;
}

#endif /* EXPECT_HPP */
