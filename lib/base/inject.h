/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * inject: delays between the steps of a race, for tests
 *
 * PL_INJECT("tag") follows each ordered access, with the access's tag.  In a
 * build with -DPL_TEST_INJECT it now and then spins, yields the CPU or sleeps,
 * driven by PARKLOT_INJECT_SEED; in other builds it is empty.  Stress without
 * it proves little: four million plain rounds did not find a reversed pair of
 * accesses, twenty thousand rounds with it always did.
 */
#ifndef PL_INJECT_H
#define PL_INJECT_H

#include "base/base.h"

#ifdef PL_SIM
# define PL_INJECT(tag)		pl__sim_point(tag)
#elif defined(PL_TEST_INJECT)
void pl__inject(const char *tag);
# define PL_INJECT(tag)		pl__inject(tag)
#else
# define PL_INJECT(tag)		do { } while (0)
#endif

/*
 * fault: failures of calls that take memory, mappings, descriptors or threads
 *
 * PL_FAULTY(failed, call) is the call; in a build with -DPL_TEST_FAULT it may
 * be @failed instead, without the call, as a test plans it.  The linker lists
 * each place with a PL_FAULTY, so that a test can tell which it never made
 * fail.  sys.h has it around its own calls, so that their callers need not
 * know.
 */

#ifdef PL_TEST_FAULT

struct pl__fault_site {
	const char	*call;
	const char	*file;
	uint64_t	line;
	uint64_t	unused;		/* 32 bytes: they lie side by side */
};

enum pl__fault_plan {
	PL__FAULT_NONE,
	PL__FAULT_NTH,		/* the nth call from now on, and no other */
	PL__FAULT_FROM,		/* the nth call from now on, and all later */
	PL__FAULT_ONE_IN,	/* one call in n, at random */
};

/* Replaces the plan; @seed is for ONE_IN. */
void pl__fault_plan(enum pl__fault_plan plan, uint32_t n, uint64_t seed);

/* The number of calls that failed by the plan. */
uint32_t pl__fault_nr_hits(void);

/* The fault sites; @hits of each counts how often it failed. */
size_t pl__fault_sites(const struct pl__fault_site **sites);
void pl__fault_count(_Atomic uint32_t *hits);

bool pl__fault(const struct pl__fault_site *site);

/* Taken and not given back: a number of objects, and of bytes mapped. */
extern _Atomic int64_t pl__nr_objects;
extern _Atomic int64_t pl__nr_mapped;

# define PL_TALLY(what, n)	atomic_fetch_add(&(what), (int64_t)(n))

# define PL_FAULTY(failed, do_call) __extension__ ({			\
	static struct pl__fault_site					\
	__attribute__((section("pl__faults"), used, aligned(32)))	\
	__site = { #do_call, __FILE__, __LINE__, 0 };			\
	pl__fault(&__site) ? (failed) : (do_call);			\
})

#else

# define PL_TALLY(what, n)	do { } while (0)
# define PL_FAULTY(failed, call) (call)

#endif

#endif /* PL_INJECT_H */
