/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "rt/sanitizer.h"

#ifdef PL_TSAN

void pl__sanitizer_warn(void)
{
}

#else

/* ThreadSanitizer's start, in a program that was built with it. */
void __tsan_init(void) __attribute__((weak));

void pl__sanitizer_warn(void)
{
	static _Atomic bool has_warned;

	if (__tsan_init && !atomic_exchange(&has_warned, true))
		fputs("parklot: ThreadSanitizer does not see what this library orders: link with parklot-tsan, see parklot-debug(7)\n",
		      stderr);
}

#endif
