/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * wait_entry: what a task or thread is while it waits on a word
 *
 * It lives in the task's slot, which is never unmapped; so whoever comes late
 * to let it go (a timer, an interrupt) may still look at it, under the lock of
 * the bucket that its word hashes to.
 */
#ifndef PL_WAIT_ENTRY_H
#define PL_WAIT_ENTRY_H

#include "base/list.h"
#include "park/parker.h"

#include "parklot.h"

/* What a wait is for, to be told to who looks; PL__FOR_x among its flags. */
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
	PL__FOR_IO,
	PL__NR_FOR,
};

/* B: bucket's lock.  O: owner, while it does not wait. */
struct pl__wait_entry {
	union {
		struct pl__list	list;		/* B: in its bucket */
		char		name[16];	/* O: task's, till it runs */
	};
	/* B, A: waited on, or NULL; odd: a place */
	_Atomic(_Atomic uint32_t *) word;
	union {
		pl_timer_t	timer;		/* B: a task's, armed, or 0 */
		struct pl__parker parker;	/* a thread's */
	};
	uint32_t		nr;		/* B: of waits, for timers */
	int			reason;		/* B: what pl__wait() returns */
	bool			uninterruptible; /* O */
	bool			is_thread;	/* O: asleep on the sleeper */
	bool			is_listed;	/* B */
	uint8_t			what;		/* O: enum pl__for */
};

#endif /* PL_WAIT_ENTRY_H */
