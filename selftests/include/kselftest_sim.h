/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In the simulation (lib/sim) each test runs once for each seed.
 *
 *   SIM_SEED=N	the first seed, 1 if it is not set
 *   SIM_SEEDS=N	how many, 1 if it is not set
 *
 * SIM_ITSELF, defined before: the tests start the simulation themselves.
 * SIM_SHORT_READS: they bear reads that bring less than there is.
 *
 * A part of kselftest_harness.h, which includes it.
 */
#ifndef SELFTESTS_KSELFTEST_SIM_H
#define SELFTESTS_KSELFTEST_SIM_H

#include "sim/state.h"

static uint64_t __test_seed;
static struct pl__sim_shared *__test_shared;

static inline void __test_begin(void)
{
#ifndef SIM_ITSELF
	pl__sim_begin(__test_seed);
	pl__sim.shared = __test_shared;
#ifndef SIM_SHORT_READS
	pl__sim.short_in = 0;
#endif
#endif
}

static inline uint64_t __test_number(const char *name)
{
	const char *s = getenv(name);

	return s && atoll(s) > 0 ? strtoull(s, NULL, 0) : 1;
}

static inline double __test_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* As __test_once(); a skip with a seed is none with those that come. */
static inline const char *__test_seeded(struct __test_metadata *t,
					uint64_t *nr_skipped, char *buf,
					size_t size)
{
	const char *verdict;

	__test_set(t->state->skipped, 0);
	verdict = __test_once(t, buf, size);
	*nr_skipped += !!__test_get(t->state->skipped);
	return verdict;
}

/*
 * Returns why the test failed, with the first seed that made it, or NULL; it is
 * skipped if it is with all seeds.
 */
static inline const char *__test_all(struct __test_metadata *t, char *buf,
				     size_t size)
{
	uint64_t i = 0, nr_skipped = 0, first = __test_number("SIM_SEED");
	uint64_t nr = __test_number("SIM_SEEDS");
	uint64_t *hashes = (uint64_t *)calloc(nr, sizeof(*hashes));
	double begin = __test_seconds();
	const char *verdict = NULL, *device = getenv("SIM_DEVICE");
	char text[128];

	__test_shared = pl__sim_shared_map();
	if (!hashes || !__test_shared)
		return "no memory for as many seeds";
	while (i < nr && !verdict) {
		__test_seed = first + i;
		verdict = __test_seeded(t, &nr_skipped, buf, size);
		hashes[i++] = __test_shared->hash;
	}
	pl__sim_say(__test_shared, hashes, i - !!verdict,
		    __test_seconds() - begin, text, sizeof(text));
	if (nr > 1)
		__test_print("# %s", text);
	if (nr_skipped && nr_skipped < i)
		__test_print("# skipped with %llu seeds: %s",
			     (unsigned long long)nr_skipped, t->state->reason);
	__test_set(t->state->skipped, nr_skipped == i);
	if (verdict)
		__test_print("# again: %s%s%sSIM_SEED=%llu %s -t %s",
			     device ? "SIM_DEVICE=" : "",
			     device ? device : "", device ? " " : "",
			     (unsigned long long)__test_seed,
			     program_invocation_name, t->title);
	munmap(__test_shared, sizeof(*__test_shared));
	free(hashes);
	return verdict;
}

#endif /* SELFTESTS_KSELFTEST_SIM_H */
