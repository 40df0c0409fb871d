/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "run/orphan_ring.h"
#include "ring/ring.h"
#include "pace/sysmon_wake.h"

void pl__ring_take_back(struct pl__worker *w)
{
	uint32_t ready = PL__ORPHAN_READY;

	if (unlikely(load_relaxed(&w->ring_state) == ready))
		atomic_compare_exchange_strong(&w->ring_state, &ready,
					       PL__OWNED);
}

void pl__ring_reap_orphan(struct pl__worker *w, struct pl__worker *victim)
{
	uint32_t ready = PL__ORPHAN_READY, orphaned = PL__ORPHANED;
	struct pl__ring *ring;
	int fd;

	if (!atomic_compare_exchange_strong(&victim->ring_state, &ready,
					    PL__ORPHANED))
		return;
	ring = pl__orphan_ring_of(victim);
	fd = pl__ring_fd(ring);
	if (pl__ring_poll_for_owner(ring, &w->nr_for_others)) {
		/* Sysmon may wait for the earlier one. */
		if (unlikely(pl__ring_fd(ring) != fd))
			pl__sysmon_notify_io();
		return;
	}
	atomic_compare_exchange_strong(&victim->ring_state, &orphaned,
				       PL__OWNED);
	pl__sysmon_notify_io();
}
