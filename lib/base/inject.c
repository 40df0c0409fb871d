/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * inject: seed, tag and the number of passes determine the delay at a point; so
 * a seed replays as far as the machine's own scheduling permits.
 *
 * The number is not exact, so that it takes no read-modify-write: that would be
 * a full barrier on x86, and hide a missing one at the point.
 */

#include "base/inject.h"
#include "base/sys.h"

#ifdef PL_TEST_INJECT

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

#ifdef PL_TEST_FAULT


/* Set by the linker; a program may have no fault site. */
extern struct pl__fault_site __start_pl__faults[] __attribute__((weak));
extern struct pl__fault_site __stop_pl__faults[] __attribute__((weak));

static _Atomic uint32_t plan;		/* enum pl__fault_plan */
static _Atomic int64_t nr_left;		/* calls until the nth */
static _Atomic uint32_t one_in;
static _Atomic uint64_t random_state;
static _Atomic uint32_t nr_hits;
static _Atomic(_Atomic uint32_t *) counts;

_Atomic int64_t pl__nr_objects;
_Atomic int64_t pl__nr_mapped;

void pl__fault_plan(enum pl__fault_plan p, uint32_t n, uint64_t seed)
{
	atomic_store(&plan, PL__FAULT_NONE);
	atomic_store(&nr_left, n);
	atomic_store(&one_in, n);
	atomic_store(&random_state, seed);
	atomic_store(&nr_hits, 0);
	atomic_store(&plan, p);
}

uint32_t pl__fault_nr_hits(void)
{
	return atomic_load(&nr_hits);
}

size_t pl__fault_sites(const struct pl__fault_site **sites)
{
	*sites = __start_pl__faults;
	return (size_t)(__stop_pl__faults - __start_pl__faults);
}

void pl__fault_count(_Atomic uint32_t *hits)
{
	atomic_store(&counts, hits);
}

/*
 * Each call gets a number of its own, in whatever thread.  The plan may change
 * meanwhile.
 */
static bool is_by_chance(void)
{
	uint64_t x = atomic_fetch_add(&random_state, 0x9e3779b97f4a7c15ULL);
	uint32_t n = load_relaxed(&one_in);

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return n && (x ^ x >> 31) % n == 0;
}

static bool is_planned(void)
{
	switch (load_relaxed(&plan)) {
	case PL__FAULT_NTH:
		return atomic_fetch_sub(&nr_left, 1) == 1;
	case PL__FAULT_FROM:
		return atomic_fetch_sub(&nr_left, 1) <= 1;
	case PL__FAULT_ONE_IN:
		return is_by_chance();
	}
	return false;
}

bool pl__fault(const struct pl__fault_site *site)
{
	_Atomic uint32_t *hits = load_relaxed(&counts);

	if (likely(!is_planned()))
		return false;
	atomic_fetch_add(&nr_hits, 1);
	if (hits)
		atomic_fetch_add(&hits[site - __start_pl__faults], 1);
	return true;
}

#endif /* PL_TEST_FAULT */
