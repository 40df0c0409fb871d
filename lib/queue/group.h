/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * group: workers, and all that is queued for them
 *
 * A task runs on workers of its group only; what it spawns, wakes by a deadline
 * or I/O stays there.  So each group has queues, lots, counts and a controller
 * of its own, and none of its workers looks in another's queues.  There is one
 * group, the default, unless the program makes more.  The process has one
 * timer thread, one sysmon, one table of tasks and one pool of stacks.
 *
 * Who makes a task of another group ready puts it in an inbox of that, and
 * notifies at once, see ready.h.
 */
#ifndef PL_GROUP_H
#define PL_GROUP_H

#include "ds/mpsc.h"
#include "queue/worker.h"

#include "parklot/group.h"

/* Tasks that are alive, where max_tasks limits them; see rt/task_limit.c. */
struct pl__task_limit {
	uint32_t		max;	/* R: 0: they are not limited */
	_Atomic uint32_t	nr;	/* on it spawners wait */
	_Atomic uint32_t	nr_waiting;	/* spawners that wait */
	_Atomic uint64_t	nr_refused;	/* spawns that were refused */
	_Atomic uint64_t	nr_waited;	/* spawns that waited */
};

/* Tasks that are set aside for the same reason.  L: pl__aside.lock is held. */
struct pl__aside_queue {
	_Atomic uint32_t	nr;	/* changed under lock; read without */
	uint32_t		turn;		/* L: tasks taken */
	struct pl__fifo		resumed;	/* L */
	struct pl__fifo		unstarted;	/* L */
	_Atomic uint64_t	taken_ns;	/* L writes: last task taken */
};

/* Tasks that are expected to keep their worker from others, see aside.h. */
struct pl__aside {
	struct pl__lock		lock;
	uint32_t		turn;		/* L: looks for a task */
	struct pl__aside_queue	block;		/* in the kernel */
	struct pl__aside_queue	compute;
	_Atomic uint64_t	nr_put;		/* tasks that were set aside */
	_Atomic uint64_t	nr_spares;	/* spares that were started */
};

/* Ready tasks of PL_SPAWN_BACKGROUND, see aside.h.  L: lock is held. */
struct pl__background {
	struct pl__lock		lock;
	_Atomic uint32_t	nr;	/* changed under lock; read without */
	struct pl__fifo		ready;		/* L */
	_Atomic uint64_t	taken_ns;	/* L writes: last task taken */
	_Atomic uint64_t	nr_late;	/* taken before others */
};

/* Why `active` was changed; pl_runtime(3) has a counter of each. */
enum pl__elastic_why {
	PL__RAISED_WAITS,	/* tasks waited for long */
	PL__RAISED_STUCK,	/* they waited behind one that computes */
	PL__RAISED_TRIAL,	/* to see whether more do better */
	PL__RAISED_BACK,	/* fewer did worse; or there was a pause */
	PL__LOWERED_TRIAL,	/* to see whether fewer do as well */
	PL__LOWERED_BACK,	/* more did no better */
	PL__NR_ELASTIC_WHY
};

/* At most so many inboxes, see ready.h. */
#define PL__NR_INBOXES		64

struct pl__inbox_line {
	struct pl__inbox	inbox;	/* A */
} __pl_cacheline;

/* R: written only while no worker and no task of it exists. */
struct pl__group {
	uint32_t		index;		/* R: in pl__rt.groups */
	char			name[16];	/* R */
	uint32_t		max_workers;	/* R */
	uint32_t		min_workers;	/* R */
	struct pl__worker	**workers;	/* R: max_workers of them */
	struct pl__lots		lots;		/* R */
	uint32_t		nr_inboxes;	/* R: inboxes in use */
	/* R: max_workers of them, by index; workers write: place.h */
	_Atomic uint64_t	*locations;

	_Atomic uint32_t	nr_started __pl_cacheline; /* workers[0 .. ) */
	_Atomic uint32_t	nr_alive;	/* workers with a thread */
	_Atomic uint32_t	target;	/* workers meant to run, at most */
	_Atomic uint32_t	active;	/* workers meant to run: pace.h */

	_Atomic uint32_t	nr_idle __pl_cacheline;
	_Atomic uint32_t	nr_searching;	/* see notify.h */
	/* the next worker that leaves idle is to search, see notify.h */
	_Atomic bool		is_search_left;
	_Atomic uint32_t	nr_blocked;	/* workers outside of a crew */
	_Atomic uint32_t	nr_seen;	/* in nr_blocked, by sysmon */
	_Atomic uint32_t	nr_in_hook;	/* in nr_blocked, in the hook */
	_Atomic uint32_t	nr_stalled;	/* workers, see pace.h */
	_Atomic uint32_t	stalled_limit;	/* sysmon writes */
	/* workers of a crew that sysmon found blocked twice in a row */
	_Atomic uint32_t	nr_crew_blocked;
	_Atomic uint32_t	nr_starting;	/* alive, did not search yet */
	_Atomic int		start_error; /* of the last: -errno, or 0 */
	/* calls of pl__notify_all(); no worker parks meanwhile */
	_Atomic uint32_t	nr_notifying_all;
	/* ns: when nr_searching rose from 0, or moved on; see notify.c */
	_Atomic uint64_t	search_ns;

	struct pl__inbox_line	inboxes[PL__NR_INBOXES];
	_Atomic uint64_t	wakes_outside;
	struct pl__task_limit	task_limit __pl_cacheline;

	/* What follows is written by sysmon's thread, and while none runs. */
	struct {			/* of pace.c */
		uint64_t	since_ns; /* the limit is too low since; or 0 */
		uint64_t	wait_ns;  /* before the limit is raised */
		bool		has_printed;
	} relief;
	struct {			/* of sysmon_report.c */
		uint64_t	since_ns; /* too many since then; 0: not so */
		/* nr_all_blocked has gone up since since_ns */
		bool		is_counted;
		bool		has_printed;
	} report;
	uint32_t		crew_blocked;	/* at sysmon's last look */
	/* times that active was changed, by enum pl__elastic_why */
	_Atomic uint64_t	nr_changes[PL__NR_ELASTIC_WHY];

	struct pl__aside	aside __pl_cacheline;
	struct pl__background	background __pl_cacheline;
};

/* Of its tasks that are not in the background, see task.h. */
static inline uint16_t pl__group_place(const struct pl__group *g)
{
	return (uint16_t)(g->index << PL__PLACE_GROUP_SHIFT);
}

/*
 * Workers blocked by their tasks, as the crew, sysmon or the workers themselves
 * count them.
 */
static inline uint32_t pl__nr_blocked(struct pl__group *g)
{
	return load_relaxed(&g->nr_blocked) +
	       pl__crew_nr_blocked(&g->lots);
}

/* How many more workers may compute for long, see pace.h. */
static inline uint32_t pl__nr_may_compute(struct pl__group *g)
{
	/* [relief-b] pairs with [relief-a] in pl__relief_recheck(). */
	uint32_t limit = load_relaxed(&g->stalled_limit);
	uint32_t nr = load_relaxed(&g->nr_stalled);

	return nr < limit ? limit - nr : 0;
}

static inline uint32_t pl__nr_not_running(struct pl__group *g)
{
	return load_relaxed(&g->nr_idle) +
	       load_relaxed(&g->nr_stalled) + pl__nr_blocked(g);
}

/* Workers neither idle, blocked nor stalled, as far as the counters show. */
static inline uint32_t pl__nr_running(struct pl__group *g)
{
	uint32_t alive = load_relaxed(&g->nr_alive);
	uint32_t others = pl__nr_not_running(g);

	return alive > others ? alive - others : 0;
}

#endif /* PL_GROUP_H */
