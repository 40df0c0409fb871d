/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * symbol: what lies at an address of the program's
 *
 * As the dynamic linker knows it: it is asked, and may have to be waited for.
 */
#ifndef PL_SYMBOL_H
#define PL_SYMBOL_H

#include "base/sigsafe_buf.h"

/* Whether it is code, and right behind a call. */
bool pl__symbol_is_return(uintptr_t pc);

/*
 * "program+0x1234", which addr2line takes, and " function+0x34" where that is
 * exported.  A return address is told as its call.
 */
void pl__symbol_put(struct pl__sigsafe_buf *t, uintptr_t pc, bool is_return);

#endif /* PL_SYMBOL_H */
