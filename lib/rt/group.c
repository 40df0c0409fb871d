/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * group: the start and end of a group of workers
 */
#include "rt/runtime.h"
#include "rt/config.h"
#include "pace/pace.h"
#include "pace/worker_thread.h"
#include "queue/place.h"
#include "queue/ready.h"

#include <string.h>

/* ---- lots ---- */

static int open_lots(struct pl__group *g, enum pl_backend want)
{
	uint32_t nr = pl__rt.cfg.nr_lots;
	int ret = -ENODEV;

	if (want != PL_BACKEND_FUTEX)
		ret = pl__lots_init(&g->lots, nr, true,
				    pl__rt.has_sysmon ? g->max_workers : 0);
	if (!ret)
		return 0;
	if (want == PL_BACKEND_MODULE) {
		if (pl__config_backend_is_env())
			fprintf(stderr,
				"parklot: PARKLOT_BACKEND=module: cannot use /dev/parklot: %s%s\n",
				strerror(-ret), ret == -ENOMEM ?
				"; its pages count against RLIMIT_MEMLOCK" :
				"");
		return -ENODEV;
	}
	return pl__lots_init(&g->lots, nr, false, 0);
}

/* ---- the group ---- */

/* For as many workers as there may be, and their locations. */
static int group_slots_init(struct pl__group *g)
{
	g->workers = pl__alloc(g->max_workers * sizeof(*g->workers));
	g->locations = pl__locations_new(g->max_workers);
	return g->workers && g->locations ? 0 : -ENOMEM;
}

static void group_slots_fini(struct pl__group *g)
{
	pl__free(g->locations);
	pl__free(g->workers);
	g->locations = NULL;
	g->workers = NULL;
}

int pl__group_init(struct pl__group *g, uint32_t nr_workers,
		   enum pl_backend backend)
{
	int ret = group_slots_init(g);

	if (!ret)
		ret = open_lots(g, backend);
	if (ret) {
		group_slots_fini(g);
		return ret;
	}
	store_relaxed(&g->target, nr_workers);
	pl__inboxes_start(g, nr_workers);
	pl__relief_reset(g);
	pl__elastic_start(g, pl__rt.has_sysmon && !pl__rt.cfg.fixed_workers);
	return 0;
}

void pl__group_fini(struct pl__group *g)
{
	pl__lots_fini(&g->lots);
	group_slots_fini(g);
	memset(g, 0, sizeof(*g));
}

int pl__group_start(struct pl__group *g)
{
	uint32_t i;
	int ret;

	for (i = 0; i < g->min_workers; i++) {
		ret = pl__worker_start(g, false);
		if (ret && !i)
			return ret;
		if (ret)
			break;
	}
	return 0;
}
