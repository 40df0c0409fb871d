/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sleep: waiting until a deadline, for nothing else
 */
#include "base/sys.h"
#include "wait/wait_lone.h"

uint64_t pl_now(void)
{
	return pl__now_ns();
}

int pl_sleep_until(uint64_t deadline_ns)
{
	_Atomic uint32_t never = 0;
	struct pl__task *t;
	int ret = pl__wait_pending();

	if (ret)
		return ret;
	t = pl__wait_lone_begin(&never);
	/*
	 * A late wake for a word that was at this address before is not the
	 * deadline, nor is an old timer.
	 */
	do {
		ret = t ? pl__wait_lone(t, deadline_ns, PL__FOR_SLEEP) :
			  pl__wait(&never, 0, deadline_ns, PL__FOR_SLEEP);
	} while (!ret || ret == -EAGAIN);
	if (t)
		pl__wait_lone_end(t);
	return ret == -ETIMEDOUT ? 0 : ret;
}

int pl_sleep(uint64_t ns)
{
	uint64_t now = pl__now_ns();

	return pl_sleep_until(ns < PL_FOREVER - now ? now + ns : PL_FOREVER);
}
