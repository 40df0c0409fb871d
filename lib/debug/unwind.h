/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * unwind: by what calls a context came where it does not run
 *
 * Along its frame pointers, if all of them are there.  If not, whatever on the
 * stack may be a return address is told as a guess: that finds every caller,
 * and now and then one that returned long ago.
 *
 * The context may run meanwhile, and its stack be unmapped: then what is found
 * is of no use, and that is all.
 */
#ifndef PL_UNWIND_H
#define PL_UNWIND_H

#include "ctx/switch.h"

#define PL__UNWIND_MAX	24

struct pl__unwind {
	uint32_t	nr;
	bool		is_guess;	/* but for the first */
	uintptr_t	pc[PL__UNWIND_MAX];
};

/* Of what left its registers at @sp, on a stack that ends at @high. */
void pl__unwind_from(struct pl__unwind *tr, const void *sp, const void *high);

#endif /* PL_UNWIND_H */
