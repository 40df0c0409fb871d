/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many tasks run at a time.  rt.h is included before this.
 */
#ifndef SELFTESTS_RUN_AT_ONCE_H
#define SELFTESTS_RUN_AT_ONCE_H

static atomic_int nr_at_once, most_at_once, nr_entered, is_over;

static inline void enter_and_leave(void)
{
	int nr = atomic_fetch_add(&nr_at_once, 1) + 1, most;

	most = atomic_load(&most_at_once);
	while (most < nr &&
	       !atomic_compare_exchange_weak(&most_at_once, &most, nr))
		;
	atomic_fetch_add(&nr_entered, 1);
	sched_yield();
	atomic_fetch_sub(&nr_at_once, 1);
}

static inline void run_and_yield(void *arg)
{
	atomic_int *begun = arg;

	if (begun)
		atomic_fetch_add(begun, 1);
	while (!is_over) {
		enter_and_leave();
		pl_yield();
	}
}

/* The most at once of those that enter from now on. */
static inline int most_of(int nr)
{
	atomic_store(&nr_entered, 0);
	atomic_store(&most_at_once, 0);
	EXPECT_TRUE(UNTIL_NO_MORE(nr_entered >= nr, (uint64_t)nr_entered));
	return atomic_load(&most_at_once);
}

#endif /* SELFTESTS_RUN_AT_ONCE_H */
