/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * errno in tasks.
 *
 * The C library says that the address of errno never changes, so a compiler
 * asks for it once in a function; but after a call that blocks or yields a task
 * may be on another thread.  Here the address is asked for at each use.  The
 * library keeps the value of errno with the task.
 *
 * <parklot.h> includes this.  For files that do not, the flags of parklot.pc
 * have parklot/wrap/errno.h found as <errno.h>.
 */
#ifndef PARKLOT_ERRNO_H
#define PARKLOT_ERRNO_H

#include <errno.h>

#if defined(__GNUC__)
static inline int *pl__errno_location(void)
{
	int *(*location)(void) = __errno_location;

	/* Any function, as far as the compiler knows. */
	__asm__ volatile("" : "+r"(location));
	return location();
}

# undef errno
# define errno			(*pl__errno_location())
#endif

#endif /* PARKLOT_ERRNO_H */
