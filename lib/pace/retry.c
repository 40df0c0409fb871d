/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * retry: retries after a while what failed for want of memory or threads
 */
#include "pace/retry.h"
#include "pace/notify.h"
#include "base/sys.h"

#define RETRY_NS	(10 * 1000 * 1000)

void (*pl__retry_stacks)(void);

static void retry_deferred(void);

void pl__retry_deferred_in(uint64_t ns)
{
	pl__timers_remind(pl__rt.timers, pl__now_ns() + ns, retry_deferred);
}

/*
 * Runs in the timer thread: a blocked worker cannot retry, and a worker that is
 * about to park should not spend its time on giving stacks back.
 */
static void retry_deferred(void)
{
	uint64_t ns;

	if (!pl__rt_enter()) {
		pl__retry_later();
		return;
	}
	pl__retry_stacks();
	pl__notify_if_work();
	ns = pl__stacks_age(&pl__rt.stacks, pl__now_ns());
	if (ns != UINT64_MAX)
		pl__retry_deferred_in(ns);
	pl__rt_exit();
}

void pl__retry_later(void)
{
	pl__retry_deferred_in(RETRY_NS);
}
