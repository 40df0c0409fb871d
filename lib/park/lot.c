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

/*
 * lot_futex: sleepers in a list of the lot's, each on a futex of its own
 *
 * So the order of waking and the exact counts are those of the device.
 */

bool pl__lot_list(struct pl__lots *lots, uint32_t i, struct pl__lot_entry *e,
		  struct pl__bell *bell, uint32_t seq)
{
	struct pl__lot *lot = &lots->lot[i];
	bool same;

	pl__parker_arm(&e->parker, bell);
	pl__lock(&lot->lock);
	if (e->is_last)
		list_add_tail(&e->list, &lot->sleepers);
	else
		list_add(&e->list, &lot->sleepers);
	/* [lot-a] pairs with [lot-b] in lot_list_wake(). */
	atomic_fetch_add(&lot->nr_parked, 1);
	PL_INJECT("lot-a");
	/* [lot-c] pairs with [lot-pub] in pl__lots_signal(). */
	same = atomic_load(lot->seq) == seq;
	if (!same) {
		list_del_init(&e->list);
		atomic_fetch_sub(&lot->nr_parked, 1);
	}
	pl__unlock(&lot->lock);
	return same;
}

bool pl__lot_unlist(struct pl__lots *lots, uint32_t i, struct pl__lot_entry *e)
{
	struct pl__lot *lot = &lots->lot[i];
	bool listed;

	pl__lock(&lot->lock);
	listed = !list_empty(&e->list);
	if (listed) {
		list_del_init(&e->list);
		atomic_fetch_sub(&lot->nr_parked, 1);
	}
	pl__unlock(&lot->lock);
	return listed;
}

/* The one that parked last.  @are_last: NULL, or set where one is left. */
static struct pl__lot_entry *take_last_parked(struct pl__lot *lot,
					      bool *are_last)
{
	struct pl__lot_entry *e = NULL;

	pl__lock(&lot->lock);
	if (!list_empty(&lot->sleepers)) {
		e = list_entry(lot->sleepers.next, struct pl__lot_entry, list);
		if (e->is_last && are_last) {
			*are_last = true;
			e = NULL;
		}
	}
	if (e) {
		list_del_init(&e->list);
		atomic_fetch_sub(&lot->nr_parked, 1);
	}
	pl__unlock(&lot->lock);
	return e;
}

static uint32_t lot_list_wake(struct pl__lot *lot, uint32_t nr, bool *are_last)
{
	struct pl__lot_entry *e;
	uint32_t woken = 0;

	/* [lot-b] pairs with [lot-a] in pl__lot_list(). */
	while (woken < nr && atomic_load(&lot->nr_parked)) {
		e = take_last_parked(lot, are_last);
		if (!e)
			break;
		PL_INJECT("lot-b");
		pl__parker_unpark(&e->parker);
		woken++;
	}
	return woken;
}

uint32_t pl__lots_list_wake(struct pl__lots *lots, uint32_t first, uint32_t nr,
			    bool *are_last)
{
	uint32_t i, woken = 0;

	for (i = 0; i < lots->nr && woken < nr; i++)
		woken += lot_list_wake(&lots->lot[(first + i) % lots->nr],
				       nr - woken, are_last);
	return woken;
}

static enum pl__lot_reason lot_futex_park(struct pl__lots *lots, uint32_t i,
					  struct pl__lot_entry *e,
					  uint64_t deadline_ns, uint32_t seq)
{
	if (!pl__lot_list(lots, i, e, NULL, seq))
		return PL__LOT_CHANGED;
	if (pl__parker_park(&e->parker, deadline_ns))
		return PL__LOT_WOKEN;
	if (pl__lot_unlist(lots, i, e))
		return PL__LOT_LATE;
	/*
	 * The waker that removed this worker from the list is about to wake it.
	 */
	pl__parker_park(&e->parker, UINT64_MAX);
	return PL__LOT_WOKEN;
}

static uint32_t lot_futex_wake(struct pl__lots *lots, uint32_t first,
			       uint32_t nr)
{
	bool are_last = false;
	uint32_t woken = pl__lots_list_wake(lots, first, nr, &are_last);

	if (woken < nr && are_last)
		woken += pl__lots_list_wake(lots, first, nr - woken, NULL);
	return woken;
}

static void lot_futex_fini(struct pl__lots *lots)
{
	(void)lots;
}

static const struct pl__lots_ops futex_ops = {
	.park	= lot_futex_park,
	.wake	= lot_futex_wake,
	.fini	= lot_futex_fini,
};

void pl__lots_futex_init(struct pl__lots *lots)
{
	lots->ops = &futex_ops;
}
