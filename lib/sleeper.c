/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sleeper.h"
#include "inject.h"
#include "sys.h"

bool pl__sleeper_sleep(struct pl__sleeper *s, uint64_t deadline_ns)
{
	while (!pl__sleeper_is_woken(s)) {
		PL_INJECT("sleep-a");
		if (pl__futex_wait(&s->state, PL__SLEEP_FUTEX, deadline_ns) ==
		    -ETIMEDOUT)
			return pl__sleeper_is_woken(s);
	}
	return true;
}

void pl__sleeper_wake(struct pl__sleeper *s)
{
	static const uint64_t one = 1;
	int fd = s->eventfd;
	uint32_t old;

	/* [sleep-b] pairs with [sleep-a] in pl__sleeper_is_woken(). */
	old = atomic_exchange_explicit(&s->state, PL__SLEEP_WOKEN,
				       memory_order_acq_rel);
	PL_INJECT("sleep-b");
	if (old == PL__SLEEP_FUTEX)
		pl__futex_wake(&s->state, 1);
	else if (old == PL__SLEEP_RING)
		pl__fd_write(fd, &one, sizeof(one));
}
