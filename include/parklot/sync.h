/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Locks and what else tasks and threads wait for each other with.
 */
#ifndef PARKLOT_SYNC_H
#define PARKLOT_SYNC_H

#include "word.h"

PL_BEGIN_DECLS

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

/** struct pl_sem - counting semaphore; zero-filled it has no units */
struct pl_sem {
	struct pl_word	word;
	uint64_t	reserved;
};

/** struct pl_latch - wait until a count is 0; zero-filled it is 0 */
struct pl_latch {
	struct pl_word	word;
	uint64_t	reserved;
};

/** struct pl_barrier - participants wait for each other; zero-filled for one */
struct pl_barrier {
	struct pl_word	word;
	uint64_t	state;
	uint32_t	nr;
	uint32_t	reserved;
};

/** struct pl_once - whether a function was called that is to be called once */
struct pl_once {
	struct pl_word	word;
	uint64_t	runner;
};

struct pl__list;

/** struct pl_rwlock - sleeping lock for one writer or many readers */
struct pl_rwlock {
	struct pl_word	word;
	PL_ATOMIC_U32	lock;
	uint32_t	phase;
	struct pl__list	*readers;
	struct pl__list	*writers;
	uint32_t	turn;
	uint32_t	reserved;
};

#define PL_MUTEX_INIT		{ { 0, 0 }, 0 }
#define PL_COND_INIT		{ { 0, 0 }, 0 }
#define PL_SEM_INIT(nr)		{ { (nr), 0 }, 0 }
#define PL_LATCH_INIT(nr)	{ { (nr), 0 }, 0 }
#define PL_BARRIER_INIT(nr)	{ { 0, 0 }, 0, (nr), 0 }
#define PL_ONCE_INIT		{ { 0, 0 }, 0 }
#define PL_RWLOCK_INIT		{ { 0, 0 }, 0, 0, NULL, NULL, 0, 0 }

/* The largest count of a semaphore and of a latch. */
#define PL_SEM_MAX		0x7fffffffU
#define PL_LATCH_MAX		0x7fffffffU

/**
 * pl_mutex_lock() - lock; not a point of interruption or cancellation
 *
 * A waiter that others overtake for 1 ms is handed the mutex.
 */
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
 * As with every condition variable the caller checks its condition again.
 *
 * Return: 0, -EINTR or -ECANCELED; @m is locked again in each case.
 */
PL_API int pl_cond_wait(struct pl_cond *c, struct pl_mutex *m);

/** pl_cond_wait_until() - as pl_cond_wait(); also -ETIMEDOUT, -ENOMEM */
PL_API int pl_cond_wait_until(struct pl_cond *c, struct pl_mutex *m,
			      uint64_t deadline_ns);

/** pl_cond_signal() - wake the waiter that has waited longest */
PL_API void pl_cond_signal(struct pl_cond *c);

/**
 * pl_cond_broadcast() - wake all waiters
 *
 * Wakes the first one, and moves the others to the mutex; each unlock then
 * wakes one of them.
 */
PL_API void pl_cond_broadcast(struct pl_cond *c);

/** pl_sem_init() - @nr units; 0, -EINVAL above PL_SEM_MAX */
PL_API int pl_sem_init(struct pl_sem *s, uint32_t nr);

/** pl_sem_trywait() - take a unit; -EAGAIN if there is none */
PL_API int pl_sem_trywait(struct pl_sem *s);

/** pl_sem_wait() - take a unit; 0, -EINTR, -ECANCELED or -ENOMEM */
PL_API int pl_sem_wait(struct pl_sem *s);

/** pl_sem_wait_until() - as pl_sem_wait(); also -ETIMEDOUT */
PL_API int pl_sem_wait_until(struct pl_sem *s, uint64_t deadline_ns);

/**
 * pl_sem_post() - add @nr units, and wake as many waiters
 *
 * *@s is not touched once another can have the units.  Another caller may take
 * a unit before a woken waiter does, which then waits on.
 *
 * Return: 0; -EOVERFLOW, and no unit is added, if there would be more than
 * PL_SEM_MAX; -EINVAL, also if @nr alone is more.
 */
PL_API int pl_sem_post(struct pl_sem *s, uint32_t nr);

/** pl_latch_init() - set the count to @nr; 0, -EINVAL above PL_LATCH_MAX */
PL_API int pl_latch_init(struct pl_latch *l, uint32_t nr);

/**
 * pl_latch_add() - add @nr to the count
 *
 * From 0 only while there are no waiters: a waiter may have missed the 0.
 *
 * Return: 0; -EOVERFLOW, and nothing is added, above PL_LATCH_MAX; -EINVAL.
 */
PL_API int pl_latch_add(struct pl_latch *l, uint32_t nr);

/**
 * pl_latch_done() - subtract 1; at 0, wake all waiters
 *
 * *@l is not touched once a waiter can return.
 *
 * Return: 0; -EINVAL if the count is 0.
 */
PL_API int pl_latch_done(struct pl_latch *l);

/** pl_latch_wait() - wait for 0; 0, -EINTR, -ECANCELED or -ENOMEM */
PL_API int pl_latch_wait(struct pl_latch *l);

/** pl_latch_wait_until() - as pl_latch_wait(); also -ETIMEDOUT */
PL_API int pl_latch_wait_until(struct pl_latch *l, uint64_t deadline_ns);

/** pl_barrier_init() - for rounds of @nr; 0, -EINVAL if that is 0 */
PL_API int pl_barrier_init(struct pl_barrier *b, uint32_t nr);

/**
 * pl_barrier_wait() - wait until all participants have arrived
 *
 * The next round begins at once: a participant that returns may arrive again.
 * A participant that is interrupted or cancelled has not arrived, and the
 * others wait on; once the round is complete each call returns 0 or 1, and an
 * interrupt stays pending.  *@b may be freed when all participants have
 * returned.
 *
 * Return: 1 to one participant of each round, 0 to the others; -EINTR,
 * -ECANCELED, -ENOMEM, -EINVAL.
 */
PL_API int pl_barrier_wait(struct pl_barrier *b);

/**
 * pl_once() - call @fn(@arg) the first time, else wait until that has returned
 * @o:   the object, one for each thing that is to be done once
 * @fn:  not called if another call, with whatever function, was first
 * @arg: passed to @fn
 *
 * Not a point of interruption or cancellation.  If a task ends in @fn by
 * pl_exit(), its call does not count: one of the waiters calls its own @fn.
 * @fn must not be left otherwise, by longjmp(), an exception or pthread_exit().
 *
 * Return: 0: the function was called; -EDEADLK from within @fn; -EINVAL.
 */
PL_API int pl_once(struct pl_once *o, void (*fn)(void *arg), void *arg);

/**
 * pl_rwlock_rdlock() - lock, together with other readers
 *
 * Waits if a writer has the lock, or if readers have it and a writer waits,
 * even if the caller is one of these readers: not recursive.  A waiter that
 * others overtake for 1 ms is handed the lock.  Not a point of interruption or
 * cancellation.
 */
PL_API void pl_rwlock_rdlock(struct pl_rwlock *l);

/** pl_rwlock_tryrdlock() - 0, or -EBUSY if it would wait */
PL_API int pl_rwlock_tryrdlock(struct pl_rwlock *l);

/** pl_rwlock_rdlock_until() - 0, -ETIMEDOUT, -EINTR, -ECANCELED or -ENOMEM */
PL_API int pl_rwlock_rdlock_until(struct pl_rwlock *l, uint64_t deadline_ns);

/** pl_rwlock_rdunlock() - *@l is not touched once another can have it */
PL_API void pl_rwlock_rdunlock(struct pl_rwlock *l);

/**
 * pl_rwlock_wrlock() - lock, alone
 *
 * Readers that arrive later wait, unless they find the lock free.  The unlock
 * wakes the readers that wait at that moment, and the last of these the next
 * writer, in the order in which they arrived.  A waiter that others overtake
 * for 1 ms is handed the lock.  Not a point of interruption or cancellation.
 */
PL_API void pl_rwlock_wrlock(struct pl_rwlock *l);

/** pl_rwlock_trywrlock() - 0, or -EBUSY if it would wait */
PL_API int pl_rwlock_trywrlock(struct pl_rwlock *l);

/**
 * pl_rwlock_wrlock_until() - as pl_rwlock_wrlock(), with a deadline
 *
 * If it fails, readers that waited only for this writer are woken.
 *
 * Return: 0, -ETIMEDOUT, -EINTR, -ECANCELED or -ENOMEM.
 */
PL_API int pl_rwlock_wrlock_until(struct pl_rwlock *l, uint64_t deadline_ns);

/** pl_rwlock_wrunlock() - *@l is not touched once another can have it */
PL_API void pl_rwlock_wrunlock(struct pl_rwlock *l);

PL_END_DECLS

#endif /* PARKLOT_SYNC_H */
