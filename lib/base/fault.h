/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * fault: failures of calls that take memory, mappings, descriptors or threads
 *
 * PL_FAULTY(failed, call) is the call; in a build with -DPL_TEST_FAULT it may
 * be @failed instead, without the call, as a test plans it.  The linker lists
 * each place with a PL_FAULTY, so that a test can tell which it never made
 * fail.  sys.h has it around its own calls, so that their callers need not
 * know.
 */
#ifndef PL_FAULT_H
#define PL_FAULT_H

#include "base/base.h"

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

#endif /* PL_FAULT_H */
