/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Spawning background tasks.  rt.h is included before this.
 */
#ifndef SELFTESTS_BACKGROUND_H
#define SELFTESTS_BACKGROUND_H

static inline pl_task_t spawn_background(void (*fn)(void *arg), void *arg)
{
	return spawn_flags(PL_SPAWN_BACKGROUND, fn, arg);
}

static inline void sleep_and_count(void *arg)
{
	pl_sleep(NSEC_PER_MSEC);
	count(arg);
}

static inline void yield_sleep_and_count(void *arg)
{
	int i = (int)(intptr_t)arg;

	if (i % 3 == 0)
		pl_yield();
	if (i % 100 == 0)
		EXPECT_EQ(0, pl_sleep(NSEC_PER_USEC));
	if (i % 7 == 0)
		spawn(count, NULL);
	count(NULL);
}

#endif /* SELFTESTS_BACKGROUND_H */
