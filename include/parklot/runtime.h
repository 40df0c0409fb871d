/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The runtime: its start, its end, and what it counts.
 */
#ifndef PARKLOT_RUNTIME_H
#define PARKLOT_RUNTIME_H

#include "base.h"

PL_BEGIN_DECLS

/** pl_version() - PARKLOT_VERSION of the library that runs, such as "0.1.0" */
PL_API const char *pl_version(void);

/** enum pl_backend - where idle workers sleep */
enum pl_backend {
	PL_BACKEND_AUTO,	/* /dev/parklot if it can be opened */
	PL_BACKEND_MODULE,	/* /dev/parklot, or -ENODEV */
	PL_BACKEND_FUTEX,	/* futexes: any Linux */
};

/** enum pl_io - how tasks wait for input and output */
enum pl_io {
	PL_IO_NONE,		/* no task has waited yet */
	PL_IO_URING,		/* io_uring */
	PL_IO_POLL,		/* epoll, where io_uring is missing */
};

/** enum pl_wait - how a worker sleeps while its tasks wait for I/O */
enum pl_wait {
	PL_WAIT_NONE,		/* no task has waited yet */
	PL_WAIT_EVENTFD,	/* in its ring; wakers write an eventfd */
	PL_WAIT_FUTEX,		/* in its io_uring, which waits on a futex */
	PL_WAIT_PARK,		/* parked in the module, which polls its I/O */
};

/**
 * struct pl_config - what a runtime is started with
 * @size:		set by PL_CONFIG_INIT
 * @nr_workers:		target concurrency: workers that run at most, started
 *			on demand; 0: the CPUs that affinity and cgroup quota
 *			allow, but no more than @max_workers
 * @max_workers:	most worker threads, blocked ones included; 0:
 *			@nr_workers + 256.  If all of them are blocked while
 *			tasks wait, a line on stderr says so, once
 * @nr_lots:		parking lots the workers are spread over; 0: 4
 * @nr_timer_buckets:	0: one a worker, up to 256, and 16 for other threads;
 *			at most 1024
 * @backend:		enum pl_backend
 * @flags:		0
 * @stack_size:		bytes by enum pl_stack; 0: the default of each
 * @min_workers:	started at once; 0: 1
 * @dump_signal:	a signal at which a thread that is started for it calls
 *			pl_dump() for standard error; 0: none
 * @worker_start:	called first in every worker and in the timer thread
 * @worker_start_arg:	passed to it
 * @stall_ns:	ns: a worker that is in one task for so long is stalled, and
 *		another runs beside it while tasks wait; default: 10 ms;
 *		PL_FOREVER: never
 * @max_tasks:	most tasks that are alive at a time: beyond it a spawn is
 *		refused, or waits with PL_SPAWN_WAIT; 0: no limit but memory
 * @pin_workers: 1: bind worker i to the i-th of the CPUs on which the process
 *		may run, taking one CPU of each core first, near ones one after
 *		the other; workers beyond these, and those of other groups, to
 *		none.  Follows when those CPUs change.  0: the kernel places
 *		workers
 * @fixed_workers: 1: @nr_workers run while there is work for them.  0: as many
 *		of these as the load needs
 * @reserved:	0
 *
 * PARKLOT_BACKEND=auto|module|futex, PARKLOT_WORKERS=N, PARKLOT_MAX_WORKERS=N,
 * PARKLOT_MAX_TASKS=N, PARKLOT_PIN=0|1 and PARKLOT_DUMP_SIGNAL=USR2 in the
 * environment override the fields of these names, PARKLOT_ELASTIC=0|1
 * overrides @fixed_workers.
 * PARKLOT_IO=auto|uring|poll chooses how tasks wait for input and output,
 * PARKLOT_WAIT=auto|eventfd|futex|park how a worker sleeps meanwhile.
 */
struct pl_config {
	size_t		size;
	uint32_t	nr_workers;
	uint32_t	max_workers;
	uint32_t	nr_lots;
	uint32_t	nr_timer_buckets;
	uint32_t	backend;
	uint32_t	flags;
	size_t		stack_size[3];
	uint32_t	min_workers;
	uint32_t	dump_signal;
	void		(*worker_start)(void *arg);
	void		*worker_start_arg;
	uint64_t	stall_ns;
	uint32_t	max_tasks;
	uint32_t	pin_workers;
	uint32_t	fixed_workers;
	uint32_t	reserved;
};

#define PL_CONFIG_INIT		PL__SIZED(struct pl_config)

/**
 * pl_runtime_start() - start the runtime with a configuration
 * @cfg: NULL for the defaults
 *
 * Context: any thread.
 * Return: 0; -EALREADY if it runs; -EBUSY while it stops; -ENODEV if the module
 * was asked for and /dev/parklot cannot be used; -EOPNOTSUPP if the environment
 * asks for a PARKLOT_WAIT that does not work here; -EINVAL for a bad field, or
 * a bad value in the environment; -ENOMEM, -EAGAIN.
 */
PL_API int pl_runtime_start(const struct pl_config *cfg);

/**
 * pl_runtime_stop() - end the runtime
 *
 * From now on no task can be spawned from outside tasks, and every blocking
 * call returns -ECANCELED.  Waits until every task has ended, then ends the
 * workers and the timer thread.  The runtime may be started again.
 *
 * Context: any thread that is not a worker.  From a timer's callback it only
 * starts the stop, since the timer thread cannot wait for itself: a thread of
 * the library ends tasks and workers, and pl_runtime_start() returns -EBUSY
 * until that is done.
 * Return: 0; -EDEADLK from a task; -EALREADY if another stop is waiting, or no
 * runtime runs.
 */
PL_API int pl_runtime_stop(void);

/* The maximal number of tasks that a report names. */
#define PL_STOP_LEFT_MAX	8

/**
 * struct pl_stop_left - a task that a stop waits for
 * @task:  its handle
 * @name:  its name
 * @state: "ready"; "new"; what it waits for: "sleep", "mutex", ...; if it runs,
 *	   "computes" or what its worker is blocked in: "blocked in read(2), fd
 *	   7"; "runs", if that is not known
 */
struct pl_stop_left {
	uint64_t	task;
	char		name[16];
	char		state[48];
};

/**
 * struct pl_stop_report - what still runs after the deadline of a stop
 * @size:    set by PL_STOP_REPORT_INIT
 * @nr_left: how many tasks have not ended
 * @left:    the first of them
 */
struct pl_stop_report {
	size_t		size;
	uint32_t	nr_left;
	uint32_t	reserved;
	struct pl_stop_left left[PL_STOP_LEFT_MAX];
};

#define PL_STOP_REPORT_INIT	PL__SIZED(struct pl_stop_report)

/**
 * pl_runtime_stop_until() - as pl_runtime_stop(), with a deadline
 * @report: filled in at -ETIMEDOUT; or NULL
 *
 * At the deadline lines on stderr name the first tasks that have not ended, and
 * the calls that they are in.  The stop goes on: tasks run, their blocking
 * calls return -ECANCELED, and none is spawned from outside tasks.  Another
 * pl_runtime_stop() or pl_runtime_stop_until() waits for the rest, and only
 * then the runtime can be started again.
 *
 * Context: any thread that is neither a worker nor the timer thread.
 * Return: 0; -ETIMEDOUT; -EDEADLK from a task or a timer's callback; -EALREADY
 * as pl_runtime_stop(); -EINVAL.
 */
PL_API int pl_runtime_stop_until(uint64_t deadline_ns,
				 struct pl_stop_report *report);

/**
 * pl_runtime_set_workers() - set the target concurrency
 * @nr: 0: the default of struct pl_config
 *
 * With more, workers are started on demand, as at the start.  With fewer, a
 * surplus worker parks at the end of the task that it runs; the others steal
 * the tasks in its queues.  Its thread ends after the idle timeout.
 *
 * Context: any thread; starts the runtime if it does not run.
 * Return: 0; -EINVAL if @nr is over the max_workers it was started with;
 * -ECANCELED while the runtime stops; what pl_runtime_start() returns.
 */
PL_API int pl_runtime_set_workers(uint32_t nr);

/** pl_runtime_backend() - the one in use; PL_BACKEND_AUTO before the start */
PL_API enum pl_backend pl_runtime_backend(void);

/**
 * struct pl_stat - what the runtime did, and what it is doing
 *
 * The counters are sums over workers read without stopping them: each is
 * exact once the runtime is quiet, and never goes down, except that a spawn may
 * be counted that is undone, as by pushes into a queue at the same time.
 */
struct pl_stat {
	size_t		size;
	uint64_t	tasks_spawned;
	uint64_t	tasks_ended;
	uint64_t	switches;	/* switches between stacks */
	uint64_t	steals;		/* tasks taken from another worker */
	uint64_t	parks;		/* times that a worker parked */
	uint64_t	wakes;		/* workers woken */
	uint64_t	wakes_empty;	/* calls of the kernel that woke none */
	uint64_t	timers_added;
	uint64_t	timers_fired;
	uint64_t	timers_deleted;
	uint64_t	timer_busy_ns;	/* CPU time of the timer thread, ns */
	uint64_t	io_submitted;
	uint64_t	io_completed;
	uint32_t	backend;	/* enum pl_backend */
	uint32_t	workers;	/* workers with a thread */
	uint32_t	workers_running;
	uint32_t	workers_parked;
	uint32_t	workers_blocked; /* by a task, or in the start hook */
	uint32_t	tasks_alive;
	uint32_t	timers_alive;
	uint32_t	io_in_flight;
	/* stacks with a canary, no guard */
	uint64_t	stacks_unguarded;
	/* calls of io_uring_enter() or epoll_wait() */
	uint64_t	io_enters;
	uint64_t	blocks;	/* times that a worker was found blocked */
	/* times that max_workers, or all that can be started, were blocked */
	uint64_t	all_blocked;
	uint32_t	io;		/* enum pl_io of the workers that run */
	uint32_t	wait;	/* enum pl_wait of the workers that run */
	/* times that a worker was found stalled, and got a relief */
	uint64_t	stalls;
	/* times that more were allowed to be stalled than at first */
	uint64_t	stalls_over;
	uint32_t	workers_stalled; /* of workers_running */
	uint32_t	max_tasks;	/* of the configuration; 0: none */
	/* tasks expected to block or to compute for long, and so set aside */
	uint64_t	set_aside;
	uint64_t	spares;	/* workers started ahead, to run these */
	uint64_t	spawns_refused;	/* by max_tasks */
	uint64_t	spawns_waited;	/* for max_tasks, by PL_SPAWN_WAIT */
	/* background tasks that ran though others were ready */
	uint64_t	background_late;
	uint32_t	background_ready; /* background tasks that wait */
	uint32_t	workers_active;	/* as many are to run by the load */
	/* times that workers_active was raised, and lowered */
	uint64_t	active_raised;
	uint64_t	active_lowered;
	/* of those raised: tasks waited, or waited behind one that computes; */
	uint64_t	raised_waits;
	uint64_t	raised_stuck;
	uint64_t	raised_trial;	/* to see whether more do better */
	/* fewer were tried, and did worse; or nothing was to do for 0.1 s */
	uint64_t	raised_back;
	/* of those lowered: more were tried, and did no better; */
	uint64_t	lowered_back;
	uint64_t	lowered_trial;	/* to see whether fewer do as well */
	/* stacks that tasks have, and those kept for the next ones */
	uint64_t	stacks;
};

#define PL_STAT_INIT		PL__SIZED(struct pl_stat)

/** pl_stat_read() - fill @st; 0, or -EINVAL if its size was not set */
PL_API int pl_stat_read(struct pl_stat *st);

/** struct pl_stat_worker - counters of one worker */
struct pl_stat_worker {
	size_t		size;
	uint64_t	cpu_ns;		/* CPU time of all its threads, ns */
	uint64_t	switches;
	uint64_t	steals;
	uint64_t	parks;
	uint64_t	signals;	/* signals sent for spawned tasks */
	uint64_t	nosignals;	/* tasks spawned without a signal */
	uint64_t	tasks_ended;
	uint32_t	lot;
	uint32_t	reserved;
};

#define PL_STAT_WORKER_INIT	PL__SIZED(struct pl_stat_worker)

/**
 * pl_stat_worker() - the counters of worker @i
 *
 * A worker that has ended keeps its number for the next one, which continues
 * its counters.
 * Return: 0; -ENOENT if there never was such a worker; -EINVAL.
 */
PL_API int pl_stat_worker(uint32_t i, struct pl_stat_worker *st);

/**
 * struct pl_queue_delay - for how long ready tasks waited to run
 * @size:   set by PL_QUEUE_DELAY_INIT
 * @nr:     how many were measured since the last call with this struct
 * @p50_ns: ns: half of them waited for less; 0: none was measured
 * @p99_ns: ns: 99 of 100 waited for less; 0: none was measured
 * @waiting_ns: ns: for so long one waits that has not run yet, the longest of
 *          those that are watched: one at a time of each spawner; 0: none does
 * @seen:   the library's
 */
struct pl_queue_delay {
	size_t		size;
	uint64_t	nr;
	uint64_t	p50_ns;
	uint64_t	p99_ns;
	uint64_t	waiting_ns;
	uint64_t	seen[24];
};

#define PL_QUEUE_DELAY_INIT	PL__SIZED(struct pl_queue_delay)

/**
 * pl_queue_delay() - for how long ready tasks waited to run, of late
 *
 * Measured are new tasks: each one of a worker that spawns few, otherwise about
 * one in 0.5 ms, but one of 256 at least; of other threads one of 16.  And one
 * of 16 tasks that waited for I/O, from when a worker saw that it is complete.
 * Not measured are tasks that another task, or a timer, wakes, and those with
 * PL_SPAWN_URGENT, PL_SPAWN_BLOCKING or PL_SPAWN_BACKGROUND.  A task is
 * measured when it runs; where none runs, only @waiting_ns, of new tasks,
 * tells.
 *
 * Percentiles are rounded up to a power of 2, and are 1.07 s at most.  The
 * first call with a struct covers the time since the start of the runtime.  A
 * call reads 48 counters of each worker: one in some milliseconds is enough.
 *
 * Context: any thread; a struct is one caller's at a time.
 * Return: 0; -ENODATA if none was measured since the last call, with
 * @waiting_ns filled in; -EINVAL.
 */
PL_API int pl_queue_delay(struct pl_queue_delay *qd);

/**
 * pl_dump() - write what every task does to @fd, as text
 *
 * A line for each task has its name, whether it runs, is ready or has not
 * started, or else what it waits for, for how long at most, and the calls that
 * led there; further lines have the threads that wait and are no tasks.  The
 * text is for people, and may change from version to version.
 *
 * Stops nothing: each line shows a moment of its own.
 *
 * Context: any thread, also while all tasks wait for each other; a task keeps
 * its worker until all is written.  Not from a signal handler.
 * Return: 0; what write(2) returned; -EPERM: the kernel does not let a process
 * read its own memory, by process_vm_readv(2).
 */
PL_API int pl_dump(int fd);

PL_END_DECLS

#endif /* PARKLOT_RUNTIME_H */
