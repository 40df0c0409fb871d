/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * inject: seed, tag and the number of passes determine the delay at a point; so
 * a seed replays as far as the machine's own scheduling permits.
 *
 * The number is not exact, so that it takes no read-modify-write: that would be
 * a full barrier on x86, and hide a missing one at the point.
 */
#ifdef PL_TEST_INJECT

#include "base/inject.h"
#include "base/sys.h"

static _Atomic uint64_t nr_passed;
static _Atomic uint64_t seed;

static uint64_t get_seed(void)
{
	const char *s;
	uint64_t v = load_relaxed(&seed);

	if (v)
		return v;
	s = getenv("PARKLOT_INJECT_SEED");
	v = s ? strtoull(s, NULL, 0) : pl__now_ns() | 1;
	v = v ? v : 1;
	store_relaxed(&seed, v);
	return v;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x7fb5d329728ea185ULL;
	x ^= x >> 27;
	x *= 0x81dadef4bc2dd44dULL;
	return x ^ x >> 33;
}

void pl__inject(const char *tag)
{
	uint64_t n = load_relaxed(&nr_passed);
	uint64_t x = get_seed() ^ n;
	unsigned int i;

	store_relaxed(&nr_passed, n + 1);
	while (*tag)
		x = mix(x ^ (unsigned char)*tag++);
	x = mix(x);
	if (x % 64 >= 12)
		return;
	if (x % 64 == 0) {
		pl__sleep_ns(x >> 48);
		return;
	}
	if (x % 64 < 4) {
		pl__sched_yield();
		return;
	}
	for (i = x >> 53; i; i--)
		pl__cpu_relax();
}

#endif /* PL_TEST_INJECT */
