/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "queue/rt.h"
#include "base/inject.h"

struct pl__rt pl__rt;

bool pl__rt_enter(void)
{
	uint32_t state;

	/* [inside-a] pairs with [inside-b] in wait_outside(). */
	atomic_fetch_add(&pl__stripe()->inside, 1);
	PL_INJECT("inside-a");
	state = atomic_load(&pl__rt.state);
	if (likely(state == PL__RT_RUNNING || state == PL__RT_STOPPING))
		return true;
	pl__rt_exit();
	return false;
}

void pl__rt_exit(void)
{
	atomic_fetch_sub(&pl__stripe()->inside, 1);
}
