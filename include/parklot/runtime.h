/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The runtime: its start, its end, and what it counts.
 */
#ifndef PARKLOT_RUNTIME_H
#define PARKLOT_RUNTIME_H

#include "base.h"

PL_BEGIN_DECLS

/** enum pl_backend - where idle workers sleep */
enum pl_backend {
	PL_BACKEND_AUTO,	/* /dev/parklot if it can be opened */
	PL_BACKEND_MODULE,	/* /dev/parklot, or -ENODEV */
	PL_BACKEND_FUTEX,	/* futexes: any Linux */
};

/** enum pl_io - what tasks that wait for input and output wait by */
enum pl_io {
	PL_IO_NONE,		/* no I/O has waited yet */
	PL_IO_URING,		/* io_uring */
	PL_IO_POLL,		/* epoll, as io_uring is not available */
};

/** enum pl_wait - how a worker sleeps while all its tasks wait for I/O */
enum pl_wait {
	PL_WAIT_NONE,		/* no worker has slept so yet */
	PL_WAIT_EVENTFD,	/* in its ring; others write to an eventfd */
	PL_WAIT_FUTEX,		/* in its ring; io_uring waits on a futex */
	PL_WAIT_PARK,		/* parked in the module, which polls its I/O */
};

/**
 * struct pl_config - what a runtime is started with
 * @size:		set by PL_CONFIG_INIT
 * @nr_workers:		runnable workers wanted, started on demand; 0: the CPUs
 *			that affinity and cgroup quota allow
 * @max_workers:	worker threads at most, blocked ones included; 0:
 *			@nr_workers + 256.  Should all of them be blocked while
 *			tasks wait, a line on stderr says so, once
 * @nr_lots:		parking lots the workers are spread over; 0: 4
 * @nr_timer_buckets:	0: 13; at most 1024
 * @backend:		enum pl_backend
 * @flags:		0
 * @stack_size:		bytes by enum pl_stack; 0: the default of each
 * @min_workers:	started at once; 0: 1
 * @dump_signal:	a signal at which a thread that is started for it calls
 *			pl_dump() for standard error; 0: none
 * @worker_start:	called first in every worker and in the timer thread
 * @worker_start_arg:	passed to it
 *
 * PARKLOT_BACKEND=auto|module|futex, PARKLOT_WORKERS=N, PARKLOT_MAX_WORKERS=N
 * and PARKLOT_DUMP_SIGNAL=USR2 in the environment override the fields of these
 * names.
 * PARKLOT_IO=auto|uring|poll chooses by what tasks wait for input and output,
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
};

#define PL_CONFIG_INIT		PL__SIZED(struct pl_config)

/**
 * pl_runtime_start() - start the runtime with a choice of one's own
 * @cfg: NULL for the defaults
 *
 * Context: any thread.
 * Return: 0; -EALREADY if it runs; -EBUSY while it stops; -ENODEV if the
 * module was asked for and /dev/parklot cannot be used; -EOPNOTSUPP if the
 * environment asks for a PARKLOT_WAIT that is not to be had; -EINVAL for a bad
 * field, or a bad value in the environment; -ENOMEM, -EAGAIN.
 */
PL_API int pl_runtime_start(const struct pl_config *cfg);

/**
 * pl_runtime_stop() - end the runtime
 *
 * From now on nothing may be spawned from outside tasks and every blocking
 * call returns -ECANCELED.  Waits until every task has ended, then ends the
 * workers and the timer thread.  The runtime may be started again.
 *
 * Context: any thread that is not a worker.  From a timer's callback it only
 * starts the stop, since the timer thread cannot wait for itself: tasks and
 * workers are ended by a thread of the library's, and pl_runtime_start()
 * says -EBUSY until that is done.
 * Return: 0; -EDEADLK from a task; -EALREADY if another stop is under way or
 * nothing runs.
 */
PL_API int pl_runtime_stop(void);

/**
 * pl_runtime_set_workers() - want more or fewer runnable workers
 * @nr: 0: the CPUs that affinity and cgroup quota allow
 *
 * More are started on demand, as at the start.  With fewer, those that are too
 * many park at the end of the task that they run; what is in their queues is
 * taken by the others.  Their threads end after a while.
 *
 * Context: any thread; starts the runtime if it does not run.
 * Return: 0; -EINVAL if @nr is over the max_workers it was started with;
 * -ECANCELED while the runtime stops; what pl_runtime_start() says.
 */
PL_API int pl_runtime_set_workers(uint32_t nr);

/** pl_runtime_backend() - the one in use; PL_BACKEND_AUTO before the start */
PL_API enum pl_backend pl_runtime_backend(void);

/**
 * struct pl_stat - what the runtime did, and what it is doing
 *
 * The counters are sums over workers read without stopping them: each is
 * exact once the runtime is quiet, and never goes down.
 */
struct pl_stat {
	size_t		size;
	uint64_t	tasks_spawned;
	uint64_t	tasks_ended;
	uint64_t	switches;	/* from one stack to another */
	uint64_t	steals;		/* tasks taken from another worker */
	uint64_t	parks;		/* times a worker went to sleep */
	uint64_t	wakes;		/* workers woken */
	uint64_t	wakes_empty;	/* system calls that woke no worker */
	uint64_t	timers_added;
	uint64_t	timers_fired;
	uint64_t	timers_deleted;
	uint64_t	timer_busy_ns;	/* CPU time of the timer thread */
	uint64_t	io_submitted;
	uint64_t	io_completed;
	uint32_t	backend;	/* enum pl_backend */
	uint32_t	workers;	/* threads that there are */
	uint32_t	workers_running;
	uint32_t	workers_parked;
	uint32_t	workers_blocked; /* by their tasks, or as they start */
	uint32_t	tasks_alive;
	uint32_t	timers_alive;
	uint32_t	io_in_flight;
	uint64_t	stacks_unguarded; /* a canary instead of a guard page */
	uint64_t	io_enters;	/* io_uring_enter(), or epoll_wait() */
	uint64_t	blocks;		/* times a worker was found blocked */
	uint64_t	all_blocked;	/* times all max_workers were */
	uint32_t	io;		/* enum pl_io, of workers that run */
	uint32_t	wait;		/* enum pl_wait, of workers that run */
};

#define PL_STAT_INIT		PL__SIZED(struct pl_stat)

/** pl_stat_read() - fill @st; 0, or -EINVAL if its size was not set */
PL_API int pl_stat_read(struct pl_stat *st);

/** struct pl_stat_worker - the same of one worker */
struct pl_stat_worker {
	size_t		size;
	uint64_t	cpu_ns;		/* CPU time, of all threads it was */
	uint64_t	switches;
	uint64_t	steals;
	uint64_t	parks;
	uint64_t	signals;	/* signals sent for tasks spawned */
	uint64_t	nosignals;	/* tasks spawned without one */
	uint64_t	tasks_ended;
	uint32_t	lot;
	uint32_t	reserved;
};

#define PL_STAT_WORKER_INIT	PL__SIZED(struct pl_stat_worker)

/**
 * pl_stat_worker() - the counters of worker @i
 *
 * A worker that has ended keeps its number for the next one, which counts on.
 * Return: 0; -ENOENT if there never was such a worker; -EINVAL.
 */
PL_API int pl_stat_worker(uint32_t i, struct pl_stat_worker *st);

/**
 * pl_dump() - write what every task does to @fd, as text
 *
 * For each task: its name, and whether it runs, is ready or has not started; or
 * the object that it waits for, the longest time that it will wait, and the
 * calls that led there.  Threads that wait as tasks do are listed, too.  The
 * text is for people, and may change from version to version.
 *
 * Nothing is stopped: each line is read at another moment.
 *
 * Context: any thread, also while all tasks wait for each other; a task keeps
 * its worker until it is written.  Not from a signal handler.
 * Return: 0; the error of write(2); -EPERM: the kernel does not let a process
 * read its own memory, by process_vm_readv(2).
 */
PL_API int pl_dump(int fd);

PL_END_DECLS

#endif /* PARKLOT_RUNTIME_H */
