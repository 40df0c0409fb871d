/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * lot_dev: sleepers in the kernel, by /dev/parklot
 *
 * The sequence words are in the page that the process writes, nr_parked of each
 * lot in the page that the kernel writes.  So a signaller sees without a system
 * call that no worker is parked, and wakes workers of several lots by one call.
 * A worker that sleeps in its ring, rather than have the device poll it, is in
 * the list of lot.c.
 */
#include "park/lot.h"
#include "base/inject.h"
#include "base/sys.h"

#include <fcntl.h>
#include <linux/parklot.h>
#include <poll.h>
#include <sys/mman.h>

static enum pl__lot_reason reason_of(uint32_t reason)
{
	switch (reason) {
	case PARKLOT_WOKEN:
		return PL__LOT_WOKEN;
	case PARKLOT_POLLED:
		return PL__LOT_POLLED;
	case PARKLOT_TIMEDOUT:
		return PL__LOT_LATE;
	}
	return PL__LOT_CHANGED;
}

static enum pl__lot_reason lot_dev_park_polling(struct pl__lots *lots,
						uint32_t i,
						int fd, uint64_t deadline_ns,
						uint32_t seq)
{
	struct parklot_park p = {
		.lot = i,
		.expected_seq = seq,
		.deadline_ns = deadline_ns,
		.pollfd = fd,
		.poll_events = fd < 0 ? 0 : POLLIN,
	};
	int ret;

	/*
	 * The kernel does [lot-c]: it compares seq once the sleeper is listed.
	 */
	do {
		ret = pl__ioctl(lots->fd, PARKLOT_IOC_PARK, &p);
	} while (ret == -EINTR || (!ret && p.reason == PARKLOT_INTERRUPTED));
	PL_BUG_ON(ret);
	if (p.reason == PARKLOT_CALLED)
		atomic_fetch_add_explicit(&lots->nr_called, 1,
					  memory_order_relaxed);
	return reason_of(p.reason);
}

static enum pl__lot_reason lot_dev_park(struct pl__lots *lots, uint32_t i,
					struct pl__lot_entry *e,
					uint64_t deadline_ns, uint32_t seq)
{
	(void)e;
	_Static_assert(PARKLOT_FOREVER == UINT64_MAX, "ours, too");
	return lot_dev_park_polling(lots, i, -1, deadline_ns, seq);
}

static bool has_parked(struct pl__lots *lots, uint32_t i)
{
	/* [lot-b] pairs with [lot-a], which the kernel does here. */
	return __atomic_load_n(&lots->counters->lot[i].nr_parked,
			       __ATOMIC_SEQ_CST);
}

static uint32_t wake_batch(struct pl__lots *lots,
			   struct parklot_wake_entry *entries,
			   uint32_t nr_entries, uint32_t limit)
{
	struct parklot_wake wake = {
		.entries = (uintptr_t)entries,
		.nr_entries = nr_entries,
		.limit = limit,
	};
	int ret;

	if (!nr_entries)
		return 0;
	PL_INJECT("lot-b");
	ret = pl__ioctl(lots->fd, PARKLOT_IOC_WAKE, &wake);
	PL_BUG_ON(ret);
	if (!wake.woken)
		atomic_fetch_add_explicit(&lots->nr_empty, 1,
					  memory_order_relaxed);
	return wake.woken;
}

static uint32_t wake_device(struct pl__lots *lots, uint32_t first, uint32_t nr)
{
	struct parklot_wake_entry entries[PARKLOT_MAX_BATCH];
	uint32_t i, lot, nr_entries = 0, woken = 0;

	for (i = 0; i < lots->nr && woken < nr; i++) {
		lot = (first + i) % lots->nr;
		if (!has_parked(lots, lot))
			continue;
		entries[nr_entries++] = (struct parklot_wake_entry){
			.lot = lot,
			.nr = nr - woken,
		};
		if (nr_entries == PARKLOT_MAX_BATCH) {
			woken += wake_batch(lots, entries, nr_entries,
					    nr - woken);
			nr_entries = 0;
		}
	}
	if (woken < nr)
		woken += wake_batch(lots, entries, nr_entries, nr - woken);
	return woken;
}

static uint32_t lot_dev_wake(struct pl__lots *lots, uint32_t first, uint32_t nr)
{
	bool are_last = false;
	uint32_t woken = pl__lots_list_wake(lots, first, nr, &are_last);

	if (woken < nr)
		woken += wake_device(lots, first, nr - woken);
	if (woken < nr && are_last)
		woken += pl__lots_list_wake(lots, first, nr - woken, NULL);
	return woken;
}

static void lot_dev_fini(struct pl__lots *lots)
{
	int fd;

	if (lots->words)
		pl__unmap(lots->words, lots->words_size);
	if (lots->counters)
		pl__unmap((void *)lots->counters, lots->counters_size);
	fd = lots->fd;
	/*
	 * Set first, so that a child of fork() does not close another
	 * descriptor.
	 */
	lots->fd = -1;
	pl__close(fd);
}

static const struct pl__lots_ops dev_ops = {
	.park		= lot_dev_park,
	.park_polling	= lot_dev_park_polling,
	.wake		= lot_dev_wake,
	.fini		= lot_dev_fini,
};

static int map(struct pl__lots *lots)
{
	struct parklot_setup setup = {
		.nr_lots = lots->nr,
		.nr_workers = lots->nr_members,
	};
	uint32_t i;
	int ret;

	ret = PL_FAULTY(-ENOMEM, pl__ioctl(lots->fd, PARKLOT_IOC_SETUP,
					   &setup));
	if (ret)
		return ret;
	lots->words_size = setup.words_size;
	lots->counters_size = setup.counters_size;
	lots->words = pl__map_fd(lots->fd, lots->words_size,
				 PROT_READ | PROT_WRITE, PARKLOT_OFF_WORDS);
	lots->counters = pl__map_fd(lots->fd, lots->counters_size, PROT_READ,
				    PARKLOT_OFF_COUNTERS);
	if (!lots->words || !lots->counters)
		return -ENOMEM;
	for (i = 0; i < lots->nr; i++)
		lots->lot[i].seq =
			(_Atomic uint32_t *)&lots->words->lot[i].seq;
	pl__crew_init(lots);
	return 0;
}

static int check_version(struct pl__lots *lots)
{
	struct parklot_query query = { 0 };
	int ret = PL_FAULTY(-ENOMEM, pl__ioctl(lots->fd, PARKLOT_IOC_QUERY,
					       &query));

	if (ret)
		return ret;
	if (query.abi_version != PARKLOT_ABI_VERSION ||
	    lots->nr > query.max_lots)
		return -EOPNOTSUPP;
	if (!(query.features & PARKLOT_FEAT_CREW) ||
	    lots->nr_members > query.max_workers)
		lots->nr_members = 0;
	lots->can_poll = query.features & PARKLOT_FEAT_POLLFD;
	return 0;
}

int pl__lots_dev_init(struct pl__lots *lots)
{
	int ret;

	lots->fd = pl__fd_move_up(pl__open("/dev/parklot", O_RDWR));
	if (lots->fd < 0)
		return lots->fd;
	ret = check_version(lots);
	if (!ret)
		ret = map(lots);
	if (ret)
		lot_dev_fini(lots);
	else
		lots->ops = &dev_ops;
	return ret;
}

/* A worker that returns within this time is not replaced. */
#define STALL_NS	(50 * 1000)

void pl__crew_init(struct pl__lots *lots)
{
	if (lots->nr_members)
		lots->nr_cpus = (_Atomic uint32_t *)
				(uintptr_t)&lots->counters->nr_cpus;
}

/*
 * Reads `out' first: a worker that has been counted as out has been counted as
 * in before.  The device has a full barrier between the two where a worker
 * blocks.
 */
uint32_t pl__crew_sum_blocked(const struct pl__lots *lots)
{
	const struct parklot_cpu_counters *line =
		(const void *)((const char *)lots->counters +
			       PARKLOT_CPU_OFFSET(lots->nr, 0));
	uint32_t i, nr = 0;

	for (i = 0; i < load_relaxed(lots->nr_cpus); i++)
		nr -= __atomic_load_n(&line[i].blocked.out, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_acquire);
	PL_INJECT("sum");
	for (i = 0; i < load_relaxed(lots->nr_cpus); i++)
		nr += __atomic_load_n(&line[i].blocked.in, __ATOMIC_RELAXED);
	return (int32_t)nr < 0 ? 0 : nr;
}

_Atomic uint32_t *pl__crew_join(struct pl__lots *lots, uint32_t slot)
{
	struct parklot_worker worker = { .slot = slot };

	if (slot >= lots->nr_members ||
	    PL_FAULTY(-ENOMEM, pl__ioctl(lots->fd, PARKLOT_IOC_WORKER_JOIN,
					 &worker)))
		return NULL;
	return (_Atomic uint32_t *)((char *)lots->words +
				    PARKLOT_WORKER_OFFSET(lots->nr, slot));
}

void pl__crew_leave(struct pl__lots *lots, uint32_t slot)
{
	struct parklot_worker worker = { .slot = slot };

	PL_BUG_ON(pl__ioctl(lots->fd, PARKLOT_IOC_WORKER_LEAVE, &worker));
}

void pl__crew_set(struct pl__lots *lots, uint32_t target)
{
	struct parklot_crew crew = {
		.target = target,
		.max = target,
		.stall_ns = STALL_NS,
	};

	if (lots->nr_members)
		PL_BUG_ON(pl__ioctl(lots->fd, PARKLOT_IOC_CREW, &crew));
}

void pl__crew_set_backlog(struct pl__lots *lots, bool has_work)
{
	if (lots->nr_members)
		__atomic_store_n(&lots->words->backlog, has_work,
				 __ATOMIC_SEQ_CST);
}
