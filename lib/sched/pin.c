/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/pin.h"
#include "base/atfork.h"
#include "base/sys.h"

#include <string.h>

/* The only instance.  S: start_lock held, or the runtime starts. */
static struct {
	struct pl__cpu_set	cpus;			/* S */
	_Atomic uint32_t	nr_cpus;		/* S writes: in cpus */
	uint16_t		order[PL__CPUS_MAX];	/* S */
} pin;

static void pin_set(const struct pl__topology *t)
{
	pin.cpus = t->cpus;
	store_relaxed(&pin.nr_cpus, t->nr_cpus);
	pl__topology_order(t, pin.order);
}

/*
 * A CPU may have gone offline since: then the kernel refuses the set or runs
 * the thread elsewhere, and sysmon sees other CPUs at its next look.
 */
void pl__pin_worker(struct pl__worker *w)
{
	struct pl__cpu_set one;
	int tid = load_relaxed(&w->tid);

	if (!pl__rt.cfg.pin_workers || !tid)
		return;
	if (w->index >= load_relaxed(&pin.nr_cpus)) {
		pl__affinity_set(tid, &pin.cpus);
		return;
	}
	memset(&one, 0, sizeof(one));
	pl__cpu_set_add(&one, pin.order[w->index]);
	pl__affinity_set(tid, &one);
}

int pl__pin_start(const struct pl__topology *t)
{
	int ret;

	if (!pl__rt.cfg.pin_workers)
		return 0;
	ret = pl__affinity_probe();
	if (!ret)
		pin_set(t);
	return ret;
}

void pl__pin_stop(void)
{
	store_relaxed(&pin.nr_cpus, 0);
}

void pl__pin_all(const struct pl__topology *t)
{
	uint32_t nr, i;

	if (!pl__rt.cfg.pin_workers)
		return;
	pl__lock(&pl__rt.start_lock);
	pin_set(t);
	nr = load_relaxed(&pl__rt.nr_started);
	for (i = 0; i < nr; i++)
		pl__pin_worker(pl__rt.workers[i]);
	pl__unlock(&pl__rt.start_lock);
}

uint32_t pl__pin_nr_cpus(void)
{
	return load_relaxed(&pin.nr_cpus);
}

PL_ATFORK_CHILD(pl__pin_stop);
