/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* The C library's, in programs that have tasks: see parklot/child.h. */
#pragma GCC system_header

#include_next <spawn.h>
#include "../child.h"
