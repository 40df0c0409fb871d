/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sleep: waiting until the deadline on a word that no other task knows
 */
#include "base/sys.h"
#include "wait/wait.h"

uint64_t pl_now(void)
{
	return pl__now_ns();
}

int pl_sleep_until(uint64_t deadline_ns)
{
	_Atomic uint32_t never = 0;
	int ret = pl__wait_pending();

	/*
	 * A late wake for a word that was at this address before is not the
	 * deadline.
	 */
	while (!ret)
		ret = pl__wait(&never, 0, deadline_ns, PL__FOR_SLEEP);
	return ret == -ETIMEDOUT ? 0 : ret;
}

int pl_sleep(uint64_t ns)
{
	uint64_t now = pl__now_ns();

	return pl_sleep_until(ns < PL_FOREVER - now ? now + ns : PL_FOREVER);
}
