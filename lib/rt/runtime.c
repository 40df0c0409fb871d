/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 *	task that ends			stopper
 *	ended++				state = STOPPING	[stop-a]
 *	version++, seq_cst		sum up ended, spawned
 *	if (STOPPING)	[stop-b]	if they differ
 *		ended_word++, wake		wait for ended_word
 *
 *	thread from outside		stopper
 *	inside++		[inside-a]	state = DRAINED
 *	if (state is DRAINED)		if (inside)		[inside-b]
 *		return				wait until it is 0
 *
 * Invariants: the stopper does not sleep after the last task has ended, and
 * frees nothing while an ordinary thread is inside of the runtime.  Each side
 * writes its word before it reads the other's: either the task sees STOPPING or
 * the stopper sees `ended`; either the thread sees DRAINED or the stopper sees
 * inside.  Otherwise the stop never returns, or a thread uses freed memory.
 * A thread that spawns from outside counts its task before it reads the state,
 * and undoes the count if the runtime has stopped.
 */
#include "rt/runtime.h"
#include "rt/config.h"
#include "debug/dump.h"
#include "base/atfork.h"
#include "base/base.h"
#include "base/inject.h"
#include "pace/pace.h"
#include "pace/kept.h"
#include "queue/ready.h"
#include "queue/place.h"
#include "watch/watch.h"
#include "ring/ring.h"
#include "debug/stat_export.h"
#include "debug/stat.h"
#include "base/sys.h"
#include "wait/wait.h"
#include "mem/valgrind.h"

#include <string.h>
#ifdef PL_ASAN
# include <sanitizer/lsan_interface.h>
#endif

#define NR_YIELDS	100	/* of a stop, before it sleeps instead */
#define PAUSE_NS	(100 * 1000)
#define WORKERS_SIZE	(PL_WORKERS_MAX * sizeof(struct pl__worker *))
#define REPORT_SIZE_FIRST	PL__GROWN_FIRST(struct pl_stop_report, left)

static struct pl__lock state_lock;	/* held to leave STOPPED and RUNNING */
/* A thread waits for the end of a stop; else it has timed out. */
static _Atomic bool has_stopper;

/* ---- start ---- */

/* The default group, with all but workers. */
static int main_init(struct pl__rt *rt)
{
	struct pl__group *g = &rt->main;
	int ret;

	g->max_workers = rt->cfg.max_workers;
	g->min_workers = rt->cfg.min_workers;
	ret = pl__group_init(g, rt->cfg.nr_workers, rt->cfg.backend);
	if (ret)
		return ret;
	rt->groups[0] = g;
	store_release(&rt->nr_groups, 1);
	rt->backend = g->lots.fd >= 0 ? PL_BACKEND_MODULE : PL_BACKEND_FUTEX;
	return 0;
}

/* Checks that what the configuration asks for works, for all workers. */
static int check_wait(const struct pl__rt *rt)
{
	const char *lacks = NULL;

	if (rt->wait == PL_WAIT_PARK && !rt->main.lots.can_poll)
		lacks = "park: no /dev/parklot that polls is in use";
	if (rt->wait == PL_WAIT_FUTEX &&
	    (rt->io == PL_IO_POLL || !pl__ring_uring_has_futex()))
		lacks = "futex: no io_uring that waits on futexes is in use";
	if (lacks)
		fprintf(stderr, "parklot: PARKLOT_WAIT=%s\n", lacks);
	return lacks ? -EOPNOTSUPP : 0;
}

/* For as many workers as all groups may have; pages come as these start. */
static int slots_init(struct pl__rt *rt)
{
	int ret;

	rt->workers = pl__map(WORKERS_SIZE);
	if (!rt->workers)
		return -ENOMEM;
	ret = pl__locations_start();
	if (ret)
		pl__unmap(rt->workers, WORKERS_SIZE);
	return ret;
}

static void slots_fini(struct pl__rt *rt)
{
	pl__locations_stop();
	pl__unmap(rt->workers, WORKERS_SIZE);
	rt->workers = NULL;
}

static void groups_fini(struct pl__rt *rt)
{
	uint32_t nr = load_relaxed(&rt->nr_groups), i;

	/* A child of a fork() meanwhile gives up the lots of all that stand. */
	for (i = 0; i < nr; i++)
		pl__group_fini(rt->groups[i]);
	store_relaxed(&rt->nr_groups, 0);
	memset(&rt->main, 0, sizeof(rt->main));
	while (nr-- > 1)
		pl__free(rt->groups[nr]);
	rt->backend = PL_BACKEND_AUTO;
}

static int configure(struct pl__rt *rt, const struct pl_config *cfg)
{
	struct pl__cpus cpus;
	int ret;

	pl__cpus_read(&cpus);
	rt->nr_cpus = pl__cpus_at_a_time(&cpus);
	rt->quota_period_ns = cpus.period_ns;
	ret = pl__config_resolve(cfg, &rt->cfg);
	if (!ret)
		ret = pl__config_spin(rt->nr_cpus, &rt->spin_ns_max);
	if (!ret)
		ret = pl__config_sysmon(&rt->has_sysmon);
	if (!ret)
		ret = pl__config_io(&rt->io);
	/*
	 * valgrind 3.19 takes io_uring_enter() for a call that does not block:
	 * it runs no other thread meanwhile, and delivers no signal.
	 */
	if (!ret && rt->io == PL_IO_NONE && pl__valgrind_is_on())
		rt->io = PL_IO_POLL;
	if (!ret)
		ret = pl__config_wait(&rt->wait);
	return ret;
}

static void tasks_start(uint32_t nr_workers)
{
	pl__task_limit_start();
	pl__tasks_start(nr_workers);
}

static int runtime_start(struct pl__rt *rt, const struct pl_config *cfg)
{
	int ret = configure(rt, cfg);

	if (ret)
		return ret;
	pl__sanitizer_warn();
	ret = pl__tasks_init();
	if (ret)
		return ret;
	pl__cxx_init();
	rt->stall_ns = rt->cfg.stall_ns;
	tasks_start(rt->cfg.nr_workers);
	ret = slots_init(rt);
	if (ret)
		return ret;
	ret = pl__stacks_init(&rt->stacks, rt->cfg.stack_size);
	if (ret)
		goto err_slots;
	ret = main_init(rt);
	if (ret)
		goto err_stacks;
	ret = check_wait(rt);
	if (ret)
		goto err_main;
	/* Before the first thread: else sysmon's first look would wait. */
	pl__fd_grow_table();
	ret = pl__timers_start(&rt->timers, rt->cfg.nr_timer_buckets,
			       rt->cfg.worker_start, rt->cfg.worker_start_arg);
	if (ret)
		goto err_main;
	pl__wait_start(rt->timers);
	pl__worker_run = pl__worker_loop;
	pl__ready_notify = pl__notify_one;
	pl__kept_start();
	ret = pl__sysmon_start();
	if (ret)
		goto err_timers;
	ret = pl__dump_signal_start((int)rt->cfg.dump_signal);
	if (ret)
		goto err_sysmon;
	ret = pl__group_start(&rt->main);
	if (ret)
		goto err_dump_signal;
	pl__stat_export_start(pl__now_ns());
	return 0;

err_dump_signal:
	pl__dump_signal_stop();
err_sysmon:
	pl__sysmon_stop();
err_timers:
	pl__timers_stop(rt->timers);
err_main:
	groups_fini(rt);
err_stacks:
	pl__stacks_fini(&rt->stacks);
err_slots:
	slots_fini(rt);
	return ret;
}

int pl_runtime_start(const struct pl_config *cfg)
{
	uint32_t state;
	int ret;

	pl__lock(&state_lock);
	/* Sees what finish() undid, whatever thread that ran on. */
	state = load_acquire(&pl__rt.state);
	if (state == PL__RT_RUNNING) {
		ret = -EALREADY;
	} else if (state != PL__RT_STOPPED) {
		ret = -EBUSY;
	} else {
		atomic_store(&pl__rt.state, PL__RT_STARTING);
		pl__signals_keep();
		ret = runtime_start(&pl__rt, cfg);
		atomic_store(&pl__rt.state,
			     ret ? PL__RT_STOPPED : PL__RT_RUNNING);
	}
	pl__unlock(&state_lock);
	return ret;
}

int pl__runtime_enter(void)
{
	int ret;

	while (!pl__rt_enter()) {
		ret = pl_runtime_start(NULL);
		if (ret == -EBUSY)
			return -ECANCELED;
		if (ret && ret != -EALREADY)
			return ret;
	}
	if (atomic_load(&pl__rt.state) == PL__RT_RUNNING)
		return 0;
	pl__rt_exit();
	return -ECANCELED;
}

enum pl_backend pl_runtime_backend(void)
{
	uint32_t state = atomic_load(&pl__rt.state);

	return state == PL__RT_RUNNING || state == PL__RT_STOPPING ?
	       pl__rt.backend : PL_BACKEND_AUTO;
}

/* ---- target concurrency ---- */

int pl_runtime_set_workers(uint32_t nr)
{
	return pl_group_set_workers(PL_GROUP_DEFAULT, nr);
}

/* ---- stop ---- */

/*
 * Sums up ended first: a task that is counted there was spawned before, so the
 * two sums are equal only if no task was alive in between.
 */
static bool have_all_ended(void)
{
	uint64_t ended = pl__stat_ended();

	pl__full_barrier();
	return ended == pl__stat_spawned();
}

/* False: the deadline has passed. */
static bool wait_for_tasks(uint64_t deadline_ns)
{
	uint32_t word;
	int ret = 0;

	for (;;) {
		word = atomic_load(&pl__rt.ended_word);
		pl__full_barrier();
		if (have_all_ended())
			return true;
		PL_SIM_POINT("stop-wait");
		if (ret == -ETIMEDOUT)
			return false;
		ret = pl__futex_wait(&pl__rt.ended_word, word, deadline_ns);
	}
}

/*
 * Threads leave soon, but for one that prints a dump into a pipe that is full.
 * False: the deadline has passed.
 */
static bool wait_outside(uint64_t deadline_ns)
{
	uint32_t i, nr_tries = 0;

	/* [inside-b] pairs with [inside-a] in pl__rt_enter(). */
	for (i = 0; i < PL__NR_STRIPES; i++)
		while (atomic_load(&pl__rt.outside[i].inside)) {
			if (nr_tries++ < NR_YIELDS)
				pl__sched_yield();
			else if (pl__now_ns() < deadline_ns)
				pl__sleep_ns(PAUSE_NS);
			else
				return false;
		}
	return true;
}

/*
 * False: tasks or threads are left at the deadline, and nothing was taken apart
 * but the timer thread, which has no more to do.  It ends first, so that a
 * thread that deletes a timer, or leaves a scope with one, is told the truth.
 */
static bool finish(struct pl__rt *rt, uint64_t deadline_ns)
{
	struct pl__group *g;
	uint32_t i;

	pl__wait_cancel_all();
	if (!wait_for_tasks(deadline_ns))
		return false;

	pl__timers_halt(rt->timers);
	pl__stat_drain();
	atomic_store(&rt->state, PL__RT_DRAINED);
	if (!wait_outside(deadline_ns)) {
		atomic_store(&rt->state, PL__RT_STOPPING);
		return false;
	}
	pl__dump_signal_stop();
	pl__sysmon_stop();
	pl__for_each_group(g, i)
		pl__lots_stop(&g->lots);
	pl__for_each_group(g, i)
		pl__worker_join_all(g);
	pl__worker_join_ended();
	pl__sysmon_sleep_fini();
	pl__stat_keep();

	pl__for_each_group(g, i)
		pl__worker_free_all(g);
	store_relaxed(&rt->nr_started, 0);
	pl__timers_stop(rt->timers);
	rt->timers = NULL;
	groups_fini(rt);
	pl__stacks_fini(&rt->stacks);
	slots_fini(rt);
	store_relaxed(&rt->nr_late_searches, 0);
	for (i = 0; i < PL__NR_STRIPES; i++)
		store_relaxed(&rt->outside[i].sampled_ns, 0);
	pl__task_limit_stop();
	atomic_store(&has_stopper, false);
	atomic_store(&rt->state, PL__RT_STOPPED);
	return true;
}

static void *finish_thread(void *arg)
{
	/* Waits until the caller has set STOPPING and dropped the lock. */
	pl__lock(&state_lock);
	pl__unlock(&state_lock);

	pl__thread_name("pl-stop");
	finish(arg, PL_FOREVER);
	return NULL;
}

/* Under state_lock: a stop that has timed out may be continued. */
static bool may_begin_stop(void)
{
	uint32_t state = load_relaxed(&pl__rt.state);

	return state == PL__RT_RUNNING ||
	       (state == PL__RT_STOPPING && !atomic_load(&has_stopper));
}

/*
 * Under state_lock.  Sets *@by_other if the caller cannot finish the stop, so
 * that a thread does.
 */
static int begin_stop(bool *by_other)
{
	pthread_t thread;
	int ret;

	if (!may_begin_stop())
		return -EALREADY;
	*by_other = pl__timers_is_thread(pl__rt.timers);
	if (*by_other) {
		ret = pl__thread_start(&thread, finish_thread, &pl__rt);
		if (ret)
			return ret;
		pthread_detach(thread);
	}
	atomic_store(&has_stopper, true);
	/* [stop-a] pairs with [stop-b] in pl__task_end(). */
	atomic_store(&pl__rt.state, PL__RT_STOPPING);
	PL_INJECT("stop-a");
	return 0;
}

int pl_runtime_stop(void)
{
	bool by_other = false;
	int ret;

	if (pl__self())
		return -EDEADLK;
	pl__lock(&state_lock);
	ret = begin_stop(&by_other);
	pl__unlock(&state_lock);
	if (!ret && !by_other)
		finish(&pl__rt, PL_FOREVER);
	return ret;
}

static int begin_stop_here(void)
{
	bool by_other;
	int ret;

	pl__lock(&state_lock);
	if (may_begin_stop() && pl__timers_is_thread(pl__rt.timers))
		ret = -EDEADLK;
	else
		ret = begin_stop(&by_other);
	pl__unlock(&state_lock);
	return ret;
}

int pl_runtime_stop_until(uint64_t deadline_ns, struct pl_stop_report *report)
{
	int ret;

	if (report && !pl__grown_is_valid(report, REPORT_SIZE_FIRST))
		return -EINVAL;
	ret = pl__self() ? -EDEADLK : begin_stop_here();
	if (ret || finish(&pl__rt, deadline_ns))
		return ret;
	pl__dump_left(report);
	atomic_store(&has_stopper, false);
	return -ETIMEDOUT;
}

/* ---- fork ---- */

/* The child does not use the memory; hides it from the leak checker. */
static void disown(const void *p)
{
#ifdef PL_ASAN
	if (p)
		__lsan_ignore_object(p);
#else
	(void)p;
#endif
}

/*
 * A file lasts until its last descriptor is closed: the rings would outlive the
 * parent's stop.  The workers that use them do not exist in the child.
 */
static void close_all(struct pl__rt *rt)
{
	uint32_t nr = load_relaxed(&rt->nr_started), i;
	struct pl__group *g;
	struct pl__ring *ring;
	int fd;

	for (i = 0; i < nr; i++) {
		ring = load_relaxed(&rt->workers[i]->ring_seen);
		rt->workers[i]->ring = NULL;
		if (ring)
			pl__ring_close(ring);
		fd = load_relaxed(&rt->workers[i]->sysmon.stat_plus_1) - 1;
		if (fd >= 0)
			pl__close(fd);
	}
	pl__for_each_group(g, i)
		pl__lots_abandon(&g->lots);
}

static void runtime_atfork_child(void)
{
	struct pl__slab tasks = pl__rt.tasks;
	bool has_tasks = pl__rt.has_tasks;
	uint32_t first_slot = pl__rt.first_slot, i;
	struct pl__group *g;

	close_all(&pl__rt);
	pl__for_each_group(g, i) {
		disown(i ? g : NULL);
		disown(g->workers);
		disown(g->locations);
		disown(g->lots.lot);
	}
	disown(pl__rt.timers);
	disown(pl__rt.stacks.pools);
	state_lock = (struct pl__lock){ 0 };
	has_stopper = false;
	memset(&pl__rt, 0, sizeof(pl__rt));
	pl__rt.tasks = tasks;
	pl__rt.first_slot = first_slot;
	store_relaxed(&pl__rt.has_tasks, has_tasks);
}

PL_ATFORK_CHILD(runtime_atfork_child);
