/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * group: the start and end of groups of workers, and what they do
 */
#include "rt/runtime.h"
#include "rt/config.h"
#include "base/atfork.h"
#include "base/sys.h"
#include "debug/stat.h"
#include "pace/notify.h"
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

/* ---- groups of the program ---- */

static struct pl__lock create_lock;

static void group_atfork_child(void)
{
	create_lock = (struct pl__lock){ 0 };
}

PL_ATFORK_CHILD(group_atfork_child);

/* Of all groups that there are; under create_lock. */
static uint32_t nr_workers_most(void)
{
	struct pl__group *g;
	uint32_t nr = 0, i;

	pl__for_each_group(g, i)
		nr += g->max_workers;
	return nr;
}

/* Under create_lock: the numbers of workers, with the defaults filled in. */
static int resolve(struct pl_group_config *c)
{
	uint32_t room = PL_WORKERS_MAX - nr_workers_most();
	bool is_default = !c->max_workers;

	if (!c->nr_workers)
		c->nr_workers = pl__config_target(is_default ? room :
						  c->max_workers);
	if (is_default && c->nr_workers <= room)
		c->max_workers = room - c->nr_workers < 256 ? room :
				 c->nr_workers + 256;
	return !c->nr_workers || c->nr_workers > c->max_workers ||
	       c->max_workers > room || c->reserved ? -EINVAL : 0;
}

/*
 * Where the default group has the device by itself others may go without, but
 * not where workers are to sleep in it.
 */
static enum pl_backend backend_for_more(void)
{
	if (pl__rt.backend == PL_BACKEND_MODULE && pl__rt.wait != PL_WAIT_PARK)
		return (enum pl_backend)pl__rt.cfg.backend;
	return pl__rt.backend;
}

/* Under create_lock. */
static int create(uint32_t index, struct pl_group_config *c)
{
	struct pl__group *g;
	int ret = resolve(c);

	if (ret)
		return ret;
	g = pl__alloc_aligned(PL_CACHELINE, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->index = index;
	if (c->name)
		pl__keep_name(g->name, sizeof(g->name), c->name);
	g->max_workers = c->max_workers;
	g->task_limit.max = c->max_tasks;
	ret = pl__group_init(g, c->nr_workers, backend_for_more());
	if (ret) {
		pl__free(g);
		return ret;
	}
	atomic_fetch_or(&pl__rt.gates, PL__GATE_GROUPS |
			(c->max_tasks ? PL__GATE_TASK_LIMIT : 0));
	pl__rt.groups[index] = g;
	store_release(&pl__rt.nr_groups, index + 1);
	pl__crew_publish_backlog();
	return 0;
}

static int create_entered(pl_group_t *out, struct pl_group_config *c)
{
	uint32_t index;
	int ret;

	pl__lock(&create_lock);
	index = load_relaxed(&pl__rt.nr_groups);
	ret = index < PL_GROUPS_MAX ? create(index, c) : -ENOSPC;
	pl__unlock(&create_lock);
	if (!ret)
		*out = index + 1;
	return ret;
}

int pl_group_create(pl_group_t *out, const struct pl_group_config *cfg)
{
	struct pl_group_config c = PL_GROUP_CONFIG_INIT;
	bool outside = !pl__self();
	int ret;

	if (!out || (cfg && !pl__opts_copy(&c, sizeof(c), cfg)))
		return -EINVAL;
	ret = outside ? pl__runtime_enter() : 0;
	if (ret)
		return ret;
	ret = create_entered(out, &c);
	if (outside)
		pl__rt_exit();
	return ret;
}

pl_group_t pl_group_self(void)
{
	return pl__own_group(pl__self())->index + 1;
}

/* Inside of the runtime; NULL: there is none. */
static struct pl__group *group_by(pl_group_t group)
{
	return group ? pl__group_at(group - 1) : pl__own_group(pl__self());
}

/* ---- target concurrency ---- */

static int set_workers(struct pl__group *g, uint32_t nr)
{
	uint32_t old;

	if (!nr)
		nr = pl__config_target(g->max_workers);
	if (nr > g->max_workers)
		return -EINVAL;
	old = atomic_exchange(&g->target, nr);
	pl__elastic_follow(g);
	/*
	 * A higher target: notifies workers that are idle or not started yet.
	 */
	pl__full_barrier();
	pl__notify_if_work(g);
	/* A lower target: wakes surplus workers that park without a timeout. */
	if (nr < old && pl__is_end_due(g))
		pl__notify_all(g);
	return 0;
}

int pl_group_set_workers(pl_group_t group, uint32_t nr)
{
	bool outside = !pl__self();
	struct pl__group *g;
	int ret = outside ? pl__runtime_enter() : 0;

	if (ret)
		return ret;
	g = group_by(group);
	ret = g ? set_workers(g, nr) : -EINVAL;
	if (outside)
		pl__rt_exit();
	return ret;
}

/* ---- what it does ---- */

static void read_workers(struct pl_group_stat *st, struct pl__group *g)
{
	uint32_t nr = load_acquire(&g->nr_started), i;
	struct pl__worker *w;

	for (i = 0; i < nr; i++) {
		w = g->workers[i];
		st->tasks_ready += (uint32_t)pl__nr_queued(w);
		st->tasks_ended += load_acquire(&w->stat.ended);
		st->cpu_ns += pl__worker_cpu_ns(w);
	}
}

static void read_group(struct pl_group_stat *st, struct pl__group *g)
{
	memcpy(st->name, g->name, sizeof(st->name));
	st->target = load_relaxed(&g->target);
	st->active = load_relaxed(&g->active);
	st->max_workers = g->max_workers;
	st->workers = load_relaxed(&g->nr_alive);
	st->workers_parked = load_relaxed(&g->nr_idle);
	st->workers_blocked = pl__nr_blocked(g);
	st->workers_stalled = load_relaxed(&g->nr_stalled);
	st->tasks_ready = load_relaxed(&g->aside.block.nr) +
			  load_relaxed(&g->aside.compute.nr) +
			  load_relaxed(&g->background.nr);
	st->spawns_refused = load_relaxed(&g->task_limit.nr_refused);
	st->spawns_waited = load_relaxed(&g->task_limit.nr_waited);
	read_workers(st, g);
}

int pl_group_stat(pl_group_t group, struct pl_group_stat *out)
{
	struct pl_group_stat st = PL_GROUP_STAT_INIT;
	bool outside = !pl__self();
	struct pl__group *g;

	if (!pl__filled_is_valid(out))
		return -EINVAL;
	if (outside && !pl__rt_enter())
		return -ENOENT;
	g = group_by(group);
	if (g)
		read_group(&st, g);
	if (outside)
		pl__rt_exit();
	if (!g)
		return -ENOENT;
	pl__fill(out, &st, sizeof(st));
	return 0;
}
