/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * cpu_set: a set of CPUs by their numbers, as the kernel's affinity calls and
 * sysfs have it
 *
 * The C library's cpu_set_t ends at 1024 CPUs: on a larger machine the kernel
 * refuses it.
 */
#ifndef PL_CPU_SET_H
#define PL_CPU_SET_H

#include "base/base.h"

/* The most that Linux is built for. */
#define PL__CPUS_MAX		8192
#define PL__CPU_SET_BITS	(8 * sizeof(unsigned long))

struct pl__cpu_set {
	unsigned long	bits[PL__CPUS_MAX / PL__CPU_SET_BITS];
};

static inline bool pl__cpu_set_has(const struct pl__cpu_set *set, uint32_t cpu)
{
	return set->bits[cpu / PL__CPU_SET_BITS] >> cpu % PL__CPU_SET_BITS & 1;
}

static inline void pl__cpu_set_add(struct pl__cpu_set *set, uint32_t cpu)
{
	set->bits[cpu / PL__CPU_SET_BITS] |= 1UL << cpu % PL__CPU_SET_BITS;
}

/* Removes from @set what @other lacks. */
static inline void pl__cpu_set_and(struct pl__cpu_set *set,
				   const struct pl__cpu_set *other)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(set->bits); i++)
		set->bits[i] &= other->bits[i];
}

/* Removes from @set what @other has. */
static inline void pl__cpu_set_sub(struct pl__cpu_set *set,
				   const struct pl__cpu_set *other)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(set->bits); i++)
		set->bits[i] &= ~other->bits[i];
}

static inline uint32_t pl__cpu_set_count(const struct pl__cpu_set *set)
{
	uint32_t nr = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(set->bits); i++)
		nr += (uint32_t)__builtin_popcountl(set->bits[i]);
	return nr;
}

/* The first CPU from @cpu on, or PL__CPUS_MAX. */
static inline uint32_t pl__cpu_set_next(const struct pl__cpu_set *set,
					uint32_t cpu)
{
	size_t i = cpu / PL__CPU_SET_BITS;
	unsigned long bits;

	if (cpu >= PL__CPUS_MAX)
		return PL__CPUS_MAX;
	bits = set->bits[i] >> cpu % PL__CPU_SET_BITS;
	if (bits)
		return cpu + (uint32_t)__builtin_ctzl(bits);
	while (++i < ARRAY_SIZE(set->bits))
		if (set->bits[i])
			return (uint32_t)(i * PL__CPU_SET_BITS) +
			       (uint32_t)__builtin_ctzl(set->bits[i]);
	return PL__CPUS_MAX;
}

#endif /* PL_CPU_SET_H */
