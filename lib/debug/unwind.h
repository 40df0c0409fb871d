/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * unwind: the calls that led a context, which does not run, to its switch
 *
 * Follows the frame pointers, if those of the program are there: of the library
 * only public functions have them, see base/frame.h.  If not, lists every
 * word on the stack that may be a return address, marked as a guess: that finds
 * every caller, and now and then a call that returned long ago.
 *
 * The context may run meanwhile, and its stack be unmapped: then the result is
 * useless, but nothing else happens.
 */
#ifndef PL_UNWIND_H
#define PL_UNWIND_H

#include "ctx/switch.h"

#define PL__UNWIND_MAX	24

struct pl__unwind {
	uint32_t	nr;
	bool		is_guess;	/* all but the first are guesses */
	uintptr_t	pc[PL__UNWIND_MAX];
};

/* Unwinds the context that saved @sp, on a stack that ends at @high. */
void pl__unwind_from(struct pl__unwind *tr, const void *sp, const void *high);

#endif /* PL_UNWIND_H */
