/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In the simulation (lib/sim) each test runs once for each seed.
 *
 *   SIM_SEED=N	the first seed, 1 if it is not set
 *   SIM_SEEDS=N	how many, 1 if it is not set
 *
 * SIM_ITSELF, defined before: the tests start the simulation themselves.
 *
 * A part of kselftest_harness.h, which includes it.
 */
#ifndef SELFTESTS_KSELFTEST_SIM_H
#define SELFTESTS_KSELFTEST_SIM_H

#include "sim/sim.h"

static uint64_t __test_seed;

static inline void __test_begin(void)
{
#ifndef SIM_ITSELF
	pl__sim_begin(__test_seed);
#endif
}

static inline uint64_t __test_number(const char *name)
{
	const char *s = getenv(name);

	return s ? strtoull(s, NULL, 0) : 1;
}

/* Returns why the test failed, with the first seed that made it, or NULL. */
static inline const char *__test_all(struct __test_metadata *t, char *buf,
				     size_t size)
{
	uint64_t i, nr = __test_number("SIM_SEEDS");
	const char *verdict = NULL;

	__test_seed = __test_number("SIM_SEED");
	for (i = 0; i < nr && !verdict; i++) {
		verdict = __test_once(t, buf, size);
		if (verdict)
			__test_print("# again: SIM_SEED=%llu %s -t %s",
				     (unsigned long long)__test_seed,
				     program_invocation_name, t->title);
		__test_seed++;
	}
	return verdict;
}

#endif /* SELFTESTS_KSELFTEST_SIM_H */
