/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * parklot: tasks for servers, M:N on a few workers
 *
 * A task is a function with a stack of its own that blocks without blocking
 * the thread below it.  Workers are the threads that run tasks; each has its
 * own run queue, and one with nothing to do steals from the others, then
 * parks.  The names and promises here are the library's whole interface.
 *
 * What holds everywhere, unless a function says otherwise:
 *
 * - 0 or a useful non-negative value on success, a negative errno on failure.
 *   errno itself is neither read nor written.
 * - Times are nanoseconds; a deadline is absolute on CLOCK_MONOTONIC
 *   (pl_now()).  PL_FOREVER never expires; a deadline in the past polls.
 * - What blocks may be called from a task (the task is parked, its worker goes
 *   on) and from any ordinary thread (the thread blocks), and returns
 *   -ETIMEDOUT at its deadline, -EINTR after pl_interrupt(), -ECANCELED after
 *   pl_cancel() or while the runtime stops.
 * - Bad arguments get -EINVAL, and nothing else happens.
 * - Objects embedded by the caller are valid when zero-filled, need no destroy
 *   call and allocate nothing.
 * - Structs of options begin with their size, set by their *_INIT.
 * - The runtime starts by itself at first use.
 */
#ifndef PARKLOT_H
#define PARKLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define PARKLOT_VERSION		"0.1.0"

#if defined(__GNUC__)
# define PL_API			__attribute__((visibility("default")))
#else
# define PL_API
#endif

#ifdef __cplusplus
# define PL_ATOMIC_U32		uint32_t
extern "C" {
#else
# define PL_ATOMIC_U32		_Atomic uint32_t
#endif

#define PL_FOREVER		UINT64_MAX

/* ---- runtime ---- */

/** enum pl_backend - where idle workers sleep */
enum pl_backend {
	PL_BACKEND_AUTO,	/* /dev/parklot if it can be opened */
	PL_BACKEND_MODULE,	/* /dev/parklot, or -ENODEV */
	PL_BACKEND_FUTEX,	/* futexes: any Linux */
};

/** enum pl_stack - what a task runs on */
enum pl_stack {
	PL_STACK_NORMAL,	/* 256 KiB */
	PL_STACK_SMALL,		/* 32 KiB */
	PL_STACK_LARGE,		/* 8 MiB */
	PL_STACK_WORKER,	/* the worker's own: it blocks with it */
};

/**
 * struct pl_config - what a runtime is started with
 * @size:		set by PL_CONFIG_INIT
 * @nr_workers:		runnable workers wanted, started on demand; 0: the CPUs
 *			that affinity and cgroup quota allow
 * @max_workers:	worker threads at most, blocked ones included; 0:
 *			@nr_workers + 256
 * @nr_lots:		parking lots the workers are spread over; 0: 4
 * @nr_timer_buckets:	0: 13; at most 1024
 * @backend:		enum pl_backend
 * @flags:		0
 * @stack_size:		bytes by enum pl_stack; 0: the default of each
 * @min_workers:	started at once; 0: 1
 * @worker_start:	called first in every worker and in the timer thread
 * @worker_start_arg:	passed to it
 *
 * PARKLOT_BACKEND=auto|module|futex, PARKLOT_WORKERS=N and
 * PARKLOT_MAX_WORKERS=N in the environment override the fields of these names.
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
	uint32_t	reserved;
	void		(*worker_start)(void *arg);
	void		*worker_start_arg;
};

#ifdef __cplusplus
# define PL__SIZED(type)	type { sizeof(type) }
#else
# define PL__SIZED(type)	(type){ .size = sizeof(type) }
#endif

#define PL_CONFIG_INIT		PL__SIZED(struct pl_config)

/**
 * pl_runtime_start() - start the runtime with a choice of one's own
 * @cfg: NULL for the defaults
 *
 * Context: any thread.
 * Return: 0; -EALREADY if it runs; -EBUSY while it stops; -ENODEV if the
 * module was asked for and /dev/parklot cannot be used; -EINVAL for a bad
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
	uint64_t	wakes_empty;	/* entered the kernel, woke nobody */
	uint64_t	timers_added;
	uint64_t	timers_fired;
	uint64_t	timers_deleted;
	uint64_t	timer_busy_ns;	/* CPU time of the timer thread */
	uint64_t	io_submitted;
	uint64_t	io_completed;
	uint32_t	backend;	/* enum pl_backend */
	uint32_t	workers;	/* threads started */
	uint32_t	workers_running;
	uint32_t	workers_parked;
	uint32_t	workers_blocked; /* in a task on the worker's stack */
	uint32_t	tasks_alive;
	uint32_t	timers_alive;
	uint32_t	io_in_flight;
	uint64_t	stacks_unguarded; /* a canary instead of a guard page */
	uint64_t	io_enters;	/* io_uring_enter() calls */
};

#define PL_STAT_INIT		PL__SIZED(struct pl_stat)

/** pl_stat_read() - fill @st; 0, or -EINVAL if its size was not set */
PL_API int pl_stat_read(struct pl_stat *st);

/** struct pl_stat_worker - the same of one worker */
struct pl_stat_worker {
	size_t		size;
	uint64_t	cpu_ns;		/* CPU time of the thread */
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
 * Return: 0; -ENOENT if there is no such worker; -EINVAL.
 */
PL_API int pl_stat_worker(uint32_t i, struct pl_stat_worker *st);

/* ---- tasks ---- */

typedef uint64_t pl_task_t;	/* slot | version << 32; 0 is no task */

#define PL_SPAWN_URGENT		(1U << 0) /* run it at once on this worker */
#define PL_SPAWN_NOSIGNAL	(1U << 1) /* wake nobody before pl_flush() */

/**
 * struct pl_spawn_opts - how a task is spawned
 * @size:  set by PL_SPAWN_OPTS_INIT
 * @stack: enum pl_stack
 * @flags: PL_SPAWN_*
 * @name:  copied, 15 bytes; shown by tools and in messages
 */
struct pl_spawn_opts {
	size_t		size;
	uint32_t	stack;
	uint32_t	flags;
	const char	*name;
};

#define PL_SPAWN_OPTS_INIT	PL__SIZED(struct pl_spawn_opts)

/**
 * pl_spawn() - start @fn(@arg) as a task
 * @out:  where to put the task's handle, or NULL; written before @fn runs
 * @fn:   what the task runs; it ends when @fn returns or calls pl_exit()
 * @arg:  passed to @fn
 * @opts: NULL for the defaults
 *
 * With PL_SPAWN_URGENT, in a task, @fn starts at once on this worker; the
 * caller is ready from then on and may be stolen, so that it may return
 * before the first line of @fn has run.  From elsewhere the flag does nothing.
 *
 * Context: any thread.
 * Return: 0; -EAGAIN if the task table is full or a task waits for a stack
 * that could not be had; -ENOMEM; -ECANCELED from outside tasks while the
 * runtime stops; -EINVAL.
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
 * Return: how many were spawned, if not all because of what pl_spawn() would
 * say of the next; that error if none was.
 */
PL_API int pl_spawn_many(pl_task_t *out, size_t nr, void (*fn)(void *arg),
			 void *const *args, const struct pl_spawn_opts *opts);

/**
 * pl_flush() - signal what PL_SPAWN_NOSIGNAL held back
 *
 * Concerns what the calling worker or thread spawned.  A worker also flushes
 * by itself before it looks for other work.
 *
 * Return: how many tasks were signalled.
 */
PL_API int pl_flush(void);

/** pl_exit() - end the calling task; outside a task it does nothing */
PL_API void pl_exit(void);

/**
 * pl_join() - wait until task @t has ended
 *
 * Any number of callers, any time; a handle stays good for ever.
 *
 * Return: 0, also when it ended long ago; -EDEADLK for oneself; -EINVAL for
 * 0; -EINTR, -ECANCELED.
 */
PL_API int pl_join(pl_task_t t);

/** pl_join_until() - the same; -ETIMEDOUT once @deadline_ns has passed */
PL_API int pl_join_until(pl_task_t t, uint64_t deadline_ns);

/** pl_self() - the calling task; 0 outside a task */
PL_API pl_task_t pl_self(void);

/** pl_yield() - let every other ready task of this worker run first */
PL_API void pl_yield(void);

/** pl_sleep() - sleep @ns; 0, -EINTR or -ECANCELED */
PL_API int pl_sleep(uint64_t ns);

/** pl_sleep_until() - sleep until @deadline_ns; 0, -EINTR or -ECANCELED */
PL_API int pl_sleep_until(uint64_t deadline_ns);

/**
 * pl_interrupt() - let the current or next blocking call of @t return -EINTR
 *
 * Return: 0; -ESRCH if @t has ended; -EINVAL for 0.
 */
PL_API int pl_interrupt(pl_task_t t);

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

/* ---- timers ---- */

typedef uint64_t pl_timer_t;	/* slot | version << 32; 0 is no timer */

/**
 * pl_timer_add() - call @fn(@arg) on the timer thread at @deadline_ns
 * @out:         the timer's handle, or NULL
 * @deadline_ns: absolute, monotonic; past: as soon as may be.  PL_FOREVER
 *               never fires.
 * @fn:          must be short: all timers wait for it.  May spawn, wake and
 *               add or delete timers; must not block.
 * @arg:         passed to it
 *
 * Return: 0; -ENOMEM, -EAGAIN; -ECANCELED while the runtime stops; -EINVAL.
 */
PL_API int pl_timer_add(pl_timer_t *out, uint64_t deadline_ns,
			void (*fn)(void *arg), void *arg);

/**
 * pl_timer_del() - take a timer back
 *
 * Return: 0: it will not run; -EBUSY: it is running now; -ENOENT: it ran, was
 * removed, or never was; -EINVAL for 0.
 */
PL_API int pl_timer_del(pl_timer_t t);

/* ---- waiting on a word ---- */

/**
 * struct pl_word - a 32-bit word that can be waited on; bthread's butex
 *
 * The waiters are kept outside the word, by its address, so that it may be
 * freed as soon as the last waiter was let go.
 */
struct pl_word {
	PL_ATOMIC_U32	value;
	uint32_t	reserved;
};

/**
 * pl_word_wait() - wait as long as @w->value is @expected
 *
 * The comparison and going to sleep are one step to pl_word_wake(): whoever
 * changes the value and then wakes will wake us.  As with futexes the caller
 * looks at its condition again: where the memory was in use before, as this or
 * another object, a wake for that one may come late.
 *
 * Return: 0 when woken; -EAGAIN if the value differed; -ETIMEDOUT, -EINTR,
 * -ECANCELED; -ENOMEM if a deadline cannot be had.
 */
PL_API int pl_word_wait(struct pl_word *w, uint32_t expected,
			uint64_t deadline_ns);

/**
 * pl_word_wake() - wake up to @nr waiters, the longest waiting first
 *
 * Does not touch *@w: only its address matters.
 *
 * Return: how many were woken.
 */
PL_API int pl_word_wake(struct pl_word *w, uint32_t nr);

/**
 * pl_word_requeue() - wake @nr_wake waiters of @from, move @nr_move to @to
 *
 * Moved waiters keep their deadlines and wait as if they had called
 * pl_word_wait() on @to; no value is compared.
 *
 * Return: how many were woken or moved; -EINVAL if @from is @to.
 */
PL_API int pl_word_requeue(struct pl_word *from, struct pl_word *to,
			   uint32_t nr_wake, uint32_t nr_move);

#ifdef __cplusplus
}	/* extern "C" */

static_assert(sizeof(struct pl_word) == 8, "layout is shared with C");

static inline uint32_t pl_word_load(const struct pl_word *w)
{
	return __atomic_load_n(&w->value, __ATOMIC_SEQ_CST);
}

static inline void pl_word_store(struct pl_word *w, uint32_t value)
{
	__atomic_store_n(&w->value, value, __ATOMIC_SEQ_CST);
}

static inline uint32_t pl_word_add(struct pl_word *w, uint32_t n)
{
	return __atomic_fetch_add(&w->value, n, __ATOMIC_SEQ_CST);
}

extern "C" {
#else
_Static_assert(sizeof(struct pl_word) == 8, "layout is shared with C++");
_Static_assert(sizeof(PL_ATOMIC_U32) == 4, "layout is shared with C++");
#endif

/* ---- synchronisation ---- */

/** struct pl_mutex - sleeping lock; not recursive, owned by no one thread */
struct pl_mutex {
	struct pl_word	word;
	uint64_t	reserved;
};

/** struct pl_cond - condition variable, for tasks and threads alike */
struct pl_cond {
	struct pl_word	seq;
	void		*mutex;
};

#define PL_MUTEX_INIT		{ { 0, 0 }, 0 }
#define PL_COND_INIT		{ { 0, 0 }, 0 }

/** pl_mutex_lock() - lock; not a point of interruption or cancellation */
PL_API void pl_mutex_lock(struct pl_mutex *m);

/** pl_mutex_trylock() - 0, or -EBUSY if it is locked */
PL_API int pl_mutex_trylock(struct pl_mutex *m);

/** pl_mutex_lock_until() - 0, -ETIMEDOUT, -EINTR, -ECANCELED or -ENOMEM */
PL_API int pl_mutex_lock_until(struct pl_mutex *m, uint64_t deadline_ns);

/** pl_mutex_unlock() - unlock; *@m is not touched once another can have it */
PL_API void pl_mutex_unlock(struct pl_mutex *m);

/**
 * pl_cond_wait() - unlock @m, wait for a signal, lock @m again
 *
 * As with every condition variable the caller looks at its condition again.
 *
 * Return: 0, -EINTR or -ECANCELED; @m is locked again in each case.
 */
PL_API int pl_cond_wait(struct pl_cond *c, struct pl_mutex *m);

/** pl_cond_wait_until() - the same; also -ETIMEDOUT, -ENOMEM */
PL_API int pl_cond_wait_until(struct pl_cond *c, struct pl_mutex *m,
			      uint64_t deadline_ns);

/** pl_cond_signal() - let one waiter go, the longest waiting */
PL_API void pl_cond_signal(struct pl_cond *c);

/**
 * pl_cond_broadcast() - let all waiters go
 *
 * One is woken, the others are moved to the mutex, which wakes them in turn.
 */
PL_API void pl_cond_broadcast(struct pl_cond *c);

/* ---- I/O: parks the task, not the worker ---- */

/*
 * Each is the system call of its name, through io_uring: same arguments, its
 * result or -errno.  SIGPIPE is never raised by pl_send().  Besides
 * -ETIMEDOUT, -EINTR and -ECANCELED (the buffer is the caller's again in each
 * case; what was transferred before is reported instead): -EOPNOTSUPP if the
 * kernel has no io_uring.
 */
PL_API ssize_t pl_read(int fd, void *buf, size_t n);
PL_API ssize_t pl_read_until(int fd, void *buf, size_t n, uint64_t deadline_ns);
PL_API ssize_t pl_write(int fd, const void *buf, size_t n);
PL_API ssize_t pl_write_until(int fd, const void *buf, size_t n,
			      uint64_t deadline_ns);
PL_API ssize_t pl_recv(int fd, void *buf, size_t n, int flags);
PL_API ssize_t pl_recv_until(int fd, void *buf, size_t n, int flags,
			     uint64_t deadline_ns);
PL_API ssize_t pl_send(int fd, const void *buf, size_t n, int flags);
PL_API ssize_t pl_send_until(int fd, const void *buf, size_t n, int flags,
			     uint64_t deadline_ns);
PL_API int pl_accept(int fd, struct sockaddr *addr, socklen_t *len, int flags);
PL_API int pl_accept_until(int fd, struct sockaddr *addr, socklen_t *len,
			   int flags, uint64_t deadline_ns);
PL_API int pl_connect(int fd, const struct sockaddr *addr, socklen_t len);
PL_API int pl_connect_until(int fd, const struct sockaddr *addr, socklen_t len,
			    uint64_t deadline_ns);

/** pl_close() - close @fd; not a point of cancellation */
PL_API int pl_close(int fd);

struct io_uring_sqe;

/** pl_io_sqe_init() - an empty SQE, to be prepared by any io_uring_prep_*() */
PL_API void pl_io_sqe_init(struct io_uring_sqe *sqe);

/**
 * pl_io_wait() - submit a copy of @sqe and wait for its completion
 *
 * The way to all that io_uring can do.  user_data is the library's.
 *
 * Return: the completion's res; else as above.
 */
PL_API int pl_io_wait(struct io_uring_sqe *sqe, uint64_t deadline_ns);

#ifdef __cplusplus
}
#endif

#endif /* PARKLOT_H */
