/* SPDX-License-Identifier: GPL-2.0-only */
/* Tasks that only count that they ran, or do nothing; included after rt.h. */
#ifndef SELFTESTS_COUNT_H
#define SELFTESTS_COUNT_H

#include <stdatomic.h>

static atomic_int __attribute__((unused)) nr_ran;

static inline void count(void *arg)
{
	atomic_fetch_add(&nr_ran, 1);
}

static inline void nothing(void *arg)
{
}

#endif /* SELFTESTS_COUNT_H */
