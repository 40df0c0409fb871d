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
#include "base/sigsafe_buf.h"

#define PL__UNWIND_MAX	24

struct pl__unwind {
	uint32_t	nr;
	bool		is_guess;	/* all but the first are guesses */
	uintptr_t	pc[PL__UNWIND_MAX];
};

/* Unwinds the context that saved @sp, on a stack that ends at @high. */
void pl__unwind_from(struct pl__unwind *tr, const void *sp, const void *high);

/*
 * symbol: the symbol at an address of the program
 *
 * Asks the dynamic linker, which may make the caller wait for its lock.
 */

/* True: @pc is code, and follows a call. */
bool pl__symbol_is_return(uintptr_t pc);

/*
 * Puts "program+0x1234", which addr2line takes, and " function+0x34" if the
 * function is exported.  For a return address it puts that of the call.
 */
void pl__symbol_put(struct pl__sigsafe_buf *t, uintptr_t pc, bool is_return);

#endif /* PL_UNWIND_H */
