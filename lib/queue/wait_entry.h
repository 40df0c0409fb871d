/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * wait_entry: a task or thread that waits on a word
 *
 * It is in the task's slot, which is never unmapped.  So a late waker (a timer,
 * an interrupt) may still read it, under the lock of the bucket that its word
 * hashes to.
 */
#ifndef PL_WAIT_ENTRY_H
#define PL_WAIT_ENTRY_H

#include "base/list.h"
#include "park/parker.h"

#include "parklot.h"

/* What a wait is for, as dumps show it; PL__FOR_x is among the wait's flags. */
enum pl__for {
	PL__FOR_WORD,
	PL__FOR_MUTEX,
	PL__FOR_COND,
	PL__FOR_RWLOCK,
	PL__FOR_SEM,
	PL__FOR_LATCH,
	PL__FOR_BARRIER,
	PL__FOR_ONCE,
	PL__FOR_CHAN,
	PL__FOR_QUEUE,
	PL__FOR_JOIN,
	PL__FOR_SLEEP,
	PL__FOR_SCOPE,
	PL__FOR_IO,
	PL__FOR_SPAWN,
	PL__FOR_GETADDRINFO,
	PL__FOR_GETNAMEINFO,
	PL__NR_FOR,
};

/*
 * B: the bucket's lock is held.  O: owner, the waiter, while it does not wait.
 */
struct pl__wait_entry {
	union {
		struct pl__list	list;		/* B: in its bucket */
		char		name[16]; /* O: the task's, before it runs */
	};
	/*
	 * B, A: the word waited on, or NULL; low bits: 1 a single-waiter slot,
	 * 2 or 3 wait_lone.h
	 */
	_Atomic(_Atomic uint32_t *) word;
	union {
		pl_timer_t	timer; /* B: a task's deadline, armed, or 0 */
		struct pl__parker parker;	/* used by a thread */
		uint64_t	ready_ns; /* O: spawned then, if sampled */
	};
	uint32_t		nr; /* B: number of the wait, for its timer */
	int			reason;		/* B: what pl__wait() returns */
	/* O: interrupts do not end the wait */
	bool			uninterruptible;
	bool			is_thread; /* O: a thread, asleep on parker */
	bool			is_listed; /* B: it is in its bucket's list */
	uint8_t			what;		/* O: enum pl__for */
	uint8_t			interrupts;	/* B: those it consumed last */
	/* O: the task's, for its wakers, see background.h */
	bool			is_background;
};

#endif /* PL_WAIT_ENTRY_H */
