/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * symbol: the symbol at an address of the program
 *
 * Asks the dynamic linker, which may make the caller wait for its lock.
 */
#ifndef PL_SYMBOL_H
#define PL_SYMBOL_H

#include "base/sigsafe_buf.h"

/* True: @pc is code, and follows a call. */
bool pl__symbol_is_return(uintptr_t pc);

/*
 * Puts "program+0x1234", which addr2line takes, and " function+0x34" if the
 * function is exported.  For a return address it puts that of the call.
 */
void pl__symbol_put(struct pl__sigsafe_buf *t, uintptr_t pc, bool is_return);

#endif /* PL_SYMBOL_H */
