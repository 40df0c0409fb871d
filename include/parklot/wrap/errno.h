/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The C library's, in programs that have tasks: see parklot/errno.h. */
#pragma GCC system_header

/* Without a guard: it has its own, and may be asked for a part only. */
#include_next <errno.h>
#include "../errno.h"
