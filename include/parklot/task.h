/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Tasks: functions with stacks of their own; spawning, joining, sleeping.
 */
#ifndef PARKLOT_TASK_H
#define PARKLOT_TASK_H

#include "base.h"
#include "group.h"

PL_BEGIN_DECLS

typedef uint64_t pl_task_t;	/* slot | version << 32; 0 is no task */

/** enum pl_stack - what a task runs on */
enum pl_stack {
	PL_STACK_NORMAL,	/* 256 KiB */
	PL_STACK_SMALL,		/* 32 KiB */
	PL_STACK_LARGE,		/* 8 MiB */
	PL_STACK_WORKER,	/* the worker's own: blocks the worker */
};

#define PL_SPAWN_URGENT		(1U << 0) /* run it now on this worker */
#define PL_SPAWN_NOSIGNAL	(1U << 1) /* no notify before pl_flush() */
#define PL_SPAWN_BLOCKING	(1U << 2) /* it will block in the kernel */
#define PL_SPAWN_WAIT		(1U << 3) /* wait while there are max_tasks */
#define PL_SPAWN_BACKGROUND	(1U << 4) /* when nothing else is ready */

/**
 * struct pl_spawn_opts - how a task is spawned
 * @size:  set by PL_SPAWN_OPTS_INIT
 * @stack: enum pl_stack
 * @flags: PL_SPAWN_*
 * @name:  copied, 15 bytes, with '?' for control characters; shown by tools
 *	   and in messages
 * @stack_size: how many bytes the task needs, with @stack PL_STACK_NORMAL: it
 *         gets the smallest of the runtime's stacks that has them, or -EINVAL;
 *         0: the class decides
 * @deadline_ns: with PL_SPAWN_WAIT, until when to wait; 0: PL_FOREVER
 * @group: the group on whose workers it runs; 0: the caller's
 * @reserved: 0
 */
struct pl_spawn_opts {
	size_t		size;
	uint32_t	stack;
	uint32_t	flags;
	const char	*name;
	size_t		stack_size;
	uint64_t	deadline_ns;
	pl_group_t	group;
	uint32_t	reserved;
};

#define PL_SPAWN_OPTS_INIT	PL__SIZED(struct pl_spawn_opts)

/**
 * pl_spawn() - start @fn(@arg) as a task
 * @out:  where to put the task's handle, or NULL; written before @fn runs
 * @fn:   what the task runs; it ends when @fn returns or calls pl_exit()
 * @arg:  passed to @fn
 * @opts: NULL for the defaults
 *
 * With PL_SPAWN_URGENT, in a task, @fn starts now on this worker; the caller is
 * ready from then on and another worker may steal it, so that it may return
 * before the first line of @fn has run.  Outside of tasks, and for another
 * group, the flag does nothing.
 *
 * With PL_SPAWN_BLOCKING the task is set aside whenever it is ready, as one
 * that blocked before, see parklot(7); a worker is notified at once.
 *
 * With PL_SPAWN_BACKGROUND the task runs when a worker has nothing else to do,
 * each time that it is ready; its children are like any others.  Where other
 * tasks are always ready, one background task runs in 10 ms all the same, see
 * parklot-scheduling(7).
 *
 * A task of another group is signalled at once, whatever the flags say.
 *
 * While the max_tasks of the configuration, or of its group, are alive the
 * spawn is refused, or, with PL_SPAWN_WAIT, waits until one has ended.  A spawn
 * that comes meanwhile may be first.  Unsignalled tasks of the caller are
 * signalled before it waits.
 *
 * Context: any thread; with PL_SPAWN_WAIT it blocks.
 * Return: 0; -EAGAIN if max_tasks are alive, the task table is full, or a task
 * waits for a stack that could not be had; -ENOMEM; -ECANCELED from outside
 * tasks while the runtime stops; -EINVAL, also for a group that does not exist,
 * and for two of PL_SPAWN_URGENT, PL_SPAWN_BLOCKING and PL_SPAWN_BACKGROUND.
 * If it waits: also -ETIMEDOUT, -EINTR and -ECANCELED.
 */
PL_API int pl_spawn(pl_task_t *out, void (*fn)(void *arg), void *arg,
		    const struct pl_spawn_opts *opts);

/**
 * pl_spawn_many() - start @nr tasks with one signal for all
 * @out:  array of @nr handles to fill, or NULL
 * @nr:   how many
 * @fn:   what each runs
 * @args: array of @nr arguments, or NULL for a NULL to each
 * @opts: NULL for the defaults; PL_SPAWN_URGENT is refused
 *
 * Return: how many were spawned; fewer than @nr if pl_spawn() would fail for
 * the next; its error if none was.  With PL_SPAWN_WAIT each may wait, and an
 * interrupt that ends the wait after the first is left for the next call.
 */
PL_API int pl_spawn_many(pl_task_t *out, size_t nr, void (*fn)(void *arg),
			 void *const *args, const struct pl_spawn_opts *opts);

/**
 * pl_flush() - signal tasks that PL_SPAWN_NOSIGNAL left unsignalled
 *
 * Concerns tasks that the calling worker or thread spawned.  A worker also
 * flushes by itself before it looks for other work.
 *
 * Return: how many tasks were signalled.
 */
PL_API int pl_flush(void);

/**
 * pl_exit() - end the calling task; outside a task it does nothing
 *
 * Nothing is unwound: no destructor of C++ runs, and no cleanup handler.  A
 * task of <parklot.hpp> ends by parklot::this_task::exit().
 */
PL_API void pl_exit(void);

/**
 * pl_join() - wait until task @t has ended
 *
 * Any number of callers, any time; a handle stays good for ever.
 *
 * Return: 0, also when it ended long ago; -ESRCH if no task ever had this
 * handle, as far as that can be told; -EDEADLK for oneself; -EINVAL for 0;
 * -EINTR, -ECANCELED.
 */
PL_API int pl_join(pl_task_t t);

/** pl_join_until() - as pl_join(); also -ETIMEDOUT, -ENOMEM */
PL_API int pl_join_until(pl_task_t t, uint64_t deadline_ns);

/** pl_self() - the calling task; 0 outside a task */
PL_API pl_task_t pl_self(void);

/** pl_yield() - let every other ready task of this worker run first */
PL_API void pl_yield(void);

/**
 * pl_blocking() - call @fn(@arg), which is expected to block in the kernel
 * @fn:  called once, by the caller's task and on its stack
 * @arg: passed to @fn
 *
 * The worker counts as blocked until @fn returns or the task waits, so that
 * another one runs in its place at once if tasks wait.  @fn may do all that a
 * task may do; calls may be nested.
 *
 * Context: any thread; outside of tasks it only calls @fn.
 * Return: 0; -EINVAL for NULL.
 */
PL_API int pl_blocking(void (*fn)(void *arg), void *arg);

/** pl_sleep() - sleep @ns; 0, -EINTR, -ECANCELED or -ENOMEM */
PL_API int pl_sleep(uint64_t ns);

/** pl_sleep_until() - sleep until @deadline_ns; as pl_sleep() */
PL_API int pl_sleep_until(uint64_t deadline_ns);

/**
 * pl_interrupt() - let the current or next blocking call of @t return -EINTR
 *
 * Return: 0; -ESRCH if @t has ended; -EINVAL for 0.
 */
PL_API int pl_interrupt(pl_task_t t);

/**
 * pl_section_begin() - begin a section of code that others may interrupt
 *
 * Ends the one before: sections do not nest.
 *
 * Return: its number, for pl_section_interrupt(), which the task uses again
 * after 2^23 further sections; 0 outside of tasks.
 */
PL_API uint32_t pl_section_begin(void);

/** pl_section_end() - end it; an interrupt that no call reported is gone */
PL_API void pl_section_end(void);

/**
 * pl_section_interrupt() - as pl_interrupt(), for calls of one section only
 * @section: what pl_section_begin() returned in @t
 *
 * Return: 0; -ESRCH if the section or @t has ended; -EINVAL for 0.
 */
PL_API int pl_section_interrupt(pl_task_t t, uint32_t section);

/**
 * pl_cancel() - let every blocking call of @t return -ECANCELED from now on
 *
 * Return: 0; -ESRCH if @t has ended; -EINVAL for 0.
 */
PL_API int pl_cancel(pl_task_t t);

/** pl_cancelled() - whether the calling task was cancelled */
PL_API bool pl_cancelled(void);

/** pl_now() - CLOCK_MONOTONIC in nanoseconds */
PL_API uint64_t pl_now(void);

/**
 * pl_dump_task() - write what one task does to @fd, as pl_dump() would
 *
 * Context: as for pl_dump().
 * Return: 0; -ESRCH if @t has ended; -EINVAL for 0; else as pl_dump().
 */
PL_API int pl_dump_task(int fd, pl_task_t t);

/**
 * pl_backtrace() - the calls that led @t to where it left its worker
 * @pc: return addresses, innermost first, as backtrace(3) has them of a thread
 * @nr: room in @pc; 24 are enough
 *
 * Follows frame pointers.  Of a program without these all but the first are
 * inferred from the words on the stack: a call may have returned long ago.
 *
 * Context: as for pl_dump().
 * Return: how many; 0: @t runs, or has not started; -ESRCH if @t has ended;
 * -EINVAL for 0, or for an @nr below 0; -EPERM as pl_dump().
 */
PL_API int pl_backtrace(pl_task_t t, void **pc, int nr);

PL_END_DECLS

#endif /* PARKLOT_TASK_H */
