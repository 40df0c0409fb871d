/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "park/lot.h"
#include "base/inject.h"
#include "base/sys.h"

#include <linux/parklot.h>

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
