/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The C library's, in programs that have tasks: see parklot/child.h. */
#pragma GCC system_header

/* Without a guard: it has its own, and may be asked for a part only. */
#include_next <stdio.h>
#if !defined(__need_FILE) && !defined(__need___FILE)
# include "../child.h"
#endif
