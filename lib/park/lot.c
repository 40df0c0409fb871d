/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "park/lot.h"
#include "base/inject.h"
#include "base/sys.h"

/* The number of lines in use of a runtime without a crew: 0. */
static _Atomic uint32_t no_lines;

static void init_one(struct pl__lot *lot)
{
	lot->seq = &lot->seq_own;
	list_init(&lot->sleepers);
}

int pl__lots_init(struct pl__lots *lots, uint32_t nr, bool device,
		  uint32_t nr_members)
{
	uint32_t i;
	int ret = 0;

	*lots = (struct pl__lots){ .nr = nr, .fd = -1, .nr_cpus = &no_lines };
	lots->lot = pl__alloc_aligned(PL_CACHELINE, nr * sizeof(*lots->lot));
	if (!lots->lot)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		init_one(&lots->lot[i]);

	lots->nr_members = device ? nr_members : 0;
	if (device)
		ret = pl__lots_dev_init(lots);
	else
		pl__lots_futex_init(lots);
	if (ret)
		pl__free(lots->lot);
	return ret;
}

void pl__lots_fini(struct pl__lots *lots)
{
	lots->ops->fini(lots);
	lots->ops = NULL;
	lots->nr_cpus = &no_lines;
	pl__free(lots->lot);
}

void pl__lots_abandon(struct pl__lots *lots)
{
	if (lots->ops && lots->fd >= 0)
		pl__close(lots->fd);
}

uint32_t pl__lot_peek(struct pl__lots *lots, uint32_t i)
{
	return atomic_load(lots->lot[i].seq);
}

enum pl__lot_reason pl__lot_park(struct pl__lots *lots, uint32_t i,
				 struct pl__lot_entry *e, uint64_t deadline_ns,
				 uint32_t seq)
{
	return lots->ops->park(lots, i, e, deadline_ns, seq);
}

enum pl__lot_reason pl__lot_park_polling(struct pl__lots *lots, uint32_t i,
					 int fd, uint64_t deadline_ns,
					 uint32_t seq)
{
	return lots->ops->park_polling(lots, i, fd, deadline_ns, seq);
}

uint32_t pl__lots_signal(struct pl__lots *lots, uint32_t first, uint32_t nr)
{
	uint32_t woken = lots->ops->wake(lots, first, nr), i;

	if (woken == nr)
		return woken;
	PL_INJECT("lot-pub");
	/*
	 * [lot-pub]: a worker that looked before this finds seq changed, or is
	 * counted in nr_parked below.
	 */
	for (i = 0; i < lots->nr; i++)
		atomic_fetch_add(lots->lot[i].seq, 2);
	PL_INJECT("lot-pub");
	return woken + lots->ops->wake(lots, first, nr - woken);
}

void pl__lots_stop(struct pl__lots *lots)
{
	uint32_t i;

	for (i = 0; i < lots->nr; i++)
		atomic_fetch_or(lots->lot[i].seq, 1);
	lots->ops->wake(lots, 0, UINT32_MAX);
}
