/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "io/io_order.h"

#ifdef PL_TSAN

#include <sanitizer/tsan_interface.h>

static char all_io;

void pl__io_order_release(void)
{
	__tsan_release(&all_io);
}

void pl__io_order_acquire(void)
{
	__tsan_acquire(&all_io);
}

#endif
