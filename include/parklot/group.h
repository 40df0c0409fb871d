/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Groups of workers: tasks of one do not wait for those of another.
 *
 * A server that has to answer its health checks while its tasks compute gives
 * these a group of their own.  bRPC calls a group a tag.
 */
#ifndef PARKLOT_GROUP_H
#define PARKLOT_GROUP_H

#include "base.h"

PL_BEGIN_DECLS

/* 0 is no group: where one may be given, it stands for the caller's. */
typedef uint32_t pl_group_t;

/* That of the runtime, which struct pl_config describes. */
#define PL_GROUP_DEFAULT	1U

/* Groups that there may be, the default one included. */
#define PL_GROUPS_MAX		64

/* Workers that all of them together may have. */
#define PL_WORKERS_MAX		65536

/**
 * struct pl_group_config - what a group is made with
 * @size:	 set by PL_GROUP_CONFIG_INIT
 * @name:	 copied, 15 bytes, with '?' for control characters; shown by
 *		 tools and in messages
 * @nr_workers:	 as in struct pl_config, of the group's own
 * @max_workers: the same; 0: @nr_workers + 256
 * @max_tasks:	 most tasks of the group that are alive at a time; beyond it,
 *		 and beyond the max_tasks of the runtime, a spawn is refused,
 *		 or waits with PL_SPAWN_WAIT; 0: no limit of its own
 * @reserved:	 0
 */
struct pl_group_config {
	size_t		size;
	const char	*name;
	uint32_t	nr_workers;
	uint32_t	max_workers;
	uint32_t	max_tasks;
	uint32_t	reserved;
};

#define PL_GROUP_CONFIG_INIT	PL__SIZED(struct pl_group_config)

/**
 * pl_group_create() - make a group of workers
 * @out: where to put it; good until the runtime stops
 * @cfg: NULL for the defaults
 *
 * A task that is spawned with it in struct pl_spawn_opts runs on its workers
 * only, as do the tasks that this spawns, also after they waited for a
 * deadline, I/O or each other.  Callbacks of timers run in the timer thread,
 * which spawns into the default group.  A queue of pl_queue_create() executes
 * in the group in which it was created.  Tasks of different groups may wait for
 * each other, and share mutexes and channels.  Its workers are started as tasks
 * need them: before its first task a group has none.
 *
 * A group is never destroyed but by the end of the runtime.
 *
 * Context: any thread; starts the runtime if it does not run.
 * Return: 0; -EINVAL for a bad field, or if all groups together might have more
 * than PL_WORKERS_MAX workers; -ENOSPC beyond PL_GROUPS_MAX; -ECANCELED from
 * outside tasks while the runtime stops; -ENODEV if /dev/parklot was asked for
 * and cannot be opened once more; -ENOMEM; what pl_runtime_start() returns.
 */
PL_API int pl_group_create(pl_group_t *out, const struct pl_group_config *cfg);

/**
 * pl_group_self() - the group in which the caller's task runs
 *
 * Also in the worker_start of struct pl_config.  Outside of workers:
 * PL_GROUP_DEFAULT.
 */
PL_API pl_group_t pl_group_self(void);

/**
 * pl_group_set_workers() - set the target concurrency of a group
 * @group: 0: the caller's
 * @nr:	   0: the default of struct pl_config
 *
 * As pl_runtime_set_workers(), which is for the default group.
 * Return: 0; -EINVAL if there is no such group, or @nr is over its max_workers.
 */
PL_API int pl_group_set_workers(pl_group_t group, uint32_t nr);

/**
 * struct pl_group_stat - what a group does
 * @size:    set by PL_GROUP_STAT_INIT
 * @name:    of its configuration; "" of the default group
 * @target:  workers meant to run, at most
 * @active:  as many are to run by the load
 * @max_workers: as configured
 * @workers: workers with a thread
 * @workers_parked: of these: idle
 * @workers_blocked: of these: by a task, or in the start hook
 * @workers_stalled: of these: in a task that computes for long
 * @tasks_ready: tasks that wait to run, but for those of threads and of other
 *	     groups that no worker has fetched yet
 * @tasks_ended: tasks that its workers have run to their end
 * @cpu_ns:  CPU time of its workers, ns
 * @spawns_refused: by its max_tasks
 * @spawns_waited: for its max_tasks
 */
struct pl_group_stat {
	size_t		size;
	char		name[16];
	uint32_t	target;
	uint32_t	active;
	uint32_t	max_workers;
	uint32_t	workers;
	uint32_t	workers_parked;
	uint32_t	workers_blocked;
	uint32_t	workers_stalled;
	uint32_t	tasks_ready;
	uint64_t	tasks_ended;
	uint64_t	cpu_ns;
	uint64_t	spawns_refused;
	uint64_t	spawns_waited;
};

#define PL_GROUP_STAT_INIT	PL__SIZED(struct pl_group_stat)

/**
 * pl_group_stat() - fill @st
 * @group: 0: the caller's
 *
 * All groups: from PL_GROUP_DEFAULT on until -ENOENT.
 * Return: 0; -ENOENT if there is no such group; -EINVAL if the size of @st was
 * not set.
 */
PL_API int pl_group_stat(pl_group_t group, struct pl_group_stat *st);

PL_END_DECLS

#endif /* PARKLOT_GROUP_H */
