/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "park/parker.h"
#include "base/inject.h"
#include "base/sys.h"

#include <limits.h>

/*
 * The half of the state that holds the small numbers; the kernel's futex word.
 */
static _Atomic uint32_t *futex_of(struct pl__parker *s)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "which half");
	return (_Atomic uint32_t *)(void *)&s->state;
}

bool pl__parker_park(struct pl__parker *s, uint64_t deadline_ns)
{
	while (!pl__parker_is_woken(s)) {
		PL_INJECT("parker-a");
		if (pl__futex_wait(futex_of(s), (uint32_t)PL__PARKER_FUTEX,
				   deadline_ns) == -ETIMEDOUT)
			return pl__parker_is_woken(s);
	}
	return true;
}

void pl__parker_unpark(struct pl__parker *s)
{
	uintptr_t old;

	/* [parker-b] pairs with [parker-a] in pl__parker_is_woken(). */
	old = atomic_exchange_explicit(&s->state, PL__PARKER_WOKEN,
				       memory_order_acq_rel);
	PL_INJECT("parker-b");
	if (old == PL__PARKER_FUTEX)
		pl__futex_wake(futex_of(s), 1);
	else if (old > PL__PARKER_WOKEN)
		pl__bell_ring((struct pl__bell *)old);
}

void pl__bell_ring(struct pl__bell *b)
{
	static const uint64_t one = 1;

	int eventfd = load_relaxed(&b->eventfd);

	if (eventfd >= 0) {
		pl__fd_write(eventfd, &one, sizeof(one));
		return;
	}
	/* [bell-a] pairs with [bell-b] in ring_uring.c. */
	atomic_fetch_add(&b->nr_rung, 1);
	PL_INJECT("bell-a");
	/*
	 * A thief that polled the ring of a stalled owner may wait on this
	 * futex, too, and then stall itself: so wake all.
	 */
	pl__futex_wake(&b->nr_rung, INT_MAX);
	/* [failure-b] pairs with [failure-a] in ring_poll.c. */
	PL_INJECT("failure-b");
	pl__full_barrier();
	eventfd = load_relaxed(&b->eventfd);
	if (unlikely(eventfd >= 0))
		pl__fd_write(eventfd, &one, sizeof(one));
}
